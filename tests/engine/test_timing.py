"""What a study is expected to cost where nobody has run it: its trainings are timed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.conftest import penultimate
from tests.plugged import plugged

from penultimate.cli import main
from penultimate.engine.run import plan
from penultimate.measures.catalogue import measurement
from penultimate.study import Study, load_study
from penultimate.study.settings import override

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
    one = train_seconds(override(smoke, ["recipe.steps=1", "recipe.epochs=200"]), tmp_path)
    assert 0 < (one or 0) < short
    with plugged("bars"):
        own = override(smoke, ["source=bars", "recipe.batch_size=100000"])
        assert 0 < (train_seconds(own, tmp_path) or 0) < 60


def test_expected_seconds_are_of_the_first_grids_trainings_and_others_are_in_proportion(
    tmp_path: Path,
) -> None:
    """Beside smoke's networks as many again, trained three times as long: in the mean twice."""
    smoke = load_study("smoke")
    block = dataclasses.replace(smoke.runs[0], arm="")
    longer = dataclasses.replace(block.recipe, epochs=3 * block.recipe.epochs)
    both = (block, dataclasses.replace(block, recipe=longer, arm="long"))
    study = dataclasses.replace(smoke, networks=both)
    assert train_seconds(study, tmp_path) == pytest.approx(2 * smoke.expected_seconds["train"])


def test_a_further_training_costs_in_proportion_to_its_steps(tmp_path: Path) -> None:
    smoke = dataclasses.replace(load_study("smoke"), expected_seconds={"train": 0.1})
    kinds = ("scratch_cell", "scratch_choice", "from_scratch")

    def expected(measure: str) -> dict[str, float | None]:
        costs = plan(override(smoke, [f"measure={measure}"]), tmp_path).costs
        return {cost.name: cost.seconds_each for cost in costs if cost.name in kinds}

    usual = {name: measurement(name).seconds for name in kinds}
    assert expected("from_scratch") == usual
    assert expected("from_scratch(steps=2000)") == {
        "scratch_cell": pytest.approx(5 * (usual["scratch_cell"] or 0)),
        "scratch_choice": usual["scratch_choice"],
        "from_scratch": pytest.approx(5 * (usual["from_scratch"] or 0)),
    }


def test_only_what_a_training_depends_on_makes_its_cost_unknown() -> None:
    smoke = load_study("smoke")
    for same in ("title=x", "objectives=sigmoid", "seeds=1", "recipe.epochs=3", "measure=accuracy"):
        assert override(smoke, [same]).expected_seconds == smoke.expected_seconds
    for other in ("recipe.epochs=4", "source=glyphs", "backbones=glyphnet"):
        assert "train" not in override(smoke, [other]).expected_seconds
        assert override(smoke, [other, "expected_seconds={'train': 7}"]).expected_seconds == {"train": 7}


def test_what_is_unknown_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with plugged("instruments"):
        assert main(["plan", "smoke", "--out", str(tmp_path), "--set", "measure=feature_scale"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" processes, and 3 steps of unknown cost")


def test_a_plugin_that_cannot_be_trained_is_told_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING)
    answer = penultimate("plan", "smoke", "--plugin", "mine.py", "--set", "backbones=failing", cwd=tmp_path)
    assert answer.returncode == 2
    assert "cannot be trained: the plug-in 'mine.py', line 10: ValueError: not yet" in answer.stderr
