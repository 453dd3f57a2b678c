"""How this study's regime compares with the paper's: the rows that a careful reader asks for first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penultimate.data.catalog import DatasetCard, card
from penultimate.errors import RequestError
from penultimate.registry import parse
from penultimate.report.exhibits.base import MISSING, StudyResults
from penultimate.report.exhibits.cells import seeds_phrase
from penultimate.report.exhibits.measurements import Measurements
from penultimate.report.exhibits.numbers import published_rows, summarise
from penultimate.report.text import counted, fixed, listed, percent, plain

WIDTHS = {"glyphnet": 256}
"""Penultimate features of a backbone whose spec does not say; to ask it would take a tensor library."""


@dataclass(frozen=True)
class Difference:
    """One property of the two studies, side by side."""

    what: str
    ours: str
    paper: str


def compare(results: StudyResults, measurements: Measurements) -> tuple[Difference, ...]:
    """Ours beside the paper's, from the description, the cards, the rows and the printed tables."""
    description = results.description
    source = card(measurements.source)
    recipe = description.get("recipe", {})
    width = features(description)
    ratio = f"{source.classes} / {width} = {fixed(source.classes / width, 2)}" if width else MISSING
    backbones = ", ".join(plain(name) for name in description.get("backbones", ())) or MISSING
    tasks = [card(target).title for target in measurements.targets]
    kind = "images drawn from fonts" if _is_embedded(source) else "images"
    paper_epochs = [int(row["epochs"]) for row in published_rows("tableA1_hyperparameters")]
    return (
        Difference(
            "Pretraining data",
            f"{source.title}: {_training_images(source):,} {kind}",
            "ImageNet: 1,281,167 photographs",
        ),
        Difference("Classes K / penultimate features M", ratio, "1000 / 2048 = 0.49"),
        Difference("Architecture", backbones, "ResNet-50"),
        Difference(
            "Epochs",
            _setting(recipe, "epochs"),
            f"{min(paper_epochs)} to {max(paper_epochs)}, chosen per objective",
        ),
        Difference("Batch size", _setting(recipe, "batch_size"), "4,096"),
        Difference("Objectives", str(len(measurements.objectives)), "9"),
        Difference("Runs per objective", str(len(measurements.seeds) or MISSING), "8"),
        Difference(
            "Softmax accuracy, training images",
            _softmax_percent(measurements, "train"),
            f"{_printed_softmax('tableC1_train_accuracy', 'train_top1_percent')} %",
        ),
        Difference(
            "Softmax accuracy, test images",
            _softmax_percent(measurements, "test"),
            f"{_printed_softmax('table3_class_separation', 'imagenet_top1_percent')} %",
        ),
        Difference(
            "Softmax class separation R²",
            _softmax_separation(measurements),
            _printed_softmax("table3_class_separation", "class_separation_r2"),
        ),
        Difference(
            "Transfer tasks",
            f"{len(tasks)}: {listed(tasks)}" if tasks else "none",
            "8: Food-101, CIFAR-10, CIFAR-100, Birdsnap, SUN397, Stanford Cars, Pets and Flowers",
        ),
    )


def summary(measurements: Measurements) -> str:
    """The differences in two sentences."""
    source = card(measurements.source)
    size = f"{counted(source.classes, 'class', 'classes')}, {_training_images(source):,} training images"
    aim = (
        " It asks whether the paper's effect shows in a world that fits on a laptop; it does not replace the"
        " paper's measurement."
        if _is_embedded(source)
        else ""
    )
    return (
        f"This study trains networks on {source.title} ({size}),"
        f" {seeds_phrase(measurements.results, measurements)}; the paper trained ResNet-50 on ImageNet,"
        f" eight runs per objective.{aim}"
    )


def features(description: Mapping[str, Any]) -> int | None:
    """The width M of the penultimate layer: told (`num_features`), or read from the backbone's spec.

    >>> features({"backbones": ["glyphnet(features=64)"]}), features({"backbones": ["unknown"]})
    (64, None)
    """
    if "num_features" in description:
        return int(description["num_features"])
    for text in description.get("backbones", ()):
        try:
            spec = parse(str(text))
        except RequestError:
            continue
        width = spec.arguments.get("features", WIDTHS.get(spec.name))
        if isinstance(width, int):
            return width
    return None


def _is_embedded(source: DatasetCard) -> bool:
    return source.name.startswith("glyphs")


def _training_images(source: DatasetCard) -> int:
    return int(source.sizes.get("train", source.images))


def _setting(recipe: Mapping[str, Any], key: str) -> str:
    value = recipe.get(key)
    return MISSING if value is None else f"{value:,}" if isinstance(value, int) else plain(value)


def _softmax_percent(measurements: Measurements, split: str) -> str:
    value = _softmax_mean(measurements, "top1", split)
    return MISSING if value is None else f"{percent(value)} %"


def _softmax_separation(measurements: Measurements) -> str:
    value = _softmax_mean(measurements, "class_separation", "train")
    return MISSING if value is None else fixed(value, 3)


def _softmax_mean(measurements: Measurements, metric: str, split: str) -> float | None:
    specs = {one.spec for one in measurements.objectives if one.slug == "softmax"}
    for spec, runs in measurements.runs(metric, split=split).items():
        if spec in specs:
            return summarise(list(runs.values())).mean
    return None


def _printed_softmax(name: str, key: str) -> str:
    return next(row[key] for row in published_rows(name) if row["objective"] == "softmax")
