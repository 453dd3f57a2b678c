"""The data sets (A.2), their classes beside those of pretraining (F), images of several labels (D.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.data.catalog import DatasetCard, card, shifted
from penultimate.paper import BASELINE
from penultimate.paper.printed import TASKS, printed_columns
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import PER_CLASS, printed, table_of_means, table_of_printed
from penultimate.results.rows import Run, both, by_setting, seeds
from penultimate.results.table import MISSING, Cell, Column, Table, table_of_rows
from penultimate.results.text import as_name, plain
from penultimate.statistics import spearman

MEASURES = {"top1": "top-1", "mean_per_class": "mean per class", "auc": "AUC of each label"}
SPLITS = {
    "train": "Training",
    "holdout": "Holdout",
    "test": "Test",
    "relearn": "Relearning",
    "validation": "Validation",
    "further_test": "Further test",
}
MEASURE = Column("accuracy_measure", "Measure")


@exhibit("tableA2", "The data sets", section="A.2", study="")
def tableA2(run: Run) -> Iterator[Part]:
    """What the networks were trained on, the new tasks that their features were tried on, and other images of
    the pretraining classes if robustness was measured. Sizes count images; the measure is the accuracy that
    counts there. The paper trains on ImageNet's 1,000 classes and transfers to eight tasks."""
    sets = shifted(run.source) if (run.frame["metric"] == "corruption_error").any() else {}
    roles = {
        run.source: "pretraining",
        **dict.fromkeys((*run.targets, *run.several_labels), "transfer"),
        **dict.fromkeys(sets.values(), "shifted"),
    }
    cards = {name: card(name) for name in roles}
    yield sizes(roles, cards, [cards[sets["a"]]] if "a" in sets else [])
    yield printed_sets()
    yield table_of_rows(
        "tableA2_licences",
        "What the data sets of this study are, and under which licence",
        [Column("relation", "How it stands to the pretraining classes"), Column("licence", "Licence")],
        [(of.title, [f"{of.relation}. {of.note}".removesuffix(". "), of.licence]) for of in cards.values()],
        corner="Data set",
    )


def sizes(roles: dict[str, str], cards: dict[str, DatasetCard], hard: list[DatasetCard]) -> Table | None:
    """Return the table of the numbers of classes and of images in each split."""
    splits = list(dict.fromkeys(split for of in cards.values() for split in of.sizes))
    columns = [Column("role", "Role"), Column("classes", "Classes", digits=0)]
    columns += [Column(f"{split}_images", SPLITS.get(split, split), "Images") for split in splits]
    rows = []
    for name, of in cards.items():
        images = [whole(of.sizes[split]) if split in of.sizes else MISSING for split in splits]
        rows.append((of.title, [roles[name], whole(of.classes), *images, MEASURES[of.accuracy]]))
    title, columns = "The data sets of this study", [*columns, MEASURE]
    notes = tuple(f"{of.title}: the {of.images:,} images are those to choose from. {of.note}" for of in hard)
    return table_of_rows("tableA2", title, columns, rows, corner="Data set", notes=notes)


def whole(number: float, sign: str = "") -> Cell:
    """Return a whole number with commas between thousands."""
    return Cell(float(number), f"{number:,.0f}{sign}")


def printed_sets() -> Table | None:
    """Return the paper's table, with its misprints corrected."""
    keys = {"classes": "Classes", "train_images": "Training", "test_images": "Test"}
    columns = [Column(key, label, "Images" * key.endswith("images")) for key, label in keys.items()]
    rows = []
    for _, row in printed("neurips_tableA2_datasets").fillna("").iterrows():
        numbers = [
            whole(row[f"{key}_corrected"], " ‡" * (row[f"{key}_corrected"] != row[f"{key}_printed"]))
            for key in keys
        ]
        rows.append((row["dataset_name"], [*numbers, MEASURES[row[MEASURE.key]], row["note"]]))
    return table_of_rows(
        "tableA2_published",
        "The paper's Table A.2: its transfer data sets",
        [*columns, MEASURE, Column("note", "Note")],
        rows,
        source="published",
        corner="Data set",
        notes=("Misprints are corrected where marked by ‡, and the note says what was printed.",),
    )


LEAST_OBJECTIVES = 6
"""The number of objectives below which no rank correlation is shown."""
CLASSES = Column("classes", "All", "Classes", digits=0)
OVERLAP = (
    Column("semantic_class_overlap_classes", "Shared by name", "Classes", digits=0),
    Column("assignment_accuracy_percent", "As assigned", "Accuracy, %"),
    Column("linear_transfer_accuracy_percent", "Linear", "Accuracy, %"),
)
CORRELATION = Column("correlation", "R² with linear", "All objectives, ρ", digits=2)


