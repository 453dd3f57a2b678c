"""Figure C.4: do two networks make the same mistakes, and which objectives resemble each other by that?"""

from __future__ import annotations

from statistics import fmean

from penultimate.metrics.dendrogram import Dendrogram, dendrogram
from penultimate.report.exhibits.base import (
    MISSING,
    Cell,
    Column,
    Curve,
    Exhibit,
    ExhibitTable,
    Figure,
    Panel,
    Point,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.likeness import (
    SEEDS_APART,
    Likeness,
    Model,
    Pairs,
    admit_likeness,
    between,
    mean_cell,
    present,
)
from penultimate.report.exhibits.measurements import Objective
from penultimate.report.text import fixed, listed

METRIC = "agreement_same_when_both_wrong"
SINGLE = "needs two seeds"
ALONE = "no other objective"
LEAF, MARGINS = 13.0, 64.0
"""Points of a panel's height that a leaf of the tree takes, and what lies around them."""
PUBLISHED = (
    "The paper's figure is not tabulated. It finds that models cluster by objective, dropout and final layer"
    " L2 excepted; that softmax, its regularized forms and sigmoid resemble each other more than logit"
    " normalization or cosine softmax; and that squared error resembles none."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    likeness = admit_likeness(results, allow_limited)
    pairs = likeness.pairs(METRIC)
    tree = tree_panel(likeness, pairs)
    figure = Figure(
        "figureC4",
        "Which models err alike",
        "A tree that joins models, the more alike the further to the left.",
        (tree,) if tree else (),
        legend=True,
    )
    notes = [] if pairs else [not_measured("Agreement of predictions")]
    if pairs and tree is None:
        notes.append("No tree is drawn: it takes three models or more, and a number for every pair of them.")
    return Exhibit(
        "figureC4",
        "Do networks with different objectives make different mistakes?",
        "Of the test images that two networks both get wrong, the share to which they give the same wrong"
        " answer: the mean over pairs of networks. Figure C.5 has it for each pair of objectives. The tree"
        " joins networks, then groups of them, where the mean of that share over all pairs across is largest"
        " (average linkage; the paper does not say which).",
        (_table(likeness, pairs),) if pairs else (),
        (figure,) if tree else (),
        notes=(
            *notes,
            *_finding(likeness, pairs),
            *((SEEDS_APART,) if pairs else ()),
            PUBLISHED,
            *likeness.measurements.notes(),
        ),
        limited=likeness.measurements.limited,
    )


def _table(likeness: Likeness, pairs: Pairs) -> ExhibitTable:
    """Of each objective: how alike its own networks err, and how alike with those of others."""
    columns = (
        Column("within_percent", "Of this objective", "Two networks", "%"),
        Column("between_percent", "Of this and another", "Two networks", "%"),
        Column("nearest_percent", "Of this and the nearest", "Two networks", "%"),
        Column("nearest", "The nearest objective"),
    )
    objectives = present(likeness, pairs)
    rows = []
    for one in objectives:
        others = {
            other: shares for other in objectives if other != one and (shares := between(pairs, one, other))
        }
        cells = [
            mean_cell(between(pairs, one, one), SINGLE),
            mean_cell([share for shares in others.values() for share in shares], ALONE),
        ]
        nearest = max(others, key=lambda other: fmean(others[other]), default=None)
        cells += (
            [mean_cell(others[nearest], ALONE), Cell(nearest.label)]
            if nearest
            else [Cell(MISSING, detail=ALONE)] * 2
        )
        rows.append(TableRow(one.label, tuple(cells), one.slug))
    title = "Same wrong answer, of the images that both get wrong, %"
    return ExhibitTable("figureC4", title, "Objective", columns, tuple(rows))


def _finding(likeness: Likeness, pairs: Pairs) -> tuple[str, ...]:
    """Of how many objectives the networks err more like each other than like any other objective's."""
    objectives = present(likeness, pairs)
    if len(objectives) < 2 or not all(between(pairs, one, one) for one in objectives):
        return ()
    apart = [
        one
        for one in objectives
        if all(
            fmean(between(pairs, one, one)) > fmean(shares)
            for other in objectives
            if other != one and (shares := between(pairs, one, other))
        )
    ]
    return (
        f"Ours: for {len(apart)} of {len(objectives)} objectives, two of its networks err more alike than one"
        " of them and one of any other objective.",
    )


def tree_panel(likeness: Likeness, pairs: Pairs) -> Panel | None:
    """The dendrogram of all models; nothing for fewer than three, or where a pair has no number."""
    models = sorted({model for pair in pairs for model in pair}, key=lambda one: _place(likeness, one))
    shares = [[_share(pairs, one, other) for other in models] for one in models]
    if len(models) < 3 or any(share is None for row in shares for share in row):
        return None
    tree = dendrogram([[share or 0.0 for share in row] for row in shares])
    curves, joins = _branches(tree, [likeness.measurements.objective(model.spec) for model in models])
    points = []
    for height, leaf in enumerate(tree.order, 1):
        objective = likeness.measurements.objective(models[leaf].spec)
        detail = f"seed {models[leaf].seed}, joins others at {fixed(joins[leaf], 1)} % of different answers"
        points.append(Point(0.0, float(height), objective.slug, objective.label, detail))
    return Panel(
        "figureC4-tree",
        "Models, joined by their mistakes",
        "Different answers, of the images that both get wrong, %",
        "Models, in the order of the tree",
        tuple(points),
        curves,
        labelled=False,
        size=(420, max(340.0, LEAF * len(models) + MARGINS)),
        y_limits=(0.0, len(models) + 1.0),
    )


def _branches(tree: Dendrogram, leaves: list[Objective]) -> tuple[tuple[Curve, ...], dict[int, float]]:
    """The lines of the tree, faint where objectives meet, and where each model first joins another."""
    reached = dict.fromkeys(range(len(leaves)), 0.0)
    heights = {leaf: float(place) for place, leaf in enumerate(tree.order, 1)}
    below = {leaf: {objective} for leaf, objective in enumerate(leaves)}
    curves, joins = [], {}
    for number, (left, right, distance, _) in enumerate(tree.merges, len(leaves)):
        across = 100 * distance
        for child in (left, right):
            line = ((reached[child], heights[child]), (across, heights[child]))
            curves.append(_branch(line, below[child]))
            if child < len(leaves):
                joins[child] = across
        below[number] = below[left] | below[right]
        curves.append(_branch(((across, heights[left]), (across, heights[right])), below[number]))
        heights[number] = (heights[left] + heights[right]) / 2
        reached[number] = across
    return tuple(curves), joins


def _branch(line: tuple[tuple[float, float], ...], objectives: set[Objective]) -> Curve:
    labels = sorted(objective.label for objective in objectives)
    slug = min(objective.slug for objective in objectives)
    return Curve(line, slug, listed(labels), faint=len(objectives) > 1)


def _share(pairs: Pairs, one: Model, other: Model) -> float | None:
    return 1.0 if one == other else pairs.get((one, other), pairs.get((other, one)))


def _place(likeness: Likeness, model: Model) -> tuple[int, int]:
    specs = [objective.spec for objective in likeness.measurements.objectives]
    return specs.index(model.spec), model.seed or 0
