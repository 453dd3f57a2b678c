"""Whose a study's folder is: what a run finds described there is kept in mind, said, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.chores import Notes
from tests.records.stores import described, prepared

from penultimate.engine.observer import Observer, Summary
from penultimate.engine.run import run
from penultimate.records.reading import study_folder
from penultimate.store import Store
from penultimate.study.graph import Graph


class Idle:
    """An engine that does no step."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        return Summary()


@pytest.mark.parametrize(
    ("command", "way_back"),
    [
        ("penultimate run it --seeds 0", ", and is part of it again after: penultimate run it --seeds 0"),
        ("penultimate run smoke", ""),  # what is being run
    ],
)
def test_steps_that_are_no_longer_part_of_a_study_are_told_once_with_the_way_back_where_it_is_another_command(
    tmp_path: Path, command: str, way_back: str
) -> None:
    described(prepared(tmp_path), "smoke", ["linear.gone.0", "knn.gone.0"], command=command)
    notes = Notes()
    run("smoke", tmp_path, engine=Idle(), observer=notes)
    assert notes.notices == [f"no longer part of the study: 2 steps; what is done of them is kept{way_back}"]
    run("smoke", tmp_path, engine=Idle(), observer=notes)
    assert len(notes.notices) == 1


def test_a_changed_description_is_told_and_written_anew(tmp_path: Path) -> None:
    run("smoke", tmp_path, engine=Idle())
    file, notes = tmp_path / "studies/smoke/study.json", Notes()
    whole = file.read_text()
    file.write_text(whole.replace('"limited": true', '"limited": false'))
    run("smoke", tmp_path, engine=Idle(), observer=notes)
    assert notes.notices == [f"'{file}' is not what was written (its sha256 differs); it is written again"]
    assert file.read_text() == whole


def test_what_another_study_left_damaged_is_no_hindrance(tmp_path: Path) -> None:
    other, notes = described(prepared(tmp_path), "other", []), Notes()
    (other.path / "study.json").write_text("{")
    run("smoke", tmp_path, engine=Idle(), observer=notes)
    assert not notes.notices
    assert study_folder(tmp_path, "smoke").name == "smoke"
