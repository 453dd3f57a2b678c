"""Declarations: what a study reads of a measurement beforehand, and what is measured keeps to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import rows_in
from tests.plugged import plugged

from penultimate import registry
from penultimate.errors import RequestError
from penultimate.measures import (
    Features,
    Measurement,
    Shifted,
    Trained,
    Weights,
    Yield,
    measurement,
    names,
    requested,
)
from penultimate.paper.studies.smoke import STUDY as SMOKE
from penultimate.paper.studies.world import MEASURE
from penultimate.registry import register

TRAINING = {("mean_loss", "loss"), ("top1", "fraction")}
"""What a training's curves consist of."""


@pytest.fixture
def mine() -> Iterator[Callable[..., None]]:
    """Registers a measurement `mine` with a declaration, for the time of a test."""

    def declare(function: Callable[..., Any] | None = None, **declared: Any) -> None:
        def mine(inputs: Any, *, rate: Any = (0.1, 0.2), images: int = 5) -> Iterator[Any]: ...

        needs = {"version": 1, "per": "network", "needs": (Features("test"),), "yields": None}
        register.measurement(name="mine", **{**needs, **declared})(function or mine)

    yield declare
    registry.forget("measurement", "mine")


def test_what_a_study_yields_is_what_its_measurements_declare(finished_smoke: Path) -> None:
    seen: Counter[str] = Counter()
    for row in rows_in(finished_smoke / "runs"):
        kind = str(row.step).partition(".")[0]
        pairs = (
            TRAINING
            if kind == "train"
            else {(item.metric, item.unit) for item in measurement(kind).yields or ()}
        )
        assert (row.metric, row.unit) in pairs, row
        seen[kind] += 1
    assert set(seen) == {"train", *(text.partition("(")[0] for text in SMOKE.measure)}


def test_the_measurements_that_a_study_can_ask_for_are_known_by_name() -> None:
    assert set(names()) >= {*MEASURE, "relearning"}
    assert not {"corrupted", "hard"} & set(names())
    assert measurement("corrupted").stage
    with plugged("protocol", "instruments"):
        assert {"final", "feature_scale", "nearest_mean"} <= set(names())
        assert not {"cell", "choice"} & set(names())


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("colapse", "Did you mean 'collapse'"),
        ("similarity(pases=2)", "Did you mean 'passes'"),
        ("similarity(passes=1.5)", "passes must be an integer"),
        ("similarity(passes='many')", "passes must be an integer"),
        ("similarity(passes=x)", "not a literal"),
        ("similarity + linear", "2 terms"),
        ("corrupted", "'corrupted' is a stage of other measurements"),
        ("relearning(shots=())", "relearning: shots is empty"),
        ("relearning(shots=(5, 5))", "relearning: shots names 5 twice"),
    ],
)
def test_a_request_that_cannot_be_is_refused_with_the_nearest_fix(text: str, answer: str) -> None:
    with pytest.raises(RequestError) as error:
        requested(text)
    assert answer in str(error.value)


def test_a_declaration_is_kept_beside_an_ordinary_function(mine: Callable[..., None]) -> None:
    def plain(inputs: Any, *, images: int = 5) -> Iterator[Any]:
        """One line.

        More.
        """
        yield images

    mine(plain, seconds=2.0, first=True)
    assert next(plain(None)) == 5
    declared = measurement("mine")
    assert (declared.name, declared.version, declared.seconds, declared.first) == ("mine", 1, 2.0, True)
    assert [(one.name, one.default, one.form) for one in declared.settings] == [("images", 5, "integer")]
    assert registry.entry("measurement", "mine").summary == "One line."
    with pytest.raises(RequestError, match="registered twice"):
        mine()


def test_of_settings_only_those_that_differ_are_part_of_an_identity(mine: Callable[..., None]) -> None:
    mine(each=("rate",))
    declared = measurement("mine")
    assert declared.bound({"images": 7}) == {"rate": (0.1, 0.2), "images": 7}
    assert declared.changed({"rate": (0.1, 0.2), "images": 7}) == {"images": 7}
    assert declared.changed({"rate": 0.1, "images": 5}) == {"rate": 0.1}
    assert requested("mine(rate=0.3)").settings["rate"] == (0.3,)


@pytest.mark.parametrize(
    ("per", "scope", "of_targets"),
    [
        ("network", "network", False),
        ("target", "network", True),
        ("objective", "objective", False),
        ("objective_target", "objective", True),
        ("draw", "draw", False),
        ("study", "study", False),
    ],
)
def test_for_whom_a_measurement_is_called(
    mine: Callable[..., None], per: str, scope: str, of_targets: bool
) -> None:
    mine(per=per)
    assert (measurement("mine").scope, measurement("mine").of_targets) == (scope, of_targets)


@pytest.mark.parametrize(
    ("declared", "answer"),
    [
        ({"per": "networks"}, "Did you mean 'network'"),
        ({"needs": ("train",)}, "the measurement 'mine' needs 'train'"),
        ({"each": ("rates",)}, "Did you mean 'rate'"),
        ({"colour": "red"}, "the measurement 'mine' is declared wrongly"),
    ],
)
def test_a_wrong_declaration_is_told(
    mine: Callable[..., None], declared: dict[str, Any], answer: str
) -> None:
    mine(**declared)
    with pytest.raises(RequestError) as error:
        measurement("mine")
    assert answer in str(error.value)


def test_a_measurement_that_declares_nothing_is_told_how_and_hides_no_other() -> None:
    def bare(inputs: Any) -> None: ...

    try:
        register.measurement(bare)
        with pytest.raises(RequestError, match=r"write @register\.measurement\(version=1, per='network'"):
            measurement("bare")
        with pytest.raises(RequestError, match="Did you mean 'linear'"):
            measurement("linea")
    finally:
        registry.forget("measurement", "bare")


def built_in() -> list[Measurement]:
    entries = [registry.entry("measurement", name) for name in registry.names("measurement")]
    return [measurement(entry.name) for entry in entries if not entry.is_plugin]


def test_every_built_in_measurement_says_what_it_yields_and_what_it_costs() -> None:
    """A metric that several measurements yield is declared once: its unit, digits and name."""
    known: dict[str, Yield] = {}
    for what in built_in():
        assert registry.entry("measurement", what.name).summary, what.name
        assert what.seconds is not None or any(isinstance(need, Shifted) for need in what.needs), what.name
        for item in what.yields or ():
            assert known.setdefault(item.metric, item) == item, item.metric


def test_what_trains_by_its_settings_and_needs_is_declared_to() -> None:
    for what in built_in():
        settings = {setting.name for setting in what.settings}
        is_trained = any(isinstance(need, Trained | Weights) for need in what.needs)
        assert what.trains == (is_trained and {"steps", "batch_size"} <= settings), what.name


def test_a_measurement_of_ones_own_states_its_numbers_or_gets_those_of_their_unit(
    mine: Callable[..., None],
) -> None:
    plain, stated = Yield("a", "furlongs"), Yield("b", "fraction", decimals=2)
    mine(yields=(plain, stated), trains=True)
    first, second = measurement("mine").yields
    assert (first.scale, first.digits, second.scale, second.digits) == (1.0, 3, 100, 2)
    assert measurement("mine").trains
