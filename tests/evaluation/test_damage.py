"""A finished evaluation in which a file is damaged shows the same, or says which file, and what heals it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.evaluation.pictures import class_folders
from tests.inprocess import InProcess

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import DamagedFileError, PenultimateError
from penultimate.evaluation import Evaluation
from penultimate.evaluation.request import Request
from penultimate.report import exhibit, read_study, refresh_page, render_exhibit_text
from penultimate.report.page.page import render_report
from penultimate.store import Store

NETWORKS = {
    "res": "timm:test_resnet(pretrained=False, seed=1)",
    "vit": "timm:test_vit(pretrained=False, seed=2)",
}
COMMAND = "penultimate.evaluate(...) in Python"
SHOWN = ("ranking", "comparisons", "confusions", "likeness", "foretold", "features", "classifiers")
READ = {"probe_predictions.npz": "ranking", "pair_layers.npz": "likeness", "confusions.npz": "confusions"}
"""The array files that the exhibits of an evaluation read, each with one of those."""


def flipped(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "flipped": flipped,
    "cut": lambda content: content[: len(content) // 2],
    "emptied": lambda content: b"",
    "missing": lambda content: None,
}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    root = tmp_path_factory.mktemp("damage")
    class_folders(root / "few", ("disc", "square"), 8)
    return made(root, root / "runs")


def made(root: Path, out: Path, verify: bool = False) -> Evaluation:
    """An evaluation of what leaves the arrays that exhibits read, and of some rows."""
    whole = Request(NETWORKS, {"few": str(root / "few")}, name="few").study()
    less = replace(whole, measure=tuple(name for name in whole.measure if name != "depth"))
    summary = pu.run(less, out, engine=InProcess(), command=COMMAND, verify=verify)
    return Evaluation(out, "few", refresh_page(out, "few"), summary)


@pytest.fixture
def store(evaluated: Evaluation, tmp_path: Path) -> Path:
    shutil.copytree(evaluated.out, tmp_path / "runs")
    return tmp_path / "runs"


def seen(store: Path) -> dict[str, object]:
    """All that results, show, report and the ranking give."""
    results = read_study(store, "few")
    shown = {name: render_exhibit_text(exhibit(name, results)) for name in SHOWN}
    ranking = Evaluation(store, "few", store, None).ranking  # type: ignore[arg-type]
    return {**shown, **render_report(results), "rows": results.table.to_csv(), "ranked": ranking}


def put(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", READ)
def test_a_damaged_array_file_is_refused_by_all_that_reads_it(
    store: Path, tmp_path: Path, name: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = next((store / "steps").glob(f"*/{name}"))
    put(file, DAMAGES[damage](file.read_bytes()))
    said = rf"{name} is.*; it is computed again by: penultimate\.evaluate\(\.\.\., verify=True\) in Python$"
    with pytest.raises(DamagedFileError, match=said):
        exhibit(READ[name], store, "few")
    if name == "probe_predictions.npz":
        with pytest.raises(DamagedFileError, match=said):
            Evaluation(store, "few", store, None).ranking  # type: ignore[arg-type]  # noqa: B018
    arguments = ("--out", str(store), "--study", "few")
    assert main(["report", *arguments, "--to", str(tmp_path / "page.html")]) == 2
    assert main(["show", READ[name], *arguments]) == 2
    assert name in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.long
def test_the_command_that_is_named_heals_it(evaluated: Evaluation, store: Path) -> None:
    right = seen(store)
    for name in READ:
        file = next((store / "steps").glob(f"*/{name}"))
        file.write_bytes(flipped(file.read_bytes()))
    again = made(evaluated.out.parent, store, verify=True)
    assert again.summary.computed >= len(READ)
    page = {""}  # it says how long everything took
    assert {name: text for name, text in seen(store).items() if name not in page} == {
        name: text for name, text in right.items() if name not in page
    }


def damages(store: Path) -> Iterator[tuple[Path, str, bytes | None]]:
    """Every file of the steps and studies, flipped, cut and missing."""
    files = [path for kind in ("steps", "studies") for path in (store / kind).rglob("*")]
    for file in sorted(path for path in files if path.is_file() and path.stat().st_size):
        for damage in ("flipped", "cut", "missing"):
            yield file, damage, DAMAGES[damage](file.read_bytes())


@pytest.mark.long
def test_every_file_that_is_damaged_changes_nothing_or_is_named(store: Path) -> None:
    right, silent, named = seen(store), [], 0
    for file, damage, content in damages(store):
        before = file.read_bytes()
        put(file, content)
        try:
            is_same = seen(store) == right
        except PenultimateError as error:
            told = str(error)
            is_same = file.name in told and ("again by: " in told or "run the study" in told)
            named += is_same
        file.write_bytes(before)
        silent += [] if is_same else [f"{file}, {damage}"]
    assert not silent, silent
    assert named > 3 * len(list((store / "steps").iterdir()))
    assert Store(store, thorough=True).is_whole(next((store / "steps").iterdir()).name)
