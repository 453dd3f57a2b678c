"""The final layer, relearned from a few images of the pretraining classes (section 3.4 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper.arms import SWEEP
from penultimate.paper.printed import mean_of_printed
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Axis, Curve, Figure, Panel, correlation, scatter, scatter_printed
from penultimate.results.means import printed, table_of_means, table_of_printed
from penultimate.results.rows import MEAN, Run, by_setting, seeds, transfer
from penultimate.results.table import Column
from penultimate.results.text import counted

R2 = Axis("Class separation R² on the training images", 3)
TOP1 = Axis("Top-1 accuracy on the classes trained on, %", unit="%")
RELEARNED, LINEAR = (
    Axis("Top-1 accuracy of the relearned head, %"),
    Axis("Mean linear transfer accuracy, %", unit="%"),
)
FRESH, OF_TRAINING = "relearn_top1", "relearn_training_top1"
"""Heads relearned from fresh images, and from images that the network was trained on."""
PAPERS_SHARE = {FRESH: 40 / 1281.167, OF_TRAINING: 50_046 / 1_281_167}
"""The images that the paper relearns its heads from, as a share of the training images."""
IN_PAPER = "imagenet_50k_relearned_top1_percent"


@exhibit("figure6", "Do separated classes make the head easy to relearn?", section="3.4", study="glyphs")
def figure6(run: Run) -> Iterator[Part]:
    """The final layer of each finished network is thrown away and learned again from a few images of the
    classes it was trained on, fresh ones that training did not see. Large marks: the relearned head;
    small marks joined to them: the original one. The paper's Figure 6 (40 images per class, tested on
    10,000 others) is not tabulated; beside ours stands the relearned accuracy that its ICLR version
    prints: 50,046 training images, tested on the whole validation set."""
    columns = {
        Column("class_separation_r2", "R² (training images)", digits=3): in_both_arms(
            run, lambda arm: {(): seeds(run, "class_separation", "train", arm=arm)}
        )[()],
        Column("top1_percent", "Original head", "Test top-1, %"): in_both_arms(
            run, lambda arm: {(): seeds(run, "top1", scale=100, arm=arm)}
        )[()],
    }
    for metric, key, words in ((FRESH, "", ""), (OF_TRAINING, "training_", " trained on")):
        for (shots,), frame in in_both_arms(run, partial(relearned, run, metric)).items():
            label = f"Relearned, {shots} per class{words}"
            columns[Column(f"relearned_{key}{shots}_percent", label, "Test top-1, %")] = frame
    needs = [
        column for column in columns if column.key.startswith("relearned_") and "training" not in column.key
    ]
    labels = run.labels(*run.arms)
    slugs = [*run.labels(), *run.temperatures(SWEEP)]
    rows = {slug: labels[slug] for slug in dict.fromkeys(slugs) if slug in labels}
    yield table_of_means(
        run, "figure6", "The original and the relearned heads", columns, needs=needs, rows=rows
    )
    texts = printed("neurips_table3_class_separation", numbers=False)[
        ["class_separation_r2", "imagenet_top1_percent"]
    ]
    texts = texts.assign(**{IN_PAPER: printed("iclr_table3_linear", numbers=False)[IN_PAPER]})
    yield table_of_printed(
        "figure6",
        "The paper's Table 3, and IN(50k) of its ICLR version: ResNet-50, ImageNet",
        "neurips_table3_class_separation",
        {
            Column("class_separation_r2", "R² (training images)"): "class_separation_r2",
            Column("imagenet_top1_percent", "Original head", "Top-1, %"): "imagenet_top1_percent",
            Column(IN_PAPER, "Relearned, 50,046 training images", "Top-1, %"): IN_PAPER,
        },
        rows=texts,
    )
    yield Figure("figure6", "Relearning the head", tuple(filter(None, (*heads(run), heads_in_paper()))))
    if by_setting(run, "relearn_original_top1", ("shots",)):
        yield (
            "The heads are relearned from test images. The figure shows how they and the original ones do on"
            " the others; the table has the original heads on all test images."
        )


@exhibit(
    "iclr_figure5",
    "Is a head that is easy to relearn a sign of features that transfer worse?",
    section="D",
    study="glyphs",
)
def iclr_figure5(run: Run) -> Iterator[Part]:
    """To the right: networks whose final layer is better relearned from few images of the classes trained
    on: in the paper from images that the network was trained on. Up: networks whose frozen features
    serve the new tasks better. Means over runs."""
    metric = OF_TRAINING if relearned(run, OF_TRAINING) else FRESH
    shots = judged_shots(run, metric)
    axes = RELEARNED, LINEAR
    panels = []
    for arm, name, title, published, table in (
        ("", "ours", f"Objectives on {run.title}", "objective", "iclr_table3_linear"),
        (
            SWEEP,
            "temperature",
            f"Cosine softmax on {run.title}, by temperature",
            "temperature",
            "iclr_table4_temperature",
        ),
    ):
        labels = {slug: f"τ = {t:g}" for slug, t in run.temperatures(arm).items()} if arm else run.labels()
        x = relearned(run, metric, arm).get((shots,)) if arm in run.arms else None
        if x is not None:
            y, noun = transfer(run, "linear", arm=arm)[MEAN], published
            ours = scatter(
                run, f"iclr_figure5-{name}", title, x, y, axes, drawn="means", labels=labels, noun=noun
            )
            panels.append(ours)
        theirs = printed(table)
        title = f"{title.replace(f' on {run.title}', ' on ImageNet')} (ResNet-50)"
        named = f"iclr_figure5-{published}-published"
        panels.append(
            scatter_printed(named, title, theirs[IN_PAPER], mean_of_printed(theirs), axes, noun=published)
        )
    yield Figure("iclr_figure5", "Relearning against transfer", tuple(filter(None, panels)))
    if shots:
        images = "that the network was trained on" if metric == OF_TRAINING else "that training did not see"
        yield (
            f"Here the head is relearned from {counted(int(shots), 'image')} of each class {images}, the"
            " number measured whose share of the training images is nearest to the paper's."
        )


def relearned(run: Run, metric: str, arm: str = "") -> dict[tuple[str, ...], pd.DataFrame]:
    """Return the accuracy of relearned heads in per cent [seed, objective] by the number of images."""
    return by_setting(run, metric, ("shots",), scale=100, arm=arm)


def in_both_arms(
    run: Run, read: Callable[[str], dict[tuple[str, ...], pd.DataFrame]]
) -> dict[tuple[str, ...], pd.DataFrame]:
    """Return what is read of the main arm with the columns of the sweep over temperatures beside it."""
    found = read("")
    for key, frame in (read(SWEEP) if SWEEP in run.arms else {}).items():
        beside = pd.concat([found[key], frame], axis=1) if key in found else frame
        found[key] = beside.loc[:, ~beside.columns.duplicated()]
    return found


def judged_shots(run: Run, metric: str) -> str:
    """Return the number of images a class whose share of the training images is nearest to the paper's."""
    source = card(run.source)
    wanted = PAPERS_SHARE[metric] * source.sizes.get("train", source.images) / source.classes
    # Two numbers that are equally far from the wanted one differ by rounding alone: the smaller one is taken.
    known = sorted((shots for (shots,) in relearned(run, metric)), key=int)
    return min(known, key=lambda shots: round(abs(math.log(int(shots) / wanted)), 9), default="")


