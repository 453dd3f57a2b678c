"""The final layer, relearned from a few images of the pretraining classes (section 3.4 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper.arms import SWEEP
from penultimate.paper.printed import LINEAR, R2, figure, mean_of_printed
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Axis, Curve, Panel, correlation, scatter, scatter_printed
from penultimate.results.means import printed, table_of_means, table_of_printed
from penultimate.results.rows import MEAN, Run, by_setting, seeds, transfer
from penultimate.results.table import Column
from penultimate.results.text import counted

TOP1 = Axis("Top-1 accuracy on the classes trained on, %", unit="%")
RELEARNED = Axis("Top-1 accuracy of the relearned head, %")
FRESH, OF_TRAINING = "relearn_top1", "relearn_training_top1"
"""Heads relearned from fresh images, and from images that the network was trained on."""
PAPERS_SHARE = {FRESH: 40 / 1281.167, OF_TRAINING: 50_046 / 1_281_167}
"""The images that the paper relearns its heads from, as a share of the training images."""
IN_PAPER = "imagenet_50k_relearned_top1_percent"


@exhibit("figure6", "Do separated classes make the head easy to relearn?", section="3.4", study="glyphs")
def figure6(run: Run) -> Iterator[Part]:
    """The final layer of each finished network is thrown away and learned again from a few images of the
    classes it was trained on, fresh ones that training did not see. Large marks: the relearned head;
    small marks joined to them: the original one. Where heads are relearned from test images, the figure shows
    both on the other ones, and the table has the original heads on all of them. The paper's Figure 6 (40
    images per class, tested on 10,000 others) is not tabulated; beside ours stands the relearned accuracy
    that its ICLR version prints: 50,046 training images, tested on the whole validation set."""

    def beside(read: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
        """Return what is read of the main arm, with the sweep over temperatures beside it."""
        found = pd.concat([read(arm) for arm in ("", SWEEP) if arm in run.arms], axis=1)
        return found.loc[:, ~found.columns.duplicated()]

    group = "Test top-1, %"
    columns = {
        Column("class_separation_r2", "R² (training images)", digits=3): beside(
            lambda arm: seeds(run, "class_separation", "train", arm=arm)
        ),
        Column("top1_percent", "Original head", group): beside(
            lambda arm: seeds(run, "top1", scale=100, arm=arm)
        ),
    }
    for metric, key, words in ((FRESH, "", ""), (OF_TRAINING, "training_", " trained on")):
        for shots in shots_of(run, metric):
            label = f"Relearned, {shots} per class{words}"
            column = Column(f"relearned_{key}{shots}_percent", label, group)
            columns[column] = beside(partial(relearned, run, metric, shots))
    needs = [one for one in columns if one.key.startswith("relearned_") and "training" not in one.key]
    labels = run.labels(*run.arms)
    rows = {slug: labels[slug] for slug in [*run.labels(), *run.temperatures(SWEEP)] if slug in labels}
    title = "The original and the relearned heads"
    yield table_of_means(run, "figure6", title, columns, needs=needs, rows=rows)
    texts = printed("neurips_table3_class_separation", numbers=False)
    texts = texts[["class_separation_r2", "imagenet_top1_percent"]]
    yield table_of_printed(
        "figure6",
        "The paper's Table 3, and IN(50k) of its ICLR version: ResNet-50, ImageNet",
        "neurips_table3_class_separation",
        {
            Column("class_separation_r2", "R² (training images)"): "class_separation_r2",
            Column("imagenet_top1_percent", "Original head", "Top-1, %"): "imagenet_top1_percent",
            Column(IN_PAPER, "Relearned, 50,046 training images", "Top-1, %"): IN_PAPER,
        },
        rows=texts.assign(**{IN_PAPER: printed("iclr_table3_linear", numbers=False)[IN_PAPER]}),
    )
    yield figure("figure6", "Relearning the head", *heads(run), heads_in_paper())


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
    metric = OF_TRAINING if shots_of(run, OF_TRAINING) else FRESH
    shots, axes, panels = judged_shots(run, metric), (RELEARNED, LINEAR), []
    for arm, name, title, noun, source in (
        ("", "ours", "Objectives on {}", "objective", "iclr_table3_linear"),
        (
            SWEEP,
            "temperature",
            "Cosine softmax on {}, by temperature",
            "temperature",
            "iclr_table4_temperature",
        ),
    ):
        labels = {slug: f"τ = {t:g}" for slug, t in run.temperatures(arm).items()} if arm else run.labels()
        if arm in run.arms and shots in shots_of(run, metric, arm):
            x, y = relearned(run, metric, shots, arm), transfer(run, "linear", arm=arm)[MEAN]
            shown: dict[str, Any] = {"drawn": "means", "labels": labels, "noun": noun}
            named = f"iclr_figure5-{name}", title.format(run.title)
            panels.append(scatter(run, *named, x, y, axes, **shown))
        theirs, named = printed(source), (f"iclr_figure5-{noun}-published", title.format("ImageNet"))
        sides = theirs[IN_PAPER], mean_of_printed(theirs)
        panels.append(scatter_printed(named[0], f"{named[1]} (ResNet-50)", *sides, axes, noun=noun))
    yield figure("iclr_figure5", "Relearning against transfer", *panels)
    if shots:
        images = "that the network was trained on" if metric == OF_TRAINING else "that training did not see"
        yield (
            f"Here the head is relearned from {counted(int(shots), 'image')} of each class {images}, the"
            " number measured whose share of the training images is nearest to the paper's."
        )


def shots_of(run: Run, metric: str, arm: str = "") -> list[str]:
    """Return the numbers of images of each class that heads were relearned from, ascending."""
    return [shots for (shots,) in by_setting(run, metric, ("shots",), arm=arm)]


def relearned(run: Run, metric: str, shots: str, arm: str = "") -> pd.DataFrame:
    """Return the accuracy of relearned heads in per cent [seed, objective]."""
    return seeds(run, metric, setting=f"shots={shots}", scale=100, arm=arm)


def judged_shots(run: Run, metric: str) -> str:
    """Return the number of images a class whose share of the training images is nearest to the paper's."""
    source = card(run.source)
    wanted = PAPERS_SHARE[metric] * source.sizes.get("train", source.images) / source.classes
    # Two numbers that are equally far from the wanted one differ by rounding alone: the smaller one is taken.
    known = shots_of(run, metric)
    return min(known, key=lambda shots: round(abs(math.log(int(shots) / wanted)), 9), default="")


def heads(run: Run) -> Iterator[Panel | None]:
    """Yield a panel for each number of images that the heads were relearned from."""
    separation, top1 = seeds(run, "class_separation", "train"), seeds(run, "top1", scale=100)
    for shots in shots_of(run, FRESH):
        name, title = f"figure6-{shots}", f"{run.title}, {counted(int(shots), 'image')} of each class"
        original = relearned(run, "relearn_original_top1", shots)
        before, after = (
            scatter(run, name, title, separation, y, (R2, TOP1), drawn="means", labels=run.labels())
            for y in (top1 if original.empty else original, relearned(run, FRESH, shots))
        )
        yield joined(before, after) if before and after else after


def heads_in_paper() -> Panel:
    """Return the paper's panel."""
    table, name = printed("neurips_table3_class_separation"), "figure6-published"
    title, x = "ImageNet (ResNet-50), 50,046 training images", table["class_separation_r2"]
    ends = table["imagenet_top1_percent"], printed("iclr_table3_linear")[IN_PAPER]
    return joined(*(scatter_printed(name, title, x, y, (R2, TOP1)) for y in ends))


def joined(before: Panel, after: Panel) -> Panel:
    """Return a panel with small marks for original heads, large ones for relearned heads, and lines
    between."""
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
