"""The plug-ins that `penultimate check --example` prints: sound, and used as they say."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import torch
from tests.plugged import plugged
from torch.nn.functional import cross_entropy, normalize, one_hot

import penultimate as pu
from penultimate import checking as check
from penultimate.checking import check_file, example
from penultimate.cli import main
from penultimate.registry import PLUGIN_KINDS

UNTIMED = ("--set", "expected_seconds={'train': 1}")


@pytest.mark.long
@pytest.mark.parametrize("kind", PLUGIN_KINDS)
def test_an_example_is_sound_and_used_as_it_says(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    assert main(["check", "--example", kind]) == 0
    file.write_text(capsys.readouterr().out)
    commands = [line.strip() for line in example(kind).splitlines() if line.startswith("    penultimate run")]
    assert commands
    with plugged(file) as (plugin,):
        report = check_file(file)
        assert report.ok, report
        assert {entry.kind for entry in plugin.entries} == {kind}
        for command in commands:
            assert main(["plan", *shlex.split(command)[2:], *UNTIMED]) == 0, command
            assert "does not use" not in capsys.readouterr().err
        assert main(["plan", "smoke", "--plugin", "mine.py", *UNTIMED]) == 0
        way = capsys.readouterr().err.partition(" use it: ")[2].rstrip(".\n")
        assert main(["plan", "smoke", "--plugin", "mine.py", *shlex.split(way), *UNTIMED]) == 0
        assert capsys.readouterr().err == ""


def test_a_kind_that_is_none_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--example", "regularizer"]) == 2
    assert "Did you mean 'regulariser'" in capsys.readouterr().err
    assert main(["check"]) == 2
    assert "--example KIND" in capsys.readouterr().err


def test_a_margin_between_logits_over_cosines_is_one_between_cosines_divided_by_the_temperature() -> None:
    file = Path(check.__file__).parent / "examples" / "loss.py"
    with plugged(file):
        objective = pu.objective("cosine_softmax(temperature=0.05) + margin(margin=7)", 6, 4)
    features, labels = torch.rand(9, 6), torch.arange(9) % 4
    cosines = normalize(features, dim=1) @ normalize(objective.head.weight, dim=1).T
    lowered = (cosines - 0.35 * one_hot(labels, 4)) / 0.05 + objective.head.bias
    torch.testing.assert_close(
        objective.loss(features, labels), cross_entropy(lowered, labels, reduction="none")
    )
