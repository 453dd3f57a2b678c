"""Training of all weights on each target by one protocol, from three starts, each in three stages.

fine_tuning         from a network that was trained here     fine_tune_cell, fine_tune_choice
from_scratch        from random weights                      scratch_cell, scratch_choice
given_fine_tuning   from a network from elsewhere            given_tune_cell, given_tune_choice

A cell trains one network with one learning rate and decay, and validates it; a choice takes the cell with the
best mean over the networks of an objective (or of an architecture). `further_training` holds the protocol.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Features, Layers, Made, Pixels, Trained, Weights, Yield
from penultimate.measures.further_training import (
    BATCH_SIZE,
    DECAYS,
    FRESH,
    LEARNING_RATES,
    OF_CELL,
    PROBE,
    SEEDS,
    STEPS,
    WHOLE,
    accuracy_on,
    choose,
    chosen_in,
    classified,
    numbers_of,
    train_on,
    validated,
    yields_of,
)
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number, Setting, Undefined
from penultimate.measures.layers import PENULTIMATE
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.data.images import Images, ImageSet
    from penultimate.networks.protocol import Network
    from penultimate.networks.trained import TrainedNetwork

HEADS = (FRESH, PROBE)
GIVEN_LEARNING_RATES, GIVEN_DECAYS = (0.001, 0.01), (0.0,)
GIVEN_STEPS, GIVEN_BATCH_SIZE = 200, 32
PREDICTIONS = ("ids", "labels", "tuned")
"""The arrays of the predictions: for each test image its id, its class, and the predicted class."""


@register.measurement(
    version=1,
    per="target",
    needs=(Layers(), Trained(), Features("train"), Pixels("train")),
    yields=(),
    each=("head", "learning_rate", "decay"),
    ranges={"head": HEADS, **OF_CELL},
    stage=True,
    seconds=8.0,
    trains=True,
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
    rates = {"learning_rate": learning_rate, "decay": decay, "steps": steps, "batch_size": batch_size}
    yield from validated(inputs, inputs.shown("train"), str(head), rates)


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
    """The learning rate and decay with the best mean accuracy on validation images."""
    yield choose(inputs, "fine_tune_cell")


@register.measurement(
    version=2,
    per="target",
    needs=(Layers(), Trained(), Features("train"), Pixels("train"), Pixels("test"), Made("fine_tune_choice")),
    yields=(
        *yields_of("fine_tuned", "fine-tuned transfer"),
        Yield("fine_tuned_cka", "ratio", called="CKA"),
        Yield("fine_tuned_layers", "points", ("matrix", "standard_error", "layers", "sizes")),
    ),
    each=("head",),
    ranges={
        **{"head": HEADS, **OF_CELL, "seeds": WHOLE, "passes": Interval(1, 1000, "both")},
        **dict.fromkeys(("images", "compared"), Interval(4, closed="left")),
    },
    seconds=10.0,
    trains=True,
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
    compared: int = 256,
    passes: int = 1,
) -> Iterator[Number | Arrays | Fact | Undefined]:
    """Test accuracy of a network after all its weights were trained further on a target.

    Training uses SGD with momentum 0.9 (not Nesterov), a cosine learning rate that falls to zero in `steps`
    steps, no averaging, and the augmentation that the network was trained with. A fifth of the training
    images chooses among all combinations of learning rates and decays (weight decay x learning rate): the one
    with the best mean over the first `seeds` networks of the objective (among equals the smallest learning
    rate, then the largest decay). Then all training images are used. `head` is the start of the final layer:
    "fresh" weights, or the optimum of the linear "probe".

    The measurement also compares each layer before and after by linear CKA, on `images` of the target's test
    images, in batches of `compared`, drawn again in every pass.
    """
    train, test = inputs.shown("train"), inputs.shown("test")
    chosen = chosen_in(inputs, "fine_tune_choice")
    rates = {**chosen["rates"], "steps": steps, "batch_size": batch_size}
    after = train_on(inputs, train, str(head), rates)
    setting = {"head": str(head)}
    yield from numbers_of("fine_tuned", inputs, train, accuracy_on(inputs, test, after), chosen, setting)
    shown, batches = inputs.shown("test", most=images), {"batch_size": compared, "passes": passes}
    yield from _likeness(inputs.network, after, shown, batches, setting)


def _likeness(
    before: Network, after: TrainedNetwork, images: Images, batches: Mapping[str, Any], setting: Setting
) -> Iterator[Number | Arrays | Undefined]:
    """Yield the CKA between the layers before (rows) and after (columns) fine-tuning."""
    from penultimate.layers.comparison import compare_networks
    from penultimate.metrics.similarity import FEWEST

    if len(images) < FEWEST:
        yield Undefined(f"layers are compared on {FEWEST} test images or more; there are {len(images)}")
        return
    networks = {"before": before, "after": after}
    comparison = compare_networks(networks, images, output=PENULTIMATE, **batches)
    layers = comparison.layers("before")
    matrix = comparison.between("before", "after")
    for layer, value in zip(layers, matrix.diagonal(), strict=True):
        if math.isfinite(value):
            yield Number("fine_tuned_cka", float(value), "ratio", "test", layer, setting=setting)
        else:
            yield Undefined(f"{layer} is the same for all images")
    error = comparison.standard_error[: len(layers), len(layers) :]
    arrays = {"matrix": matrix, "standard_error": error, "layers": layers, "sizes": comparison.sizes}
    yield Arrays("fine_tuned_layers", arrays, "test", setting)


@register.measurement(
    version=1,
    per="start_target",
    needs=(Trained(), Pixels("train")),
    yields=(),
    each=("learning_rate", "decay"),
    ranges=OF_CELL,
    stage=True,
    seconds=8.0,
    trains=True,
)
def scratch_cell(
    inputs: Inputs,
    *,
    learning_rate: tuple[float, ...] | float = LEARNING_RATES,
    decay: tuple[float, ...] | float = DECAYS,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
) -> Iterator[Fact]:
    """A network, trained from scratch on four fifths of the target, and its accuracy on the rest."""
    rates = {"learning_rate": learning_rate, "decay": decay, "steps": steps, "batch_size": batch_size}
    yield from validated(inputs, inputs.images("train"), "", rates)


@register.measurement(
    version=1,
    per="study_target",
    needs=(Made("scratch_cell", seeds="seeds"),),
    yields=(),
    stage=True,
    seconds=0.05,
)
def scratch_choice(inputs: Inputs) -> Iterator[Fact]:
    """The learning rate and decay with the best mean accuracy on validation images."""
    yield choose(inputs, "scratch_cell")


@register.measurement(
    version=1,
    per="start_target",
    needs=(Trained(), Pixels("train"), Pixels("test"), Made("scratch_choice")),
    yields=yields_of("from_scratch", "accuracy from scratch"),
    ranges={**OF_CELL, "seeds": WHOLE},
    seconds=10.0,
    trains=True,
)
def from_scratch(
    inputs: Inputs,
    *,
    learning_rate: tuple[float, ...] = LEARNING_RATES,
    decay: tuple[float, ...] = DECAYS,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
    seeds: int = SEEDS,
) -> Iterator[Number | Fact]:
    """Test accuracy of the architecture, trained on a target alone by the protocol of `fine_tuning`.

    This is done once for each seed and draw, whatever the objectives, with its own search of the grid.
    """
    chosen = chosen_in(inputs, "scratch_choice")
    train = inputs.images("train")
    rates = {**chosen["rates"], "steps": steps, "batch_size": batch_size}
    score = accuracy_on(inputs, inputs.images("test"), train_on(inputs, train, "", rates))
    yield from numbers_of("from_scratch", inputs, train, score, chosen)


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
    learning_rate: tuple[float, ...] | float = GIVEN_LEARNING_RATES,
    decay: tuple[float, ...] | float = GIVEN_DECAYS,
    steps: int = GIVEN_STEPS,
    batch_size: int = GIVEN_BATCH_SIZE,
) -> Iterator[Fact]:
    """The network fine-tuned on four fifths of the target's training images, and its accuracy on the rest."""
    rates = {"learning_rate": learning_rate, "decay": decay, **_given_rates(steps, batch_size)}
    yield from validated(inputs, _sized(inputs, "train"), PROBE, rates)


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
        *yields_of("given_fine_tuned", "fine-tuned transfer"),
        Yield("tuned_predictions", "points", PREDICTIONS),
    ),
    ranges=OF_CELL,
    seconds=300.0,
    trains=True,
)
def given_fine_tuning(
    inputs: Inputs,
    *,
    learning_rate: tuple[float, ...] = GIVEN_LEARNING_RATES,
    decay: tuple[float, ...] = GIVEN_DECAYS,
    steps: int = GIVEN_STEPS,
    batch_size: int = GIVEN_BATCH_SIZE,
) -> Iterator[Number | Arrays | Fact]:
    """Test accuracy and predictions of a network after all its weights were trained further on a target.

    The final layer starts as the linear probe. Training is that of `fine_tuning`, in float32, without
    augmentation, and with a grid of its own.
    """
    from penultimate.probes.estimator import accuracy_of

    train, test = _sized(inputs, "train"), _sized(inputs, "test")
    chosen = chosen_in(inputs, "given_tune_choice")
    tuned = train_on(inputs, train, PROBE, {**chosen["rates"], **_given_rates(steps, batch_size)})
    predicted = classified(tuned, test)
    score = accuracy_of(inputs.accuracy)(predicted, test.labels)
    yield from numbers_of("given_fine_tuned", inputs, train, score, chosen)
    predictions = dict(zip(PREDICTIONS, (test.ids, test.labels, predicted), strict=True))
    yield Arrays("tuned_predictions", predictions, "test")


def _given_rates(steps: int, batch_size: int) -> dict[str, Any]:
    from penultimate.data.augmentation.settings import Augmentation

    return {"steps": steps, "batch_size": batch_size, "augmentation": Augmentation(shift=0)}


def _sized(inputs: Inputs, split: str) -> ImageSet:
    """Return the target's images in the size that the network expects."""
    import torch

    from penultimate.networks.given import GivenNetwork

    images, network = inputs.images(split), inputs.network
    if not isinstance(network, GivenNetwork):
        return images
    return replace(images, images=network.sized(torch.from_numpy(images.images)).numpy())
