"""Fine-tuning: all weights trained further on each target; and the same from first weights.

fine_tune_cell     one network, fine-tuned with one learning rate and decay, and validated
fine_tune_choice   the learning rate and decay with the best mean over an objective's networks
fine_tuning        each network, fine-tuned with these on all training images, and tested
scratch_cell, scratch_choice, from_scratch   the same of networks that were trained on nothing before

The loss is softmax cross-entropy, whatever the network was trained with; batch normalisation and biases have no
decay, as in training here. The paper states neither, nor the batch size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Features, Layers, Made, Pixels, Trained, Yield
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number, Undefined, sample
from penultimate.measures.layers import PENULTIMATE
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.data.images import ImageSet
    from penultimate.networks.trained import TrainedNetwork
    from penultimate.training import Start

OBJECTIVE = "softmax"
FRESH, PROBE = "fresh", "probe"
"""What the final layer starts as: the first weights of the seed, or the optimum of the linear probe."""
HEADS = (FRESH, PROBE)
LEARNING_RATES = (0.003, 0.01, 0.03, 0.1)
DECAYS = (0.0, 1e-4, 1e-3)
"""Relative to the learning rate: the weight decay is decay / learning rate."""
STEPS, BATCH_SIZE, SEEDS = 400, 64, 3
POSITIVE, WHOLE = Interval(0), Interval(1, closed="left")
OF_CELL = {
    "learning_rate": POSITIVE,
    "decay": Interval(0, closed="left"),
    "steps": WHOLE,
    "batch_size": Interval(2, closed="left"),
}
RUN, SCORE, CHOSEN = "checkpoints", "score.json", "chosen.json"
"""The folder of a training, which is scratch; what a cell and what a choice leaves."""


@register.measurement(
    version=1,
    per="target",
    needs=(Layers(), Trained(), Features("train"), Pixels("train")),
    yields=(),
    each=("head", "learning_rate", "decay"),
    ranges={"head": HEADS, **OF_CELL},
    stage=True,
    seconds=8.0,
)
def fine_tune_cell(
    inputs: Inputs,
    *,
    head: tuple[str, ...] | str = HEADS,
    learning_rate: tuple[float, ...] | float = LEARNING_RATES,
    decay: tuple[float, ...] | float = DECAYS,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
) -> Iterator[Fact]:
    """The network fine-tuned on four fifths of the target's training images, and its accuracy on the rest."""
    images = inputs.images("train")
    validation = validating(images, inputs.seed)
    start = _start(inputs, str(head), ~validation)
    rates = {"learning_rate": learning_rate, "decay": decay, "steps": steps, "batch_size": batch_size}
    yield from _validated(inputs, images, validation, start, rates)


@register.measurement(
    version=1,
    per="objective_target",
    needs=(Made("fine_tune_cell", seeds="seeds"),),
    yields=(),
    each=("head",),
    ranges={"head": HEADS},
    stage=True,
    seconds=0.05,
)
def fine_tune_choice(inputs: Inputs, *, head: tuple[str, ...] | str = HEADS) -> Iterator[Fact]:
    """Of all learning rates and decays those with the best mean accuracy on validation images."""
    yield _choose(inputs, "fine_tune_cell")


