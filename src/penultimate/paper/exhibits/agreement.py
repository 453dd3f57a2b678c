"""Agreement of networks on their mistakes, and the gain of ensembles: figures C.4 to C.7."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from penultimate.metrics.dendrogram import Dendrogram, dendrogram
from penultimate.paper.arms import ONE_DRAW
from penultimate.paper.printed import figure
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Curve, Panel, Point
from penultimate.results.rows import Run, means_of_pairs, pairs
from penultimate.results.table import MISSING, Column, Table, table_of_rows
from penultimate.results.text import fixed, listed

WAYS = {
    "same_when_both_wrong": "Same prediction, of the images that both get wrong, %",
    "same": "Same prediction, of all images, %",
    "both_right_or_wrong": "Both right or both wrong, of all images, %",
}
"""The three ways in which the paper compares predictions; the first is that of its figure C.4."""
LEAF, MARGINS = 13.0, 64.0
"""The height of a leaf of the tree and of the margins, in pixels."""


@exhibit("figureC4", "Do networks with different objectives make different mistakes?", section="C.3")
def figureC4(run: Run) -> Iterator[Part]:
    """Of the test images that two networks both get wrong, the share to which they give the same wrong
    answer: the mean over pairs of networks, of different seeds where there are several. The tree joins
    networks, then groups of them, where the mean of that share over all pairs across is largest. The paper's
    figure is not tabulated. It finds that models cluster by objective, dropout and final layer L2 excepted;
    that softmax, its regularized forms and sigmoid resemble each other more than logit normalization or
    cosine softmax; and that squared error resembles none."""
    found = of_networks(run, "agreement_same_when_both_wrong")
    yield own_and_others(run, found)
    yield figure("figureC4", "Which models err alike", tree_panel(run, found), legend=True)


@exhibit("figureC5", "How alike are two networks' predictions?", section="C.3")
def figureC5(run: Run) -> Iterator[Part]:
    """Three ways to compare the predictions of two networks on the test images; each cell is the mean over
    pairs of networks, of different seeds where there are several. The paper's figure is not tabulated. It
    says that even its most similar pair of models differs on 13.9 % of all validation images, and that the
    three ways give qualitatively similar results."""
    for way, title in WAYS.items():
        yield square_table(run, f"figureC5-{way}", title, of_networks(run, f"agreement_{way}"))


@exhibit(
    "figureC6",
    "Do ensembles of different objectives disagree less than their members?",
    section="C.3",
    study="glyphs",
)
def figureC6(run: Run) -> Iterator[Part]:
    """For each objective an ensemble of its networks predicts the class with the most votes; of classes with
    equally many votes the first (the paper does not say). The cells compare two ensembles on the test images.
    The paper's figure is not tabulated. It says that of its ensembles of eight models the least similar,
    softmax and squared error, differ on only 11.5 % of the validation images."""
    for way, title in WAYS.items():
        found, models = of_ensembles(run, f"agreement_{way}")
        title = f"{title}, ensembles of {models}"
        yield square_table(run, f"figureC6-{way}", title, found, diagonal=MISSING)


@exhibit(
    "figureC7", "Is an ensemble of two objectives better than one of the best?", section="C.3", study="glyphs"
)
def figureC7(run: Run) -> Iterator[Part]:
    """Test accuracy of the most voted class, where half of the networks were trained with the objective of
    the row and half with that of the column; on the diagonal all with one. No ensemble holds a seed twice;
    the two ways to take halves are averaged. The paper's figure is not tabulated. It finds little benefit of
    mixing objectives over an ensemble of one objective."""
    found, models = of_ensembles(run, "ensemble_top1")
    yield square_table(run, "figureC7", f"Top-1 accuracy of ensembles of {models} models, %", found)


def arm_of(run: Run) -> str:
    """Return the arm whose networks are compared."""
    return ONE_DRAW if ONE_DRAW in run.arms else ""


def of_networks(run: Run, metric: str) -> pd.DataFrame:
    """Return the pairs of networks, in per cent."""
    found = pairs(run, metric, scale=100, arm=arm_of(run))
    return found[found["setting"].isna()]


def of_ensembles(run: Run, metric: str) -> tuple[pd.DataFrame, int]:
    """Return the pairs of the largest ensembles in per cent, and their size; mixed ensembles come first."""
    found = pairs(run, metric, scale=100, arm=arm_of(run))
    sizes = pd.to_numeric(found["setting"].astype(str).str.removeprefix("models="), errors="coerce")
    mixed = found["objective"] != found["objective_b"]
    size = sizes[mixed].max() if sizes[mixed].notna().any() else sizes.max()
    return found[sizes == size], 0 if np.isnan(size) else int(size)


def square_table(
    run: Run, name: str, title: str, found: pd.DataFrame, diagonal: str | None = None
) -> Table | None:
    """Return the mean over pairs, with objectives as rows and columns."""
    labels = run.labels(arm_of(run))
    mean, count = means_of_pairs(found, [*labels])
    slugs, cells = tuple(mean.index), mean.astype(object)
    for slug in slugs:
        if diagonal and np.isnan(mean.at[slug, slug]):
            cells.at[slug, slug] = diagonal
    names, keys = [labels[slug] for slug in slugs], [f"{slug}_percent" for slug in slugs]
    values, counts = (frame.set_axis(names).set_axis(keys, axis=1) for frame in (cells, count))
    columns = tuple(Column(key, label) for key, label in zip(keys, names, strict=True))
    return Table(name, title, columns, values, counts=counts, slugs=slugs) if slugs else None


def own_and_others(run: Run, found: pd.DataFrame) -> Table | None:
    """Return how alike the networks of each objective err, and how alike they err with other networks."""
    labels = run.labels(arm_of(run))
    mean, count = means_of_pairs(found, [*labels])
    rows, counts = [], []
    for slug in mean.index:
        others, of_pairs = mean.loc[slug].drop(slug).dropna(), count.loc[slug].drop(slug)
        nearest = others.idxmax() if len(others) else ""
        between = (others * of_pairs).sum() / of_pairs.sum() if nearest else None
        named = labels[nearest] if nearest else MISSING
        rows.append((labels[slug], [mean.at[slug, slug], between, others.get(nearest), named]))
        counts.append([count.at[slug, slug], of_pairs.sum(), of_pairs.get(nearest)])
    columns = [
        Column("within_percent", "Of this objective", "Two networks"),
        Column("between_percent", "Of this and another", "Two networks"),
        Column("nearest_percent", "Of this and the nearest", "Two networks"),
        Column("nearest", "The nearest objective"),
    ]
    title, keys = "Same wrong answer, of the images that both get wrong, %", [one.key for one in columns[:3]]
    of_pairs = pd.DataFrame(counts, columns=keys)
    return table_of_rows("figureC4", title, columns, rows, counts=of_pairs, slugs=tuple(mean.index))


def tree_panel(run: Run, found: pd.DataFrame) -> Panel | None:
    """Return the tree of all networks; None for fewer than three, or if a pair has no number."""
    labels = run.labels(arm_of(run))
    slugs, share = [*labels], {}
    for row in found.itertuples():
        pair = (row.objective, row.seed), (row.objective_b, row.seed_b)
        share[pair] = share[pair[::-1]] = row.value / 100
    networks = sorted({one for one, _ in share}, key=lambda network: (slugs.index(network[0]), network[1]))
    shares = [[1.0 if a == b else share.get((a, b), np.nan) for b in networks] for a in networks]
    if len(networks) < 3 or np.isnan(shares).any():
        return None
    tree = dendrogram(shares)
    curves, joins = branches(tree, [slug for slug, _ in networks], labels)
    points = []
    for place, leaf in enumerate(tree.order, 1):
        slug, seed = networks[leaf]
        detail = f"seed {seed}, joins others at {fixed(joins[leaf], 1)} %"
        points.append(Point(0.0, float(place), slug, labels[slug], detail))
    return Panel(
        "figureC4-tree",
        "Models, joined by their mistakes",
        "Different answers, of the images that both get wrong, %",
        "Models, in the order of the tree",
        tuple(points),
        tuple(curves),
        labelled=False,
        numbered=False,
        size=(420, max(340.0, LEAF * len(networks) + MARGINS)),
        y_limits=(0.0, len(networks) + 1.0),
    )


def branches(
    tree: Dendrogram, leaves: Sequence[str], labels: dict[str, str]
) -> tuple[list[Curve], dict[int, float]]:
    """Return the lines of the tree, faint between objectives, and where each network first joins another."""
    ends = {leaf: (0.0, float(place)) for place, leaf in enumerate(tree.order, 1)}
    below = {leaf: {slug} for leaf, slug in enumerate(leaves)}
    curves, joins = [], {}

    def draw(cluster: int, *line: tuple[float, float]) -> None:
        names = sorted(labels[slug] for slug in below[cluster])
        curves.append(Curve(line, min(below[cluster]), listed(names), faint=len(names) > 1))

    for number, (left, right, distance, _) in enumerate(tree.merges, len(leaves)):
        across = 100 * distance
        for child in (left, right):
            draw(child, ends[child], (across, ends[child][1]))
            joins[child] = across
        below[number] = below[left] | below[right]
        draw(number, (across, ends[left][1]), (across, ends[right][1]))
        ends[number] = across, (ends[left][1] + ends[right][1]) / 2
    return curves, joins
