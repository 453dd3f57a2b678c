"""Transfer to images with several labels (section D.3 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.data.catalog import card
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import table_of_means, table_of_printed
from penultimate.results.rows import Run, by_setting
from penultimate.results.table import Column, Table, table_of_rows
from penultimate.results.text import as_name, plain

SPLITS = {"validation": "validation images", "test": "test images"}
"""Splits in the paper's order: a few images labelled with care, and images split off the training set."""
UNCERTAIN = {
    "zeros": "",
    "ignore": "; uncertain labels left out",
    "ones": "; uncertain labels counted as present",
}
"""How uncertain labels count, the paper's way first."""
PATHOLOGIES = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural effusion")


@exhibit("tableD1", "Images of several labels", section="D.3", of_given=True)
def tableD1(run: Run) -> Iterator[Part]:
    """The area under the ROC curve of each label, in per cent, by a logistic regression of that label
    alone on the frozen features; means over runs. Uncertain labels count as absent, unless a table says
    otherwise. The paper: of 22,431 images, softmax is significantly better than all others on four of
    five pathologies, and tied on the fifth; on the official validation images many are tied. Its areas
    are of 1,000 bins."""
    for target in run.several_labels:
        for split in SPLITS:
            for policy in UNCERTAIN:
                yield from areas(run, target, split, policy)
    titles = (
        ("validation", "neurips_tableD1_chexpert_official", "the 234 official validation images"),
        ("test", "neurips_tableD1_chexpert_iid", "22,431 images of the training set"),
    )
    for split, table, images in titles:
        columns = {}
        for name in PATHOLOGIES:
            key = f"{name.lower().replace(' ', '_')}_auc_percent"
            columns[Column(key, name)] = key
        title = f"The paper's Table D.1: CheXpert, {images}; ResNet-50, eight runs, AUC, %"
        yield table_of_printed(f"tableD1_{split}", title, table, columns)


def areas(run: Run, target: str, split: str, policy: str) -> Iterator[Part]:
    """Yield the areas of each label and their intervals, for one way in which uncertain labels count."""
    auc, low, high = (
        {
            label: frame
            for (label, uncertain), frame in by_setting(
                run, f"multilabel_auc{end}", ("label", "uncertain"), split, target=target, scale=100
            ).items()
            if uncertain == policy
        }
        for end in ("", "_low", "_high")
    )
    mean = by_setting(run, "multilabel_mean_auc", ("uncertain",), split, target=target, scale=100)
    columns = {Column(f"{label}_auc_percent", plain(label), better="high"): auc[label] for label in auc}
    if (policy,) in mean:
        columns[Column("mean_auc_percent", "Mean", better="high")] = mean[policy,]
    is_papers = policy == "zeros"
    name = "_".join(["tableD1", as_name(target), split, *([] if is_papers else [policy])])
    where = f"{card(target).title}, {SPLITS[split]}{UNCERTAIN[policy]}"
    table = table_of_means(run, name, f"{where}: AUC, %", columns)
    if table is not None:
        yield replace(table, folded=not is_papers)
        yield intervals(run, f"{name}_intervals", where, low, high)


def intervals(
    run: Run, name: str, where: str, low: dict[str, pd.DataFrame], high: dict[str, pd.DataFrame]
) -> Table | None:
    """Return the ends of the intervals of each label, each the mean over an objective's runs."""
    labels = run.labels()
    slugs = [slug for slug in labels if any(slug in frame for frame in low.values())]
    rows, counts = [], []
    for slug in slugs:
        runs = {label: low[label].get(slug, pd.Series(dtype=float)).dropna() for label in low}
        rows.append(
            [
                f"{of.mean():.1f} to {high[label][slug].mean():.1f}" if len(of) else None
                for label, of in runs.items()
            ]
        )
        counts.append([len(of) or None for of in runs.values()])
    columns = [Column(f"{label}_interval", plain(label)) for label in low]
    title = f"{where}: 95 % interval of the AUC of one network (DeLong), its ends averaged over runs"
    names = [labels[slug] for slug in slugs]
    of_runs = pd.DataFrame(counts, names, [column.key for column in columns])
    found = list(zip(names, rows, strict=True))
    return table_of_rows(name, title, columns, found, counts=of_runs, slugs=tuple(slugs), folded=True)
