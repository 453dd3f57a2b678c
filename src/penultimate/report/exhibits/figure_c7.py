"""Figure C.7: accuracy of ensembles, half of them trained with one objective and half with another."""

from __future__ import annotations

from penultimate.report.exhibits.base import Exhibit, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.likeness import Likeness, Pairs, admit_likeness, mean_table
from penultimate.report.exhibits.table4 import MEASURED_BY
from penultimate.report.text import counted, fixed

METRIC = "ensemble_top1"
PUBLISHED = (
    "The paper's figure is not tabulated. It finds little benefit of mixing objectives over an ensemble of"
    " one objective."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    likeness = admit_likeness(results, allow_limited)
    models = mixed_size(likeness)
    pairs = likeness.pairs(METRIC, str(models))
    title = f"Top-1 accuracy of ensembles of {counted(models, 'model')}, %"
    return Exhibit(
        "figureC7",
        "Is an ensemble of two objectives better than one of the best?",
        "Test accuracy of the most voted class, where half of the networks were trained with the objective of"
        " the row and half with that of the column; on the diagonal all with one. No ensemble holds a seed"
        " twice; the two ways to take halves are averaged.",
        (mean_table(likeness, pairs, "figureC7", title, "not measured"),) if pairs else (),
        notes=(
            *(_gain(likeness, pairs) if pairs else (not_measured("Ensembles", MEASURED_BY),)),
            PUBLISHED,
            *likeness.measurements.notes(),
        ),
        limited=likeness.measurements.limited,
    )


def mixed_size(likeness: Likeness) -> int:
    """The size of the largest ensembles that mix objectives; 0 where there are none."""
    sizes = likeness.sizes(METRIC)
    mixed = [size for size in sizes if any(a.spec != b.spec for a, b in likeness.pairs(METRIC, str(size)))]
    return max(mixed or sizes, default=0)


def _gain(likeness: Likeness, pairs: Pairs) -> tuple[str, ...]:
    """The best mixed ensemble beside the best pure one."""
    best = {}
    for pure in (True, False):
        own = {pair: value for pair, value in pairs.items() if (pair[0].spec == pair[1].spec) == pure}
        if not own:
            return ()
        best[pure] = max(own.items(), key=lambda item: item[1])
    names = [likeness.measurements.objective(model.spec).label for model in best[False][0]]
    pure_name = likeness.measurements.objective(best[True][0][0].spec).label
    return (
        f"Ours: the best mixture ({names[0]} and {names[1]}) has {fixed(100 * best[False][1], 1)} %, the best"
        f" of one objective ({pure_name}) {fixed(100 * best[True][1], 1)} %.",
    )
