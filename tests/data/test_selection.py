"""The twin check: against its literal definition, and the file that holds its outcome against the rule."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
from tests.data import selection
from tests.oracles import data as oracle

from penultimate.data.world.atlas import Typefaces
from penultimate.data.world.characters import (
    SCRIPTS,
    STIX,
    TASKS_FILE,
    first_thoughts,
    from_codes,
    pretraining_classes,
    selected,
)


def literal_similarity(typefaces: Typefaces, a: str, b: str) -> float:
    faces = [f for f in selection.TWIN_FACES if typefaces.covers(f, a) and typefaces.covers(f, b)]
    blurred = [[oracle.blurred(typefaces.mask(face, c) / 1.0, 1.0, 4) for c in (a, b)] for face in faces]
    return float(np.mean([oracle.correlation(first, second) for first, second in blurred]))


def test_similarity_is_its_literal_definition() -> None:
    typefaces, characters = Typefaces(), "\u0561\u0581g\u1405O"
    alike = selection.similarity(typefaces, characters)
    for i, j in [(0, 1), (1, 2), (3, 4), (2, 4)]:
        assert alike[i, j] == pytest.approx(
            literal_similarity(typefaces, characters[i], characters[j]), abs=1e-5
        )
    np.testing.assert_allclose(alike, alike.T)
    np.testing.assert_allclose(np.diag(alike), 1, atol=1e-6)
    assert selection.similarity(typefaces, "A\u1405", faces=["STIXGeneral"])[0, 1] == -1


@pytest.fixture(scope="module")
def chosen_anew() -> dict[str, dict[str, dict[str, str]]]:
    return selection.select()


@pytest.mark.long
def test_the_file_is_what_the_rule_gives(chosen_anew: dict[str, object]) -> None:
    assert json.loads(TASKS_FILE.read_text()) == chosen_anew


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_twins_are_left_and_none_was_dropped_without_cause(name: str) -> None:
    typefaces = Typefaces()
    task = json.loads(TASKS_FILE.read_text())["tasks"][name]
    characters, pretraining = "".join(selected(name)), set("".join(pretraining_classes()))
    alike = selection.similarity(typefaces, characters)
    np.fill_diagonal(alike, -1)
    assert alike.max() <= selection.TWIN
    dropped = first_thoughts(name)
    assert set(dropped) - set(characters) <= {from_codes(code) for code in task["twins"]}
    for code, told in task["twins"].items():
        twin, correlation = told.split()
        assert float(correlation) > selection.TWIN - 5e-4
        assert from_codes(twin) in pretraining | set(characters)
        assert from_codes(code) not in characters


@pytest.mark.parametrize("name", ["georgian", "cyrillic"])
def test_a_twin_is_a_twin_by_the_literal_definition(name: str) -> None:
    for code, told in list(json.loads(TASKS_FILE.read_text())["tasks"][name]["twins"].items())[:2]:
        twin, correlation = told.split()
        found = literal_similarity(Typefaces(), from_codes(code), from_codes(twin))
        assert found == pytest.approx(float(correlation), abs=6e-4)


def test_classes_that_are_not_shared_are_new_letters_that_no_other_looks_like() -> None:
    """Neither as the STIX faces draw them nor as the faces of the rule do."""
    typefaces, pretraining = Typefaces(), "".join(pretraining_classes())
    unshared = selected("unshared")
    letters = "".join(unshared)
    assert [len(members) for members in unshared] == [4] * 16
    assert len(set(letters)) == 64
    assert not set(letters) & set(pretraining)
    assert all(typefaces.covers(face, letter) for face in STIX for letter in letters)
    assert [unicodedata.name(members[0]).split()[0] for members in unshared] == ["GREEK", "CYRILLIC"] * 8
    for faces in (selection.TWIN_FACES, STIX):
        alike = selection.similarity(typefaces, letters + pretraining, faces)[:64]
        np.fill_diagonal(alike, -1)
        assert alike.max() <= selection.TWIN


def test_shared_classes_are_the_first_whole_ones_of_new_faces() -> None:
    shared = selected("shared")
    assert len(set(shared)) == 16
    assert set(shared) <= set(pretraining_classes())
    before = selected("newfaces")[: selected("newfaces").index(shared[-1]) + 1]
    assert shared == tuple(members for members in before if len(members) == 4)


def test_class_counts_are_kept() -> None:
    for name, script in SCRIPTS.items():
        if script.classes is not None:
            assert len(set(selected(name))) == script.classes
            added = json.loads(TASKS_FILE.read_text())["tasks"][name]["added"]
            assert all(ord(character) in script.block for character in from_codes(added))


def test_writing_the_file_says_what_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    from pathlib import Path

    target = Path(str(tmp_path)) / "tasks.json"
    whole = json.loads(TASKS_FILE.read_text())
    monkeypatch.setattr(selection, "TASKS_FILE", target)
    monkeypatch.setattr(selection, "select", lambda: whole)
    selection.main()
    assert target.read_text() == TASKS_FILE.read_text()
    assert "armenian: 5 twins dropped, added \u0531\u0532\u0533\u0534\u0535" in capsys.readouterr().out
