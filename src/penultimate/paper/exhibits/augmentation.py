"""Augmentation and long training: their effect on accuracy and on class separation (C.5 and E.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from penultimate.paper.arms import AUTOAUGMENT, LONG, LONG_MIXUP, MIXUP
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import printed, table_of_means, table_of_printed
from penultimate.results.rows import Run, seeds, shared_seeds
from penultimate.results.table import Column, Table

ADDED = {"": "Standard", AUTOAUGMENT: "AutoAugment", MIXUP: "Mixup"}
"""The arms of Table C.5 and their headings."""


@exhibit("tableC5", "Do the objectives differ less under stronger augmentation?", section="C.5")
def tableC5(run: Run) -> Iterator[Part]:
    """Test accuracy on the classes trained on, with the main augmentation (standard), with AutoAugment
    added to it, and with Mixup added to it. ± is the standard error over runs."""
    columns = {
        accuracy(k, arm, group): seeds(run, f"top{k}", scale=100, arm=arm)
        for arm, group in ADDED.items()
        for k in (1, 5)
    }
    added = [column for column in columns if not column.key.startswith("standard")]
    yield same_runs(run, "tableC5", f"Accuracy on {run.title}, by augmentation", columns, added)
    yield published(
        "tableC5",
        "The paper's Table C.5: ResNet-50, ImageNet",
        "neurips_tableC5_augmentation",
        {"top1_percent": "Top-1, %", "top5_percent": "Top-5, %"},
        {"standard": "Standard", "autoaugment": "AutoAugment", "mixup": "Mixup"},
    )


@exhibit("tableC6", "How far does long training with strong augmentation go?", section="C.5")
def tableC6(run: Run) -> Iterator[Part]:
    """Test accuracy on the classes trained on after long training with AutoAugment, and with AutoAugment and
    Mixup. ± is the standard error over runs."""
    groups = {LONG: "AutoAugment", LONG_MIXUP: "AutoAugment + Mixup"}
    columns = {
        accuracy(k, arm, group): seeds(run, f"top{k}", scale=100, arm=arm)
        for arm, group in groups.items()
        for k in (1, 5)
    }
    labels = run.labels("", *groups)
    yield table_of_means(run, "tableC6", f"Accuracy on {run.title} after long training", columns, rows=labels)
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
    yield (
        "Quoted there from other papers, with AutoAugment: softmax after 270 epochs, 77.6 top-1 and 93.8"
        " top-5 (Cubuk et al., 2019); supervised contrastive learning after 700 epochs, 78.8 and 93.9 (Khosla"
        " et al., 2020)."
    )


@exhibit("tableE3", "Does augmentation that raises accuracy also pull the classes apart?", section="E.3")
def tableE3(run: Run) -> Iterator[Part]:
    """Test accuracy on the classes trained on, and class separation R² on the training images (seen without
    augmentation), with the main augmentation (standard) and with AutoAugment added to it. ± is the standard
    error over runs. The paper's title says that augmentation does not raise class separation. Its numbers for
    softmax and sigmoid do rise, by 0.004 and 0.005: little beside the differences between objectives."""
    columns: dict[Column, pd.DataFrame] = {}
    for arm, group in (("", "Standard"), (AUTOAUGMENT, "AutoAugment")):
        r2 = Column(key_in(arm, "class_separation_r2"), "R²", group, 3, with_error=True)
        columns[accuracy(1, arm, group)] = seeds(run, "top1", scale=100, arm=arm)
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


def accuracy(k: int, arm: str, group: str) -> Column:
    """Return the column of a top-k accuracy under an augmentation."""
    digits = 2 if k == 5 else 1
    return Column(key_in(arm, f"top{k}_percent"), f"Top-{k}, %", group, digits, "high", with_error=True)


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
    """Return the paper's columns {key: label} side by side under each augmentation {printed name:
    heading}."""
    texts = printed(printed_name, numbers=False)
    texts = texts[texts["source"] == source] if source else texts
    rows = pd.DataFrame(index=texts.index.unique())
    columns = {}
    for augmentation, group in groups.items():
        of_one = texts[texts["augmentation"] == augmentation]
        prefix = "_".join(filter(None, (augmentation.replace("+", "_"), source)))
        for key, label in keys.items():
            column = Column(f"{prefix}_{key}", label, group)
            columns[column] = column.key
            errors = f"{key}_se" if f"{key}_se" in of_one else f"{key.rpartition('_')[0]}_se"
            for name_in_file, ending in ((key, ""), (errors, "_se")):
                if name_in_file in of_one:
                    rows[f"{column.key}{ending}"] = of_one[name_in_file].reindex(rows.index).fillna("")
    return table_of_printed(name, title, printed_name, columns, rows=rows)
