"""The ranking of networks on each task, and the paired comparisons behind it."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from penultimate.evaluation.standings import PROBES, Board, boards
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import task_label
from penultimate.results.rows import MEAN, Run
from penultimate.results.table import MISSING, Column, Table, table_of_rows
from penultimate.results.text import fixed, p_value, signed

PAIRED = (
    "Beyond chance: by paired tests on the same images (two-sided level 0.05, corrected for all pairs of the"
    " column by Holm). Places follow from the same tests of the first column."
)
COMPARED = {"linear": "comparisons", "knn": "comparisons_knn", "tuned": "comparisons_tuned"}
"""The table of paired comparisons of each probe."""


@exhibit("ranking", "Which network serves which task best", page="evaluation", of_given=True)
def ranking(run: Run) -> Iterator[Part]:
    """Accuracy on each task's test images of a classifier on the frozen features (and, where it was asked
    for, after fine-tuning), with 95 % intervals. The place is by the mean over tasks, with equal weight for
    each: the range of places that the paired comparisons leave open."""
    for probe, title in PROBES.items():
        found = boards(run, probe)
        if found:
            yield _ranking(run, f"ranking_{probe}", title, found)
    if any(label.endswith("†") for label in map(task_label, run.targets)):
        yield "† mean of the classes' accuracies; all others are shares of the images."


def _ranking(run: Run, name: str, title: str, found: list[Board]) -> Table:
    """Return a table of networks with a column for each board."""
    order = list(dict.fromkeys(network for board in found for network in board.standings.index))
    keys = {f"{board.task or MEAN}_percent": board for board in found}
    columns = [Column(key, task_label(board.task or MEAN), f"{title}, %") for key, board in keys.items()]
    shown, values, marks = {}, {}, {}
    for key, board in keys.items():
        of = board.standings.reindex(order)
        values[key] = 100 * of["accuracy"]
        texts = [
            f"{fixed(100 * row.accuracy, 1)} [{fixed(100 * row.low, 1)}, {fixed(100 * row.high, 1)}]"
            if row.accuracy == row.accuracy
            else None
            for row in of.itertuples()
        ]
        shown[key] = pd.Series(texts, order, dtype=object)
        several = len(board.standings) > 1
        marks[key] = of["first"].map(
            {place: "best" if place == 1 else "worse" for place in of["first"].dropna()} if several else {}
        )
        marks[key] = marks[key].fillna("")
    first = found[0]
    places = [first.place(network) if network in first.standings.index else MISSING for network in order]
    labels = [run.labels()[network] for network in order]
    texts = pd.DataFrame({"place": pd.Series(places, order, dtype=object), **shown}).set_axis(labels)
    return Table(
        name,
        f"{title}: test accuracy, with 95 % intervals",
        (Column("place", "Place"), *columns),
        pd.DataFrame({"place": places, **{key: list(of) for key, of in values.items()}}, labels),
        corner="Network",
        texts=texts,
        marks=pd.DataFrame(marks).set_axis(labels),
        slugs=tuple(order),
        test=PAIRED,
    )


@exhibit("comparisons", "Who is ahead of whom, on the same images", page="evaluation", of_given=True)
def comparisons(run: Run) -> Iterator[Part]:
    """By how many points one network is ahead of another. Both classified the same test images, so only
    images on which exactly one is wrong count (McNemar's exact test; where images have different weights,
    flips of signs). p is two-sided and corrected for all pairs of a column (Holm). Bold: a difference
    beyond chance."""
    for probe, name in COMPARED.items():
        found = boards(run, probe)
        if not found or not found[0].pairs:
            continue
        ahead = sorted(found[0].pairs, key=lambda pair: -found[0].pairs[pair].difference)
        columns, rows, marks = [], [], []
        for board in found:
            group = board.title if board.task else "Mean of the tasks"
            columns += [
                Column(f"{board.task or MEAN}_{key}", label, group)
                for key, label in (("points", "Points"), ("p", "p"))
            ]
        labels = run.labels()
        for one, other in ahead:
            told = [board.difference(one, other) or (None, None, False) for board in found]
            rows.append(
                (
                    f"{labels[one]} – {labels[other]}",
                    [cell for points, p, _ in told for cell in (points and 100 * points, p)],
                )
            )
            marks.append([mark for *_, apart in told for mark in ("best" if apart else "", "")])
        keys, heads = [column.key for column in columns], [label for label, _ in rows]
        texts = [[_text(cell, key) for cell, key in zip(cells, keys, strict=True)] for _, cells in rows]
        title = f"{PROBES[probe]}: the first network's accuracy less the second's, on the same test images"
        yield table_of_rows(
            name,
            title,
            columns,
            rows,
            corner="Networks",
            texts=pd.DataFrame(texts, heads, keys, dtype=object),
            marks=pd.DataFrame(marks, heads, keys),
            own_marks=True,
        )


def _text(cell: float | None, key: str) -> str | None:
    if cell is None:
        return None
    return (
        signed(cell, 1) if key.endswith("_points") else p_value(cell).removeprefix("p = ").removeprefix("p ")
    )