@exhibit("tableF1", "Are the new tasks' classes new?", section="F")
def tableF1(run: Run) -> Iterator[Part]:
    """For each task: how many classes it has, and how many are pretraining classes, by name or as the study
    maps them; how often the network, as it is, names the right class when each pretraining class stands for
    one class of the task, assigned on its training images; and a linear classifier on the frozen features.
    Last, Spearman's rank correlation of class separation with linear transfer to the task, over the means of
    six objectives or more; the paper does not print it, and it is computed from its Tables 1 and 3. In the
    paper the accuracy as assigned is less than half of the linear one on all but CIFAR-10 and Pets. †: the
    linear accuracy is the mean over classes."""
    is_per_class = {task: card(task).accuracy == "mean_per_class" for task in run.targets}
    titles = {task: card(task).title + PER_CLASS * of for task, of in is_per_class.items()}
    linear = {task: seeds(run, f"linear_{card(task).accuracy}", target=task, scale=100) for task in titles}
    measured = (
        {task: seeds(run, "semantic_overlap", "train", target=task) for task in titles},
        {task: seeds(run, "assignment_accuracy", target=task, scale=100) for task in titles},
        linear,
    )
    columns = {
        column: pd.DataFrame({task: frame[BASELINE] for task, frame in of.items() if BASELINE in frame})
        for column, of in zip(OVERLAP, measured, strict=True)
    }
    title, needs = f"Softmax networks of {run.title} on each task", [OVERLAP[1]]
    shown = {"rows": titles, "corner": "Task", "slugs": False}
    table = table_of_means(run, "tableF1", title, columns, needs=needs, **shown)  # type: ignore[arg-type]
    if table:
        apart = seeds(run, "class_separation", "train")
        known = {
            CLASSES.key: {titles[task]: float(card(task).classes) for task in titles},
            CORRELATION.key: {titles[task]: correlation(apart, linear[task]) for task in titles},
        }
        values = table.values.assign(**{key: table.values.index.map(of) for key, of in known.items()})
        yield replace(table, columns=(CLASSES, *table.columns, CORRELATION), values=values)
    yield printed_overlap()


def correlation(x: pd.DataFrame, y: pd.DataFrame) -> float | None:
    """Return Spearman's ρ of the objectives' means; None for fewer than six."""
    x, y = both(x, y)
    enough = len(x.columns) >= LEAST_OBJECTIVES
    return spearman(x.mean().tolist(), y.mean().tolist()).rho if enough else None


def printed_overlap() -> Part:
    """Return the paper's table, with the correlations that follow from its Tables 1 and 3."""
    names = {task: label.removesuffix(PER_CLASS) for task, label in TASKS.items()}
    linear = printed("neurips_table1_linear")
    apart = printed("neurips_table3_class_separation")["class_separation_r2"][linear.index].tolist()
    rhos = {
        names[task]: spearman(apart, linear[f"{task}_percent"].tolist(), exact=False).rho for task in names
    }
    return table_of_printed(
        "tableF1",
        "The paper's Table F.1: a softmax ResNet-50 of ImageNet",
        "",
        {column: column.key for column in (CLASSES, *OVERLAP)}
        | {CORRELATION: lambda table: table.index.map(rhos).to_series(table.index)},
        rows=printed("neurips_tableF1_class_overlap", numbers=False).rename(index=names),
        corner="Data set",
    )


LABELLED = {"validation": "validation images", "test": "test images"}
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
        for split in LABELLED:
            for policy in UNCERTAIN:
                yield from areas(run, target, split, policy)
    heads = {f"{name.lower().replace(' ', '_')}_auc_percent": name for name in PATHOLOGIES}
    for split, table, images in (
        ("validation", "neurips_tableD1_chexpert_official", "the 234 official validation images"),
        ("test", "neurips_tableD1_chexpert_iid", "22,431 images of the training set"),
    ):
        title = f"The paper's Table D.1: CheXpert, {images}; ResNet-50, eight runs, AUC, %"
        yield table_of_printed(f"tableD1_{split}", title, table, printed_columns(heads))


def areas(run: Run, target: str, split: str, policy: str) -> Iterator[Part]:
    """Yield the areas of each label and their intervals, for one way in which uncertain labels count."""

    def read(metric: str, *names: str) -> dict[tuple[str, ...], pd.DataFrame]:
        found = by_setting(run, metric, (*names, "uncertain"), split, target=target, scale=100)
        return {key[:-1]: frame for key, frame in found.items() if key[-1] == policy}

    auc, low, high = (read(f"multilabel_auc{end}", "label") for end in ("", "_low", "_high"))
    columns = {Column(f"{label}_auc_percent", plain(label), better="high"): auc[label,] for (label,) in auc}
    for frame in read("multilabel_mean_auc").values():
        columns[Column("mean_auc_percent", "Mean", better="high")] = frame
    is_papers = policy == "zeros"
    name = "_".join(["tableD1", as_name(target), split, *([] if is_papers else [policy])])
    where = f"{card(target).title}, {LABELLED[split]}{UNCERTAIN[policy]}"
    yield table_of_means(run, name, f"{where}: AUC, %", columns, folded=not is_papers)
    heads = {label: Column(f"{label}_interval", plain(label)) for (label,) in low}
    table = table_of_means(
        run,
        f"{name}_intervals",
        f"{where}: 95 % interval of the AUC of one network (DeLong), its ends averaged over runs",
        {heads[label]: low[label,] for label in heads},
        folded=True,
    )
    if table:
        ends = {
            heads[label].key: [
                f"{low[label,][slug].mean():.1f} to {high[label,][slug].mean():.1f}"
                if slug in low[label,]
                else None
                for slug in table.slugs
            ]
            for label in heads
        }
        yield replace(table, values=pd.DataFrame(ends, table.values.index, dtype=object), errors=None)
