"""Measurements in the course of training: figures C.1, C.2, C.3, D.2 and E.4."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.data.catalog import card
from penultimate.paper.printed import figure
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Axis, Panel, lines, scatter, scatter_printed
from penultimate.results.means import name_on, printed
from penultimate.results.rows import MEAN, Run, epochs, seeds, transfer

TOP1 = Axis("Top-1 accuracy, %", unit="%")


@exhibit("figureC1", "Which objective is ahead, and when?", section="C.1")
def figureC1(run: Run) -> Iterator[Part]:
    """Accuracy on images on which nothing is trained (held out of training or, if none were, the test
    images, as in the paper), over the epochs, of the averaged weights. Each line is the mean of an
    objective's runs; the whiskers at its end are standard errors. The first two fifths of training are left
    out. The paper's figure is not tabulated. It says: logit normalization and some others are ahead of
    softmax over the whole of training."""
    name, images, top1 = "figureC1-ours", "Holdout", epochs(run, "top1", "holdout", scale=100)
    if top1.empty:
        name, images, top1 = "figureC1-test", "Test", epochs(run, "top1", scale=100)
    panel = lines(run, name, f"{images} images of {run.title}", top1, TOP1)
    yield figure("figureC1", "Accuracy on images not trained on, over training", panel, legend=True)


@exhibit("figureC2", "How fast are the training images learned?", section="C.1")
def figureC2(run: Run) -> Iterator[Part]:
    """Accuracy on the training images over the epochs, means over runs; where it was not recorded, the mean
    training loss as a share of that of the first epoch. Losses of different objectives have different units
    and floors, so only the shape of each line counts. The first two fifths of training are left out. The
    paper's figure is not tabulated; its accuracies at the end of training are its Table C.1."""
    y, axis, title = epochs(run, "top1", "train", scale=100), TOP1, f"Training images of {run.title}"
    if y.empty:
        loss = epochs(run, "mean_loss", "train")
        y = 100 * loss / loss.bfill().iloc[:1].squeeze(axis=0) if len(loss) else loss
        axis, title = Axis("Loss, % of the first epoch's", unit="%"), f"Training loss on {run.title}"
    panel = lines(run, "figureC2-ours", title, y, axis)
    yield figure("figureC2", "The training images over training", panel, legend=True)


@exhibit("figureC3", "At equal training accuracy, who does better on new images?", section="C.1")
def figureC3(run: Run) -> Iterator[Part]:
    """Each mark is one objective at the end of training. Of two at the same place to the right, the higher
    one carries more of what it learned over to new images. The paper draws every epoch; its panel here
    shows what it prints, the end of training (Tables 1 and C.1). It finds regularized objectives above
    softmax at equal training accuracy."""
    x_label = "Top-1 accuracy on the training images, %"
    axes = Axis(x_label), Axis("Top-1 accuracy on the test images, %", unit="%")
    train, panels = epochs(run, "top1", "train", scale=100), list[Panel | None]()
    for split in ("test", "holdout"):
        y = epochs(run, "top1", split, scale=100)
        if not panels and not train.empty and not y.empty:
            axis = Axis(f"Top-1 accuracy on the {split} images, %", unit="%")
            panels = [lines(run, "figureC3-epochs", f"{run.title}, epoch by epoch", y, axis, train, x_label)]
    finished = seeds(run, "top1", "train", scale=100), seeds(run, "top1", scale=100)
    panels.append(scatter(run, "figureC3-ours", f"{run.title}, end of training", *finished, axes))
    in_paper = Axis(x_label, 2), Axis("Top-1 accuracy on the validation images, %", unit="%")
    theirs = (
        printed("neurips_tableC1_train_accuracy")["train_top1_percent"],
        printed("neurips_table1_linear")["imagenet_top1_percent"],
    )
    title = "ImageNet (ResNet-50), end of training"
    panels.append(scatter_printed("figureC3-published", title, *theirs, in_paper))
    yield figure("figureC3", "Test against training accuracy", *panels, legend=True)


@exhibit("figureD2", "When do the features transfer best?", section="D.2")
def figureD2(run: Run) -> Iterator[Part]:
    """Linear transfer of the networks that were kept during training, by epoch: the mean of the tasks, and
    each of them; means over runs. The paper's figure is not tabulated. It says that on most data sets
    softmax's features transfer best over the whole of training."""
    axis, by_task = Axis("Linear transfer accuracy, %", unit="%"), transfer(run, "linear", of=epochs)
    mean = by_task.pop(MEAN)
    panels = [lines(run, f"figureD2-{MEAN}", "Mean of the tasks", mean, axis)]
    panels += [
        lines(run, name_on("figureD2", task), card(task).title, frame, axis)
        for task, frame in by_task.items()
    ]
    yield figure("figureD2", "Linear transfer over training", *panels, legend=True)


@exhibit("figureE4", "When do the classes come apart?", section="E.4")
def figureE4(run: Run) -> Iterator[Part]:
    """Class separation R² of the penultimate features by the averaged weights that were kept during
    training, on training and on test images; means over runs. Where the unbiased R² was not measured, it is
    the paper's, which counts an image with itself and so reads higher where a class has few images. The
    paper's figure is not tabulated. It says: softmax's separation of the training images peaks at epoch 32
    and then falls, while every other objective's is highest at the end."""
    panels = []
    for split, word in (("train", "Training"), ("test", "Test")):
        y, how = epochs(run, "class_separation_unbiased", split), ", unbiased"
        if y.empty:
            y, how = epochs(run, "class_separation", split), ", by the paper's formula"
        axis, title = Axis(f"Class separation R²{how}", 3), f"{word} images of {run.title}"
        panels.append(lines(run, f"figureE4-{split}", title, y, axis, early=0.0))
    yield figure("figureE4", "Class separation over training", *panels, legend=True)
