"""The final layer, relearned from a few images of the pretraining classes (section 3.4 of the paper)."""

from __future__ import annotations

from dataclasses import replace

from penultimate.data.catalog import card
from penultimate.paper import printed
from penultimate.paper.arms import SWEEP
from penultimate.paper.claims.aspects import ORIGINAL
from penultimate.paper.claims.criteria import CRITERIA, judged_shots
from penultimate.paper.printed import mean_of_printed
from penultimate.report.base import Curve, Figure, Panel, Point
from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.findings import goes_with
from penultimate.report.shapes.scatter import (
    PrintedPanel,
    Scatter,
    ScatterPanel,
    correlation_of,
    finding,
    leaning_on,
    mean_points,
)
from penultimate.report.shapes.table import Printed, PrintedTable, TableOfRuns
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, p_value

TABLE_3 = "neurips_table3_class_separation"
IN_PAPER = ("iclr_table3_linear", "imagenet_50k_relearned_top1_percent")
SWEEP_IN_PAPER = ("iclr_table4_temperature", "imagenet_50k_relearned_top1_percent")
R2_TRAIN = Quantity("class_separation", "train", label="Class separation R² on the training images")
TOP1 = Quantity("top1", label="Top-1 accuracy on the classes trained on, %")
RELEARNED = Quantity("relearn_top1", label="Top-1 accuracy of the relearned head, %", setting="shots")
LINEAR = Quantity("linear_{accuracy}", label="Mean linear transfer accuracy, %", target="targets")
ON_THE_OTHERS = (
    "The heads are relearned from test images. Drawn is how they and the original ones do on the others; the"
    " table has the original heads on all test images."
)


def _heads(measurements: Measurements) -> Piece:
    """Return a panel for each number of images that the heads were relearned from, and the paper's panel."""
    separation = measurements.values(R2_TRAIN)
    originals, accuracy = measurements.by_setting(ORIGINAL), measurements.values(TOP1)

    def panel(shots: str, runs: ByRun) -> Panel:
        title = f"{measurements.title}, {counted(int(shots), 'image')} of each class"
        before, after = (
            mean_points(measurements, separation, top1, R2_TRAIN, TOP1)
            for top1 in (originals.get((shots,), accuracy), runs)
        )
        return _joined(Panel(f"figure6-{shots}", title, R2_TRAIN.label, TOP1.label), before, after)

    panels = [panel(shots, runs) for (shots,), runs in measurements.by_setting(RELEARNED).items()]
    figure = Figure(
        "figure6",
        "Relearning the head",
        "Scatter plots of the accuracy of relearned heads against class separation; a line joins each to the"
        " accuracy of the original head.",
        (*(panel for panel in panels if panel.points), _heads_in_paper()),
    )
    return Piece(figures=(figure,), notes=(ON_THE_OTHERS,) if originals else ())


def _heads_in_paper() -> Panel:
    name, title = "figure6-published", "ImageNet (ResNet-50), 50,046 training images"
    separation, labels = (TABLE_3, "class_separation_r2"), (R2_TRAIN.label, TOP1.label)
    before = PrintedPanel(name, title, separation, (TABLE_3, "imagenet_top1_percent"), *labels, x_digits=3)
    after = PrintedPanel(name, title, separation, IN_PAPER, *labels, x_digits=3)
    return _joined(Panel(name, title, *labels, source="published"), before.points(), after.points())


def _joined(panel: Panel, before: tuple[Point, ...], after: tuple[Point, ...]) -> Panel:
    """Return the panel with small marks for original heads, large ones for relearned heads, and lines."""
    starts = {point.label: point for point in before}
    both = [point for point in after if point.label in starts]
    lines = tuple(
        Curve(
            ((starts[end.label].x, starts[end.label].y), (end.x, end.y)),
            end.objective,
            f"{end.label}: original to relearned head",
            faint=True,
        )
        for end in both
    )
    gaps = [replace(end, y=end.y - starts[end.label].y) for end in both]
    gap = correlation_of(gaps)
    said = f"Relearned: {finding(after)}"
    if gap:
        said += f". Relearned less original: ρ = {fixed(gap.rho, 2)}, {p_value(gap.p)}{leaning_on(gaps)}"
    faint = (replace(point, faint=True) for point in before)
    return replace(panel, points=(*faint, *after) if after else (), curves=lines, finding=said)


OF_TRAINING = replace(RELEARNED, metric="relearn_training_top1", optional=True)
PAPER_SHOTS = {OF_TRAINING.metric: 50_046 / 1_281_167, RELEARNED.metric: CRITERIA.limited_data.value}
"""The number of images from which the paper's heads are relearned, as a share of the training images."""


def _heads_of(measurements: Measurements) -> Quantity:
    """Return heads relearned from training images if there are any, and otherwise from fresh images."""
    return _nearest(measurements, OF_TRAINING if measurements.by_setting(OF_TRAINING) else RELEARNED)


def _nearest(measurements: Measurements, quantity: Quantity) -> Quantity:
    """Return the heads relearned from the share of the training images that is nearest to the paper's."""
    source = card(measurements.source)
    images = source.sizes.get("train", source.images) / source.classes
    shots = [int(setting) for (setting,) in measurements.by_setting(quantity)]
    scale = PAPER_SHOTS[quantity.metric] / CRITERIA.limited_data.value
    return replace(quantity, setting=f"shots={judged_shots(shots, images * scale)}")


