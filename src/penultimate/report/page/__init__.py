"""The page of a study: one HTML file, drawn from the page that a client of the report registers."""
