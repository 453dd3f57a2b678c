"""What the commands print: JSON, and text that fits the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len as width

from penultimate.cli import main
from tests.records.stores import SOFTMAX, described, finished, prepared

MARKS = "*▾"


def test_list_alone_lists_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    kinds = capsys.readouterr().out.split()
    assert main(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == kinds
    assert main(["list", "probes", "--json"]) == 0
    assert {"linear", "knn"} <= json.loads(capsys.readouterr().out).keys()


def test_a_table_fits_the_terminal_and_loses_no_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["show", "table3", "--reference"]) == 0
    wide = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["show", "table3", "--reference"]) == 0
    narrow = capsys.readouterr().out
    assert max(map(width, narrow.split("\n"))) <= 60
    numbers = [word.strip(MARKS) for word in wide.split() if "0." in word]
    assert numbers
    assert {*numbers} <= {word.strip(MARKS) for word in narrow.split()}


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize(
    "line",
    [
        "list studies",
        "list exhibits",
        "list objectives",
        "plan imagenet_resnet50",
        "why table3 softmax --reference",
        "run nine --sedes 3",
        "evaluate --model digits --data timm:resnet18",
        "run nine --only sofmax",
    ],
)
def test_what_is_printed_fits_the_terminal(
    line: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    main(line.split())
    told = capsys.readouterr()
    lines = f"{told.out}{told.err}".split("\n")
    assert len(lines) > 2
    assert [text for text in lines if width(text) > columns and " " in text.strip()] == []


def test_what_is_meant_to_be_copied_is_not_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["run", "nine", "--set", "--help"]) == 0
    settings = capsys.readouterr().out
    assert "measure=accuracy,class_separation,collapse,hardness,spectra" in settings
    for form, sign in (("--csv", "Objective,"), ("--latex", r"\label{tab:table3}")):
        assert main(["show", "table3", "--reference", form]) == 0
        told = capsys.readouterr().out
        assert sign in told
        assert max(map(len, told.split("\n"))) > 100


def test_an_exhibit_opens_in_a_browser(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["show", "figure5", "--reference", "--open"]) == 0
    written = Path(capsys.readouterr().out.removeprefix("Written: ").strip())
    assert opened == [written.as_uri()]
    page = written.read_text("utf-8")
    assert "<svg" in page
    assert "Figure 5" in page


def test_one_claim_is_reached_by_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "claims", "separation", "peaks", "--verdict", "--reference"]) == 0
    (verdict,) = capsys.readouterr().out.splitlines()
    assert verdict.startswith("does not hold")


def test_a_plan_is_json_for_other_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "quickstart", "--json", "--out", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    trained = next(kind for kind in told["kinds"] if kind["name"] == "train")
    assert (trained["total"], trained["done"], told["trainings_left"]) == (9, 0, 9)
    assert told["seconds_left"] == pytest.approx(sum(kind["seconds_left"] for kind in told["kinds"]))
    assert told["steps_left"] == sum(kind["total"] for kind in told["kinds"])
    assert main(["plan", "imagenet_resnet50", "--json", "--out", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert next(kind for kind in told["kinds"] if kind["name"] == "train")["seconds_each"] is None
    assert told["steps_of_unknown_cost"] == told["steps_left"]


# -- `status --verify` names every damaged step -------------------------------------------------------------

STEP = "accuracy.softmax-s0.0123456789abcdef"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = prepared(tmp_path / "runs")
    (store.begin(STEP) / "bank.npz").write_bytes(bytes(100_000))
    described(store, "mine", [finished(store, STEP, SOFTMAX, [{"metric": "top1", "value": 0.5}])])
    return store.root


@pytest.mark.parametrize("name", ["bank.npz", "rows.jsonl", "meta.json"])
def test_a_flipped_bit_is_named(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--verify", "--out", str(root)]) == 0
    assert "Every file of 1 finished step is as it was written." in capsys.readouterr().out
    path = root / "steps" / STEP / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert main(["status", "--verify", "--out", str(root)]) == 1
    said = capsys.readouterr().out
    assert f"damaged: step {STEP}: {name} is not what was written" in said
    assert "1 step damaged: penultimate run STUDY --verify computes them again." in said
    assert path.read_bytes() == content
