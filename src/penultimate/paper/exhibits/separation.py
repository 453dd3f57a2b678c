"""Class separation in the penultimate layer, and its relations to other numbers (3.3, 3.4 and E.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import correlation

from penultimate.measures.class_separation import UNBIASED
from penultimate.paper import printed
from penultimate.paper.arms import SWEEP
from penultimate.paper.printed import mean_of_printed, printed_transfer
from penultimate.report.base import Point
from penultimate.report.measurements import Measurements
from penultimate.report.networks import name_in
from penultimate.report.quantity import Quantity
from penultimate.report.shapes import findings
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.numbers import summarise
from penultimate.report.shapes.scatter import PrintedPanel, Scatter, ScatterPanel
from penultimate.report.shapes.table import Printed, PrintedTable, TableOfRuns, as_printed
from penultimate.report.spec import Exhibit
from penultimate.report.text import fixed, p_value, signed
from penultimate.statistics.comparison import LEVEL

R2_TRAIN = Quantity("class_separation", "train", label="Class separation R² on the training images")
LINEAR = Quantity("linear_{accuracy}", label="Mean linear transfer accuracy, %", target="targets")


SPLITS = {"train": "training", "test": "test"}
IN_TABLE_3 = (
    Quantity(
        "top1", label="Test top-1, %", key="test_top1_percent", group="{source}", bold=True, with_error=True
    ),
    *(
        Quantity(
            "class_separation",
            split,
            label=f"R² ({words} images)",
            group="{source}",
            key=f"class_separation_r2_{split}",
            with_error=True,
        )
        for split, words in SPLITS.items()
    ),
    *(
        Quantity(
            UNBIASED,
            split,
            label=f"Unbiased R² ({words} images)",
            group="{source}",
            key=f"unbiased_r2_{split}",
            with_error=True,
            optional=True,
        )
        for split, words in SPLITS.items()
    ),
)
TABLE3 = Exhibit(
    name="table3",
    title="How far the classes are pulled apart",
    caption="Class separation R² of the penultimate features on the training images of the pretraining set:"
    " the share of their spread (in cosine distance) that lies between classes. R² is by the paper's formula,"
    " which counts an image with itself and so depends on how many images a class has; where it is measured,"
    " the unbiased R² beside it leaves those pairs out. ± is the standard error over runs.",
    parts=(
        TableOfRuns(
            "table3",
            "Accuracy and class separation",
            IN_TABLE_3,
            missing="Class separation",
            needs=("class_separation_r2_train",),
            without="The unbiased R² was not measured: all R² are by the paper's formula, about (1 − R²)/n"
            " higher if a class has n images, so that those of training and of test images do not compare.",
        ),
        PrintedTable(
            "table3",
            "neurips_table3_class_separation",
            "The paper's Table 3: ResNet-50, ImageNet, eight runs",
            (
                Printed("imagenet_top1_percent", "Top-1, %", "ImageNet", "%"),
                Printed("class_separation_r2", "R² (training images)", "ImageNet"),
            ),
        ),
    ),
    findings=(
        findings.beside_baseline(
            replace(printed.SEPARATION, words="class separation R² on the training images")
        ),
    ),
    section="3.3",
    summary="Class separation in the penultimate layer",
    short="Class separation",
)

SEPARATION = ScatterPanel(
    "figure5-ours",
    "Objectives on {source}",
    R2_TRAIN,
    LINEAR,
    "Class separation against linear transfer",
    measured_by="quickstart",
)
SEPARATION_IN_PAPER = PrintedPanel(
    "figure5-published",
    "Objectives on ImageNet (ResNet-50)",
    ("neurips_table3_class_separation", "class_separation_r2"),
    ("neurips_table1_linear", mean_of_printed),
    R2_TRAIN.label,
    LINEAR.label,
    x_digits=3,
)
"""The two panels behind the headline of a report."""

LEAST_POINTS = 5
"""The fewest objectives of which one may be left out of a straight line."""


def in_a_straight_line(measurements: Measurements) -> str:
    """Return Pearson's r with and without the objective that changes it most, if that changes the answer."""
    points = SEPARATION.means(measurements)
    if len(points) < LEAST_POINTS:
        return ""
    whole = _pearson(points)
    others = {one.label: _pearson([point for point in points if point is not one]) for one in points}
    known = {label: found for label, found in others.items() if found is not None}
    if whole is None or not known:
        return ""
    label = max(known, key=lambda name: abs(known[name][0] - whole[0]))
    (r, p), (r_without, p_without) = whole, known[label]
    if r * r_without > 0 and (p < LEVEL) == (p_without < LEVEL):
        return ""
    return (
        f"In a straight line one objective decides: Pearson's r is {signed(r, 2)} ({p_value(p)}), and without"
        f" {label} {signed(r_without, 2)} ({p_value(p_without)})."
    )