@register.measurement(
    version=1,
    per="target",
    needs=(
        Layers(),
        Trained(),
        Features("train"),
        Pixels("train"),
        Pixels("test"),
        Made("fine_tune_choice"),
    ),
    yields=(
        Yield("fine_tuned_top1", "fraction"),
        Yield("fine_tuned_mean_per_class", "fraction"),
        Yield("fine_tuned_validation_accuracy", "fraction"),
        Yield("fine_tuned_learning_rate", "learning rate"),
        Yield("fine_tuned_decay", "decay"),
        Yield("fine_tuned_edges", "count"),
        Yield("fine_tuned_cells", "count"),
        Yield("fine_tuned_cka", "ratio"),
        Yield("fine_tuned_layers", "points", ("matrix", "standard_error", "layers", "sizes")),
    ),
    each=("head",),
    ranges={"head": HEADS, **OF_CELL, "seeds": WHOLE, "images": Interval(4, closed="left")},
    seconds=10.0,
    paper="Kornblith et al., 2021, section 3.1, appendices A.3 and D.4",
)
def fine_tuning(
    inputs: Inputs,
    *,
    head: tuple[str, ...] | str = HEADS,
    learning_rate: tuple[float, ...] = LEARNING_RATES,
    decay: tuple[float, ...] = DECAYS,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
    seeds: int = SEEDS,
    images: int = 1024,
) -> Iterator[Number | Arrays | Fact | Undefined]:
    """Test accuracy of a network all of whose weights were trained further on a target.

    SGD, momentum .9 (plain), the learning rate to zero as a cosine in `steps` steps, no averaging, the
    augmentation that the network was trained with. Of all combinations of learning rates and decays (weight
    decay x learning rate) the one is used that is best on a fifth of the training images, in the mean over
    the first `seeds` networks of the objective (of equals the smallest learning rate, then the largest
    decay); then all training images are used. `head` is what the final layer starts as: "fresh", or the
    linear "probe"'s optimum.

    Also how alike each layer is before and after, on some of the target's test images: linear CKA.
    """
    from penultimate.networks.trained import load_network

    train, test = inputs.images("train"), inputs.images("test")
    chosen = _chosen(inputs.made("fine_tune_choice"))
    rates = {**chosen["rates"], "steps": steps, "batch_size": batch_size}
    _fine_tune(inputs, train, _start(inputs, str(head)), rates)
    setting = {"head": str(head)}
    after = load_network(inputs.folder / RUN)
    yield from _numbers("fine_tuned", inputs, after, test, chosen, setting)
    yield from _likeness(inputs.network, after, test.subset(sample(len(test), images)), setting)
    unseen = _classes_without(train, validating(train, inputs.seed))
    if unseen:
        told = f"no validation image of '{inputs.target}' is of {', '.join(unseen)}: they had no say in the choice"
        inputs.progress({"notice": told})
        yield Fact("classes_not_validated", unseen)


@register.measurement(
    version=1,
    per="start_target",
    needs=(Trained(), Pixels("train")),
    yields=(),
    each=("learning_rate", "decay"),
    ranges=OF_CELL,
    stage=True,
    seconds=8.0,
)
def scratch_cell(
    inputs: Inputs,
    *,
    learning_rate: tuple[float, ...] | float = LEARNING_RATES,
    decay: tuple[float, ...] | float = DECAYS,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
) -> Iterator[Fact]:
    """A network trained from first weights on four fifths of the target, and its accuracy on the rest."""
    images = inputs.images("train")
    rates = {"learning_rate": learning_rate, "decay": decay, "steps": steps, "batch_size": batch_size}
    yield from _validated(inputs, images, validating(images, inputs.seed), None, rates)


@register.measurement(
    version=1,
    per="study_target",
    needs=(Made("scratch_cell", seeds="seeds"),),
    yields=(),
    stage=True,
    seconds=0.05,
)
def scratch_choice(inputs: Inputs) -> Iterator[Fact]:
    """Of all learning rates and decays those with the best mean accuracy on validation images."""
    yield _choose(inputs, "scratch_cell")


