"""Accuracy on the pretraining classes, and transfer of features (sections 3.1, B, C.1 and D.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper.arms import COSINE_DECAY
from penultimate.paper.printed import (
    LINEAR,
    MEAN_NOTE,
    TASKS,
    figure,
    mean_of_printed,
    printed_columns,
    printed_tasks,
)
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import SMALL, Axis, Figure, scatter, scatter_printed
from penultimate.results.means import (
    PER_CLASS_NOTE,
    name_on,
    printed,
    table_of_means,
    table_of_printed,
    task_columns,
)
from penultimate.results.rows import MEAN, Run, mean_of, seeds, shared_seeds, transfer
from penultimate.results.table import Column, Table
from penultimate.results.text import plain

TOP = {"imagenet_top1_percent": "Top-1", "imagenet_top5_percent": "Top-5"}


@exhibit("table1", "Accuracy where trained, and accuracy elsewhere", section="3.1")
def table1(run: Run) -> Iterator[Part]:
    """The first columns say how well each network knows the classes it was trained on; the others how well a
    simple classifier on its frozen features learns each new task. All numbers are test accuracies in per
    cent, means over runs."""
    for probe, word in (("linear", "linear"), ("knn", "kNN")):
        group = f"Transfer, {word}"
        tasks = task_columns(transfer(run, probe), group)
        title, columns = f"Classifiers on frozen features, {word}, %", top(run) | tasks
        yield table_of_means(run, f"table1_{probe}", title, columns, needs=[*tasks], folded=probe == "knn")
        yield table_of_printed(
            f"table1_{probe}",
            f"The paper's Table 1, {word} half: ResNet-50, ImageNet, eight runs, %",
            f"neurips_table1_{probe}",
            printed_columns(TOP, "ImageNet") | printed_tasks(group),
            notes=[MEAN_NOTE],
        )
    yield PER_CLASS_NOTE


def top(run: Run, backbone: str = "") -> dict[Column, pd.DataFrame]:
    """Return the columns of test accuracy on the classes trained on."""
    return {
        Column(f"top{k}_percent", f"Top-{k}", f"{run.title}, test", better="high"): seeds(
            run, f"top{k}", scale=100, backbone=backbone
        )
        for k in (1, 5)
    }


@exhibit("tableB1", "Does another architecture say the same?", section="B")
def tableB1(run: Run) -> Iterator[Part]:
    """Test accuracy, class separation R² on the training images, and linear transfer, of networks of a second
    architecture; means over runs."""
    group = "Transfer, linear"
    for backbone in run.further:
        r2 = Column("r2", "R²", f"{run.title}, training", 3)
        tasks = task_columns(transfer(run, "linear", backbone=backbone), group)
        columns = top(run, backbone) | {r2: seeds(run, "class_separation", "train", backbone=backbone)}
        title = f"A second architecture on {run.title}: {backbone}"
        yield table_of_means(run, "tableB1", title, columns | tasks, needs=[*tasks])
    yield table_of_printed(
        "tableB1",
        "The paper's Table B.1: Inception v3, ImageNet, three runs, %",
        "neurips_tableB1_inception_v3",
        printed_columns(TOP | {"class_separation_r2": "R²"}, "ImageNet") | printed_tasks(group),
        notes=[MEAN_NOTE],
    )
    yield PER_CLASS_NOTE


@exhibit("figure1", "Is the better classifier the better source of features?", section="3.1")
def figure1(run: Run) -> Iterator[Part]:
    """Each mark of ours is one run. To the right: better on the classes trained on. Up: frozen features that
    serve the new tasks better. The paper's panel shows its printed means over eight runs."""
    top1, linear = seeds(run, "top1", scale=100), transfer(run, "linear")[MEAN]
    axes = Axis("Top-1 accuracy on the pretraining test set, %"), LINEAR
    theirs = printed("neurips_table1_linear")
    of_paper = theirs["imagenet_top1_percent"], mean_of_printed(theirs)
    yield figure(
        "figure1",
        "Pretraining accuracy against transfer",
        scatter(run, "figure1-ours", f"Trained on {run.title}", top1, linear, axes, drawn="runs"),
        scatter_printed("figure1-published", "Trained on ImageNet (ResNet-50)", *of_paper, axes),
    )


