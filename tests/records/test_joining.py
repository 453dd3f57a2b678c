"""Parts of a study that were kept apart, joined: the same as the whole; what does not fit is named."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import penultimate
from tests.inprocess import InProcess
from tests.records.test_archive import place

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.records.archive import KeptStudy, keep, read_kept, write_kept
from penultimate.records.joining import join
from penultimate.records.reading import study_folder
from penultimate.results.rows import run_of_kept
from penultimate.study import load_study

STUDY = """
from penultimate.data.augmentation.settings import Augmentation
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

TINY = Recipe(epochs=1, batch_size=32)
STUDY = Study(
    name={name!r},
    title="A part",
    question="Is a part a part?",
    source={source!r},
    targets=(),
    networks=(
        Runs(("softmax", "sigmoid"), {recipe}, ("glyphnet(width=4, features=16)",), seeds={seeds}),
        {more}
    ),
    measure={measure!r},
)
"""
MEASURE = ("accuracy", "class_separation", "spectra")


def study_file(
    folder: Path,
    name: str,
    seeds: str,
    measure: tuple[str, ...] = MEASURE,
    recipe: str = "TINY",
    more: str = "",
) -> Path:
    path = folder / f"{name}.py"
    settings = {"seeds": seeds, "measure": measure, "recipe": recipe, "source": "glyphs_smoke", "more": more}
    path.write_text(textwrap.dedent(STUDY).format(name=name, **settings))
    return path


def kept_part(root: Path, name: str, seeds: str, measure: tuple[str, ...] = MEASURE, **settings: str) -> Path:
    """A study that is run in the store of the others and kept."""
    study_file(root, name, seeds, measure, **settings)
    assert pu.run(load_study(str(root / f"{name}.py")), root / "runs", engine=InProcess()).complete
    keep(study_folder(root / "runs", name), root / f"kept-{name}")
    return root / f"kept-{name}"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two halves of a study and the whole, each run in one store and kept."""
    root = tmp_path_factory.mktemp("parts")
    for name, seeds in (("first", "(0,)"), ("second", "(1, 2)"), ("whole", "(0, 1, 2)")):
        kept_part(root, name, seeds)
    return root


def said_of(kept: KeptStudy) -> str:
    return run_of_kept(kept).unfinished


def rows_of(kept: KeptStudy) -> dict[tuple[object, ...], float]:
    return {place(row): row.value for row in kept.table}


def test_joined_parts_are_the_whole(parts: Path) -> None:
    answer = penultimate("join", "whole.py", "kept-second", "kept-first", "--to", "joined", cwd=parts)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    joined, whole = read_kept(parts / "joined"), read_kept(parts / "kept-whole")
    assert rows_of(joined) == pytest.approx(rows_of(whole), nan_ok=True)
    assert len(rows_of(whole)) > 30
    assert {**joined.description, "command": ""} == {**whole.description, "command": ""}
    assert joined.provenance["data"] == whole.provenance["data"]
    assert joined.provenance["steps"]["train"] == whole.provenance["steps"]["train"] == [6, 6]
    pointing = [row for row in joined.table if row.unit == "points"]
    assert pointing
    theirs = {place(row): row for row in whole.table}
    for row in pointing:
        other = theirs[place(row)]
        ours = joined.arrays(str(row.step), row.metric)
        for name, values in whole.arrays(str(other.step), other.metric).items():
            assert (ours[name] == values).all()


