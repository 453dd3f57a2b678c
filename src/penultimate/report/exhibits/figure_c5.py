"""Figure C.5: how alike the predictions of two networks are, measured in three ways."""

from __future__ import annotations

from penultimate.report.exhibits.base import Exhibit, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.figure_c4 import SINGLE
from penultimate.report.exhibits.likeness import METRICS, SEEDS_APART, Likeness, admit_likeness, mean_table
from penultimate.report.text import fixed

PUBLISHED = (
    "The paper's figure is not tabulated. It says that even its most similar pair of models differs on 13.9 %"
    " of all validation images, and that the three ways give qualitatively similar results."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    likeness = admit_likeness(results, allow_limited)
    tables = tuple(
        mean_table(likeness, pairs, f"figureC5-{metric.removeprefix('agreement_')}", title, SINGLE)
        for metric, title in METRICS.items()
        if (pairs := likeness.pairs(metric))
    )
    missing = [title for metric, title in METRICS.items() if not likeness.pairs(metric)]
    return Exhibit(
        "figureC5",
        "How alike are two networks' predictions?",
        "Three ways to compare the predictions of two networks on the test images; each cell is the mean over"
        " pairs of networks.",
        tables,
        notes=(
            *(not_measured(title.removesuffix(", %")) for title in missing),
            *_most_alike(likeness),
            *((SEEDS_APART,) if tables else ()),
            PUBLISHED,
            *likeness.measurements.notes(),
        ),
        limited=likeness.measurements.limited,
    )


def _most_alike(likeness: Likeness) -> tuple[str, ...]:
    """Our counterpart of the sentence that the paper prints."""
    pairs = likeness.pairs("agreement_same")
    if not pairs:
        return ()
    (one, other), share = max(pairs.items(), key=lambda pair: pair[1])
    names = [
        f"{likeness.measurements.objective(model.spec).label}, seed {model.seed}" for model in (one, other)
    ]
    return (
        f"Ours: the most similar pair ({names[0]}; {names[1]}) differs on {fixed(100 * (1 - share), 1)} % of"
        " the test images.",
    )
