"""Measurements in the course of training: figures C.1, C.2, C.3, D.2 and E.4."""

from __future__ import annotations

from dataclasses import replace

from penultimate.measures.catalogue import requested
from penultimate.measures.class_separation import UNBIASED
from penultimate.paper import printed
from penultimate.paper.claims.courses import at_equal_training
from penultimate.report.base import Figure, Missing
from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.shapes import findings
from penultimate.report.shapes.asked import Asked, at_epochs
from penultimate.report.shapes.findings import Change
from penultimate.report.shapes.lines import Lines, LinesByTarget, OverEpochs, first_measured, lines
from penultimate.report.shapes.scatter import PrintedPanel, ScatterPanel
from penultimate.report.spec import Bespoke, Exhibit, Piece

ON_HOLDOUT = OverEpochs(
    "figureC1-ours",
    "Holdout images of {source}",
    Quantity("top1", label="Top-1 accuracy, %", split="holdout"),
)
ON_VALIDATION = OverEpochs(
    "figureC1-test", "Test images of {source}", Quantity("top1", label="Top-1 accuracy, %", split="test")
)
ON_TRAINING = OverEpochs(
    "figureC2-ours", "Training images of {source}", Quantity("top1", label="Top-1 accuracy, %", split="train")
)

HALFWAY, AT_END = 0.5, 1.0


def _on_the_way(words: str, quantity: Quantity, share: float) -> Asked:
    """Return a quantity that was followed through training, at a share of the epochs."""
    when = {0.0: "at first", HALFWAY: "halfway through training", AT_END: "at the end"}[share]
    return Asked(f"{words} {when}", quantity, read=at_epochs(share, quantity))


FIGURE_C1 = Exhibit(
    name="figureC1",
    title="Which objective is ahead, and when?",
    caption="Accuracy on images on which nothing is trained (held out of training or, if none were, the test"
    " images, as in the paper), over the epochs, of the averaged weights. {lines} The first two fifths of"
    " training are left out.",
    parts=(
        Lines(
            "figureC1",
            "Accuracy on images not trained on, over training",
            "Lines of top-1 accuracy on holdout or test images over the epochs.",
            ((ON_HOLDOUT, ON_VALIDATION),),
            missing="Accuracy on images not trained on, over the epochs",
        ),
    ),
    paper_says="The paper's figure is not tabulated. It says: validation accuracy rises rapidly, because"
    " averaged weights are evaluated; logit normalization and some others appear to be ahead of softmax over"
    " the whole of training.",
    findings=(
        findings.either(
            *(
                findings.beside_baseline(*(_on_the_way(words, of.y, share) for share in (HALFWAY, AT_END)))
                for words, of in (("holdout accuracy", ON_HOLDOUT), ("test accuracy", ON_VALIDATION))
            )
        ),
    ),
    section="C.1",
    summary="Holdout accuracy over the epochs of training",
    short="Holdout accuracy by epoch",
)

LOSS = OverEpochs(
    "figureC2-ours",
    "Training loss on {source}",
    Quantity("mean_loss", "train", label="Loss, % of the first epoch's", sign="%", decimals=1),
    relative=True,
    note="Training accuracy over the epochs was not recorded; drawn instead is the mean training loss"
    " (augmented images, weights as they move) as a share of that of the first epoch. Losses of different"
    " objectives have different units and floors, so only the shape of each line counts, not which is lower.",
)


def _loss_left(measurements: Measurements) -> ByRun:
    """Return the loss of each run at the end of training, in per cent of its loss in the first epoch."""
    left: ByRun = {}
    for (spec, seed), track in LOSS.tracks(measurements).items():
        left.setdefault(spec, {})[seed] = track[max(track)][1]
    return left