def _pearson(points: Sequence[Point]) -> tuple[float, float] | None:
    """Return Pearson's r with its two-sided p by t; None if all points are alike on an axis."""
    from scipy.special import stdtr

    x, y = [point.x for point in points], [point.y for point in points]
    if len({*x}) < 2 or len({*y}) < 2:
        return None
    r, freedom = correlation(x, y), len(points) - 2
    t = abs(r) * (freedom / max(1 - r * r, 1e-15)) ** 0.5
    return r, 2 * float(stdtr(freedom, -t))


RIGHT_HALF = "The figure's right half, a sweep of cosine softmax over temperatures"
FIGURE5 = Exhibit(
    name="figure5",
    title="The further apart the classes, the less the features transfer?",
    caption="Each mark is one objective{behind}. To the right: objectives that pull the classes of the"
    " pretraining set further apart. Up: objectives whose frozen features serve the new tasks better.",
    parts=(
        Scatter(
            "figure5",
            "Class separation against transfer",
            "Scatter plots of mean linear transfer accuracy against class separation, ours and the paper's.",
            (
                SEPARATION,
                SEPARATION_IN_PAPER,
                ScatterPanel(
                    "figure5-temperature",
                    "Cosine softmax on {source}, by temperature",
                    R2_TRAIN,
                    LINEAR,
                    RIGHT_HALF,
                    marks="means",
                    over=SWEEP,
                ),
                PrintedPanel(
                    "figure5-temperature-published",
                    "Cosine softmax on ImageNet, by temperature",
                    ("neurips_table4_temperature", "class_separation_r2"),
                    ("neurips_table4_temperature", mean_of_printed),
                    R2_TRAIN.label,
                    LINEAR.label,
                    x_digits=3,
                    over=SWEEP,
                    needs_ours=True,
                ),
            ),
        ),
    ),
    paper_says="The paper prints ρ = −0.93 with p = 0.002. The p shown here follows from its printed tables;"
    " all p are exact, from all orders of the ranks, up to twelve marks.",
    findings=(findings.goes_with(printed.SEPARATION, printed.LINEAR), in_a_straight_line),
    section="3.4",
    place=1,
    measured_by="glyphs",
    summary="Class separation against linear transfer, an objective a point",
    short="Separation against transfer",
)

LINEAR_GROUP = "Transfer by linear classifiers"
IN_TABLE_4 = (
    Quantity("top1", label="Top-1", key="top1_percent", group="{source}"),
    Quantity("class_separation", "train", label="R²", group="{source}", key="class_separation_r2"),
    Quantity("linear_{accuracy}", key="{target}_percent", target="targets", group=LINEAR_GROUP),
)
TABLE4 = Exhibit(
    name="table4",
    title="What the temperature of cosine softmax trades",
    caption="Cosine softmax at rising temperatures τ, its loss scaled by τ so that every τ trains alike:"
    " accuracy on the classes trained on, class separation R² on the training images, and transfer by"
    " linear classifiers (test accuracy in per cent). Means over runs.",
    parts=(
        TableOfRuns(
            "table4",
            "Cosine softmax, by temperature",
            IN_TABLE_4,
            missing="Cosine softmax at three temperatures or more",
            over=SWEEP,
        ),
        PrintedTable(
            "table4",
            "neurips_table4_temperature",
            "The paper's Table 4: ResNet-50, ImageNet",
            (
                Printed("imagenet_top1_percent", "Top-1", "ImageNet", "%"),
                Printed("class_separation_r2", "R²", "ImageNet"),
                *printed_transfer(LINEAR_GROUP),
            ),
            (
                "‡ Not printed: the mean of the eight printed values. At τ = 0.05 this is not the cosine"
                " softmax of the paper's Tables 1 and 3, whose loss was not scaled by τ.",
            ),
            over=SWEEP,
        ),
    ),
    findings=(
        findings.ends(
            *(
                replace(one, over=SWEEP, printed=("neurips_table4_temperature", column))
                for one, column in (
                    (printed.TEST, "imagenet_top1_percent"),
                    (printed.SEPARATION, "class_separation_r2"),
                    (printed.LINEAR, mean_of_printed),
                )
            )
        ),
    ),
    section="3.4",
    place=2,
    measured_by="glyphs",
    summary="Cosine softmax by temperature",
    short="Temperatures",
)

