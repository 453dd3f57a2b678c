"""Class separation in the penultimate layer, and its relations to other numbers (3.3, 3.4 and E.2)."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.paper.arms import SWEEP
from penultimate.paper.printed import (
    LINEAR,
    MEAN_NOTE,
    R2,
    figure,
    mean_of_printed,
    printed_columns,
    printed_tasks,
)
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import scatter, scatter_printed
from penultimate.results.means import PER_CLASS_NOTE, printed, table_of_means, table_of_printed, task_columns
from penultimate.results.rows import MEAN, Run, seeds, transfer
from penultimate.results.table import Column

LEAST_TEMPERATURES = 3


@exhibit("table3", "How far the classes are pulled apart", section="3.3")
def table3(run: Run) -> Iterator[Part]:
    """Class separation R² of the penultimate features on the training images of the pretraining set: the
    share of their spread (in cosine distance) that lies between classes. R² is by the paper's formula, which
    counts an image with itself and so depends on how many images a class has; where it is measured, the
    unbiased R² beside it leaves those pairs out. ± is the standard error over runs. In the paper, every other
    objective separates the classes further than softmax."""
    top1 = Column("test_top1_percent", "Test top-1, %", run.title, better="high", with_error=True)
    columns = {top1: seeds(run, "top1", scale=100)}
    for metric, key, label in (
        ("class_separation", "class_separation_r2", "R²"),
        ("class_separation_unbiased", "unbiased_r2", "Unbiased R²"),
    ):
        for split, images in (("train", "training images"), ("test", "test images")):
            column = Column(f"{key}_{split}", f"{label} ({images})", run.title, 3, with_error=True)
            if not (found := seeds(run, metric, split)).empty or label == "R²":
                columns[column] = found
    needs = [column for column in columns if column.key == "class_separation_r2_train"]
    yield table_of_means(run, "table3", "Accuracy and class separation", columns, needs=needs)
    yield table_of_printed(
        "table3",
        "The paper's Table 3: ResNet-50, ImageNet, eight runs",
        "neurips_table3_class_separation",
        printed_columns(
            {"imagenet_top1_percent": "Top-1, %", "class_separation_r2": "R² (training images)"}, "ImageNet"
        ),
    )


@exhibit("figure5", "The further apart the classes, the less the features transfer?", section="3.4")
def figure5(run: Run) -> Iterator[Part]:
    """Each mark is one objective, or one temperature of cosine softmax. To the right: objectives that pull
    the classes of the pretraining set further apart. Up: objectives whose frozen features serve the new tasks
    better. The paper prints ρ = −0.93 with p = 0.002 for its objectives; the p shown here follows from its
    printed tables, and all p are exact up to twelve marks."""
    axes, name = (R2, LINEAR), "figure5-temperature"
    here, theirs = seeds(run, "class_separation", "train"), printed("neurips_table3_class_separation")
    objectives = theirs["class_separation_r2"], mean_of_printed(printed("neurips_table1_linear"))
    panels = [
        scatter(run, "figure5-ours", f"Objectives on {run.title}", here, transfer(run, "linear")[MEAN], axes),
        scatter_printed("figure5-published", "Objectives on ImageNet (ResNet-50)", *objectives, axes),
    ]
    swept = scatter(
        run,
        name,
        f"Cosine softmax on {run.title}, by temperature",
        seeds(run, "class_separation", "train", arm=SWEEP),
        transfer(run, "linear", arm=SWEEP)[MEAN],
        axes,
        drawn="means",
        labels={slug: f"τ = {value:g}" for slug, value in run.temperatures(SWEEP).items()},
        noun="temperature",
    )
    if swept:
        table, title = printed("neurips_table4_temperature"), "Cosine softmax on ImageNet, by temperature"
        of_paper = table["class_separation_r2"], mean_of_printed(table)
        panels += [swept, scatter_printed(f"{name}-published", title, *of_paper, axes, noun="temperature")]
    yield figure("figure5", "Class separation against transfer", *panels)


@exhibit("table4", "What the temperature of cosine softmax trades", section="3.4", study="glyphs")
def table4(run: Run) -> Iterator[Part]:
    """Cosine softmax at rising temperatures τ, its loss scaled by τ so that every τ trains alike: accuracy on
    the classes trained on, class separation R² on the training images, and transfer by linear classifiers
    (test accuracy in per cent). Means over runs. In the paper, a low temperature transfers better, and a high
    one separates the classes further."""
    group, temperatures = "Transfer by linear classifiers", run.temperatures(SWEEP)
    if len(temperatures) >= LEAST_TEMPERATURES:
        columns = {
            Column("top1_percent", "Top-1", run.title): seeds(run, "top1", scale=100, arm=SWEEP),
            Column("class_separation_r2", "R²", run.title, 3): seeds(
                run, "class_separation", "train", arm=SWEEP
            ),
            **task_columns(transfer(run, "linear", arm=SWEEP), group, better=""),
        }
        rows = {slug: f"τ = {value:g}" for slug, value in temperatures.items()}
        title = "Cosine softmax, by temperature"
        yield table_of_means(run, "table4", title, columns, rows=rows, corner="Temperature", slugs=False)
    heads = {"imagenet_top1_percent": "Top-1", "class_separation_r2": "R²"}
    yield table_of_printed(
        "table4",
        "The paper's Table 4: ResNet-50, ImageNet",
        "neurips_table4_temperature",
        printed_columns(heads, "ImageNet") | printed_tasks(group),
        corner="Temperature",
        notes=[
            MEAN_NOTE,
            "At τ = 0.05 this is not the cosine softmax of the paper's Tables 1 and 3, whose loss was not"
            " scaled by τ.",
        ],
    )
    yield PER_CLASS_NOTE


@exhibit("tableE1", "Does the choice of distance matter?", section="E.2")
def tableE1(run: Run) -> Iterator[Part]:
    """Class separation R² on the training images of the pretraining set by cosine distance (the one used
    everywhere else), by cosine distance after subtracting the mean of all features, and by squared Euclidean
    distance. ± is the standard error over runs. In the paper the three order the objectives almost alike."""
    heads = {
        "cosine_r2": "Cosine",
        "cosine_mean_subtracted_r2": "Cosine, mean subtracted",
        "euclidean_r2": "Euclidean",
    }
    metrics = "class_separation", "class_separation_cosine_centered", "class_separation_euclidean"
    columns = {
        Column(key, label, f"R² on {run.title}", 3, with_error=True): seeds(run, metric, "train")
        for metric, (key, label) in zip(metrics, heads.items(), strict=True)
    }
    yield table_of_means(run, "tableE1", "Class separation by three distances", columns)
    yield table_of_printed(
        "tableE1",
        "The paper's Table E.1: ResNet-50, ImageNet",
        "neurips_tableE1_separation_indexes",
        printed_columns(heads, "R² on ImageNet"),
        notes=["The paper does not say whether its Euclidean distance is squared; ours is."],
    )


@exhibit("tableE2", "How near do networks come to full collapse?", section="E.2")
def tableE2(run: Run) -> Iterator[Part]:
    """At full collapse every image of a class has the same features, and class means and weights point to the
    corners of one regular simplex: all columns are 0. μ is the mean of a class less the mean of all C
    classes; w its weights, of length 1 where the head scales them (cosine softmax); M and W the matrices of
    all, each scaled to length 1. NC4 is the share of images whose nearest class mean is not the class that
    the network names. All are of the training images; ± is the standard error over runs. In the
    paper squared error comes nearest by its angles and its spread within classes."""
    etf = [
        Column(key, label, group, 3, with_error=True)
        for key, label, group in (
            ("class_mean_norm_cv", "Std/Avg |μ|", "Unequal lengths"),
            ("weight_norm_cv", "Std/Avg |w|", "Unequal lengths"),
            ("class_mean_cosine_std", "Std cos(μ, μ′)", "Unequal angles"),
            ("weight_cosine_std", "Std cos(w, w′)", "Unequal angles"),
            ("class_mean_etf_deviation", "Avg |cos(μ, μ′) + 1/(C−1)|", "Angles short of the widest"),
            ("weight_etf_deviation", "Avg |cos(w, w′) + 1/(C−1)|", "Angles short of the widest"),
            ("weight_class_mean_distance_sq", "‖W − M‖²", "Weights off means"),
            ("trace_sw_pinv_sb_over_c", "Tr(Σ_W Σ_B⁺)/C", "Spread in classes"),
        )
    ]
    columns = {column: seeds(run, f"nc_{column.key}", "train") for column in etf}
    nc4 = Column("nc4_percent", "NC4, %", "Others nearer", with_error=True)
    columns[nc4] = seeds(run, "nc4", "train", scale=100)
    yield table_of_means(run, "tableE2", f"Measured on {run.title}", columns, needs=etf)
    title, source = "The paper's Table E.2: ResNet-50, ImageNet", "neurips_tableE2_simplex_etf"
    yield table_of_printed("tableE2", title, source, {column: column.key for column in etf})
