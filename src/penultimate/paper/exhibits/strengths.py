"""Objectives at several strengths, and behind layers that are thrown away: what each costs and gains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pandas as pd

from penultimate.objectives.presets import resolve
from penultimate.paper.arms import BEHIND_A_PROJECTOR
from penultimate.paper.claims.effects import Effect, Unit, span
from penultimate.paper.claims.filed import DEPTHS, DISCARDING, FAMILIES, NUMBERS_OF_STRENGTHS, PER
from penultimate.paper.claims.judging import judge, verdict_table
from penultimate.paper.claims.numbers import BASELINE, Numbers, level_crossing
from penultimate.paper.claims.rules import by_depth
from penultimate.paper.claims.stated import claims_of
from penultimate.paper.claims.strengths import (
    MEASURES,
    STRENGTH,
    complete,
    framed,
    in_window,
    planned,
    price,
    price_text,
    prices,
    strengths,
)
from penultimate.paper.printed import LINEAR, R2, figure, mean_of_printed
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Axis, Curve, Panel, Point, scatter_printed
from penultimate.results.means import printed
from penultimate.results.rows import MEAN, Run, epochs, transfer
from penultimate.results.table import MISSING, Cell, Column, Table, table_of_rows
from penultimate.results.text import fixed, listed, signed
from penultimate.statistics import PartialSlope, partial_slopes, resampled_mean

Key: TypeAlias = tuple[str, str]
"""A family and the label of one of its strengths."""
FURTHER = ("projector", "center_loss", "entropy")
"""The families that were added when the others had been judged: no rule judges their prices."""
SHOWN = (*FAMILIES, "dropout", *FURTHER)
"""The families in figures and tables: those that are judged, dropout, and the further ones."""
COLUMNS = {
    "separation": Column("separation", "R²", digits=3, with_error=True),
    "accuracy": Column("accuracy", "Test accuracy, %", digits=2, with_error=True),
    "train": Column("train", "Training accuracy, %", digits=2, with_error=True),
    "linear": Column("linear", "Linear transfer, %", digits=2, with_error=True),
    "knn": Column("knn", "kNN transfer, %", digits=2, with_error=True),
}
AXES = {
    "separation": R2,
    "accuracy": Axis("Test accuracy on the classes trained on, %"),
    "linear": Axis(LINEAR.label),
    "knn": Axis("Mean kNN transfer accuracy, %"),
}
COVARIATES = {
    "separation": "R², each .1",
    "accuracy": "Test accuracy, each point",
    "train": "Training accuracy, each point",
}
FRONT_SIZE = (640.0, 420.0)


@exhibit(
    "doses",
    "One curve or many: transfer as the strength of an objective is varied",
    section="claims",
    study="sweep",
)
def doses(run: Run) -> Iterator[Part]:
    """Each mark is an objective at one strength, a mean over seeds with standard errors. A curve joins the
    strengths of a family, through softmax where that is its strength zero; faint curves are single seeds. To
    the right: classes pulled further apart. Up: features that serve the new tasks better."""
    found = strengths_of(run)
    if len({*found.index.get_level_values(0)}) < 2:
        return
    whole = complete(found)
    yield verdict_table("doses", "The claims about strengths", judge(run, claims_of("dose")))
    yield prices_table(run)
    front = {label: f"{label} ◆" for _, label in pareto_front(distinct(whole)).index}
    shown, columns = distinct(found).rename(index=front, level="strength"), [*COLUMNS.values()]
    note = "◆ On the Pareto front of test accuracy and linear transfer, by means."
    yield table_of_strengths("doses_strengths", "Every strength", columns, shown, notes=(note,), folded=True)
    yield covariates_table(found)
    yield beside_softmax(run, found)
    rows = [(name, [float(value)]) for name, value in NUMBERS_OF_STRENGTHS]
    title, value = "Every number in the rules on strengths", Column("value", "Value", digits=2)
    yield table_of_rows("doses_numbers", title, [value], rows, corner="Number", folded=True)
    if len(whole):
        yield from figures(whole)
    every = [
        (family, resolve(spec).detailed_label) for family in SHOWN for spec in planned(Numbers(run), family)
    ]
    yield absent(key[1] for key in every if key not in {key[:2] for key in whole.index})


def absent(labels: Iterable[str]) -> str | None:
    """Return a sentence on what the study plans and no curve holds."""
    names = list(dict.fromkeys(labels))
    return f"On no curve, since not every seed has them: {listed(names)}." if names else None


def prices_table(run: Run) -> Table | None:
    """Return the price of every family: linear and kNN transfer, and linear transfer within the window."""
    found, rows = strengths(Numbers(run), (*FAMILIES, *FURTHER)), {}
    whole = complete(found)
    every = prices(found), prices(found, "knn"), prices(in_window(whole))
    means = whole["separation"].groupby(level=STRENGTH).mean()
    for family in dict.fromkeys(found.index.get_level_values("family")):
        own, resampled = means[means.index.get_level_values("family") == family], every[0].get(family, {})
        effects = [price(of.get(family, {})) for of in every]
        rows[family] = [
            str(len(own)),
            fixed(own.max() - own.min() if len(own) else 0.0, 3),
            *(price_text(effect) if effect else "not judged" for effect in effects),
            span(*resampled_mean([*resampled.values()]), 2) if resampled else "not judged",
        ]
    group = "Points for each .1 of R²"
    columns = (
        Column("strengths", "Strengths"),
        Column("span", "Span of R²"),
        Column("linear", "Linear", group),
        Column("knn", "kNN", group),
        Column("window", "Linear, in the window", group),
        Column("bootstrap", "Linear, seeds resampled", group),
    )
    told = [resolve(family).label for family in rows if family in FURTHER]
    return table_of_rows(
        "doses_prices",
        "The price of class separation",
        columns,
        [(resolve(family).label, cells) for family, cells in rows.items()],
        corner="Family",
        slugs=tuple(rows),
        notes=(f"Judged by no rule: {listed(told)}.",) if told else (),
    )


def covariates_table(found: pd.DataFrame) -> Table | None:
    """Return the slopes of linear transfer on covariates within the seeds of the families that are judged."""
    judged = found[found.index.get_level_values("family").isin(FAMILIES)]
    rows = []
    for one, (key, label) in zip(slopes(judged, [*COVARIATES]) or (), COVARIATES.items(), strict=False):
        per, alone = PER if key == "separation" else 1, slopes(judged, [key])
        cells = [
            of and Cell(per * of.slope, f"{signed(per * of.slope, 2)} ± {fixed(per * of.error, 2)}")
            for of in (alone[0] if alone else None, one)
        ]
        rows.append((label, [*cells, fixed(one.inflation, 1)]))
    columns = (
        Column("alone", "By itself", "Points of transfer"),
        Column("together", "With the two others", "Points of transfer"),
        Column("inflation", "Variance inflation"),
    )
    return table_of_rows(
        "doses_covariates",
        "Covariates: linear transfer within each family and seed",
        columns,
        rows,
        corner="Regressed on",
        notes=("± is the standard error of a slope. Covariates are outcomes too: they decide nothing.",),
        folded=True,
    )


def slopes(found: pd.DataFrame, keys: list[str]) -> list[PartialSlope] | None:
    """Return the slopes of linear transfer on measures together, within each family and seed."""
    known = found.dropna(subset=[*keys, "linear"])
    groups = [*known.index.droplevel("strength")]
    return partial_slopes(groups, known[keys].to_numpy().T.tolist(), [*known["linear"]]) if groups else None


def beside_softmax(run: Run, found: pd.DataFrame) -> Table | None:
    """Return by how much each strength's transfer differs from softmax's when that was as accurate.

    Softmax's transfer is interpolated between its snapshots, where its test accuracy first reaches the
    strength's. A seed in which softmax never was as accurate, or was from the start, has no value.
    """
    across, up = epochs(run, "top1", scale=100), transfer(run, "linear", of=epochs)[MEAN]
    courses = {
        seed: pd.DataFrame({"x": across[slug, seed], "y": up[slug, seed]}).dropna()
        for slug, seed in across
        if slug == BASELINE and (slug, seed) in up
    }
    heights = [
        level_crossing([*courses[seed]["x"]], [*courses[seed]["y"]], level) if seed in courses else None
        for (*_, seed), level in found["accuracy"].items()
    ]
    known = distinct(found.assign(deficit=found["linear"] - pd.Series(heights, found.index, dtype=float)))
    known = known[by_strength(known)["deficit"].transform("count") > 0]
    if known.empty:
        return None
    columns = (
        Column("accuracy", "Test accuracy, %", digits=2),
        Column("deficit", "Linear transfer, less softmax's then, points", digits=2, with_error=True),
        Column("seeds", "Seeds in which softmax ever was", digits=0),
    )
    title = "Beside softmax in training, when it was as accurate"
    table = table_of_strengths("doses_line", title, columns, known[["accuracy", "deficit"]], folded=True)
    assert table.counts is not None
    table.values["seeds"] = table.counts["deficit"].to_numpy()
    return table


def figures(whole: pd.DataFrame) -> Iterator[Part]:
    """Yield transfer against class separation beside the paper's, and transfer against accuracy."""
    r2, panels = printed("neurips_table3_class_separation")["class_separation_r2"], []
    for kind, words in (("linear", "linear"), ("knn", "kNN")):
        title, theirs = f"Families of objectives here ({words})", f"The paper's nine objectives ({words})"
        y, axes = mean_of_printed(printed(f"neurips_table1_{kind}")), (R2, AXES[kind])
        panels.append(panel_of_strengths(f"doses-{kind}", title, whole, "separation", kind))
        panels.append(scatter_printed(f"doses-{kind}-published", theirs, r2, y, axes))
    yield figure("doses", "Class separation against transfer, as strength is varied", *panels)
    means = by_strength(whole)["separation"].mean()
    shades = ((means - means.min()) / ((means.max() - means.min()) or 1.0)).to_dict()
    title = "Accuracy against transfer; the darker, the larger R²"
    front = panel_of_strengths("doses-frontier", title, whole, "accuracy", "linear", shades, size=FRONT_SIZE)
    yield figure("doses-frontier", "Accuracy on the pretraining classes against transfer", front)


