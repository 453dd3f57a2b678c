"""The smoke study as a user runs it: once, again, spoilt, killed, interrupted, twice at a time."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import penultimate
from tests.engine.processes import alive, descendants, wait_for
from tests.golden.portable import PORTABLE

from penultimate.engine.observer import Observer, Summary
from penultimate.engine.run import run
from penultimate.files import read_sealed, write_sealed
from penultimate.results.page import refresh_page
from penultimate.store import SCHEMA, Store
from penultimate.study import Study, load_study
from penultimate.study.graph import Graph
from penultimate.study.selection import changed


def rows_of(folder: Path) -> dict[str, bytes]:
    """Every finished step's rows, by step."""
    return {path.parent.name: path.read_bytes() for path in (folder / "runs" / "steps").glob("*/rows.jsonl")}


def expect_of_the_same(folder: Path, finished: Path, *measured: str) -> None:
    """The same weights, and the same rows of what was measured."""
    ours = rows_of(folder)
    assert {step.partition(".")[0] for step in ours if ours[step]} == {"train", *measured}
    assert ours.items() <= rows_of(finished).items()
    assert weights_of(folder) == weights_of(finished)


def weights_of(folder: Path) -> dict[str, str]:
    files = (folder / "runs" / "steps").glob("train.*/network.safetensors")
    return {path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_step_is_done_and_the_report_is_there(finished_smoke: Path) -> None:
    study = json.loads((finished_smoke / "runs/studies/smoke/study.json").read_text())
    assert set(study["steps"]) == set(rows_of(finished_smoke))
    assert not list((finished_smoke / "runs/partial").glob("*.*.*"))
    report = (finished_smoke / "runs/studies/smoke/report.html").read_text()
    assert report.startswith("<!DOCTYPE html>")
    assert report.rstrip().endswith("</html>")


def test_the_same_command_again_does_nothing(smoke: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (smoke / "runs/steps").rglob("*")}
    answer = penultimate("run", "smoke", cwd=smoke)
    assert answer.returncode == 0
    assert "Everything is done already." in answer.stdout
    assert "report.html" in answer.stdout
    assert {path: path.stat().st_mtime_ns for path in (smoke / "runs/steps").rglob("*")} == before


class Idle:
    """An engine that does nothing."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        return Summary()


def test_a_page_is_written_again_where_it_does_not_show_what_the_study_has(
    smoke: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For another study of the name, a step done again, and where a run was stopped before its page."""
    study = load_study("smoke")
    fewer = dataclasses.replace(study, targets=study.targets[:1])
    written = []
    monkeypatch.setattr("penultimate.results.page.write_page", lambda run, path: written.append(path))
    page = smoke / "runs/studies/smoke/report.html"

    def is_written(study: Study, command: str = "") -> bool:
        written.clear()
        run(study, smoke / "runs", command=command, engine=Idle())
        assert refresh_page(smoke / "runs", "smoke") == page
        return written == [page]

    assert [is_written(study), is_written(study, "penultimate run smoke"), is_written(study, "x")] == [
        False
    ] * 3
    assert [is_written(fewer), is_written(fewer), is_written(study)] == [True, False, True]
    step = next((smoke / "runs/steps").glob("linear.*"))
    step.rename(smoke / "away")
    assert [is_written(study), is_written(study)] == [True, False]
    (smoke / "away").rename(step)
    assert [is_written(study), is_written(study)] == [True, False]
    content = read_sealed(step / "meta.json", SCHEMA)
    write_sealed(
        step / "meta.json", {**content, "seconds": 7.0}, SCHEMA
    )  # as a step that was done again says
    assert [is_written(study), is_written(study)] == [True, False]
    page.rename(smoke / "page")
    assert is_written(study)


def damage(path: Path) -> None:
    """Change a bit in the middle of a file, of which the file's time says nothing."""
    content, when = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


NETWORK = "train.softmax*/network.safetensors"
FEATURES = "extract.softmax-s0-digits_smoke-test*/test.npz"
DATA = "data.*glyphs_smoke.*/train.images.npy"
ROWS, SEAL = "linear.softmax*digits*/rows.jsonl", "linear.squared_error*digits*/meta.json"


@pytest.mark.long
@pytest.mark.parametrize(
    "patterns",
    [
        (NETWORK,),
        (FEATURES, DATA, ROWS, SEAL),
    ],
    ids=" ".join,
)
def test_a_damaged_file_is_named_and_computed_again_to_the_same_bytes(
    smoke: Path, patterns: tuple[str, ...]
) -> None:
    before = rows_of(smoke), weights_of(smoke)
    paths = [path for pattern in patterns for path in (smoke / "runs/steps").glob(pattern)]
    assert len(paths) == len(patterns)
    for path in paths:
        damage(path)
        if path.suffix in (".safetensors", ".npy"):  # too large to be digested unless they were touched
            path.touch()
    if ROWS in patterns:
        refused = penultimate("show", "table1", "--allow-limited", cwd=smoke)
        assert refused.returncode == 2
        named = [f"step {path.parent.name}: {path.name} is not what was written" for path in paths]
        assert any(text in refused.stderr for text in named if text.startswith("step linear."))
    answer = penultimate("run", "smoke", cwd=smoke)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    said = [line for line in answer.stdout.splitlines() if "set aside" in line]
    assert len(said) == len(paths)
    for path in paths:
        (own,) = (
            line for line in said if f"step {path.parent.name}: {path.name} is not what was writ" in line
        )
        assert "it was set aside and is computed again" in own
    assert (rows_of(smoke), weights_of(smoke)) == before
    aside = [folder.name for folder in (smoke / "runs/damaged").iterdir()]
    assert len(aside) == len(paths)
    assert all(any(name.startswith(path.parent.name) for name in aside) for path in paths)


def start(folder: Path, *more: str, command: tuple[str, ...] = ("run", "smoke")) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "penultimate.cli", *command, *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **PORTABLE, "PENULTIMATE_CHECKPOINT_SECONDS": "0.01"},
        start_new_session=True,
        # A test run in the background inherits an ignored SIGINT; a user at a terminal has the default one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_stopped_anywhere_leaves_no_process_and_goes_on_to_the_same_bytes(
    finished_smoke: Path, tmp_path: Path, how: signal.Signals
) -> None:
    """And a checkpoint that has been damaged meanwhile is told of."""
    partial, options = tmp_path / "runs/partial", ("--set", "measure=accuracy,linear")
    process = start(tmp_path, *options)
    wait_for(lambda: list(partial.glob("train.*/checkpoint*")))
    started = descendants(process.pid)
    process.send_signal(how)
    _, errors = process.communicate(timeout=30)
    if how != signal.SIGKILL:
        assert process.returncode == 128 + how
        assert errors == "\npenultimate: stopped; the same command continues from here\n"
    wait_for(lambda: not alive(started), 10)
    (spoilt, *_) = partial.glob("train.*/checkpoint-[01]")
    damage(spoilt)
    answer = penultimate("run", "smoke", *options, cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "continuing" in answer.stdout
    said = (
        f"step {spoilt.parent.name}: {spoilt.name} is not what was written (its sha256 differs); it was set"
    )
    assert f"{said} aside, and the training " in answer.stdout
    expect_of_the_same(tmp_path, finished_smoke, "accuracy", "linear")


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "command"),
    [
        (signal.SIGINT, ("run", "smoke")),
        (signal.SIGHUP, ("run", "smoke")),
        (signal.SIGTERM, ("tune", "softmax", "--study", "matched_search")),
    ],
)
def test_every_signal_that_ends_a_command_ends_it_alike(
    tmp_path: Path, how: signal.Signals, command: tuple[str, ...]
) -> None:
    process = start(tmp_path, command=command)
    wait_for(lambda: descendants(process.pid))
    started = descendants(process.pid)
    os.killpg(process.pid, how)
    os.killpg(process.pid, how)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + how
    assert errors == "\npenultimate: stopped; the same command continues from here\n"
    assert not alive(started)


