"""Augmentation, long training (C.5 and E.3) and combinations of objectives (C.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import pandas as pd

from penultimate import specs
from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS, resolve
from penultimate.paper.arms import AUTOAUGMENT, COMBINATIONS, LONG, LONG_MIXUP, MIXUP
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import printed, table_of_means, table_of_printed
from penultimate.results.rows import Run, epochs, seeds, shared_seeds
from penultimate.results.table import Cell, Column, Table, table_of_rows
from penultimate.results.text import plain

ADDED = {"": "Standard", AUTOAUGMENT: "AutoAugment", MIXUP: "Mixup"}
"""The arms of Table C.5 and their headings."""


@exhibit("tableC5", "Do the objectives differ less under stronger augmentation?", section="C.5")
def tableC5(run: Run) -> Iterator[Part]:
    """Test accuracy on the classes trained on, with the main augmentation (standard), with AutoAugment
    added to it, and with Mixup added to it. ± is the standard error over runs."""
    columns = accuracies(run, ADDED)
    added = [column for column in columns if not column.key.startswith("standard")]
    yield same_runs(run, "tableC5", f"Accuracy on {run.title}, by augmentation", columns, added)
    title, keys = "The paper's Table C.5: ResNet-50, ImageNet", {"top1_percent": "Top-1, %"}
    groups = {"standard": "Standard", "autoaugment": "AutoAugment", "mixup": "Mixup"}
    keys["top5_percent"] = "Top-5, %"
    yield published("tableC5", title, "neurips_tableC5_augmentation", keys, groups)


@exhibit("tableC6", "How far does long training with strong augmentation go?", section="C.5")
def tableC6(run: Run) -> Iterator[Part]:
    """Test accuracy on the classes trained on after long training with AutoAugment, and with AutoAugment and
    Mixup. ± is the standard error over runs. The paper quotes from others, with AutoAugment: softmax after
    270 epochs, 77.6 top-1 and 93.8 top-5 (Cubuk et al., 2019); supervised contrastive learning after 700
    epochs, 78.8 and 93.9 (Khosla et al., 2020)."""
    groups = {LONG: "AutoAugment", LONG_MIXUP: "AutoAugment + Mixup"}
    title, labels = f"Accuracy on {run.title} after long training", run.labels("", *groups)
    yield table_of_means(run, "tableC6", title, accuracies(run, groups), rows=labels)
    lengths = {
        arm: block.get("recipe", {}).get("epochs") for arm in ("", *groups) for block in run.grids(arm)[:1]
    }
    if lengths.get(LONG) and lengths.get(""):
        yield f"Long training takes {lengths[LONG]} epochs here, the main training {lengths['']}."
    yield published(
        "tableC6",
        "The paper's Table C.6: ResNet-50, ImageNet",
        "neurips_tableC6_sota",
        {"epochs": "Epochs", "top1_percent": "Top-1, %", "top5_percent": "Top-5, %"},
        {"autoaugment": "AutoAugment", "autoaugment+mixup": "AutoAugment + Mixup"},
        source="this_paper",
    )


@exhibit("tableE3", "Does augmentation that raises accuracy also pull the classes apart?", section="E.3")
def tableE3(run: Run) -> Iterator[Part]:
    """Test accuracy on the classes trained on, and class separation R² on the training images (seen without
    augmentation), with the main augmentation (standard) and with AutoAugment added to it. ± is the standard
    error over runs. The paper's title says that augmentation does not raise class separation. Its numbers for
    softmax and sigmoid do rise, by 0.004 and 0.005: little beside the differences between objectives."""
    columns: dict[Column, pd.DataFrame] = {}
    for arm in ("", AUTOAUGMENT):
        r2 = Column(key_in(arm, "class_separation_r2"), "R²", ADDED[arm], 3, with_error=True)
        columns |= accuracies(run, {arm: ADDED[arm]}, (1,))
        columns[r2] = seeds(run, "class_separation", "train", arm=arm)
    title = f"Accuracy and class separation on {run.title}, by augmentation"
    yield same_runs(run, "tableE3", title, columns, [*columns][-1:])
    yield published(
        "tableE3",
        "The paper's Table E.3: ResNet-50, ImageNet",
        "neurips_tableE3_autoaugment_separation",
        {"imagenet_top1_percent": "Top-1, %", "class_separation_r2": "R²"},
        {"standard": "Standard", "autoaugment": "AutoAugment"},
    )


def key_in(arm: str, key: str) -> str:
    """Return the name of a column under an augmentation."""
    return f"{(arm or 'standard').replace(' ', '_')}_{key}"


def accuracies(
    run: Run, groups: Mapping[str, str], tops: tuple[int, ...] = (1, 5)
) -> dict[Column, pd.DataFrame]:
    """Return the columns of top-k accuracies under each augmentation, {arm: heading}."""
    return {
        Column(
            key_in(arm, f"top{k}_percent"), f"Top-{k}, %", group, 2 if k == 5 else 1, "high", with_error=True
        ): seeds(run, f"top{k}", scale=100, arm=arm)
        for arm, group in groups.items()
        for k in tops
    }


def same_runs(
    run: Run, name: str, title: str, columns: Mapping[Column, pd.DataFrame], needs: list[Column]
) -> Table | None:
    """Return the means over those seeds for which no objective lacks a column that it has at all."""
    kept = shared_seeds(columns.values())
    of_both = {column: frame[frame.index.isin(kept)] for column, frame in columns.items()}
    return table_of_means(run, name, title, of_both, needs=needs, rows=run.labels("", *ADDED))


def published(
    name: str, title: str, printed_name: str, keys: dict[str, str], groups: dict[str, str], source: str = ""
) -> Table:
    """Return the paper's columns {key: label} side by side under each augmentation {its name: heading}."""
    texts = printed(printed_name, numbers=False)
    texts = texts[texts["source"] == source] if source else texts
    rows, columns = pd.DataFrame(index=texts.index.unique()), {}
    for augmentation, group in groups.items():
        of_one = texts[texts["augmentation"] == augmentation]
        prefix = "_".join(filter(None, (augmentation.replace("+", "_"), source)))
        for key, label in keys.items():
            column = Column(f"{prefix}_{key}", label, group)
            columns[column] = column.key
            error = f"{key}_se" if f"{key}_se" in of_one else f"{key.rpartition('_')[0]}_se"
            for in_file, ending in ((key, ""), (error, "_se")):
                if in_file in of_one:
                    rows[f"{column.key}{ending}"] = of_one[in_file].reindex(rows.index).fillna("")
    return table_of_printed(name, title, printed_name, columns, rows=rows)


