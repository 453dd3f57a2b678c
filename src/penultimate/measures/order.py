"""A check whether the outputs of given networks are in the assumed order of the source's classes."""

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
"""The words in messages for outputs in a different order."""


def is_said(inputs: Inputs) -> bool:
    """Return whether the user stated the order, so that it is not merely assumed."""
    return bool(inputs.step.config.get("class_order_said"))


def other_order(inputs: Inputs, bank: FeatureBank) -> Fit | None:
    """Return an order that fits a given network's outputs far better than the assumed one, or None."""
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
    """Return the banks of the networks whose outputs are in the assumed order, and remarks on the others.

    For a given network with another order, comparisons with labels or other outputs would be meaningless, so
    its bank is left out. If the user stated the order and no usual order fits better, the bank stays and
    the remark is a doubt.
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
    """Raise UndefinedError if `in_order` leaves out the network; yield a remark if its order is doubtful."""
    kept, told = in_order(inputs, inputs.all_features(split))
    if told and not kept:
        raise UndefinedError(told[0].reason)
    yield from told
