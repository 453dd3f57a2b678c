"""Agreement of networks on their mistakes, and the gain of ensembles: figures C.4 to C.7."""

from __future__ import annotations

from penultimate.paper.arms import ONE_DRAW
from penultimate.report.base import Cell, Column, ExhibitTable, Figure, Missing, TableRow
from penultimate.report.measurements import Measurements, run_name
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.findings import direction
from penultimate.report.shapes.numbers import average
from penultimate.report.shapes.pairs import (
    MODELS,
    NEEDS_TWO,
    SEEDS_APART,
    Pairs,
    PairTable,
    between,
    by_objectives,
    pair_cell,
    pairs_of,
    present,
)
from penultimate.report.shapes.tree import tree_panel
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed

ALIKE = {
    "same_when_both_wrong": "Same prediction, of the images that both get wrong, %",
    "same": "Same prediction, of all images, %",
    "both_right_or_wrong": "Both right or both wrong, of all images, %",
}
"""The three ways in which the paper compares predictions; the first is that of its figure C.4."""
OF_NETWORKS = {way: Quantity(f"agreement_{way}", label=title) for way, title in ALIKE.items()}
OF_ENSEMBLES = {
    way: Quantity(f"agreement_{way}", label=title, setting=MODELS) for way, title in ALIKE.items()
}
SAME_MISTAKE, SAME = OF_NETWORKS["same_when_both_wrong"], OF_NETWORKS["same"]
MIXED = Quantity("ensemble_top1", label="Top-1 accuracy of ensembles of {models}, %", setting=MODELS)
ALONE = "no other objective"


def _same_mistakes(measurements: Measurements) -> Piece:
    """Return the table of each objective's networks and others, and the tree of all networks.

    A note says how many objectives keep their networks together.
    """
    pairs = pairs_of(measurements, SAME_MISTAKE)
    if not pairs:
        return Piece(missing=(Missing("Agreement of predictions"),))
    title, axis = (
        "Models, joined by their mistakes",
        "Different answers, of the images that both get wrong, %",
    )
    tree = tree_panel(measurements, pairs, "figureC4-tree", title, axis, "% of different answers")
    description = "A tree that joins models, the more alike the further to the left."
    figure = Figure("figureC4", "Which models err alike", description, (tree,) if tree else (), legend=True)
    no_tree = "No tree is drawn: it takes three models or more, and a number for every pair of them."
    table, together = _own_and_others(measurements, pairs)
    return Piece((table,), (figure,) if tree else (), (*(() if tree else (no_tree,)), *together, SEEDS_APART))


def _own_and_others(measurements: Measurements, pairs: Pairs) -> tuple[ExhibitTable, tuple[str, ...]]:
    """Return how alike the networks of each objective err, and how alike they err with other networks.

    A finding counts the objectives whose networks err more like each other than like any other's.
    """
    columns = (
        Column("within_percent", "Of this objective", "Two networks", "%"),
        Column("between_percent", "Of this and another", "Two networks", "%"),
        Column("nearest_percent", "Of this and the nearest", "Two networks", "%"),
        Column("nearest", "The nearest objective"),
    )
    objectives, grouped = present(measurements, pairs), by_objectives(pairs)
    rows, apart = [], []
    for objective in objectives:
        within = between(grouped, objective, objective)
        of_others = {other: between(grouped, objective, other) for other in objectives if other != objective}
        others = {other: shares for other, shares in of_others.items() if shares}
        nearest = max(others, key=lambda other: average(others[other]), default=None)
        if within:
            apart.append(nearest is None or average(within) > average(others[nearest]))
        cells = (
            pair_cell(within, NEEDS_TWO),
            pair_cell([share for shares in others.values() for share in shares], ALONE),
            pair_cell(others[nearest] if nearest else [], ALONE),
            Cell(nearest.label) if nearest else pair_cell([], ALONE),
        )
        rows.append(TableRow(objective.label, cells, objective.slug))
    title = "Same wrong answer, of the images that both get wrong, %"
    told = in_words(sum(apart), "none")
    few = direction([len({network.seed for pair in pairs for network in pair})])
    finding = (
        f"{OURS}: for {told} of {counted(len(apart), 'objective')}, two of its networks err more alike than"
        f" one of them and one of any other objective{f' ({few})' if few else ''}."
    )
    if not apart:
        every = [share for (a, b), share in pairs.items() if a.objective != b.objective]
        finding = (
            f"{OURS}: of the images that two networks of different objectives both get wrong, they give the"
            f" same answer to {fixed(100 * average(every), 1)} % in the mean ({direction([1])})."
        )
    table = ExhibitTable("figureC4", title, "Objective", columns, tuple(rows))
    return table, (finding,) if len(objectives) > 1 else ()


def _most_alike(measurements: Measurements) -> str:
    """Return our counterpart of the paper's sentence on its two most similar networks."""
    pairs = pairs_of(measurements, SAME)
    if not pairs:
        return ""
    pair, share = max(pairs.items(), key=lambda item: item[1])
    names = "; ".join(
        f"{measurements.objective(voter.objective).label}, {run_name(voter.seed)}" for voter in pair
    )
    return (
        f"{OURS}: the two networks most alike ({names}) differ on {_differing(share)} % of the test images;"
        " in the paper 13.9 %."
    )


