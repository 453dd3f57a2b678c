"""Training from scratch: the protocol of fine-tuning, applied to a network with random weights.

scratch_cell     trains one network with one learning rate and decay, and validates it
scratch_choice   chooses the learning rate and decay with the best mean over an architecture's networks
from_scratch     trains each network with these on all training images, and tests it
"""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Made, Pixels, Trained
from penultimate.measures.further_training import (
    BATCH_SIZE,
    DECAYS,
    LEARNING_RATES,
    OF_CELL,
    SEEDS,
    STEPS,
    WHOLE,
    accuracy_on,
    choose,
    chosen_by,
    numbers_of,
    train_on,
    validated,
    validating,
    yields_of,
)
from penultimate.measures.inputs import Fact, Inputs, Number
from penultimate.registry import register


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
    images = inputs.images("train")
    rates = {"learning_rate": learning_rate, "decay": decay, "steps": steps, "batch_size": batch_size}
    yield from validated(inputs, images, validating(images, inputs.seed), None, rates)


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
    yields=yields_of(
        "from_scratch",
        "The architecture is trained on the task alone, from random weights.",
        "accuracy from scratch",
    ),
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
    chosen = chosen_by(inputs.made("scratch_choice"))
    rates = {**chosen["rates"], "steps": steps, "batch_size": batch_size}
    train = inputs.images("train")
    trained = train_on(inputs, train, None, rates)
    score = accuracy_on(inputs, inputs.images("test"), trained)
    yield from numbers_of("from_scratch", inputs, train, score, chosen, {})
