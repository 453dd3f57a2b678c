"""The portrait of an objective: tuned and trained as those of a kept run, and shown beside them."""

from penultimate.registry import declare

declare(
    "page",
    "portrait",
    "penultimate.portrait.page:PAGE",
    "one objective beside those of a kept run",
    baseline="softmax",
    first="nine",
)

SEEDS = (0, 1, 2)
STRENGTHS = "strengths"
"""The arm of the networks that show what the objective's strength changes."""
CELLS = 5
"""The values that a search tries unless it is to be as thorough as that of the kept run's objectives."""
