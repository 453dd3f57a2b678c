"""The example of an evaluation that comes with the package: its networks, its tasks, its provenance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.evaluation.example import (
    COMMAND,
    FOLDER,
    NETWORKS,
    PROVENANCE,
    TASKS,
    collect,
    example,
    with_example,
)
from penultimate.files import digest_file
from penultimate.networks.trained import load_network
from penultimate.paper.studies.quickstart import STUDY as QUICKSTART

MOST = 3_000_000
"""The most bytes that the example may have."""


def test_the_networks_are_small_whole_and_of_the_command_that_is_recorded() -> None:
    record = json.loads((FOLDER / PROVENANCE).read_text())
    assert record["command"] == COMMAND
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < MOST
    for folder in NETWORKS.values():
        network = load_network(FOLDER / folder)
        assert network.card["objective"].startswith(folder)
        assert network.card["objective"] in QUICKSTART.objectives
        files = {path.name: digest_file(path) for path in (FOLDER / folder).iterdir()}
        assert files == record["networks"][folder]["files"]
        assert record["networks"][folder]["step"].startswith(f"train.{folder}-s0.")


def test_the_command_is_what_make_runs() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert f"{COMMAND} --out $(OUT)/example" in makefile
    assert "penultimate.evaluation.example $(OUT)/example" in makefile


def test_networks_and_data_of_the_users_own_are_evaluated_beside_it() -> None:
    networks, data = with_example({"mine": "timm:resnet18"}, {"pets": "/data/pets"})
    assert [*networks] == [*NETWORKS, "mine"]
    assert [*data] == [*TASKS, "pets"]
    with pytest.raises(RequestError, match="a network called 'softmax' already"):
        with_example({"softmax": "timm:resnet18"}, {})
    with pytest.raises(RequestError, match=f"a data set called '{TASKS[0]}' already"):
        with_example({}, {TASKS[0]: ""})


def test_networks_are_collected_from_a_run_with_where_they_come_from(tmp_path: Path) -> None:
    for folder in NETWORKS.values():
        step = tmp_path / "runs" / "steps" / f"train.{folder}-s0.0123"
        step.mkdir(parents=True)
        meta = {"id": step.name, "packages": {}, "commit": "c0ffee", "files": {}}
        (step / "meta.json").write_text(json.dumps(meta))
        (step / "rows.jsonl").write_text("")
        for path in (FOLDER / folder).iterdir():
            (step / path.name).write_bytes(path.read_bytes())
    collect(tmp_path / "runs", tmp_path / "there")
    copied = {path.relative_to(tmp_path / "there") for path in (tmp_path / "there").rglob("*.*")}
    assert copied == {path.relative_to(FOLDER) for path in FOLDER.rglob("*.*")}
    made = json.loads((tmp_path / "there" / PROVENANCE).read_text())["networks"]["softmax"]
    kept = json.loads((FOLDER / PROVENANCE).read_text())["networks"]["softmax"]
    assert made["files"] == kept["files"]
    assert made["commit"] == "c0ffee"
    with pytest.raises(RequestError, match=r"holds 0 trainings of softmax.*penultimate run quickstart"):
        collect(tmp_path / "empty", tmp_path / "nothing")


def test_it_is_planned_under_a_name_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--example", "--plan", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("example: 2 networks on 2 tasks")
    assert {*example()[1].values()} == {""}  # nothing is downloaded or looked for


@pytest.mark.long
def test_it_runs_without_anything_of_the_users_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--example", "--out", str(tmp_path)]) == 0
    assert "squared error" in capsys.readouterr().out
    assert (tmp_path / "studies" / "example" / "report.html").is_file()