@pytest.mark.long
def test_a_second_run_of_the_same_study_is_sent_away(tmp_path: Path) -> None:
    process = start(tmp_path)
    try:
        wait_for(lambda: list((tmp_path / "runs/partial").glob("data.*")))
        answer = penultimate("run", "smoke", cwd=tmp_path)
        assert answer.returncode == 2
        assert "study 'smoke' is being run in 'runs' already" in answer.stderr
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_a_study_without_what_rests_on_a_diverged_training_is_whole(tmp_path: Path) -> None:
    """It is complete, nothing of it is planned, and it is kept."""
    command = ["smoke", "--set", "recipe.learning_rate=1000.0", "--only", "softmax,squared_error"]
    command += ["--set", "measure=accuracy,linear"]
    assert penultimate("run", *command, cwd=tmp_path).returncode == 0
    said = penultimate("status", cwd=tmp_path).stdout
    assert re.match(r"\S+: (\d+) of \1 steps, complete", said)
    assert "left: 0 steps" in penultimate("plan", *command, cwd=tmp_path).stdout
    kept = penultimate("keep", "--to", "kept", cwd=tmp_path)
    assert kept.returncode == 0, kept.stderr
    shown = penultimate("show", "table1", "--allow-limited", cwd=tmp_path).stdout
    assert "Diverged" in shown
    again = penultimate("run", *command, cwd=tmp_path)
    assert "Everything is done already." in again.stdout
    settings = ["recipe.learning_rate=1000.0", "measure=accuracy,linear"]
    study = changed(load_study("smoke"), settings, ["softmax", "squared_error"])
    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path / "runs", engine=Stopped())
    assert penultimate("status", cwd=tmp_path).stdout == said


class Stopped:
    """An engine that is stopped before it has done anything."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        raise KeyboardInterrupt


@pytest.mark.long
def test_a_part_of_a_study_stands_beside_the_whole_and_says_how_far_it_has_come(smoke: Path) -> None:
    whole, part = smoke / "runs/studies/smoke", smoke / "runs/studies/smoke-softmax"
    before = {file: file.read_bytes() for file in whole.rglob("*") if file.is_file() and file.name != ".lock"}
    weights = weights_of(smoke)
    answer = penultimate("run", "smoke", "--only", "softmax", cwd=smoke)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert f"Report: {part.relative_to(smoke) / 'report.html'}" in answer.stdout
    assert "no longer" not in answer.stdout
    assert ({file: file.read_bytes() for file in before}, weights_of(smoke)) == (before, weights)
    assert "smoke, changed: only softmax" in (part / "report.html").read_text()
    steps = json.loads((part / "study.json").read_text())["steps"]
    shutil.rmtree(smoke / "runs/steps" / next(step for step in steps if step.startswith("linear.")))
    far = f"{len(steps) - 1} of {len(steps)} steps"
    assert f"UNFINISHED, {far}. Table 1" in penultimate("show", "table1", "--allow-limited", cwd=smoke).stdout