@register.measurement(
    version=1,
    per="start_target",
    needs=(Trained(), Pixels("train"), Pixels("test"), Made("scratch_choice")),
    yields=(
        Yield("from_scratch_top1", "fraction"),
        Yield("from_scratch_mean_per_class", "fraction"),
        Yield("from_scratch_validation_accuracy", "fraction"),
        Yield("from_scratch_learning_rate", "learning rate"),
        Yield("from_scratch_decay", "decay"),
        Yield("from_scratch_edges", "count"),
        Yield("from_scratch_cells", "count"),
    ),
    ranges={**OF_CELL, "seeds": WHOLE},
    seconds=10.0,
)
def from_scratch(
    inputs: Inputs,
    *,
    learning_rate: tuple[float, ...] = LEARNING_RATES,
    decay: tuple[float, ...] = DECAYS,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
    seeds: int = SEEDS,
) -> Iterator[Number]:
    """Test accuracy of the architecture trained on a target alone, as `fine_tuning` trains, which gains on it.

    Once for each seed and draw, whatever the objectives; the grid is searched anew.
    """
    from penultimate.networks.trained import load_network

    chosen = _chosen(inputs.made("scratch_choice"))
    rates = {**chosen["rates"], "steps": steps, "batch_size": batch_size}
    _fine_tune(inputs, inputs.images("train"), None, rates)
    trained = load_network(inputs.folder / RUN)
    yield from _numbers("from_scratch", inputs, trained, inputs.images("test"), chosen, {})


def validating(images: ImageSet, seed: int) -> np.ndarray:
    """Which of the images validate: a fifth of each class, as near as can be."""
    from penultimate.probes.validation import split_off

    return split_off(images.labels, seed=seed)


def _start(inputs: Inputs, head: str, of: np.ndarray | slice = slice(None)) -> Start:
    """The network to start from, with the final layer of the linear probe on some images where asked for."""
    import torch

    from penultimate.networks.trained import TrainedNetwork
    from penultimate.probes.linear import LinearProbe
    from penultimate.training import Start

    network = inputs.network
    assert isinstance(network, TrainedNetwork)
    if head == FRESH:
        return Start(network)
    bank = inputs.features("train")
    probe = LinearProbe(metric=inputs.accuracy, seed=inputs.seed).fit(bank.features[of], bank.labels[of])
    weight, bias = torch.from_numpy(probe.coef_).float(), torch.from_numpy(probe.intercept_).float()
    return Start(network, (weight, bias))


def _fine_tune(inputs: Inputs, images: ImageSet, start: Start | None, rates: dict[str, Any]) -> None:
    """Train on the images, and leave the network in the folder RUN; raises UndefinedError if it diverges."""
    from penultimate.training import Recipe, train

    recipe = Recipe(
        steps=rates["steps"],
        batch_size=rates["batch_size"],
        learning_rate=rates["learning_rate"],
        warmup=0.0,
        schedule="cosine",
        final_fraction=0.0,
        nesterov=False,
        weight_decay=rates["decay"] / rates["learning_rate"],
        averaging_window=0.0,
        augmentation=inputs.augmentation,
    )
    folder = inputs.folder / RUN
    folder.mkdir(exist_ok=True)
    seconds = inputs.checkpoint_seconds
    result = train(
        OBJECTIVE,
        inputs.backbone,
        images,
        None,
        recipe,
        inputs.seed,
        folder,
        inputs.progress,
        seconds,
        start=start,
    )
    if result.status != "done":
        raise UndefinedError(f"training on '{inputs.target}' diverged: {result.reason}")


def _validated(
    inputs: Inputs,
    images: ImageSet,
    validation: np.ndarray,
    start: Start | None,
    rates: dict[str, Any],
) -> Iterator[Fact]:
    """Train on the other images; leave the accuracy on those that validate, or nothing if it diverges."""
    from penultimate.networks.trained import load_network

    _fine_tune(inputs, images.subset(~validation), start, rates)
    score = _accuracy(inputs, load_network(inputs.folder / RUN), images.subset(validation))
    (inputs.folder / SCORE).write_text(json.dumps(score))
    yield Fact("validation_accuracy", score)


def _accuracy(inputs: Inputs, network: TrainedNetwork, images: ImageSet) -> float:
    from penultimate.features.extraction import extract
    from penultimate.probes.estimator import accuracy_of

    bank = extract(network, images)
    assert bank.logits is not None
    return accuracy_of(inputs.accuracy)(bank.logits.argmax(1), bank.labels)


