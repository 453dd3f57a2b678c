"""The page of a study: one HTML file, drawn from what a client of the report registers as its page."""
