"""Non-zero activations and class separation, layer by layer (figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from penultimate.paper.layers import PENULTIMATE, axis_of, layers_of
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Axis, Curve, Figure, Panel, Point
from penultimate.results.means import printed, table_of_means, table_of_printed
from penultimate.results.rows import Run
from penultimate.results.table import Column
from penultimate.results.text import fixed

SAID_IN_TEXT = {"softmax": "92.8", "logit_norm": "< 25", "cosine_softmax": "< 25", "squared_error": "< 25"}
"""Non-zero penultimate activations in per cent; only these are printed, in the text of section 3.2."""


@exhibit("figure3", "How many activations are not zero?", section="3.2")
def figure3(run: Run) -> Iterator[Part]:
    """The share of activations that are not zero, on the test images of the pretraining set, from the first
    block to the penultimate features. Where the share is low, each image uses few of them. The paper says
    that the share falls with depth down to the last convolutional layer, and that only the last stage and
    the penultimate features depend on the objective."""
    share = Axis("Share of non-zero activations, %", 1, "%")
    found = layers_of(run, "nonzero_share", scale=100)
    if len(found) > 1:
        columns = {Column(f"{layer}_percent", layer, "Not zero, %"): frame for layer, frame in found.items()}
        yield table_of_means(run, "figure3", f"Share of non-zero activations on {run.title}", columns)
        yield Figure(
            "figure3",
            "Non-zero activations over the layers",
            (over_layers(run, "figure3-ours", f"{run.title}, test images", found, share),),
            legend=True,
        )
    rows = pd.DataFrame(
        {"said": [SAID_IN_TEXT.get(slug, "") for slug in printed("neurips_table1_linear").index]},
        printed("neurips_table1_linear").index,
    )
    yield table_of_printed(
        "figure3",
        "What the paper's text says of ResNet-50 on ImageNet's validation images",
        "",
        {Column("penultimate_percent", PENULTIMATE, "Not zero, %"): "said"},
        rows=rows,
        notes=["The paper draws the other values of its Figure 3 without printing them."],
    )


@exhibit("figure4", "In which layers do the classes come apart?", section="3.3")
def figure4(run: Run) -> Iterator[Part]:
    """Class separation R² of every layer of the pretraining set: 0 where the classes lie on top of each
    other, 1 where each is a single point. Maps are flattened over space. R² is by the paper's formula, which
    counts an image with itself. The paper draws its Figure 4 (training images, eight networks an objective)
    without printing its numbers, but for the last layer's. It says that in the penultimate features every
    other objective separates the classes further than softmax."""
    by_split = {split: layers_of(run, "class_separation", split) for split in ("train", "test")}
    split = next((split for split, found in by_split.items() if len(found) > 1), "")
    if split:
        found, images = by_split[split], "training images" if split == "train" else "test images"
        columns = {Column(layer, layer, "R²", 3): frame for layer, frame in found.items()}
        yield table_of_means(run, "figure4", f"Class separation R² on {run.title}, {images}", columns)
        axis = Axis("Class separation R²", 3)
        panel = over_layers(run, "figure4-ours", f"{run.title}, {images}", found, axis)
        yield Figure("figure4", "Class separation over the layers", (panel,), legend=True)
    yield table_of_printed(
        "figure4",
        "The last layer in the paper, ImageNet's training images",
        "neurips_table3_class_separation",
        {Column("penultimate", PENULTIMATE, "R²"): "class_separation_r2"},
    )


def over_layers(run: Run, name: str, title: str, found: Mapping[str, pd.DataFrame], axis: Axis) -> Panel:
    """Return a panel with a line for each objective: its means over runs in each layer."""
    curves, marks = [], []
    means = pd.DataFrame({place: frame.mean() for place, frame in enumerate(found.values(), 1)})
    for slug, label in run.labels().items():
        if slug in means.index:
            line = tuple((float(place), float(mean)) for place, mean in means.loc[slug].dropna().items())
            end = f"{fixed(line[-1][1], axis.digits)} {axis.unit}".rstrip() + " at the end"
            curves.append(Curve(line, slug, f"{label}: {end}"))
            marks.append(Point(*line[-1], slug, label, end))
    return Panel(name, title, axis_of([*found]), axis.label, tuple(marks), tuple(curves), labelled=False)
