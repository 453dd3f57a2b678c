"""The page of a study: one HTML file, drawn from what a client of the report registers as its page."""

from penultimate.registry import declare

declare("page", "evaluation", "penultimate.report.page.evaluation:PAGE", "networks and data of one's own")