def strengths_of(run: Run) -> pd.DataFrame:
    """Return every strength that has class separation and transfer, from a family's weakest on."""
    found = strengths(Numbers(run), SHOWN)
    labels = {spec: resolve(spec).detailed_label for _, spec, _ in found.index}
    return found.rename(index=labels, level="strength") if labels else found


def distinct(found: pd.DataFrame) -> pd.DataFrame:
    """Return every strength once; softmax belongs to several families."""
    return found[~found.index.droplevel("family").duplicated()]


def by_strength(found: pd.DataFrame) -> Any:
    """Return the values in groups, one for each strength, in their order."""
    return found.groupby(level=STRENGTH, sort=False)


def pareto_front(found: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the strengths that no other beats in both test accuracy and linear transfer.

    The most accurate comes first.
    """
    means: pd.DataFrame = by_strength(found).mean().dropna(subset=["accuracy"])
    places = means[["accuracy", "linear"]].to_numpy()
    beaten = [bool(((places >= own).all(1) & (places > own).any(1)).any()) for own in places]
    return means[[not each for each in beaten]].sort_values("accuracy", ascending=False, kind="stable")


def slug_of(key: Key) -> str:
    """Return the objective whose mark a strength has: softmax's own, or its family's."""
    return BASELINE if key[1] == resolve(BASELINE).label else key[0]


def table_of_strengths(
    name: str, title: str, columns: Sequence[Column], found: pd.DataFrame, **table: Any
) -> Table:
    """Return the means of strengths, a row each, with standard errors and counts."""
    grouped = by_strength(found)
    counts, values = grouped.count(), grouped.mean()
    frames = {"values": values, "errors": grouped.sem(), "counts": counts.where(counts > 0)}
    labels = [label for _, label in values.index]
    made = {what: of.set_axis(labels) for what, of in frames.items()}
    return Table(name, title, tuple(columns), **made, slugs=tuple(map(slug_of, values.index)), **table)


def panel_of_strengths(
    name: str,
    title: str,
    found: pd.DataFrame,
    x: str,
    y: str,
    shades: Mapping[Key, float] | None = None,
    **panel: Any,
) -> Panel:
    """Return the means of strengths and a curve for each family; shades replace errors and single seeds."""
    known = found.dropna(subset=[x, y])
    grouped, points, curves = by_strength(distinct(known)[[x, y]]), list[Point](), list[Curve]()
    for (key, mean), (_, sem) in zip(grouped.mean().iterrows(), grouped.sem().iterrows(), strict=True):
        detail = f"{key[1]}: {fixed(mean[x], AXES[x].digits)}, {fixed(mean[y], 1)} %"
        x_error, y_error = (None if shades or at != at else float(at) for at in sem)
        slug, shade = slug_of(key), shades.get(key) if shades else None
        place = float(mean[x]), float(mean[y])
        points.append(Point(*place, slug, resolve(slug).label, detail, x_error, y_error, shade=shade))
    for family, of in known[[x, y]].groupby(level="family", sort=False):
        label, lines = resolve(family).label, [("the means", by_strength(of).mean())]
        by_seed = of.groupby(level="seed")
        if not shades and by_seed.ngroups > 1:
            lines = [*((f"seed {seed}", line) for seed, line in by_seed), *lines]
        for words, line in lines:
            if len(line) > 1:
                along = tuple((across, up) for across, up in line.to_numpy().tolist())
                said = f"{label}, from the first strength to the last: {words}"
                curves.append(Curve(along, family, said, faint=words != "the means"))
    return Panel(name, title, AXES[x].label, AXES[y].label, tuple(points), tuple(curves), **panel)


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
        named, title = "projectors-frontier", "Accuracy against transfer; the darker, the more thrown away"
        panel = panel_of_strengths(named, title, whole, "accuracy", "linear", shades, size=FRONT_SIZE)
        title = "Test accuracy against linear transfer, by how many hidden layers are thrown away"
        yield figure("projectors", title, panel)
        front = listed([label for _, label in pareto_front(whole).index])
        yield f"On the Pareto front of test accuracy and linear transfer, by means: {front}."
    drawn = {label for _, label, _ in whole.index}
    every = [label_of(resolve(spec).label, depth) for spec in DISCARDING for depth in DEPTHS]
    yield absent(label for label in every if label not in drawn)


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
    for spec in DISCARDING:
        for depth in DEPTHS:
            values = {key: every[depth][spec] for key, every in measured.items() if spec in every[depth]}
            if values:
                found[resolve(spec).preset or spec, label_of(resolve(spec).label, depth)] = values
    for depth in DEPTHS:
        whole = {key: every[depth] for key, every in measured.items() if {*DISCARDING} <= {*every[depth]}}
        if whole:
            found["", label_of(ALL, depth)] = {key: of.dropna().mean(axis=1) for key, of in whole.items()}
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
        gains = [gain(of, found[own.key], key, own.digits) for key in keys]
        # Without a change a cell is empty: a dash says that something was not measured.
        values[f"{own.key}_gain"] = [effect.estimate if effect else MISSING for effect in gains]
        texts[f"{own.key}_gain"] = [effect.text if effect else "" for effect in gains]
    return replace(table, values=values, texts=pd.DataFrame(texts, values.index, dtype=object))


def gain(of: Numbers, values: pd.Series, key: Key, digits: int) -> Effect | None:
    """Return what a row has more than the same at depth 0, within the seeds that both have."""
    family, label = key
    plain = label_of(label.rpartition(" (depth")[0], DEPTHS[0])
    known = {key: of.droplevel(STRENGTH) for key, of in values.dropna().groupby(level=STRENGTH)}
    upper, lower = known.get(key), known.get((family, plain))
    if plain == label or upper is None or lower is None or not {*upper.index} & {*lower.index}:
        return None
    return of.effect((upper.to_dict(), lower.to_dict()), (1, -1), unit=Unit("{}", digits))