def _least_alike(measurements: Measurements) -> str:
    """Return our counterpart of the paper's sentence on its two least similar ensembles."""
    pairs = {
        pair: share
        for pair, share in pairs_of(measurements, OF_ENSEMBLES["same"]).items()
        if pair[0].objective != pair[1].objective
    }
    if not pairs:
        return ""
    pair, share = min(pairs.items(), key=lambda item: item[1])
    names = listed([measurements.objective(voter.objective).label for voter in pair])
    return (
        f"{OURS}: the two ensembles least alike ({names}) differ on {_differing(share)} % of the test images;"
        " in the paper 11.5 % (Softmax and Squared error)."
    )


def _differing(share: float) -> str:
    return fixed(100 * (1 - share), 1)


def _seeds_apart(measurements: Measurements) -> str:
    return SEEDS_APART if any(pairs_of(measurements, way) for way in OF_NETWORKS.values()) else ""


def _gain(measurements: Measurements) -> str:
    """Return a sentence on the most accurate mixed ensemble, beside the most accurate pure one."""
    pairs = pairs_of(measurements, MIXED)
    mixed = {pair: value for pair, value in pairs.items() if pair[0].objective != pair[1].objective}
    pure = {pair: value for pair, value in pairs.items() if pair not in mixed}
    if not (mixed and pure):
        return ""
    top, top_pure = max(mixed, key=mixed.__getitem__), max(pure, key=pure.__getitem__)
    first, second, alone = (measurements.objective(voter.objective).label for voter in (*top, top_pure[0]))
    return (
        f"{OURS}: the best ensemble of two objectives ({first} and {second}) has a test accuracy of"
        f" {fixed(100 * mixed[top], 1)} %, the best of a single one ({alone})"
        f" {fixed(100 * pure[top_pure], 1)} %."
    )


FIGURE_C4 = Exhibit(
    name="figureC4",
    title="Do networks with different objectives make different mistakes?",
    caption="Of the test images that two networks both get wrong, the share to which they give the same wrong"
    " answer: the mean over pairs of networks. Figure C.5 has it for each pair of objectives. The tree joins"
    " networks, then groups of them, where the mean of that share over all pairs across is largest (average"
    " linkage; the paper does not say which).",
    parts=(Bespoke(_same_mistakes, (SAME_MISTAKE,)),),
    paper_says="The paper's figure is not tabulated. It finds that models cluster by objective, dropout and"
    " final layer L2 excepted; that softmax, its regularized forms and sigmoid resemble each other more than"
    " logit normalization or cosine softmax; and that squared error resembles none.",
    section="C.3",
    or_arm=ONE_DRAW,
    summary="Networks that err alike: the same wrong answers, and their tree",
    short="Who errs like whom",
)

FIGURE_C5 = Exhibit(
    name="figureC5",
    title="How alike are two networks' predictions?",
    caption="Three ways to compare the predictions of two networks on the test images; each cell is the mean"
    " over pairs of networks.",
    parts=tuple(
        PairTable(f"figureC5-{way}", (quantity,), missing=quantity.label.removesuffix(", %"))
        for way, quantity in OF_NETWORKS.items()
    ),
    findings=(_most_alike, _seeds_apart),
    paper_says="The paper's figure is not tabulated. It says that even its most similar pair of models"
    " differs on 13.9 % of all validation images, and that the three ways give qualitatively similar"
    " results.",
    section="C.3",
    or_arm=ONE_DRAW,
    summary="Agreement of two networks' predictions, in three ways",
    short="Agreement of networks",
)

FIGURE_C6 = Exhibit(
    name="figureC6",
    title="Do ensembles of different objectives disagree less than their members?",
    caption="For each objective an ensemble of its networks{of_models} predicts the class with the most"
    " votes; of classes with equally many votes the first (the paper does not say). The cells compare two"
    " ensembles on the test images.",
    parts=tuple(
        PairTable(
            f"figureC6-{way}", (quantity,), "Agreement of ensembles", alone="an ensemble is like itself"
        )
        for way, quantity in OF_ENSEMBLES.items()
    ),
    findings=(_least_alike,),
    paper_says="The paper's figure is not tabulated. It says that of its ensembles of eight models the least"
    " similar, softmax and squared error, differ on only 11.5 % of the validation images.",
    section="C.3",
    or_arm=ONE_DRAW,
    measured_by="glyphs",
    summary="Agreement of two ensembles' predictions, in three ways",
    short="Agreement of ensembles",
)

FIGURE_C7 = Exhibit(
    name="figureC7",
    title="Is an ensemble of two objectives better than one of the best?",
    caption="Test accuracy of the most voted class, where half of the networks were trained with the"
    " objective of the row and half with that of the column; on the diagonal all with one. No ensemble holds"
    " a seed twice; the two ways to take halves are averaged.",
    parts=(PairTable("figureC7", (MIXED,), "Ensembles", alone="not measured"),),
    findings=(_gain,),
    paper_says="The paper's figure is not tabulated. It finds little benefit of mixing objectives over an"
    " ensemble of one objective.",
    section="C.3",
    or_arm=ONE_DRAW,
    measured_by="glyphs",
    summary="Accuracy of ensembles within and across objectives",
    short="Accuracy of ensembles",
)
