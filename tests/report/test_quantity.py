"""A quantity is shown as its measurement declares it, unless the exhibit says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penultimate import register, registry
from penultimate.measures import Yield
from penultimate.report.quantity import Quantity


@pytest.fixture
def weighed() -> Iterator[None]:
    """A plug-in's measurement of two numbers."""

    @register.measurement(
        version=1,
        per="network",
        needs=(),
        yields=(Yield("weighed_share", "fraction", better="low"), Yield("weighed", "kilograms", decimals=1)),
    )
    def weigh(inputs: object) -> None: ...

    yield
    registry.forget("measurement", "weigh")


def test_unit_scale_decimals_and_direction_are_those_of_the_declaration(weighed: None) -> None:
    shown = {
        name: (one.unit, one.scale, one.digits, one.best)
        for name in ("top1", "nll", "nc_rank", "linear_{accuracy}", "weighed_share", "weighed", "unknown")
        for one in [Quantity(name, bold=True)]
    }
    assert shown == {
        "top1": ("%", 100, 1, "high"),
        "nll": ("", 1, 3, "low"),
        "nc_rank": ("", 1, 0, ""),
        "linear_{accuracy}": ("%", 100, 1, "high"),
        "weighed_share": ("%", 100, 1, "low"),
        "weighed": ("", 1, 1, ""),
        "unknown": ("", 1, 3, ""),
    }


def test_an_exhibit_may_show_it_otherwise_and_nothing_is_bold_unasked() -> None:
    one = Quantity("ece", sign="nats", factor=1, decimals=4)
    assert (one.unit, one.scale, one.digits, one.best) == ("nats", 1, 4, "")
