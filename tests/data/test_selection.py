"""The twin check: against its literal definition, and the file that holds its outcome against the rule."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.data import selection
from tests.oracles import data as oracle

from penultimate.data.world.atlas import Typefaces
from penultimate.data.world.characters import (
    TASKS_FILE,
    from_codes,
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


@pytest.mark.parametrize("name", ["georgian", "cyrillic"])
def test_a_twin_is_a_twin_by_the_literal_definition(name: str) -> None:
    for code, told in list(json.loads(TASKS_FILE.read_text())["tasks"][name]["twins"].items())[:2]:
        twin, correlation = told.split()
        found = literal_similarity(Typefaces(), from_codes(code), from_codes(twin))
        assert found == pytest.approx(float(correlation), abs=6e-4)
