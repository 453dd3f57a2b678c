"""What a study is expected to cost where nobody has run it: its trainings are timed, and what is left is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plugged import plugged

from penultimate.cli import main
from penultimate.engine.run import plan
from penultimate.study import Study, load_study
from penultimate.study.selection import override

FAILING = """
from torch import nn
from penultimate import register

@register.backbone(name="failing")
class Failing(nn.Module):
    num_features = 3

    def forward(self, images):
        raise ValueError("not yet")
"""


def train_seconds(study: Study, out: Path) -> float | None:
    return next(cost.seconds_each for cost in plan(study, out).costs if cost.name == "train")


def test_a_training_that_nobody_knows_is_timed(tmp_path: Path) -> None:
    smoke = load_study("smoke")
    assert train_seconds(smoke, tmp_path) == smoke.expected_seconds["train"]
    short, long = (
        train_seconds(override(smoke, [f"recipe.epochs={epochs}"]), tmp_path) for epochs in (2, 200)
    )
    assert short is not None
    assert long is not None
    assert 25 < long / short < 400
    with plugged("bars", "stripes"):
        own = override(smoke, ["source=bars", "backbones=Tiny", "recipe.batch_size=100000"])
        assert 0 < (train_seconds(own, tmp_path) or 0) < 60


def test_only_what_a_training_depends_on_makes_its_cost_unknown() -> None:
    smoke = load_study("smoke")
    for same in ("title=x", "objectives=sigmoid", "seeds=1", "recipe.epochs=3", "measure=accuracy"):
        assert override(smoke, [same]).expected_seconds == smoke.expected_seconds
    for other in ("recipe.epochs=4", "source=glyphs", "backbones=glyphnet"):
        assert "train" not in override(smoke, [other]).expected_seconds


def test_what_is_unknown_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(FAILING)
    with plugged("instruments", tmp_path / "mine.py"):
        settings = ("--set", "measure=feature_scale", "--set", "backbones=failing")
        assert main(["plan", "smoke", "--out", str(tmp_path), *settings]) == 0
    said = capsys.readouterr().out
    assert "unknown" in next(line for line in said.splitlines() if line.startswith("train "))
    assert said.splitlines()[-1].endswith(" processes, and 6 steps of unknown cost")