DISTANCES = tuple(
    Quantity(metric, "train", label=heading, group="R² on {source}", key=key, with_error=True)
    for metric, heading, key in (
        ("class_separation", "Cosine", "cosine_r2"),
        ("class_separation_cosine_centered", "Cosine, mean subtracted", "cosine_mean_subtracted_r2"),
        ("class_separation_euclidean", "Euclidean, squared", "euclidean_r2"),
    )
)
BY_DISTANCE = tuple(
    Asked(words, shown, ("neurips_tableE1_separation_indexes", shown.key))
    for words, shown in zip(
        ("R² by cosine distance", "R² with the mean subtracted", "R² by squared Euclidean distance"),
        DISTANCES,
        strict=True,
    )
)
TABLE_E1 = Exhibit(
    name="tableE1",
    title="Does the choice of distance matter?",
    caption="Class separation R² on the training images of the pretraining set by cosine distance (the one"
    " used everywhere else), by cosine distance after subtracting the mean of all features, and by squared"
    " Euclidean distance. ± is the standard error over runs.",
    parts=(
        TableOfRuns(
            "tableE1",
            "Class separation by three distances",
            DISTANCES,
            missing="Class separation by three distances",
        ),
        PrintedTable(
            "tableE1",
            "neurips_tableE1_separation_indexes",
            "The paper's Table E.1: ResNet-50, ImageNet",
            tuple(
                Printed(shown.key, shown.label.removesuffix(", squared"), "R² on ImageNet")
                for shown in DISTANCES
            ),
            ("The paper does not say whether its Euclidean distance is squared; ours is.",),
        ),
    ),
    findings=(findings.goes_with(*BY_DISTANCE),),
    section="E.2",
    summary="Class separation by three distances",
    short="Three distances",
)

ETF = tuple(
    Quantity(f"nc_{key}", "train", label=heading, group=group, key=key, with_error=True)
    for key, heading, group in (
        ("class_mean_norm_cv", "Std/Avg |μ|", "Unequal lengths"),
        ("weight_norm_cv", "Std/Avg |w|", "Unequal lengths"),
        ("class_mean_cosine_std", "Std cos(μ, μ′)", "Unequal angles"),
        ("weight_cosine_std", "Std cos(w, w′)", "Unequal angles"),
        ("class_mean_etf_deviation", "Avg |cos(μ, μ′) + 1/(C−1)|", "Angles short of the widest"),
        ("weight_etf_deviation", "Avg |cos(w, w′) + 1/(C−1)|", "Angles short of the widest"),
        ("weight_class_mean_distance_sq", "‖W − M‖²", "Weights off means"),
        ("trace_sw_pinv_sb_over_c", "Tr(Σ_W Σ_B⁺)/C", "Spread in classes"),
    )
)
NC4 = Quantity(
    "nc4", label="NC4, %", key="nc4_percent", split="train", group="Others nearer", with_error=True
)
WEIGHT_LENGTHS, TRACE = ETF[1], ETF[-1]
ROUNDING = 1e-4
"""The largest variation among the lengths of rows that were scaled to length 1."""


def rows_as_they_lie(measurements: Measurements) -> str:
    """Return a remark on runs whose cosine heads were measured without scaling their rows."""
    lengths = [
        summarise(runs.values()).mean
        for spec, runs in measurements.values(WEIGHT_LENGTHS).items()
        if name_in(spec) == "cosine_softmax"
    ]
    if max(lengths, default=0.0) <= ROUNDING:
        return ""
    return (
        "In this run the weights of cosine softmax were taken as they lie, not of length 1 as its head and"
        f" the paper have them (Std/Avg |w| {fixed(max(lengths), 3)}, in the paper 0.000): what is made of"
        " their lengths does not compare with the paper's."
    )


TABLE_E2 = Exhibit(
    name="tableE2",
    title="How near do networks come to full collapse?",
    caption="At full collapse every image of a class has the same features, and class means and weights"
    " point to the corners of one regular simplex: all columns are 0. μ: the mean of a class less the mean"
    " of all C classes; w: its weights, of length 1 where the head scales them (cosine softmax); M, W: the"
    " matrices of all, each scaled to length 1. Training images of the pretraining set; ± is the standard"
    " error over runs.",
    parts=(
        TableOfRuns(
            "tableE2",
            "Measured on {source}",
            (*ETF, NC4),
            missing="Simplex-ETF measures",
            needs=tuple(shown.key for shown in ETF),
            notes=(
                "NC4: the share of images whose nearest class mean is not the class that the network names;"
                " the paper does not report it.",
            ),
        ),
        PrintedTable(
            "tableE2",
            "neurips_tableE2_simplex_etf",
            "The paper's Table E.2: ResNet-50, ImageNet",
            as_printed(ETF),
        ),
    ),
    findings=(
        findings.goes_with(
            printed.SEPARATION,
            Asked("spread within classes", TRACE, ("neurips_tableE2_simplex_etf", TRACE.key)),
        ),
        rows_as_they_lie,
    ),
    section="E.2",
    summary="Simplex-ETF measurements (neural collapse)",
    short="Neural collapse",
)