@exhibit("figureD1", "Every task by itself", section="D.1")
def figureD1(run: Run) -> Iterator[Part]:
    """Linear transfer accuracy on each task (upwards, %) against top-1 accuracy on the pretraining test set
    (to the right, %). Each mark of ours is one run; the paper's panels show its printed means."""
    top1, axes = seeds(run, "top1", scale=100), (Axis(""), Axis("", unit="%"))
    small: dict[str, Any] = {"size": SMALL, "labelled": False, "finding": ""}
    tasks = {task: frame for task, frame in transfer(run, "linear").items() if task != MEAN}
    panels = [
        scatter(run, name_on("figureD1", task), card(task).title, top1, frame, axes, drawn="runs", **small)
        for task, frame in tasks.items()
    ]
    ours = figure("figureD1", "This study's tasks", *panels, legend=True)
    yield ours
    theirs = printed("neurips_table1_linear")
    drawn = [
        scatter_printed(
            f"figureD1-published-{task}",
            label.rstrip("†"),
            theirs["imagenet_top1_percent"],
            theirs[f"{task}_percent"],
            axes,
            **small,
        )
        for task, label in TASKS.items()
    ]
    yield Figure("figureD1-published", "The paper's tasks", tuple(drawn), legend=not ours)


@exhibit("table2", "Does the objective still matter when all weights are trained further?", section="3.1")
def table2(run: Run) -> Iterator[Part]:
    """Test accuracy on each task of networks all of whose weights were fine-tuned on it, in per cent, means
    over runs. Learning rate and decay are chosen for each objective and task. The paper says that the
    objective has little effect on fine-tuned networks: the best is 0.2 points above softmax on average,
    which is not significant."""
    group = "Transfer, fine-tuned"
    frames = {
        "linear": transfer(run, "linear"),
        "fine_tuned": transfer(run, "fine_tuned", "head=fresh"),
        "probe_fine_tuned": transfer(run, "fine_tuned", "head=probe"),
        "scratch": from_scratch(run),
    }
    shared = shared_seeds(frame for of in frames.values() for task, frame in of.items() if task != MEAN)
    found = {
        name: {task: frame[frame.index.isin(shared)] for task, frame in of.items()}
        for name, of in frames.items()
    }
    title = "All weights fine-tuned, %"
    tuned = table_of_means(run, "table2", title, task_columns(found["fine_tuned"], group))
    yield tuned and with_scratch(tuned, found["scratch"])
    starts = {
        Column(f"{name}_mean_percent", words, "Mean over tasks, %", better="high"): found[name][MEAN]
        for name, words in (
            ("linear", "Only a final layer"),
            ("fine_tuned", "All weights, the final layer fresh"),
            ("probe_fine_tuned", "All weights, the final layer trained first"),
        )
        if not found[name][MEAN].empty
    }
    title, needs = "What is trained, and from where", [one for one in starts if "fine_tuned" in one.key]
    yield table_of_means(run, "table2_starts", title, starts, needs=needs, folded=True)
    title = "All weights fine-tuned, the final layer trained first, %"
    columns = task_columns(found["probe_fine_tuned"], group)
    yield table_of_means(run, "table2_probe", title, columns, folded=True)
    heads = {f"{task}_percent": label for task, label in TASKS.items()} | {"avg_percent": "Mean"}
    yield table_of_printed(
        "table2",
        "The paper's Table 2: ResNet-50, ImageNet, three runs, %",
        "neurips_table2_finetune",
        printed_columns(heads, group),
        notes=["The paper's bold is not recorded."],
    )
    yield PER_CLASS_NOTE


