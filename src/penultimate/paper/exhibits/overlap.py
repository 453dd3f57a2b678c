"""Overlap of the tasks' classes with those of the pretraining set (section F of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper import BASELINE
from penultimate.paper.printed import TASKS
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import PER_CLASS, printed, table_of_means, table_of_printed
from penultimate.results.rows import Run, both, seeds
from penultimate.results.table import Column

LEAST_OBJECTIVES = 6
"""The number of objectives below which no rank correlation is shown."""
CLASSES = Column("classes", "All", "Classes", digits=0)
SHARED = Column("semantic_class_overlap_classes", "Shared by name", "Classes", digits=0)
ASSIGNED = Column("assignment_accuracy_percent", "As assigned", "Accuracy, %")
LINEAR = Column("linear_transfer_accuracy_percent", "Linear", "Accuracy, %")
CORRELATION = Column("correlation", "R² with linear", "All objectives, ρ", digits=2)


@exhibit("tableF1", "Are the new tasks' classes new?", section="F")
def tableF1(run: Run) -> Iterator[Part]:
    """For each task: how many classes it has, and how many are pretraining classes, by name or as the study
    maps them; how often the network, as it is, names the right class when each pretraining class stands for
    one class of the task, assigned on its training images; and a linear classifier on the frozen features.
    Last, Spearman's rank correlation of class separation with linear transfer to the task, over the means of
    six objectives or more; the paper does not print it, and it is computed from its Tables 1 and 3. In the
    paper the accuracy as assigned is less than half of the linear one on all but CIFAR-10 and Pets."""
    titles = {task: card(task).title + PER_CLASS * is_per_class(task) for task in run.targets}
    linear = {task: seeds(run, f"linear_{card(task).accuracy}", target=task, scale=100) for task in titles}
    measured = {
        SHARED: {task: seeds(run, "semantic_overlap", "train", target=task) for task in titles},
        ASSIGNED: {task: seeds(run, "assignment_accuracy", target=task, scale=100) for task in titles},
        LINEAR: linear,
    }
    columns = {column: of_baseline(frames) for column, frames in measured.items()}
    title = f"Softmax networks of {run.title} on each task"
    table = table_of_means(
        run, "tableF1", title, columns, needs=[ASSIGNED], rows=titles, corner="Task", slugs=False
    )
    if table:
        separation = seeds(run, "class_separation", "train")
        known = {
            CLASSES.key: {titles[task]: float(card(task).classes) for task in titles},
            CORRELATION.key: {titles[task]: correlation(separation, linear[task]) for task in titles},
        }
        values = table.values.assign(**{key: table.values.index.map(of) for key, of in known.items()})
        yield replace(table, columns=(CLASSES, *table.columns, CORRELATION), values=values)
        if any(PER_CLASS in label for label in table.labels):
            yield f"{PER_CLASS} the linear accuracy is the mean over classes; all others top-1."
    yield of_paper()


def is_per_class(task: str) -> bool:
    """Return whether the accuracy of a task is the mean over classes."""
    return card(task).accuracy == "mean_per_class"


def of_baseline(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the values of softmax networks [seed, task]."""
    return pd.DataFrame({task: frame[BASELINE] for task, frame in frames.items() if BASELINE in frame})


def correlation(x: pd.DataFrame, y: pd.DataFrame) -> float | None:
    """Return Spearman's ρ of the objectives' means; None for fewer than six."""
    from penultimate.statistics import spearman

    x, y = both(x, y)
    if len(x.columns) < LEAST_OBJECTIVES:
        return None
    return spearman(x.mean().tolist(), y.mean().tolist()).rho


def of_paper() -> Part:
    """Return the paper's table, with the correlations that follow from its Tables 1 and 3."""
    from penultimate.statistics import spearman

    names = {task: label.removesuffix(PER_CLASS) for task, label in TASKS.items()}
    linear = printed("neurips_table1_linear")
    separation = printed("neurips_table3_class_separation")["class_separation_r2"][linear.index].tolist()
    rhos = {
        names[task]: spearman(separation, linear[f"{task}_percent"].tolist(), exact=False).rho
        for task in names
    }
    return table_of_printed(
        "tableF1",
        "The paper's Table F.1: a softmax ResNet-50 of ImageNet",
        "",
        {
            **{column: column.key for column in (CLASSES, SHARED, ASSIGNED, LINEAR)},
            CORRELATION: lambda table: table.index.map(rhos).to_series(table.index),
        },
        rows=printed("neurips_tableF1_class_overlap", numbers=False).rename(index=names),
        corner="Data set",
    )
