"""Accuracy on the pretraining classes, and transfer of features (section 3.1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penultimate.data.catalog import card
from penultimate.paper.printed import MEAN_NOTE, TASKS, mean_of_printed, printed_tasks
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import SMALL, Axis, Figure, scatter, scatter_printed
from penultimate.results.means import PER_CLASS_NOTE, printed, table_of_means, table_of_printed, task_columns
from penultimate.results.rows import MEAN, Run, seeds, transfer
from penultimate.results.sets import name_on
from penultimate.results.table import Column

LINEAR = Axis("Mean linear transfer accuracy, %", unit="%")


@exhibit("table1", "Accuracy where trained, and accuracy elsewhere", section="3.1")
def table1(run: Run) -> Iterator[Part]:
    """The first columns say how well each network knows the classes it was trained on; the others how well a
    simple classifier on its frozen features learns each new task. All numbers are test accuracies in per
    cent, means over runs."""
    top = {
        Column(f"top{k}_percent", f"Top-{k}", f"{run.title}, test", better="high"): seeds(
            run, f"top{k}", scale=100
        )
        for k in (1, 5)
    }
    for probe, word in (("linear", "linear"), ("knn", "kNN")):
        group = f"Transfer, {word}"
        tasks = task_columns(transfer(run, probe), group)
        title = f"Classifiers on frozen features, {word}, %"
        folded = probe == "knn"
        yield table_of_means(run, f"table1_{probe}", title, top | tasks, needs=[*tasks], folded=folded)
        yield table_of_printed(
            f"table1_{probe}",
            f"The paper's Table 1, {word} half: ResNet-50, ImageNet, eight runs, %",
            f"neurips_table1_{probe}",
            {
                Column(f"imagenet_top{k}_percent", f"Top-{k}", "ImageNet"): f"imagenet_top{k}_percent"
                for k in (1, 5)
            }
            | printed_tasks(group),
            notes=[MEAN_NOTE],
        )
    yield PER_CLASS_NOTE


@exhibit("tableB1", "Does another architecture say the same?", section="B")
def tableB1(run: Run) -> Iterator[Part]:
    """Test accuracy, class separation R² on the training images, and linear transfer, of networks of a second
    architecture; means over runs."""
    group = "Transfer, linear"
    for backbone in run.further:
        top = {
            Column(f"top{k}_percent", f"Top-{k}", f"{run.title}, test", better="high"): seeds(
                run, f"top{k}", scale=100, backbone=backbone
            )
            for k in (1, 5)
        }
        r2 = Column("r2", "R²", f"{run.title}, training", 3)
        separation = {r2: seeds(run, "class_separation", "train", backbone=backbone)}
        tasks = task_columns(transfer(run, "linear", backbone=backbone), group)
        title = f"A second architecture on {run.title}: {backbone}"
        yield table_of_means(run, "tableB1", title, top | separation | tasks, needs=[*tasks])
    heads = {"imagenet_top1_percent": "Top-1", "imagenet_top5_percent": "Top-5", "class_separation_r2": "R²"}
    yield table_of_printed(
        "tableB1",
        "The paper's Table B.1: Inception v3, ImageNet, three runs, %",
        "neurips_tableB1_inception_v3",
        {Column(key, label, "ImageNet"): key for key, label in heads.items()} | printed_tasks(group),
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
    panels = (
        scatter(run, "figure1-ours", f"Trained on {run.title}", top1, linear, axes, drawn="runs"),
        scatter_printed(
            "figure1-published",
            "Trained on ImageNet (ResNet-50)",
            theirs["imagenet_top1_percent"],
            mean_of_printed(theirs),
            (Axis("ImageNet top-1 accuracy, %"), LINEAR),
        ),
    )
    yield Figure("figure1", "Pretraining accuracy against transfer", tuple(filter(None, panels)))


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
    ours = tuple(filter(None, panels))
    if ours:
        yield Figure("figureD1", "This study's tasks", ours, legend=True)
    theirs = printed("neurips_table1_linear")
    drawn = (
        scatter_printed(
            f"figureD1-published-{task}",
            label.rstrip("†"),
            theirs["imagenet_top1_percent"],
            theirs[f"{task}_percent"],
            axes,
            **small,
        )
        for task, label in TASKS.items()
    )
    yield Figure("figureD1-published", "The paper's tasks", tuple(drawn), legend=not ours)