Place: TypeAlias = tuple[str, str]
"""A column and a row: the base of an objective, and its additions ("" for none)."""
BASES = ("label_smoothing", "sigmoid", "cosine_softmax")
"""Terms with a column of their own, besides softmax; if an objective has two of them, the first counts."""
NOTHING = "Nothing"


@exhibit("tableC4", "Do objectives that help alone help more together?", section="C.4")
def tableC4(run: Run) -> Iterator[Part]:
    """Columns: an objective. Rows: a second one added to it. Cells: the highest accuracy on holdout images
    during training, in per cent, means over runs; single objectives are shown if they have the combinations'
    recipe. In the paper the best combination, cosine softmax with dropout (ρ = 0.95), has 80.7 %; the best
    single objectives have 80.6 %."""
    yield combined(run)
    yield combined_in_paper()


def combined(run: Run) -> Table | None:
    """Return our combinations, and those single objectives of the main arm that are parts of one."""
    runs = {place: of for spec, of in best_epochs(run, COMBINATIONS).items() if (place := place_of(spec))}
    if all(not added or (base == "softmax" and " + " not in added) for base, added in runs):
        return None
    recipes = [[block.get("recipe") for block in run.grids(arm)][:1] for arm in ("", COMBINATIONS)]
    if recipes[0] == recipes[1]:
        parts = {part for place in runs for part in place} | {"", "softmax"}
        singles = {place_of(spec): of for spec, of in best_epochs(run).items()}
        runs = {place: of for place, of in singles.items() if place and {*place} <= parts} | runs
    shared = set.intersection(*({seed for _, seed in of.index} for of in runs.values()))
    runs = {place: of[[seed in shared for _, seed in of.index]] for place, of in runs.items()}
    bases = sorted({base for base, _ in runs}, key=in_papers_order)
    additions = sorted({added for _, added in runs}, key=in_papers_order)
    labels = [label_of(added) if added else NOTHING for added in additions]
    nothing = pd.Series(dtype=float)
    cells = {
        what: pd.DataFrame(
            {base: [read(runs.get((base, added), nothing)) for added in additions] for base in bases}, labels
        )
        for what, read in {
            "values": pd.Series.mean,
            "errors": pd.Series.sem,
            "counts": lambda of: len(of) or None,
        }.items()
    }
    columns = tuple(Column(base, label_of(base), "Objective") for base in bases)
    return Table("tableC4", f"Holdout accuracy on {run.title}, %", columns, **cells, corner="Added")


