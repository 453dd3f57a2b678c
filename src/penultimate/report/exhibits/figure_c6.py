"""Figure C.6: how alike the predictions of ensembles are, one of each objective."""

from __future__ import annotations

from penultimate.report.exhibits.base import Exhibit, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.likeness import METRICS, admit_likeness, mean_table
from penultimate.report.exhibits.table4 import MEASURED_BY
from penultimate.report.text import counted

SINGLE = "an ensemble is like itself"
PUBLISHED = (
    "The paper's figure is not tabulated. It says that of its ensembles of eight models the least similar,"
    " softmax and squared error, differ on only 11.5 % of the validation images."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    likeness = admit_likeness(results, allow_limited)
    tables = []
    sizes = [size for metric in METRICS for size in likeness.sizes(metric)]
    models = max(sizes, default=0)
    for metric, title in METRICS.items():
        pairs = likeness.pairs(metric, str(models))
        if pairs:
            name = f"figureC6-{metric.removeprefix('agreement_')}"
            tables.append(mean_table(likeness, pairs, name, title, SINGLE))
    votes = f" ({counted(models, 'model')} each)" if tables else ""
    return Exhibit(
        "figureC6",
        "Do ensembles of different objectives disagree less than their members?",
        f"For each objective an ensemble of its networks{votes} predicts the class with the most votes; of"
        " classes with equally many votes the first (the paper does not say). The cells compare two ensembles"
        " on the test images.",
        tuple(tables),
        notes=(
            *(() if tables else (not_measured("Agreement of ensembles", MEASURED_BY),)),
            PUBLISHED,
            *likeness.measurements.notes(),
        ),
        limited=likeness.measurements.limited,
    )
