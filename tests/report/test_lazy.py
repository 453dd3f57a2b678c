"""What needs no tensor imports none: listing exhibits, and showing one in a terminal."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "torchvision", "scipy", "sklearn", "matplotlib", "numpy", "jinja2")


def loaded_after(code: str) -> set[str]:
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(answer.stdout.splitlines()[-1].split()) & set(HEAVY)


def test_the_room_itself_is_light() -> None:
    assert loaded_after("import penultimate.report, penultimate.report.exhibits") == set()


def test_exhibits_are_listed_without_a_tensor_library() -> None:
    code = "from penultimate.registry import names; assert 'table1' in names('exhibit')"
    assert loaded_after(code) == set()


def test_an_exhibit_is_shown_without_drawing() -> None:
    code = (
        "from penultimate.report import StudyResults, exhibit, render_exhibit_text\n"
        "from penultimate.records.table import Row, Table\n"
        "rows = [Row(objective=o, seed=0, target='glyphs', split='train', metric='class_separation', value=v)"
        " for o, v in (('softmax', .35), ('sigmoid', .36))]\n"
        "study = {'name': 's', 'source': 'glyphs', 'targets': ['digits'], 'objectives': []}\n"
        "for name in ('table1', 'table3', 'tableE1', 'tableA2', 'figureD1'):\n"
        "    render_exhibit_text(exhibit(name, StudyResults(study, Table(rows))))\n"
    )
    assert loaded_after(code) <= {"numpy"}
    assert loaded_after(code.replace("'figureD1'", "'figure5'")) <= {"numpy", "scipy"}