def heads(run: Run) -> Iterator[Panel | None]:
    """Yield a panel for each number of images that the heads were relearned from."""
    separation, top1 = seeds(run, "class_separation", "train"), seeds(run, "top1", scale=100)
    originals = by_setting(run, "relearn_original_top1", ("shots",), scale=100)
    for (shots,), after in relearned(run, FRESH).items():
        name, title = f"figure6-{shots}", f"{run.title}, {counted(int(shots), 'image')} of each class"
        before = originals.get((shots,), top1)
        drawn = [
            scatter(run, name, title, separation, y, (R2, TOP1), drawn="means", labels=run.labels())
            for y in (before, after)
        ]
        yield joined(*drawn)


def heads_in_paper() -> Panel | None:
    """Return the paper's panel."""
    table, name = printed("neurips_table3_class_separation"), "figure6-published"
    title = "ImageNet (ResNet-50), 50,046 training images"
    ends = table["imagenet_top1_percent"], printed("iclr_table3_linear")[IN_PAPER]
    return joined(*(scatter_printed(name, title, table["class_separation_r2"], y, (R2, TOP1)) for y in ends))


def joined(before: Panel | None, after: Panel | None) -> Panel | None:
    """Return a panel with small marks for original heads, large ones for relearned heads, and lines
    between."""
    if before is None or after is None:
        return after
    starts = {point.label: point for point in before.points}
    both = [(starts[point.label], point) for point in after.points if point.label in starts]
    curves = tuple(
        Curve(((a.x, a.y), (b.x, b.y)), b.slug, f"{b.label}: original to relearned head", faint=True)
        for a, b in both
    )
    gaps = correlation([b._replace(y=b.y - a.y) for a, b in both])
    faint = tuple(point._replace(faint=True) for point in before.points)
    finding = f"Relearned: {after.finding}. Relearned less original: {gaps}"
    return replace(after, points=(*faint, *after.points), curves=curves, finding=finding)