FIGURE_C2 = Exhibit(
    name="figureC2",
    title="How fast are the training images learned?",
    caption="{lines} The first two fifths of training are left out.",
    parts=(
        Lines(
            "figureC2",
            "The training images over training",
            "Lines of accuracy, or of the loss, on the training images over the epochs.",
            ((ON_TRAINING, LOSS),),
            missing="Training accuracy over the epochs",
        ),
    ),
    paper_says="The paper's figure is not tabulated; its accuracies at the end of training are its Table"
    " C.1.",
    findings=(
        findings.either(
            findings.beside_baseline(
                *(_on_the_way("training accuracy", ON_TRAINING.y, share) for share in (HALFWAY, AT_END))
            ),
            findings.ends(
                Asked("training loss at the end, as a share of the first epoch's,", LOSS.y, read=_loss_left)
            ),
        ),
    ),
    section="C.1",
    summary="Training accuracy over the epochs of training",
    short="Training accuracy by epoch",
)

ACROSS = Quantity("top1", label="Top-1 accuracy on the training images, %", split="train")
ON_TEST, ON_HELD_OUT = (
    Quantity("top1", label=f"Top-1 accuracy on the {split} images, %", split=split)
    for split in ("test", "holdout")
)
EPOCH_BY_EPOCH = [
    OverEpochs("figureC3-epochs", "{source}, epoch by epoch", upwards, ACROSS)
    for upwards in (ON_TEST, ON_HELD_OUT)
]
EPOCHS_READ = [quantity for panel in EPOCH_BY_EPOCH for quantity in panel.quantities]
AGAINST = "Test against training accuracy"
FINISHED = ScatterPanel("figureC3-ours", "{source}, end of training", ACROSS, ON_TEST, AGAINST)
PRINTED = PrintedPanel(
    "figureC3-published",
    "ImageNet (ResNet-50), end of training",
    ("neurips_tableC1_train_accuracy", "train_top1_percent"),
    ("neurips_table1_linear", "imagenet_top1_percent"),
    ACROSS.label,
    "Top-1 accuracy on the validation images, %",
    x_digits=2,
)


def _against_training(measurements: Measurements) -> Piece:
    """Return one figure with our epochs and finished networks, and the paper's finished networks."""
    epochs, finished = first_measured(EPOCH_BY_EPOCH, measurements), FINISHED.panel(measurements)
    panels = (epochs.panel(measurements) if epochs else None, finished, PRINTED.panel())
    what = "Accuracy on images not trained on against accuracy on the training images, ours and the paper's."
    drawn = tuple(panel for panel in panels if panel)
    figure = Figure("figureC3", AGAINST, what, drawn, legend=epochs is not None)
    unrecorded = "Training accuracy over the epochs was not recorded: only finished networks stand here."
    line = f" Epoch by epoch: {lines(epochs.tracks(measurements)).lower()}" if epochs else ""
    return Piece(
        figures=(figure,),
        notes=(unrecorded,) if finished and not epochs else (),
        missing=() if finished else (Missing(FINISHED.missing),),
        words={"behind": f" ({measurements.runs_phrase()})" if finished else "", "epochs": line},
    )


def _at_equal_training(measurements: Measurements) -> ByRun:
    """Return the test accuracy of each run when its training accuracy first reaches a common level."""
    train, test = (
        {each.spec: measurements.curve(each, ACROSS.metric, split) for each in measurements.objectives}
        for split in ("train", "test")
    )
    return at_equal_training(train, test)


FIGURE_C3 = Exhibit(
    name="figureC3",
    title="At equal training accuracy, who does better on new images?",
    caption="Each mark is one objective at the end of training{behind}. Of two at the same place to the"
    " right, the higher one carries more of what it learned over to new images.{epochs}",
    parts=(Bespoke(_against_training, (*EPOCHS_READ, *FINISHED.quantities)),),
    paper_says="The paper draws every epoch; its panel here shows what it prints, the end of training (Tables"
    " 1 and C.1). It finds regularized objectives above softmax at equal training accuracy.",
    findings=(
        findings.either(
            findings.beside_baseline(
                Asked("test accuracy at equal training accuracy", ON_TEST, read=_at_equal_training)
            ),
            findings.goes_with(
                Asked("training accuracy", ACROSS, ("neurips_tableC1_train_accuracy", "train_top1_percent")),
                printed.TEST,
            ),
        ),
    ),
    section="C.1",
    summary=AGAINST,
    short="Test against training",
)

