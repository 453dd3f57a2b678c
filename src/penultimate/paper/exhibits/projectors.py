"""Objectives behind hidden layers that are thrown away: what transfer gains, and what accuracy loses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.objectives.presets import resolve
from penultimate.paper.arms import BEHIND_A_PROJECTOR
from penultimate.paper.claims.effects import Effect, Unit
from penultimate.paper.claims.filed import DEPTHS, DISCARDING
from penultimate.paper.claims.judging import judge, verdict_table
from penultimate.paper.claims.numbers import Numbers
from penultimate.paper.claims.rules import by_depth
from penultimate.paper.claims.stated import claims_of
from penultimate.paper.claims.strengths import MEASURES, STRENGTH, complete, framed
from penultimate.paper.families import COLUMNS, Key, panel_of_strengths, pareto_front, table_of_strengths
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Figure
from penultimate.results.rows import Run
from penultimate.results.table import MISSING, Column, Table
from penultimate.results.text import listed

KEYS = ("accuracy", "separation", "linear", "knn")
ALL = "Mean of the objectives"


@exhibit(
    "projectors",
    "A disposable last block: objectives behind hidden layers that are thrown away after training",
    section="claims",
    study="sweep",
)
def projectors(run: Run) -> Iterator[Part]:
    """Each objective, at the strength that the holdout chose, is trained with no hidden layer between the
    penultimate features and its head, with one and with two (depth). These layers are dropped after training:
    features, and their R², are those before them. Test accuracy is that of the network with them. Changes are
    on the same objective at depth 0, within the seeds that have both, with 95 % intervals."""
    judged = judge(run, claims_of("projector")) if BEHIND_A_PROJECTOR in run.arms else []
    if not judged:
        return
    yield verdict_table("projectors", "The claims about layers that are thrown away", judged)
    found = at_every_depth(Numbers(run))
    yield networks_table(Numbers(run), found)
    whole = complete(found[found.index.get_level_values("family") != ""], ("separation", *KEYS[:3]))
    if len(whole):
        shades = {key[:2]: depth_of(key[1]) / DEPTHS[-1] for key in whole.index}
        named = (
            "projectors-frontier",
            "Accuracy against transfer; the darker, the more layers are thrown away",
        )
        panel = panel_of_strengths(*named, whole, "accuracy", "linear", shades, size=(640, 420))
        title = "Test accuracy against linear transfer, by how many hidden layers are thrown away"
        yield Figure("projectors", title, (panel,))
        front = listed([label for _, label in pareto_front(whole).index])
        yield f"On the Pareto front of test accuracy and linear transfer, by means: {front}."
    drawn = {label for _, label, _ in whole.index}
    planned = [label_of(resolve(spec).label, depth) for spec in DISCARDING for depth in DEPTHS]
    if absent := [label for label in planned if label not in drawn]:
        yield f"On no curve, since not every seed has them: {listed(absent)}."


def label_of(name: str, depth: int) -> str:
    """Return the label of an objective behind a number of layers."""
    return f"{name} (depth {depth})"


def depth_of(label: str) -> int:
    """Return the number of layers that a label names.

    >>> depth_of("Softmax (depth 2)")
    2
    """
    return int(label.rpartition(" ")[2].rstrip(")"))


def at_every_depth(of: Numbers) -> pd.DataFrame:
    """Return every objective at every depth, and last, as the family "", the means of those that all have."""
    measured = {key: by_depth(of, MEASURES[key]) for key in KEYS}
    found: dict[Key, dict[str, pd.Series]] = {}
    for spec in (*DISCARDING, ""):
        family, name = (resolve(spec).preset or spec, resolve(spec).label) if spec else ("", ALL)
        for depth in DEPTHS:
            frames = {key: every[depth] for key, every in measured.items()}
            if spec:
                values = {key: frame[spec] for key, frame in frames.items() if spec in frame}
            else:
                whole = {key: frame for key, frame in frames.items() if {*DISCARDING} <= {*frame}}
                values = {key: frame.dropna().mean(axis=1) for key, frame in whole.items()}
            if values:
                found[family, label_of(name, depth)] = values
    return framed(found)


def networks_table(of: Numbers, found: pd.DataFrame) -> Table:
    """Return every objective at every depth, with what it gains on itself with no layer thrown away."""
    columns: list[Column] = []
    for own in (COLUMNS[key] for key in KEYS):
        change = Column(f"{own.key}_gain", "Change (95 %)", own.label)
        columns += [replace(own, label="Mean", group=own.label), change]
    title = "Every objective, by how many hidden layers are thrown away (depth)"
    table = table_of_strengths("projectors_networks", title, columns, found[[*KEYS]])
    keys = list(dict.fromkeys(key[:2] for key in found.index))
    texts, values = {}, table.values.astype(object)
    for own in (COLUMNS[key] for key in KEYS):
        trials = [gain(of, found[own.key], key, own.digits) for key in keys]
        # Without a change a cell is empty: a dash says that something was not measured.
        values[f"{own.key}_gain"] = [trial.estimate if trial else MISSING for trial in trials]
        texts[f"{own.key}_gain"] = [trial.text if trial else "" for trial in trials]
    return replace(table, values=values, texts=pd.DataFrame(texts, values.index, dtype=object))


def gain(of: Numbers, values: pd.Series, key: Key, digits: int) -> Effect | None:
    """Return what a row has more than the same at depth 0, within the seeds that both have."""
    family, label = key
    plain = label.replace(f"(depth {depth_of(label)})", f"(depth {DEPTHS[0]})")
    known = dict(list(values.dropna().groupby(level=STRENGTH)))
    if plain == label or key not in known or (family, plain) not in known:
        return None
    upper, lower = (known[family, each].droplevel(STRENGTH) for each in (label, plain))
    if not {*upper.index} & {*lower.index}:
        return None
    return of.effect((upper.to_dict(), lower.to_dict()), (1, -1), unit=Unit("{}", digits))
