"""Whose a study's folder is: what a run finds described there is kept in mind, said, or refused."""

from __future__ import annotations

from pathlib import Path

from tests.engine.chores import Notes
from tests.records.stores import described, prepared

from penultimate.engine.observer import Observer, Summary
from penultimate.engine.run import run
from penultimate.store import Store
from penultimate.study.graph import Graph


class Idle:
    """An engine that does no step."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        return Summary()


def test_steps_that_are_no_longer_part_of_a_study_are_told_once(tmp_path: Path) -> None:
    described(prepared(tmp_path), "smoke", ["linear.gone.0", "knn.gone.0"])
    notes = Notes()
    run("smoke", tmp_path, engine=Idle(), observer=notes)
    assert notes.notices == ["no longer part of the study: 2 steps; what is done of them is kept"]
    run("smoke", tmp_path, engine=Idle(), observer=notes)
    assert len(notes.notices) == 1


def test_a_changed_description_is_told_and_written_anew(tmp_path: Path) -> None:
    run("smoke", tmp_path, engine=Idle())
    file, notes = tmp_path / "studies/smoke/study.json", Notes()
    whole = file.read_text()
    file.write_text(whole.replace('"limited": true', '"limited": false'))
    run("smoke", tmp_path, engine=Idle(), observer=notes)
    (notice,) = notes.notices
    assert notice.startswith(f"'{file}' is not what was written (its sha256 differs)")
    assert file.read_text() == whole