def best_epochs(run: Run, arm: str = "") -> dict[str, pd.Series]:
    """Return the highest holdout accuracy in per cent of each run, by the spec of its objective."""
    best = epochs(run, "top1", "holdout", scale=100, arm=arm).max()
    specs_of = {each.slug: each.spec for each in run.objectives(arm)}
    return {specs_of[slug]: of.dropna() for slug, of in best.groupby(level="objective") if slug in specs_of}


def place_of(spec: str) -> Place | None:
    """Return the column and the row of an objective, its base and its additions; None for a given network.

    >>> place_of("dropout(keep=0.8) + sigmoid()"), place_of("cosine_softmax(scale=1, temperature=0.05)")
    (('sigmoid', 'dropout(keep=0.8)'), ('cosine_softmax(scale=1, temperature=0.05)', ''))
    """
    try:
        terms = list(specs.parse_sum(spec))
    except RequestError:
        return None
    base = next((term for name in BASES for term in terms if term.name == name), None)
    added = [str(term) for term in terms if term is not base and term.name != "softmax"]
    return str(base or "softmax"), " + ".join(added)


def label_of(spec: str) -> str:
    """Return the label of an objective with its hyperparameters."""
    try:
        return plain(resolve(spec).detailed_label)
    except RequestError:
        return plain(spec)


def in_papers_order(spec: str) -> tuple[int, str]:
    """Return a sort key: first the empty spec, then the order of the paper's tables, then values."""
    name = spec.partition("(")[0]
    return -1 if not spec else [*PRESETS].index(name) if name in PRESETS else len(PRESETS), spec


def combined_in_paper() -> Table | None:
    """Return the paper's table, with columns and rows in the paper's order."""
    cells: dict[Place, Cell] = {}
    columns: dict[str, Column] = {}
    for row in printed("neurips_tableC4_combinations", numbers=False).reset_index().to_dict("records"):
        base, text = row["objective"], row["holdout_top1_percent"]
        label = with_value(base, row["objective_hyperparameter_value"])
        columns.setdefault(base, Column(base, label, "Objective"))
        cells[base, with_value(row["added_regularizer"], row["regularizer_value"])] = Cell(float(text), text)
    additions = dict.fromkeys(added for _, added in cells)
    return table_of_rows(
        "tableC4_published",
        "The paper's Table C.4: ResNet-50, ImageNet, holdout accuracy, %",
        [*columns.values()],
        [(added, [cells.get((base, added)) for base in columns]) for added in additions],
        corner="Added",
        source="published",
        notes=("75.3 is 5 points below its neighbours, a run that failed or a misprint.",),
    )


def with_value(name: str, value: str) -> str:
    """Return an objective of the paper's table in words, with the value of its hyperparameter."""
    if name == "none":
        return NOTHING
    preset = PRESETS[name]
    return f"{preset.label} ({preset.hyperparameters[0].symbol} = {value})" if value else preset.label
