"""A temperature is read off a spec of cosine softmax alone; nothing else has one."""

from __future__ import annotations

import pytest

from penultimate.objectives.presets import resolve
from penultimate.objectives.sweeps import temperature_of
from penultimate.paper.studies.world import GLYPHS


@pytest.mark.parametrize("temperature", [0.01, 0.05, 1, 2.5])
def test_the_temperature_is_that_of_the_objective(temperature: float) -> None:
    text = f"cosine_softmax(temperature={temperature}, scale={temperature})"
    assert temperature_of(text) == temperature_of(resolve(text).canonical) == temperature


@pytest.mark.parametrize(
    "text",
    [
        "softmax",
        "logit_norm(temperature=0.05)",
        "cosine_softmax(temperature=0.05) + dropout(keep=0.8)",
        "cosine_softmax",
        "cosine_softmax(temperature='warm')",
        "resnet18 of ours, not a spec(",
    ],
)
def test_nothing_else_has_one(text: str) -> None:
    assert temperature_of(text) is None


def test_every_objective_of_the_sweep_of_glyphs_has_one() -> None:
    (sweep,) = [block for block in GLYPHS.runs if block.arm == "temperature"]
    assert [temperature_of(spec) for spec in sweep.objectives] == [tau / 100 for tau in range(1, 9)]