FIGURE_D2 = Exhibit(
    name="figureD2",
    title="When do the features transfer best?",
    caption="Linear transfer of the networks that were kept during training, by epoch: the mean of the tasks,"
    " and each of them. {lines}",
    parts=(
        LinesByTarget(
            "figureD2",
            "Linear transfer over training",
            "Lines of linear transfer over the epochs of pretraining: the mean, and a panel for each task.",
            OverEpochs(
                "figureD2-mean",
                "Mean of the tasks",
                Quantity("linear_{accuracy}", label="Linear transfer, %", target=TARGETS),
                early=0.0,
            ),
            missing="Linear transfer over training",
        ),
    ),
    paper_says="The paper's figure is not tabulated (a network an objective, every 6 epochs; squared error is"
    " off the scale of all data sets but Pets, and left out). It says that on most data sets softmax's"
    " features transfer best over the whole of training: on SUN397 sigmoid's are as good, on Pets others' are"
    " better.",
    findings=(
        findings.changes(
            *(
                Change(
                    f"from {when} to the end the mean linear transfer",
                    *(_on_the_way("", printed.LINEAR.quantity, share) for share in (start, AT_END)),
                )
                for start, when in ((0.0, "the first network kept"), (HALFWAY, "halfway"))
            )
        ),
    ),
    section="D.2",
    measured_by="full",
    summary="Linear transfer over the epochs of training",
    short="Transfer by epoch",
)

R2 = Quantity("class_separation", label="Class separation R², by the paper's formula")
BIASED = (
    "Drawn is R² by the paper's formula, which counts an image with itself and so reads about (1 − R²)/n"
    " higher where a class has n images; the unbiased one was not measured over the epochs"
    " (`dynamics(unbiased=True)` does)."
    " Where fewer images are measured than for Table 3, these lines end above it."
)
OVER_EPOCHS = tuple(
    (
        OverEpochs(
            name,
            title,
            replace(R2, metric=UNBIASED, split=split, label="Class separation R², unbiased", optional=True),
            early=0.0,
        ),
        OverEpochs(name, title, replace(R2, split=split), early=0.0, note=BIASED),
    )
    for split, name, title in (
        ("train", "figureE4-train", "Training images of {source}"),
        ("test", "figureE4-test", "Test images of {source}"),
    )
)
OVER_TRAINING = "Class separation over training"


def _separating(panels: tuple[OverEpochs, ...]) -> Change:
    """Return the change of a split's class separation from the first network kept to the finished one."""
    quantities = [panel.y for panel in panels]
    split = {"train": "training", "test": "test"}[quantities[0].split]
    first, last = (Asked("", quantities[0], read=at_epochs(share, *quantities)) for share in (0.0, AT_END))
    return Change(f"from the first network kept to the last R² on the {split} images", first, last)


def _images(measurements: Measurements) -> Piece:
    """Return the words for how many images the study's snapshots were measured on."""
    asked = measurements.networks.requested("dynamics")
    count = {**requested("dynamics").measurement.bound({}), **(asked.settings if asked else {})}["images"]
    return Piece(words={"images": f"{count:,}"})


FIGURE_E4 = Exhibit(
    name="figureE4",
    title="When do the classes come apart?",
    caption="{shown}, of the penultimate features by the averaged weights that were kept during training, on"
    " {images} images of each split (or all there are). {lines}",
    parts=(
        Lines(
            "figureE4",
            OVER_TRAINING,
            "Lines of class separation over the epochs of training, on training and on test images.",
            OVER_EPOCHS,
            missing=OVER_TRAINING,
        ),
        Bespoke(_images),
    ),
    paper_says="The paper's figure is not tabulated (a network an objective, every 8 epochs). It says: the"
    " differences are there early and their order changes little; softmax's separation of the training images"
    " peaks at epoch 32 and then falls, while every other objective's is highest at the end.",
    findings=(findings.changes(*map(_separating, OVER_EPOCHS)),),
    section="E.4",
    summary=OVER_TRAINING,
    short="Separation by epoch",
)
