"""Whether given networks' outputs are in the order of the source's classes in which they are taken to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from penultimate.measures.inputs import Inputs, Undefined
from penultimate.metrics import UndefinedError

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank
    from penultimate.metrics.class_order import Fit
    from penultimate.networks.key import NetworkKey

DOUBTED = "in another order of the classes"
"""What is said of such outputs."""


def is_said(inputs: Inputs) -> bool:
    """Return whether the order was said, and not only taken."""
    return bool(inputs.step.config.get("class_order_said"))


def other_order(inputs: Inputs, bank: FeatureBank) -> Fit | None:
    """Return the order that fits a given network's outputs far better than the one taken, if any does."""
    names = inputs.step.config.get("class_order")
    if names is None:
        return None
    from penultimate.data.readers.class_order import KEYS, in_usual_order
    from penultimate.metrics.class_order import better_order

    usual = {order: in_usual_order(names, order) for order in KEYS}
    others = {order: its for order, its in usual.items() if list(its) != list(names)}
    return better_order(bank.predictions, bank.labels, names, others)


def in_order(
    inputs: Inputs, banks: Mapping[NetworkKey, FeatureBank]
) -> tuple[dict[NetworkKey, FeatureBank], list[Undefined]]:
    """Return the banks without those of given networks whose outputs are in another order than was taken, for
    what compares these with labels or with others' outputs has no value; and why, or what is doubted.
    """
    kept, told = dict(banks), []
    for key, bank in banks.items():
        fit = None if key.backbone else other_order(inputs, bank)
        if fit is not None and is_said(inputs) and not fit.order:
            doubt = f"the outputs of {key} seem to be {DOUBTED} than was said"
            told.append(Undefined(doubt))
        elif fit is not None:
            del kept[key]
            told.append(
                Undefined(f"the outputs of {key} are {DOUBTED} than was taken; --class-order says theirs")
            )
    return kept, told


def expect_order(inputs: Inputs, split: str) -> Iterator[Undefined]:
    """Raise UndefinedError where a network is left out by `in_order`; yield what is doubted."""
    kept, told = in_order(inputs, inputs.all_features(split))
    if told and not kept:
        raise UndefinedError(told[0].reason)
    yield from told
