"""What compares outputs with labels, where outputs are in another order of classes than was taken."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tests.measures.banks import CLASSES, bank, flawless
from tests.measures.steps import Parents, measured

from penultimate import FeatureBank
from penultimate.networks.key import NetworkKey

NAMES = ["1", "10", "2", "20"]
OURS, THEIRS, TRAINED = NetworkKey("ours"), NetworkKey("theirs"), NetworkKey("a", "glyphnet", seed=0, draw=0)


def right(names: list[str]) -> FeatureBank:
    """A bank that is right in all, if its outputs are the classes in an order."""
    one = flawless(bank(0))
    assert one.logits is not None
    return dataclasses.replace(one, logits=one.logits[:, [NAMES.index(name) for name in names]])


def told(what: str, banks: dict[NetworkKey, FeatureBank], root: Path, said: bool = False) -> tuple[int, str]:
    parents = Parents(root)
    for key, one in banks.items():
        for split in ("train", "test", "holdout"):
            parents.bank(split, one, key)
    single = next(iter(banks)) if len(banks) == 1 else None
    outcome = measured(what, parents, key=single, class_order=NAMES, class_order_said=said)
    return len(outcome.rows), outcome.facts.get("undefined", "")


@pytest.mark.parametrize("what", ["accuracy", "calibration", "hardness", "collapse", "classifier"])
def test_a_network_in_another_order_has_no_number(what: str, tmp_path: Path) -> None:
    rows, why = told(what, {OURS: right(["1", "2", "10", "20"])}, tmp_path)
    assert rows == 0
    assert "in another order of the classes than was taken" in why


@pytest.mark.parametrize("what", ["pair_agreement", "agreement"])
def test_a_network_in_another_order_is_compared_with_no_other(what: str, tmp_path: Path) -> None:
    taken, other = right(NAMES), right(["1", "2", "10", "20"])
    rows, why = told(what, {OURS: taken, THEIRS: other}, tmp_path / "other")
    assert rows == 0
    assert why == (
        "the outputs of theirs are in another order of the classes than was taken; --class-order says theirs"
    )
    rows, why = told(what, {OURS: taken, THEIRS: taken}, tmp_path / "same")
    assert (rows > 0, why) == (True, "")
    rows, why = told(what, {OURS: taken, TRAINED: other}, tmp_path / "trained")
    assert (rows > 0, why) == (True, ""), "what was trained here is in the order of its data"


def test_of_many_networks_the_others_are_compared(tmp_path: Path) -> None:
    banks = {OURS: right(NAMES), THEIRS: right(["20", "2", "10", "1"]), NetworkKey("third"): right(NAMES)}
    rows, why = told("agreement", banks, tmp_path)
    assert rows == 2
    assert "the outputs of theirs" in why


def test_an_order_that_was_said_is_doubted_and_its_numbers_are_there(tmp_path: Path) -> None:
    shuffled = right(["2", "1", "20", "10"])
    assert np.unique(shuffled.predictions).size == CLASSES
    rows, why = told("pair_agreement", {OURS: right(NAMES), THEIRS: shuffled}, tmp_path / "pair", said=True)
    assert rows > 0
    assert why == "the outputs of theirs seem to be in another order of the classes than was said"
    usual = {OURS: right(["1", "2", "10", "20"])}
    assert told("accuracy", usual, tmp_path / "one", said=True)[0] == 0
