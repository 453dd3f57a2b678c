"""Fine-tuning of networks that were not trained here, on images of the size they expect, in the same loop.

given_tune_cell     fine-tunes a network with one learning rate and decay, and validates it
given_tune_choice   chooses the best learning rate and decay
given_fine_tuning   fine-tunes the network with these on all training images, and tests it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Features, Made, Pixels, Weights, Yield
from penultimate.measures.further_training import (
    OF_CELL,
    PROBE,
    choose,
    chosen_by,
    classified,
    numbers_of,
    start_of,
    train_on,
    validated,
    validating,
    yields_of,
)
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.data.images import ImageSet

LEARNING_RATES, DECAYS = (0.001, 0.01), (0.0,)
STEPS, BATCH_SIZE = 200, 32
PREDICTIONS = {"ids": "id images", "labels": "whole images", "tuned": "whole images"}
"""The arrays of the predictions: for each test image its id, its class, and the predicted class."""


@register.measurement(
    version=1,
    per="target",
    needs=(Weights(), Features("train"), Pixels("train")),
    yields=(),
    each=("learning_rate", "decay"),
    ranges=OF_CELL,
    stage=True,
    seconds=250.0,
    trains=True,
)
def given_tune_cell(
    inputs: Inputs,
    *,
    learning_rate: tuple[float, ...] | float = LEARNING_RATES,
    decay: tuple[float, ...] | float = DECAYS,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
) -> Iterator[Fact]:
    """The network fine-tuned on four fifths of the target's training images, and its accuracy on the rest."""
    images = _sized(inputs, "train")
    validation = validating(images, inputs.seed)
    start = start_of(inputs, PROBE, images.num_classes, ~validation)
    rates = _rates(steps, batch_size, learning_rate=learning_rate, decay=decay)
    yield from validated(inputs, images, validation, start, rates)


@register.measurement(
    version=1, per="objective_target", needs=(Made("given_tune_cell"),), yields=(), stage=True, seconds=0.05
)
def given_tune_choice(inputs: Inputs) -> Iterator[Fact]:
    """The learning rate and decay with the best accuracy on validation images."""
    yield choose(inputs, "given_tune_cell")


@register.measurement(
    version=2,
    per="target",
    needs=(Weights(), Features("train"), Pixels("train"), Pixels("test"), Made("given_tune_choice")),
    yields=(
        *yields_of(
            "given_fine_tuned",
            "All weights of the finished network are trained further on the new task, from the linear probe.",
            "fine-tuned transfer",
        ),
        Yield(
            "tuned_predictions",
            "points",
            PREDICTIONS,
            words="What the fine-tuned network predicts of each test image.",
        ),
    ),
    ranges=OF_CELL,
    seconds=300.0,
    trains=True,
)
def given_fine_tuning(
    inputs: Inputs,
    *,
    learning_rate: tuple[float, ...] = LEARNING_RATES,
    decay: tuple[float, ...] = DECAYS,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
) -> Iterator[Number | Arrays | Fact]:
    """Test accuracy and predictions of a network after all its weights were trained further on a target.

    The final layer starts as the linear probe. Training uses SGD with momentum 0.9 and a cosine learning rate
    that falls to zero, in float32, without augmentation. A fifth of the training images chooses the learning
    rate and decay (among equals the smallest learning rate, then the largest decay); then all training images
    are used.
    """
    from penultimate.probes.estimator import accuracy_of

    train, test = _sized(inputs, "train"), _sized(inputs, "test")
    chosen = chosen_by(inputs.made("given_tune_choice"))
    start = start_of(inputs, PROBE, train.num_classes)
    tuned = train_on(inputs, train, start, _rates(steps, batch_size, **chosen["rates"]))
    predicted = classified(tuned, test)
    score = accuracy_of(inputs.accuracy)(predicted, test.labels)
    yield from numbers_of("given_fine_tuned", inputs, train, score, chosen, {})
    predictions = dict(zip(PREDICTIONS, (test.ids, test.labels, predicted), strict=True))
    yield Arrays("tuned_predictions", predictions, "test")


def _rates(steps: int, batch_size: int, **rates: Any) -> dict[str, Any]:
    from penultimate.data.augmentation.settings import Augmentation

    return {"steps": steps, "batch_size": batch_size, **rates, "augmentation": Augmentation(shift=0)}


def _sized(inputs: Inputs, split: str) -> ImageSet:
    """Return the target's images in the size that the network expects."""
    import torch

    from penultimate.networks.given import GivenNetwork

    images, network = inputs.images(split), inputs.network
    if not isinstance(network, GivenNetwork):
        return images
    return replace(images, images=network.sized(torch.from_numpy(images.images)).numpy())
