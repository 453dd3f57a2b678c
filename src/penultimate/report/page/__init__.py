"""The page of a study: one HTML file, drawn from what a client of the report registers as its page."""

from penultimate.registry import declare

declare(
    "page", "kornblith2021", "penultimate.report.page.paper:PAGE", "a study beside Kornblith et al. (2021)"
)
declare("page", "evaluation", "penultimate.report.page.evaluation:PAGE", "networks and data of one's own")
