"""The comparison of this study's regime with the paper's, which a careful reader needs first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from penultimate.data.catalog import DatasetCard, card
from penultimate.measures.class_separation import UNBIASED
from penultimate.paper.arms import SWEEP
from penultimate.paper.remarks import is_embedded
from penultimate.report.base import MISSING
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.numbers import printed_rows, summarise
from penultimate.report.text import counted, fixed, listed, plain
from penultimate.training.recipe import Recipe
from penultimate.training.regime import IMAGENET, regime, weight_decay

STOPPED = {
    "last": "the last, where the schedule ends; the holdout is never trained on",
    "best": "the best on the holdout, which is never trained on",
}
"""Words for the weights that are kept, by the recipe's `stopping`."""


@dataclass(frozen=True)
class Difference:
    """One property of the two studies, side by side."""

    what: str
    ours: str
    paper: str


def compare(measurements: Measurements) -> tuple[Difference, ...]:
    """Return our settings beside the paper's, from the description, cards, rows and printed tables."""
    source = card(measurements.source)
    recipe = measurements.recipe
    width = measurements.results.description.get("num_features")
    ratio = f"{source.classes} / {width} = {fixed(source.classes / width, 2)}" if width else MISSING
    tasks = [card(name).title for name in (*measurements.targets, *measurements.several_labels)]
    kind = "images drawn from fonts" if is_embedded(source.name) else "images"
    paper_epochs = [int(row["epochs"]) for row in printed_rows("neurips_tableA1_hyperparameters")]
    return (
        Difference(
            "Pretraining data",
            f"{source.title}: {_training_images(source):,} {kind}",
            "ImageNet: 1,281,167 photographs",
        ),
        Difference("Classes K / penultimate features M", ratio, "1000 / 2048 = 0.49"),
        Difference("Architecture", _architecture(measurements), "ResNet-50"),
        Difference(
            "Epochs",
            _setting(recipe, "epochs"),
            f"{min(paper_epochs)} to {max(paper_epochs)}, chosen per objective",
        ),
        Difference(
            "The epoch that counts",
            STOPPED.get(str(recipe.get("stopping")), MISSING),
            "the best on a holdout; then all networks were trained again, to that epoch, with the holdout",
        ),
        Difference("Batch size", _setting(recipe, "batch_size"), "4,096"),
        *_training(measurements),
        Difference("Objectives", _objectives(measurements), "9"),
        Difference("Runs per objective", _runs(measurements), "8"),
        Difference(
            "Softmax accuracy, training images",
            _softmax(measurements, Quantity("top1", split="train")),
            f"{_printed_softmax('tableC1_train_accuracy', 'train_top1_percent')} %",
        ),
        Difference(
            "Softmax accuracy, test images",
            _softmax(measurements, Quantity("top1")),
            f"{_printed_softmax('table3_class_separation', 'imagenet_top1_percent')} %",
        ),
        Difference(
            "Softmax class separation R²",
            _separation(measurements),
            _printed_softmax("table3_class_separation", "class_separation_r2"),
        ),
        Difference(
            "Transfer tasks",
            f"{len(tasks)}: {listed(tasks)}" if tasks else "none",
            "8: Food-101, CIFAR-10, CIFAR-100, Birdsnap, SUN397, Stanford Cars, Pets and Flowers",
        ),
    )


