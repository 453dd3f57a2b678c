"""Families of objectives at several strengths: transfer against class separation, and against accuracy."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.effects import span
from penultimate.paper.claims.filed import FAMILIES, NUMBERS_OF_STRENGTHS, PER
from penultimate.paper.claims.judging import judge, verdict_table
from penultimate.paper.claims.numbers import BASELINE, Numbers, level_crossing
from penultimate.paper.claims.stated import claims_of
from penultimate.paper.claims.strengths import (
    complete,
    in_window,
    price,
    price_text,
    prices,
    strengths,
)
from penultimate.paper.families import (
    AXES,
    COLUMNS,
    FURTHER,
    by_strength,
    distinct,
    left_out,
    panel_of_strengths,
    pareto_front,
    strengths_of,
    table_of_strengths,
)
from penultimate.paper.printed import mean_of_printed
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Figure, scatter_printed
from penultimate.results.means import printed
from penultimate.results.rows import MEAN, Run, epochs, transfer
from penultimate.results.table import Column, Table, table_of_rows
from penultimate.results.text import fixed, listed, signed
from penultimate.statistics import PartialSlope, partial_slopes, resampled_mean

COVARIATES = {
    "separation": "R², each .1",
    "accuracy": "Test accuracy, each point",
    "train": "Training accuracy, each point",
}


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
    if len({family for family, *_ in found.index if family}) < 2:
        return
    whole = complete(found)
    front = [label for _, label in pareto_front(distinct(whole)).index]
    yield verdict_table("doses", "The claims about strengths", judge(run, claims_of("dose")))
    yield prices_table(run)
    signs = {label: f"{label} ◆" for label in front}
    signed_labels = distinct(found).rename(index=signs, level="strength")
    note = "◆ On the Pareto front of test accuracy and linear transfer, by means."
    columns = [*COLUMNS.values()]
    yield table_of_strengths(
        "doses_strengths", "Every strength", columns, signed_labels, notes=(note,), folded=True
    )
    yield covariates_table(found)
    yield beside_softmax(run, found)
    rows = [(name, [float(value)]) for name, value in NUMBERS_OF_STRENGTHS]
    title = "Every number in the rules on strengths"
    value = Column("value", "Value", digits=2)
    yield table_of_rows("doses_numbers", title, [value], rows, corner="Number", folded=True)
    if len(whole):
        yield from figures(whole)
    if absent := left_out(run, whole):
        yield f"On no curve, since not every seed has them: {listed(absent)}."


def prices_table(run: Run) -> Table | None:
    """Return the price of every family: linear and kNN transfer, and linear transfer within the window."""
    found, rows, slugs = (
        strengths(Numbers(run), (*FAMILIES, *FURTHER)),
        list[tuple[str, list[str]]](),
        list[str](),
    )
    every = prices(found), prices(found, "knn"), prices(in_window(complete(found)))
    whole = complete(found)["separation"].groupby(level=["family", "strength"]).mean()
    for family in dict.fromkeys(found.index.get_level_values("family")):
        own = whole[whole.index.get_level_values("family") == family]
        effects = [price(of.get(family, {})) for of in every]
        cells = [str(len(own)), fixed(own.max() - own.min() if len(own) else 0.0, 3)]
        cells += [price_text(effect) if effect else "not judged" for effect in effects]
        resampled = [*every[0].get(family, {}).values()]
        cells.append(span(*resampled_mean(resampled), 2) if resampled else "not judged")
        rows.append((resolve(family).label, cells))
        slugs.append(family)
    group = "Points for each .1 of R²"
    columns = (
        Column("strengths", "Strengths"),
        Column("span", "Span of R²"),
        Column("linear", "Linear", group),
        Column("knn", "kNN", group),
        Column("window", "Linear, in the window", group),
        Column("bootstrap", "Linear, seeds resampled", group),
    )
    told = [resolve(family).label for family in slugs if family in FURTHER]
    notes = (f"Told, and judged by no rule: {listed(told)}.",) if told else ()
    title = "The price of class separation"
    return table_of_rows(
        "doses_prices", title, columns, rows, corner="Family", slugs=tuple(slugs), notes=notes
    )


def covariates_table(found: pd.DataFrame) -> Table | None:
    """Return the slopes of linear transfer on covariates within the seeds of the families that are judged."""
    judged = found[found.index.get_level_values("family").isin(FAMILIES)]
    together = slopes(judged, [*COVARIATES])
    if not together:
        return None
    rows, texts = [], []
    for one, (key, label) in zip(together, COVARIATES.items(), strict=True):
        per = PER if key == "separation" else 1
        alone = slopes(judged, [key])
        both = [alone[0] if alone else None, one]
        rows.append((label, [*(of and per * of.slope for of in both), fixed(one.inflation, 1)]))
        texts.append(
            [of and f"{signed(per * of.slope, 2)} ± {fixed(per * of.error, 2)}" for of in both] + [None]
        )
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
        texts=pd.DataFrame(texts, [*COVARIATES.values()], [column.key for column in columns], dtype=object),
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


def figures(whole: pd.DataFrame) -> Iterator[Figure]:
    """Yield transfer against class separation beside the paper's, and transfer against accuracy."""
    r2 = printed("neurips_table3_class_separation")["class_separation_r2"]
    panels = []
    for kind, words in (("linear", "linear"), ("knn", "kNN")):
        title, theirs = f"Families of objectives here ({words})", f"The paper's nine objectives ({words})"
        y, axes = mean_of_printed(printed(f"neurips_table1_{kind}")), (AXES["separation"], AXES[kind])
        panels.append(panel_of_strengths(f"doses-{kind}", title, whole, "separation", kind))
        panels.append(scatter_printed(f"doses-{kind}-published", theirs, r2, y, axes))
    yield Figure("doses", "Class separation against transfer, as strength is varied", tuple(panels))
    r2 = by_strength(whole)["separation"].mean()
    shades = ((r2 - r2.min()) / ((r2.max() - r2.min()) or 1.0)).to_dict()
    named = "doses-frontier", "Accuracy against transfer; the darker, the larger R²"
    frontier = panel_of_strengths(*named, whole, "accuracy", "linear", shades, size=(640, 420))
    yield Figure("doses-frontier", "Accuracy on the pretraining classes against transfer", (frontier,))
