"""Environment variables: a wrong value is refused in a sentence that names the variable and the value."""

from __future__ import annotations

from pathlib import Path

import pytest

from penultimate import variables
from penultimate.cli import main
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.variables import CHECKPOINT_SECONDS, DEVICE, checkpoint_seconds, device


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        *((CHECKPOINT_SECONDS, value, "from 0 to 86,400") for value in ("soon", "-1", "nan", "1e6", "20 s")),
        *((DEVICE, value, "is 'cuda' or 'cpu', not") for value in ("gpu", "cuda:0", " ")),
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence_before_anything_is_done(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    value: str,
    expected: str,
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(["run", "smoke", "--out", str(tmp_path / "runs")]) == 2
    assert expected in " ".join(capsys.readouterr().err.split())
    with pytest.raises(RequestError, match=f"the environment variable {variable} is"):
        run("smoke", tmp_path / "runs")
    assert not [*tmp_path.iterdir()]


def test_other_values_are_taken_and_an_empty_one_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, seconds, place in (("", 20, "cuda"), ("0", 0, "cpu")):
        monkeypatch.setenv(CHECKPOINT_SECONDS, value)
        monkeypatch.setenv(DEVICE, value and "cpu")
        assert (checkpoint_seconds(), device("cuda")) == (seconds, place)


def test_every_variable_is_documented() -> None:
    documented = (Path(__file__).parents[1] / "docs" / "house.md").read_text("utf-8")
    for name in (value for value in vars(variables).values() if str(value).startswith("PENULTIMATE_")):
        assert f"| `{name}` |" in documented