def _training(measurements: Measurements) -> tuple[Difference, ...]:
    """Return the training of softmax: schedule, warm-up, averaging, weight decay, augmentation."""
    usual = next((objective for objective in measurements.objectives if objective.slug == "softmax"), None)
    settings = (usual and measurements.recipe_of(usual)) or measurements.recipe
    known = {field.name for field in fields(Recipe)}
    recipe = Recipe(**{name: value for name, value in settings.items() if name in known})
    steps = recipe.steps_on(_training_images(card(measurements.source)))
    ours = regime(recipe, steps)
    moves = recipe.augmentation
    kinds = [f"shifts of up to {counted(moves.shift, 'pixel')}"] * (moves.shift > 0)
    kinds += ["mirror images"] * moves.flip + ["AutoAugment"] * moves.autoaugment
    kinds += [f"Mixup (α = {moves.mixup:g})"] * (moves.mixup > 0)
    to = "" if recipe.schedule == "constant" else f" to {_share(ours.final_fraction)} of it"
    averages = recipe.momentum_of_average(steps) > 0
    apart = "" if recipe.head_decay is None else f"; of the final layer {recipe.head_decay:.2g}"
    rows = (
        (
            "Learning rate, softmax",
            f"{recipe.learning_rate:g} at its peak, {recipe.schedule}{to}",
            f"1.6 at its peak, × 0.975 an epoch, to {_share(IMAGENET.final_fraction)} of it",
        ),
        ("Warm-up", f"{_share(ours.warmup)} of all steps", f"10 epochs: {_share(IMAGENET.warmup)}"),
        (
            "Horizon of the weights' average",
            f"{_share(ours.averaging_window)} of all steps" if averages else "no average",
            f"{_share(IMAGENET.averaging_window)} (momentum 0.9999)",
        ),
        (
            "Weight decay, softmax; its exposure: decay × Σ learning rates / (1 − momentum)",
            f"{weight_decay(recipe, steps):.2g}; {fixed(ours.exposure, 1)}{apart}",
            f"8e-05; {fixed(IMAGENET.exposure, 1)}",
        ),
        (
            "Augmentation",
            listed(kinds) if kinds else "none",
            "crops of 10 to 100 % of the area, aspect 0.75 to 1.33, and mirror images",
        ),
    )
    return tuple(Difference(what, here if settings else MISSING, paper) for what, here, paper in rows)


def _share(value: float) -> str:
    """Return a share in per cent, without a zero decimal.

    >>> _share(0.2), _share(10 / 146)
    ('20 %', '6.8 %')
    """
    return f"{fixed(100 * value, 1).removesuffix('.0')} %"


def _separation(measurements: Measurements) -> str:
    """Return the paper's R² and the unbiased one, which does not depend on the number of images per class."""
    paper, unbiased = (
        _softmax(measurements, Quantity(metric, "train")) for metric in ("class_separation", UNBIASED)
    )
    return paper if unbiased == MISSING else f"{paper} (unbiased: {unbiased})"


def summary(measurements: Measurements) -> str:
    """Return the differences in two sentences."""
    source = card(measurements.source)
    size = f"{counted(source.classes, 'class', 'classes')}, {_training_images(source):,} training images"
    aim = (
        " It asks whether the paper's effect shows in a world that fits on a laptop; it does not replace the"
        " paper's measurement."
        if is_embedded(source.name)
        else ""
    )
    world = f"{source.title} ({size})"
    done = (
        f"trains networks on {world}, {measurements.runs_phrase()}"
        if measurements.backbone
        else f"measures networks that were not trained here, on {world}"
    )
    return f"This study {done}; the paper trained ResNet-50 on ImageNet, eight runs per objective.{aim}"


def _architecture(measurements: Measurements) -> str:
    """Return the first backbone, to which all numbers here belong, then others and given networks."""
    blocks = measurements.results.description.get("networks", ())
    given = [
        f"{plain(name)} ({plain(source)}, not trained here)"
        for block in blocks
        for name, source in block.get("given", {}).items()
    ]
    first, *others = map(plain, measurements.backbones or [""])
    text = f"{first} (and {listed(others)}, in exhibits of their own)" if others else first
    return "; ".join(part for part in (text, *given) if part) or MISSING


def _objectives(measurements: Measurements) -> str:
    compared, further = len(measurements.objectives), len(measurements.in_arm(SWEEP).objectives)
    return (
        f"{compared}, and {counted(further, 'further temperature')} of cosine softmax"
        if further
        else str(compared)
    )


def _runs(measurements: Measurements) -> str:
    """Return the runs of the compared objectives, and those of a sweep if their number differs."""
    of_main = _span(measurements.run_counts())
    sweep = _span(measurements.in_arm(SWEEP).run_counts())
    return of_main if sweep in (of_main, MISSING) else f"{of_main}; {sweep} at each further temperature"


def _span(counts: tuple[int, ...]) -> str:
    """Return the least and the greatest count, or a single number if they are equal.

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


def _softmax(measurements: Measurements, quantity: Quantity) -> str:
    """Return softmax's mean over runs, formatted as the quantity says."""
    runs = measurements.values(quantity).get(measurements.baseline)
    if not runs:
        return MISSING
    return f"{fixed(quantity.scale * summarise(runs.values()).mean, quantity.digits)} {quantity.unit}".strip()


def _printed_softmax(name: str, key: str) -> str:
    return next(row[key] for row in printed_rows(f"neurips_{name}") if row["objective"] == "softmax")