def _choose(inputs: Inputs, stage: str) -> Fact:
    """Leave the cell with the best mean over all networks; one in which any of them diverged is out."""
    scores: dict[tuple[float, float], list[float]] = {}
    diverged = set()
    for supply, folder in inputs.all_made(stage):
        cell = supply.settings["learning_rate"], supply.settings["decay"]
        of_cell = scores.setdefault(cell, [])
        if (folder / SCORE).exists():
            of_cell.append(json.loads((folder / SCORE).read_text()))
        else:
            diverged.add(cell)
    means = {cell: math.fsum(of) / len(of) for cell, of in scores.items() if cell not in diverged}
    if not means:
        raise UndefinedError(f"all of {len(scores)} learning rates and decays diverged")
    best = min(means, key=lambda cell: (-means[cell], cell[0], -cell[1]))
    rates = dict(zip(("learning_rate", "decay"), best, strict=True))
    grid = zip(*scores, strict=True)
    edges = sum(at_edge(value, values) for value, values in zip(best, grid, strict=True))
    chosen = {"rates": rates, "mean": means[best], "edges": edges, "cells": len(scores)}
    (inputs.folder / CHOSEN).write_text(json.dumps(chosen))
    return Fact("cells", [[*cell, means.get(cell)] for cell in sorted(scores)])


def at_edge(value: float, values: Sequence[float]) -> bool:
    """Whether a value is the first or last of several, beyond which others could be tried; below 0 is nothing.

    >>> at_edge(0.1, (0.1, 1.0)), at_edge(0.0, (0.0, 1.0)), at_edge(0.1, (0.1,))
    (True, False, False)
    """
    return min(values) < max(values) and (value == max(values) or value == min(values) > 0)


def _chosen(folder: Path | None) -> dict[str, Any]:
    if folder is None or not (folder / CHOSEN).exists():
        raise UndefinedError("training diverged at every learning rate and decay")
    chosen: dict[str, Any] = json.loads((folder / CHOSEN).read_text())
    return chosen


def _numbers(
    what: str,
    inputs: Inputs,
    network: TrainedNetwork,
    test: ImageSet,
    chosen: dict[str, Any],
    setting: dict[str, str | int | float],
) -> Iterator[Number]:
    """The test accuracy, and how the learning rate and decay were chosen."""
    score = _accuracy(inputs, network, test)
    yield Number(f"{what}_{inputs.accuracy}", score, "fraction", "test", setting=setting)
    of_choice = (
        ("validation_accuracy", chosen["mean"], "fraction"),
        ("learning_rate", chosen["rates"]["learning_rate"], "learning rate"),
        ("decay", chosen["rates"]["decay"], "decay"),
        ("edges", chosen["edges"], "count"),
        ("cells", chosen["cells"], "count"),
    )
    for name, value, unit in of_choice:
        yield Number(f"{what}_{name}", float(value), unit, "train", setting=setting)


def _likeness(
    before: Any, after: TrainedNetwork, images: ImageSet, setting: dict[str, str | int | float]
) -> Iterator[Number | Arrays | Undefined]:
    """CKA of the layers before (rows) and after (columns)."""
    from penultimate.layers.comparison import compare_networks

    networks = {"before": before, "after": after}
    comparison = compare_networks(networks, images, output=PENULTIMATE)
    layers, rows = comparison.layers("before"), len(comparison.layers("before"))
    matrix = comparison.between("before", "after")
    for layer, value in zip(layers, matrix.diagonal(), strict=True):
        if math.isfinite(value):
            yield Number("fine_tuned_cka", float(value), "ratio", "test", layer, setting=setting)
        else:
            yield Undefined(f"{layer} is the same for all images")
    arrays = {
        "matrix": matrix,
        "standard_error": comparison.standard_error[:rows, rows:],
        "layers": layers,
        "sizes": comparison.sizes,
    }
    yield Arrays("fine_tuned_layers", arrays, "test")


def _classes_without(images: ImageSet, validation: np.ndarray) -> list[str]:
    """The classes of training images of which none validates."""
    lacking = {*images.labels.tolist()} - {*images.labels[validation].tolist()}
    return [images.class_names[label] for label in sorted(lacking)]