def _relearned(measurements: Measurements, quantity: Quantity) -> Asked:
    """Return the accuracy of heads relearned from this many images, here and in the ICLR version."""
    shots = quantity.setting.removeprefix("shots=")
    few = f"{counted(int(shots), 'image')} a class" if shots.isdigit() else "few images"
    return Asked(f"accuracy of the head relearned from {few}", quantity, IN_PAPER)


def _easier(measurements: Measurements) -> str:
    """Return a sentence on how class separation goes with the accuracy of heads from fresh images."""
    head = _relearned(measurements, _nearest(measurements, RELEARNED))
    return goes_with(printed.SEPARATION, head)(measurements)


def _foretells(measurements: Measurements) -> str:
    """Return a sentence on how the accuracy of relearned heads goes with transfer."""
    return goes_with(_relearned(measurements, _heads_of(measurements)), printed.LINEAR)(measurements)


def _whose_images(measurements: Measurements) -> str:
    quantity = _heads_of(measurements)
    shots = quantity.setting.removeprefix("shots=")
    if not shots.isdigit():
        return ""
    count = counted(int(shots), "image")
    nearest = "the number measured here whose share of the training images is nearest to the paper's"
    if quantity.metric == OF_TRAINING.metric:
        return f"The head is relearned from {count} of each class that the network was trained on, {nearest}."
    return (
        f"The head is relearned from {count} of each class, {nearest}; they are fresh ones, as in Figure 6."
        " The paper's are images that the network was trained on, which was not measured here"
        " (`relearning_from_training` does)."
    )


FIGURE6 = Exhibit(
    name="figure6",
    title="Do separated classes make the head easy to relearn?",
    caption="The final layer of each finished network is thrown away and learned again from a few images of"
    " the classes it was trained on, fresh ones that training did not see. Large marks: the relearned head;"
    " small marks joined to them: the original one. To the right: objectives that pull the classes further"
    " apart.",
    parts=(
        TableOfRuns(
            "figure6",
            "The original and the relearned heads",
            (
                replace(R2_TRAIN, label="R² (training images)", key="class_separation_r2"),
                Quantity("top1", label="Original head", key="top1_percent", group="Test top-1, %"),
                replace(
                    RELEARNED,
                    label="Relearned, {shots} per class",
                    key="relearned_{shots}_percent",
                    group="Test top-1, %",
                ),
                replace(
                    OF_TRAINING,
                    label="Relearned, {shots} per class trained on",
                    key="relearned_training_{shots}_percent",
                    group="Test top-1, %",
                ),
            ),
            missing="Relearned heads",
            needs=("relearned_{shots}_percent",),
            beside=SWEEP,
        ),
        PrintedTable(
            "figure6",
            TABLE_3,
            "The paper's Table 3, and IN(50k) of its ICLR version: ResNet-50, ImageNet",
            (
                Printed("class_separation_r2", "R² (training images)", with_error=False),
                Printed("imagenet_top1_percent", "Original head", "Top-1, %", "%", with_error=False),
                Printed(IN_PAPER[1], "Relearned, 50,046 training images", "Top-1, %", "%", table=IN_PAPER[0]),
            ),
        ),
        Bespoke(_heads, (R2_TRAIN, TOP1, ORIGINAL, RELEARNED)),
    ),
    paper_says="The paper's Figure 6 (40 images per class, tested on 10,000 others) is not tabulated; beside"
    " ours stands the relearned accuracy that its ICLR version prints: 50,046 training images,"
    " tested on the whole validation set. The paper calls the two qualitatively similar.",
    findings=(_easier,),
    section="3.4",
    place=3,
    measured_by="glyphs",
    summary="The last layer learnt again from fresh images",
    short="Relearning the head",
)


ICLR_FIGURE5 = Exhibit(
    name="iclr_figure5",
    title="Is a head that is easy to relearn a sign of features that transfer worse?",
    caption="To the right: networks whose final layer is better relearned from few images of the classes"
    " trained on: in the paper from images that the network was trained on. Up: networks whose frozen"
    " features serve the new tasks better. Means over runs.",
    parts=(
        Scatter(
            "iclr_figure5",
            "Relearning against transfer",
            "Scatter plots of mean linear transfer accuracy against the accuracy of the relearned head.",
            (
                ScatterPanel(
                    "iclr_figure5-ours",
                    "Objectives on {source}",
                    RELEARNED,
                    LINEAR,
                    "Linear transfer against the relearned head",
                    marks="means",
                    chosen=_heads_of,
                    instead=(OF_TRAINING,),
                ),
                PrintedPanel(
                    "iclr_figure5-objective-published",
                    "Objectives on ImageNet (ResNet-50)",
                    IN_PAPER,
                    (IN_PAPER[0], mean_of_printed),
                    RELEARNED.label,
                    LINEAR.label,
                ),
                ScatterPanel(
                    "iclr_figure5-temperature",
                    "Cosine softmax on {source}, by temperature",
                    RELEARNED,
                    LINEAR,
                    "The same over temperatures of cosine softmax",
                    marks="means",
                    over=SWEEP,
                    chosen=_heads_of,
                    instead=(OF_TRAINING,),
                ),
                PrintedPanel(
                    "iclr_figure5-temperature-published",
                    "Cosine softmax on ImageNet, by temperature",
                    SWEEP_IN_PAPER,
                    (SWEEP_IN_PAPER[0], mean_of_printed),
                    RELEARNED.label,
                    LINEAR.label,
                    over=SWEEP,
                ),
            ),
        ),
    ),
    findings=(_foretells, _whose_images),
    section="3.4",
    place=4,
    measured_by="glyphs",
    summary="Relearned accuracy against linear transfer",
    short="Relearning against transfer",
)
