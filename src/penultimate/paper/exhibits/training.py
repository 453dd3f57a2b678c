"""Measurements in the course of training: figures C.1, C.2, C.3, D.2 and E.4."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.data.catalog import card
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Axis, Figure, Panel, lines, scatter, scatter_printed
from penultimate.results.means import printed
from penultimate.results.rows import MEAN, Run, epochs, seeds, transfer
from penultimate.results.sets import name_on

TOP1 = Axis("Top-1 accuracy, %", unit="%")


@exhibit("figureC1", "Which objective is ahead, and when?", section="C.1")
def figureC1(run: Run) -> Iterator[Part]:
    """Accuracy on images on which nothing is trained (held out of training or, if none were, the test
    images, as in the paper), over the epochs, of the averaged weights. Each line is the mean of an
    objective's runs; the whiskers at its end are standard errors. The first two fifths of training are left
    out. The paper's figure is not tabulated. It says: logit normalization and some others are ahead of
    softmax over the whole of training."""
    holdout = epochs(run, "top1", "holdout", scale=100)
    if holdout.empty:
        test = epochs(run, "top1", scale=100)
        panel = lines(run, "figureC1-test", f"Test images of {run.title}", test, TOP1)
    else:
        panel = lines(run, "figureC1-ours", f"Holdout images of {run.title}", holdout, TOP1)
    title = "Accuracy on images not trained on, over training"
    yield Figure("figureC1", title, (panel,), legend=True) if panel else None


@exhibit("figureC2", "How fast are the training images learned?", section="C.1")
def figureC2(run: Run) -> Iterator[Part]:
    """Accuracy on the training images over the epochs, means over runs; where it was not recorded, the mean
    training loss as a share of that of the first epoch. Losses of different objectives have different units
    and floors, so only the shape of each line counts. The first two fifths of training are left out. The
    paper's figure is not tabulated; its accuracies at the end of training are its Table C.1."""
    accuracy = epochs(run, "top1", "train", scale=100)
    if accuracy.empty:
        loss = epochs(run, "mean_loss", "train")
        share = 100 * loss / loss.bfill().iloc[:1].squeeze(axis=0) if len(loss) else loss
        axis = Axis("Loss, % of the first epoch's", unit="%")
        panel = lines(run, "figureC2-ours", f"Training loss on {run.title}", share, axis)
    else:
        panel = lines(run, "figureC2-ours", f"Training images of {run.title}", accuracy, TOP1)
    yield Figure("figureC2", "The training images over training", (panel,), legend=True) if panel else None


@exhibit("figureC3", "At equal training accuracy, who does better on new images?", section="C.1")
def figureC3(run: Run) -> Iterator[Part]:
    """Each mark is one objective at the end of training. Of two at the same place to the right, the higher
    one carries more of what it learned over to new images. The paper draws every epoch; its panel here
    shows what it prints, the end of training (Tables 1 and C.1). It finds regularized objectives above
    softmax at equal training accuracy."""
    x_label = "Top-1 accuracy on the training images, %"
    train = epochs(run, "top1", "train", scale=100)
    panels: list[Panel | None] = []
    for split in ("test", "holdout"):
        y = epochs(run, "top1", split, scale=100)
        axis = Axis(f"Top-1 accuracy on the {split} images, %", unit="%")
        if not panels and not train.empty and not y.empty:
            panels = [lines(run, "figureC3-epochs", f"{run.title}, epoch by epoch", y, axis, train, x_label)]
    axes = Axis(x_label), Axis("Top-1 accuracy on the test images, %", unit="%")
    finished = seeds(run, "top1", "train", scale=100), seeds(run, "top1", scale=100)
    panels.append(scatter(run, "figureC3-ours", f"{run.title}, end of training", *finished, axes))
    theirs = (
        printed("neurips_tableC1_train_accuracy")["train_top1_percent"],
        printed("neurips_table1_linear")["imagenet_top1_percent"],
    )
    in_paper = Axis(x_label, 2), Axis("Top-1 accuracy on the validation images, %", unit="%")
    panels.append(
        scatter_printed("figureC3-published", "ImageNet (ResNet-50), end of training", *theirs, in_paper)
    )
    yield Figure("figureC3", "Test against training accuracy", tuple(filter(None, panels)), legend=True)


@exhibit("figureD2", "When do the features transfer best?", section="D.2")
def figureD2(run: Run) -> Iterator[Part]:
    """Linear transfer of the networks that were kept during training, by epoch: the mean of the tasks, and
    each of them; means over runs. The paper's figure is not tabulated. It says that on most data sets
    softmax's features transfer best over the whole of training."""
    axis = Axis("Linear transfer accuracy, %", unit="%")
    by_task = transfer(run, "linear", of=epochs)
    titles = {f"figureD2-{MEAN}": ("Mean of the tasks", by_task.pop(MEAN))}
    titles |= {name_on("figureD2", task): (card(task).title, frame) for task, frame in by_task.items()}
    panels = [
        lines(run, name, title, frame, axis) for name, (title, frame) in titles.items() if not frame.empty
    ]
    drawn = tuple(filter(None, panels))
    yield Figure("figureD2", "Linear transfer over training", drawn, legend=True) if drawn else None


@exhibit("figureE4", "When do the classes come apart?", section="E.4")
def figureE4(run: Run) -> Iterator[Part]:
    """Class separation R² of the penultimate features by the averaged weights that were kept during
    training, on training and on test images; means over runs. Where the unbiased R² was not measured, it is
    the paper's, which counts an image with itself and so reads higher where a class has few images. The
    paper's figure is not tabulated. It says: softmax's separation of the training images peaks at epoch 32
    and then falls, while every other objective's is highest at the end."""
    panels = []
    for split, word in (("train", "Training"), ("test", "Test")):
        unbiased = epochs(run, "class_separation_unbiased", split)
        y = epochs(run, "class_separation", split) if unbiased.empty else unbiased
        axis = Axis(
            "Class separation R²" + (", by the paper's formula" if unbiased.empty else ", unbiased"), 3
        )
        title = f"{word} images of {run.title}"
        panels.append(None if y.empty else lines(run, f"figureE4-{split}", title, y, axis, early=0.0))
    drawn = tuple(filter(None, panels))
    yield Figure("figureE4", "Class separation over training", drawn, legend=True) if drawn else None
