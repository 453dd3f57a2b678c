"""Environment variables: a wrong value is refused in a sentence that names the variable and the value."""

from __future__ import annotations

from pathlib import Path

import pytest

from penultimate import variables
from penultimate.cli import main
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.variables import (
    CHECKPOINT_SECONDS,
    DEVICE,
    RANGES,
    device,
    expect_variables,
    seconds,
)

OF_SECONDS = ("soon", "-1", "nan", "inf", "-inf", "1e999", "1e6", "20 s", "0x10", " ", "x" * 5000, "\udcff")
WRONG = [
    *((variable, value) for variable in RANGES for value in OF_SECONDS),
    *((DEVICE, value) for value in ("gpu", "cuda:0", "CPU", "-1", " ")),
]


@pytest.mark.parametrize(("variable", "value"), WRONG)
def test_a_wrong_value_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(["plan", "smoke"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"the environment variable {variable} is " in err
    assert len(err) < 350


def test_python_refuses_it_too_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHECKPOINT_SECONDS, "soon")
    with pytest.raises(RequestError, match="from 0 to 86,400 \\(usually 20\\), not 'soon'"):
        run("smoke", tmp_path / "runs")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("variable", [CHECKPOINT_SECONDS, DEVICE])
def test_an_empty_variable_counts_as_one_that_is_not_set(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    def said() -> list[object]:
        return [device("cuda"), *map(seconds, RANGES)]

    monkeypatch.delenv(variable, raising=False)
    unset = said()
    monkeypatch.setenv(variable, "")
    expect_variables()
    assert said() == unset


def test_values_that_can_be_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKPOINT_SECONDS, "0")
    monkeypatch.setenv(DEVICE, "cpu")
    expect_variables()
    assert (seconds(CHECKPOINT_SECONDS), device("cuda")) == (0, "cpu")


def test_every_variable_is_documented_with_its_range() -> None:
    documented = (Path(__file__).parents[1] / "docs" / "house.md").read_text("utf-8")
    for name in (value for value in vars(variables).values() if str(value).startswith("PENULTIMATE_")):
        assert f"| `{name}` |" in documented
    for name, (usual, least, most) in variables.RANGES.items():
        assert f"| `{name}` | {least:g} to {most:,.0f} seconds | {usual:g} |" in documented
