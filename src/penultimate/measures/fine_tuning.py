"""Fine-tuning: all weights of a network trained further on each target.

fine_tune_cell     fine-tunes one network with one learning rate and decay, and validates it
fine_tune_choice   chooses the learning rate and decay with the best mean over an objective's networks
fine_tuning        fine-tunes each network with these on all training images, and tests it
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Features, Layers, Made, Pixels, Trained, Yield
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
    chosen_by,
    numbers_of,
    start_of,
    train_on,
    validated,
    validating,
    yields_of,
)
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number, Setting, Undefined
from penultimate.measures.layers import PENULTIMATE
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.data.images import Images
    from penultimate.networks.protocol import Network
    from penultimate.networks.trained import TrainedNetwork

HEADS = (FRESH, PROBE)
FINE_TUNING = (
    "All weights of the finished network are trained further on the new task, from a fresh final"
    " layer unless another is named."
)


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
    images = inputs.shown("train")
    validation = validating(images, inputs.seed)
    start = start_of(inputs, str(head), len(images.class_names), ~validation)
    rates = {"learning_rate": learning_rate, "decay": decay, "steps": steps, "batch_size": batch_size}
    yield from validated(inputs, images, validation, start, rates)


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
        *yields_of("fine_tuned", FINE_TUNING, "fine-tuned transfer"),
        Yield(
            "fine_tuned_cka",
            "ratio",
            words="How alike a layer finds images before and after fine-tuning (CKA), from 0 to 1.",
            called="CKA",
        ),
        Yield(
            "fine_tuned_layers",
            "points",
            {
                **dict.fromkeys(("matrix", "standard_error"), "share layers layers"),
                **{"layers": "text layers", "sizes": "count batches"},
            },
            words="How alike every layer before and every layer after fine-tuning find images (CKA).",
        ),
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
    chosen = chosen_by(inputs.made("fine_tune_choice"))
    rates = {**chosen["rates"], "steps": steps, "batch_size": batch_size}
    after = train_on(inputs, train, start_of(inputs, str(head), len(train.class_names)), rates)
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
    yield Arrays("fine_tuned_layers", arrays, "test", setting)
