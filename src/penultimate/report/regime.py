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
from penultimate.report.exhibits.measurements import Measurements, Objective
from penultimate.report.exhibits.numbers import published_rows, summarise
from penultimate.report.text import counted, fixed, listed, percent, plain

WIDTHS = {"glyphnet": 256, "glyphplain": 256}
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
        Difference("Architecture", _architecture(description), "ResNet-50"),
        Difference(
            "Epochs",
            _setting(recipe, "epochs"),
            f"{min(paper_epochs)} to {max(paper_epochs)}, chosen per objective",
        ),
        Difference("Batch size", _setting(recipe, "batch_size"), "4,096"),
        Difference("Objectives", _objectives(measurements), "9"),
        Difference("Runs per objective", _runs(measurements), "8"),
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
    """The width M of the penultimate layer: told (`num_features`), or read from the first backbone's spec.

    >>> features({"backbones": ["glyphnet(features=64)"]}), features({"backbones": ["unknown"]})
    (64, None)
    """
    if "num_features" in description:
        return int(description["num_features"])
    for text in description.get("backbones", ())[:1]:
        try:
            spec = parse(str(text))
        except RequestError:
            return None
        width = spec.arguments.get("features", WIDTHS.get(spec.name))
        return width if isinstance(width, int) else None
    return None


def _architecture(description: Mapping[str, Any]) -> str:
    """The first backbone, of which every number here is; then the others.

    >>> _architecture({"backbones": ["glyphnet", "glyphplain"]})
    'glyphnet (and glyphplain, in Figure B.1 alone)'
    """
    first, *others = map(plain, description.get("backbones", ()) or [MISSING])
    return f"{first} (and {listed(others)}, in Figure B.1 alone)" if others else first


def _is_embedded(source: DatasetCard) -> bool:
    return source.name.startswith("glyphs")


def _objectives(measurements: Measurements) -> str:
    further = len(_further(measurements))
    own = str(len(measurements.compared))
    return f"{own}, and {counted(further, 'further temperature')} of cosine softmax" if further else own


def _runs(measurements: Measurements) -> str:
    """Runs of the compared objectives, then those of a sweep where they are others."""
    own = _span(measurements.run_counts(measurements.compared))
    sweep = _span(measurements.run_counts(_further(measurements)))
    return own if sweep in (own, MISSING) else f"{own}; {sweep} at each further temperature"


def _further(measurements: Measurements) -> list[Objective]:
    """The objectives that are not compared: temperatures of a sweep."""
    return [one for one in measurements.objectives if one not in measurements.compared]


def _span(counts: tuple[int, ...]) -> str:
    """
    >>> _span((5, 5)), _span((3, 5))
    ('5', '3 to 5')
    """
    if not counts:
        return MISSING
    least, most = min(counts), max(counts)
    return str(most) if least == most else f"{least} to {most}"


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