def from_scratch(run: Run) -> dict[str, pd.DataFrame]:
    """Return the accuracies [seed, 1] of networks that were trained on a task alone, and their mean."""
    found = {}
    for task in run.targets:
        rows = run.rows(f"from_scratch_{card(task).accuracy}", target=task, about="images")
        values = pd.DataFrame({"": 100 * rows.set_index(rows["seed"].astype(int))["value"]})
        found[task] = values.dropna(axis=1, how="all")
    return {**found, MEAN: mean_of(list(found.values()))}


def with_scratch(table: Table, scratch: dict[str, pd.DataFrame]) -> Table:
    """Return a table by task with a last row of networks from scratch, which are not compared."""
    runs = pd.DataFrame({f"{task}_percent": frame[""] for task, frame in scratch.items() if "" in frame})
    if runs.empty:
        return table
    rows = {"values": runs.mean(), "errors": runs.sem(), "counts": runs.count()}
    parts = {
        name: pd.concat([getattr(table, name), row.to_frame("From scratch").T]) for name, row in rows.items()
    }
    marks = None if table.marks is None else table.marks.reindex(parts["values"].index, fill_value="")
    return replace(table, **parts, marks=marks, slugs=(*table.slugs, ""))


@exhibit(
    "iclr_table1", "Do two more small networks, trained otherwise, rank the objectives alike?", section="B"
)
def iclr_table1(run: Run) -> Iterator[Part]:
    """Test accuracy of networks of two more architectures, trained with a cosine decay of the learning
    rate and without averaging of the weights. ± is the standard error over runs. The paper's ICLR
    version trains All-CNN-C on CIFAR-10 and WRN-16-8 on CIFAR-100 so, 25 runs an objective."""
    arm = COSINE_DECAY if COSINE_DECAY in run.arms else ""
    recipes = [block["recipe"] for block in run.grids(arm) if "recipe" in block]
    if recipes and recipes[0].get("schedule") == "cosine":
        top1 = {
            Column(f"{name}_top1_percent", "Top-1, %", plain(name), better="high", with_error=True): seeds(
                run, "top1", scale=100, arm=arm, backbone=name
            )
            for name in run.further
        }
        title = f"Test accuracy on {run.title} under cosine decay, without averaging"
        measured = {column: frame for column, frame in top1.items() if not frame.empty}
        yield table_of_means(run, "iclr_table1", title, measured, rows=run.labels(arm))
    heads = {"imagenet_top1_percent": "Top-1, %", "imagenet_top5_percent": "Top-5, %"}
    yield table_of_printed(
        "iclr_table1",
        "Table 1 of the paper's ICLR version: ResNet-50; All-CNN-C; WRN-16-8",
        "iclr_table1_accuracy",
        printed_columns(heads, "ImageNet")
        | printed_columns({"cifar10_top1_percent": "Top-1, %"}, "CIFAR-10")
        | printed_columns({"cifar100_top1_percent": "Top-1, %"}, "CIFAR-100"),
    )


@exhibit("tableC1", "How well the networks know the images they were trained on", section="C.1")
def tableC1(run: Run) -> Iterator[Part]:
    """Accuracy of the finished networks on the training images of {source}, seen without augmentation, and
    on its test images. An objective can do worse on the first and better on the second: that is what
    regularization is for. ± is the standard error over runs. In the paper, most objectives know the training
    images less well than softmax and the test images better."""
    columns = {
        Column(f"{split}_top{k}_percent", f"Top-{k}, %", f"{word} images", 2, "high", with_error=True): seeds(
            run, f"top{k}", split, scale=100
        )
        for split, word in (("train", "Training"), ("test", "Test"))
        for k in (1, 5)
    }
    train = [*columns][:2]
    yield table_of_means(run, "tableC1", "Accuracy in training and test", columns, needs=train[:1])
    title, source = "The paper's Table C.1: ResNet-50, ImageNet", "neurips_tableC1_train_accuracy"
    yield table_of_printed("tableC1", title, source, {column: column.key for column in train})