def test_what_is_missing_foreign_or_of_another_source_is_named(
    parts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(parts)

    def refused(*names: str, study: str = "whole.py") -> str:
        assert main(["join", study, *names, "--to", "refused"]) == 2
        assert not (parts / "refused").exists()
        return capsys.readouterr().err

    said = refused("kept-first")
    assert (
        "no part holds 'softmax | glyphnet(features=16, width=4) | seed 1, draw 1' (the first of 4 lacking)"
        in said
    )
    assert "--partial joins the parts that there are" in said
    assert "which first does not have; it is of another study" in refused(
        "kept-first", "kept-second", study="first.py"
    )
    assert "no kept study in 'nowhere'" in refused("nowhere")
    assert "'kept-first' is no part of glyphs: its source is 'glyphs_smoke'" in refused(
        "kept-first", study="glyphs"
    )


def test_parts_of_which_some_are_missing_are_joined_on_request_and_go_on_with_the_others(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(parts)
    assert main(["join", "whole.py", "kept-first", "--to", "begun", "--partial"]) == 0
    begun, first = read_kept(parts / "begun"), read_kept(parts / "kept-first")
    assert rows_of(begun) == rows_of(first)
    assert begun.provenance["steps"]["train"] == [2, 2]
    assert begun.description["command"] == "penultimate join whole kept-first --to begun --partial"
    assert said_of(begun) == "2 of 6 networks"
    assert said_of(first) == ""
    assert main(["join", "whole.py", "begun", "kept-second", "--to", "ended"]) == 0
    ended = read_kept(parts / "ended")
    assert rows_of(ended) == pytest.approx(rows_of(read_kept(parts / "kept-whole")), nan_ok=True)
    assert said_of(ended) == ""
    assert main(["join", "whole.py", "begun", "kept-first", "--to", "again", "--partial"]) == 0
    assert said_of(read_kept(parts / "again")) == "2 of 6 networks"


SHIFTED = "Recipe(epochs=1, batch_size=32, augmentation=Augmentation(shift=1))"


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "measure", "said"),
    [
        (
            {"recipe": "Recipe(epochs=1, batch_size=16)"},
            MEASURE,
            "recipe.batch_size of 'softmax | glyphnet(features=16, width=4) | seed 1, draw 1' is 16 in it,"
            " and in due 32",
        ),
        ({"recipe": SHIFTED}, MEASURE, "recipe.augmentation.shift of"),
        ({"measure": ("similarity(passes=3)",)}, ("similarity(passes=2)",), "is similarity(passes=3) in it"),
    ],
)
def test_a_part_that_was_made_or_measured_otherwise_is_refused(
    parts: Path,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, Any],
    measure: tuple[str, ...],
    said: str,
) -> None:
    other = kept_part(parts, "other", "(1, 2)", **settings)
    whole = study_file(parts, "due", "(0, 1, 2)", measure)
    for partial in ([], ["--partial"]):
        assert main(["join", str(whole), str(other), "--to", str(parts / "no"), *partial]) == 2
        told = capsys.readouterr().err
        assert f"'{other}' is no part of due: " in told
        assert said in told
    assert not (parts / "no").exists()


def test_parts_that_lack_a_measurement_are_not_the_whole(
    parts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    less = kept_part(parts, "less", "(1, 2)", measure=("accuracy",))
    joined = ["join", str(parts / "whole.py"), str(parts / "kept-first"), str(less), "--to"]
    assert main([*joined, str(parts / "no")]) == 2
    told = capsys.readouterr().err
    assert "no part holds class_separation of 'softmax | glyphnet(features=16, width=4) | seed 1" in told
    assert " (the first of 8 lacking), so this is not the whole of whole; --partial joins" in told
    assert not (parts / "no").exists()
    assert main([*joined, str(parts / "less-joined"), "--partial"]) == 0
    assert said_of(read_kept(parts / "less-joined")) == "2 of 6 networks"
    rest = kept_part(parts, "rest", "(1, 2)", measure=("class_separation", "spectra"))
    again = ["join", str(parts / "whole.py"), str(parts / "less-joined"), str(rest), "--to"]
    assert main([*again, str(parts / "all-joined")]) == 0
    whole = rows_of(read_kept(parts / "kept-whole"))
    assert rows_of(read_kept(parts / "all-joined")) == pytest.approx(whole, nan_ok=True)


def test_what_compares_networks_is_of_a_part_that_has_them_all(
    parts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both halves compare the networks that they have, and nobody one half's with the other's."""
    halves = [
        str(kept_part(parts, f"half{number}", seeds, measure=("accuracy", "agreement")))
        for number, seeds in enumerate(("(0,)", "(1, 2)"))
    ]
    whole = study_file(parts, "due", "(0, 1, 2)", ("accuracy", "agreement"))
    assert main(["join", str(whole), *halves, "--to", str(parts / "no")]) == 2
    told = capsys.readouterr().err
    assert "no part holds agreement of 'glyphnet(features=16, width=4)' on glyphs_smoke, so" in told
    assert main(["join", str(whole), *halves, "--to", str(parts / "uncompared"), "--partial"]) == 0
    assert said_of(read_kept(parts / "uncompared")) == "one measurement not done"
    apart = [
        str(kept_part(parts, f"all_{measure}", "(0, 1, 2)", measure=(measure,)))
        for measure in ("accuracy", "agreement")
    ]
    assert main(["join", str(whole), *apart, "--to", str(parts / "compared-joined")]) == 0
    assert said_of(read_kept(parts / "compared-joined")) == ""


def test_a_part_of_other_images_and_one_that_would_be_overwritten_are_refused(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = read_kept(parts / "kept-second")
    data = dict.fromkeys(kept.provenance["data"], "0" * 64) | {"glyphs_smoke (draw 0)": "0" * 64}
    write_kept(
        tmp_path / "other",
        [(row, kept) for row in kept.table],
        kept.description,
        {**kept.provenance, "data": data},
    )
    whole, first = str(parts / "whole.py"), str(parts / "kept-first")
    assert main(["join", whole, first, str(tmp_path / "other"), "--to", str(tmp_path / "no")]) == 2
    assert "the images of glyphs_smoke (draw 0) are not the same in" in capsys.readouterr().err
    before = {file.name: file.read_bytes() for file in (parts / "kept-first").iterdir()}
    assert main(["join", whole, first, "--partial", "--to", f"{first}/../kept-first"]) == 2
    assert "is one of the parts" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in (parts / "kept-first").iterdir()} == before


def test_two_values_of_one_number_are_refused(parts: Path, tmp_path: Path) -> None:
    kept = read_kept(parts / "kept-first")
    changed = [(row, kept) for row in kept.table]
    row, owner = changed[0]
    changed[0] = (dataclasses.replace(row, value=row.value + 1), owner)
    write_kept(tmp_path / "other", changed, kept.description, kept.provenance)
    with pytest.raises(RequestError, match=r"both hold .* with two values: .* in one part only"):
        join([parts / "kept-first", tmp_path / "other"], kept.description, (), {}, tmp_path / "joined")


def test_the_provenance_is_that_of_all_parts(parts: Path, tmp_path: Path) -> None:
    """What failed in one part and was measured in another is no failure."""
    for name, target in (("first", "glyphs_smoke"), ("second", "elsewhere")):
        kept = read_kept(parts / f"kept-{name}")
        facts = {
            "failed": {f"accuracy.{name}.0": {"why": "killed", "network": "softmax", "target": target}},
            "noted": {name: {"odd": "so"}},
            "device": name,
            "seconds": {"train": 1.5},
        }
        rows = [(row, kept) for row in kept.table]
        write_kept(tmp_path / name, rows, kept.description, kept.provenance | facts)
    command = ["join", str(parts / "whole.py"), str(tmp_path / "first"), str(tmp_path / "second")]
    assert main([*command, "--to", str(tmp_path / "all")]) == 0
    told = read_kept(tmp_path / "all").provenance
    assert [each["target"] for each in told["failed"].values()] == ["elsewhere"]
    assert told["noted"] == {"first": {"odd": "so"}, "second": {"odd": "so"}}
    assert (told["device"], told["seconds"]) == ("first, second", {"train": 3.0})
