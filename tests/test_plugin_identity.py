"""What of a plug-in is part of the identity of its steps, and what happens when it changes."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from penultimate import registry
from penultimate.checking import check_file
from penultimate.cli import main
from penultimate.engine.observer import Silent, Summary
from penultimate.engine.plan import plan
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.plugins import in_child, load_plugin, loaded
from penultimate.records.reading import study_folders
from penultimate.study.selection import load_study
from penultimate.study.settings import override
from tests.inprocess import InProcess

METRIC = """
from pathlib import Path
from penultimate import register
from penultimate.measures import Features, Number, Yield

@register.measurement(
    version=1, per="network", needs=(Features("test"),), yields=(Yield("weighed", "count"),), {declared}
)
def weighed(inputs):
    {inside}
    yield Number("weighed", float((Path(__file__).parent / "w.txt").read_text()), "count", "test")
"""


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    yield
    for plugin in loaded():
        for entry in plugin.entries:
            registry.forget(entry.kind, entry.name)


def plug_in(folder: Path, declared: str = "", inside: str = "pass") -> Path:
    (folder / "mine.py").write_text(METRIC.format(declared=declared, inside=inside))
    if not (folder / "w.txt").exists():
        (folder / "w.txt").write_text("1")
    return folder / "mine.py"


SETTINGS = ["objectives=softmax", "measure=weighed", "recipe.epochs=1", "targets=digits_smoke"]


def studied(file: Path, accept: bool = False) -> tuple[Summary, list[str]]:
    """Run a study of one network with the metric of a plug-in; return also what was said meanwhile."""
    load_plugin(file)
    told: list[str] = []
    observer = Silent()
    observer.noticed = told.append  # type: ignore[method-assign]
    study = override(load_study("smoke"), SETTINGS)
    return run(study, file.parent / "runs", observer=observer, engine=InProcess(), accept=accept), told


def test_a_comment_computes_nothing_again_and_another_line_does(tmp_path: Path) -> None:
    total = studied(plug_in(tmp_path))[0].total
    file = plug_in(tmp_path, inside='"""Explained."""\n    # A remark.\n    pass')
    assert studied(file)[0].cached == total
    summary, told = studied(plug_in(tmp_path, inside="inputs = inputs"))
    assert summary.computed == 1
    assert told[0].startswith("the measurement 'weighed' has changed since the study was last run;")


def test_a_declared_file_counts_and_another_does_not(tmp_path: Path) -> None:
    file = plug_in(tmp_path, declared="files=('w.txt',)")
    total = studied(file)[0].total
    (tmp_path / "other.txt").write_text("2")
    assert studied(file)[0].cached == total
    (tmp_path / "w.txt").write_text("2")
    assert studied(file)[0].computed == 1
    (tmp_path / "w.txt").write_text("1")
    assert studied(file)[0].cached == total
    file = plug_in(tmp_path)
    studied(file)
    (tmp_path / "w.txt").write_text("2")
    assert studied(file)[0].cached == total


def test_a_missing_declared_file_is_named(tmp_path: Path) -> None:
    file = plug_in(tmp_path, declared="files='gone.npz'")
    for use in (studied, check_file):
        with pytest.raises(
            RequestError, match=r"the measurement 'weighed' declares the file '.*/gone\.npz', which"
        ):
            use(file)


def test_a_file_that_changes_while_a_step_runs_is_no_result_of_the_study(tmp_path: Path) -> None:
    changing = "(Path(__file__).parent / 'w.txt').write_text('2')"
    with pytest.raises(RequestError, match="a file that the measurement 'weighed' reads was changed since"):
        studied(plug_in(tmp_path, declared="files=('w.txt',)", inside=changing))


def test_a_change_that_is_accepted_keeps_what_is_done_from_then_on(tmp_path: Path) -> None:
    total = studied(plug_in(tmp_path))[0].total
    file = plug_in(tmp_path, inside="inputs = inputs")
    assert studied(file, accept=True)[0].cached == total
    summary, told = studied(file)
    assert (summary.cached, told) == (total, [])
    assert len(plan(override(load_study("smoke"), SETTINGS), tmp_path / "runs").done) == total
    assert studied(plug_in(tmp_path, inside="inputs = [inputs][0]"))[0].computed == 1
    assert studied(plug_in(tmp_path))[0].cached == total


def test_the_command_accepts_and_who_repeats_it_accepts_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    command = ["run", "smoke", "--plugin", "mine.py", *settings, "--on", "tests.inprocess:InProcess"]
    plug_in(tmp_path)
    assert main(command) == 0
    plug_in(tmp_path, inside="bank = bank")
    assert main([*command, "--accept"]) == 0
    assert "Everything is done already." in capsys.readouterr().out
    (study,) = study_folders("runs")
    assert study.description["command"] == "penultimate " + shlex.join(command)


def test_a_run_that_was_stopped_can_still_accept_what_it_had_begun_to_compute_again(tmp_path: Path) -> None:
    total = studied(plug_in(tmp_path))[0].total
    file = plug_in(tmp_path, inside="raise KeyboardInterrupt if inputs else None")
    with pytest.raises(KeyboardInterrupt):
        studied(file)
    assert studied(file, accept=True)[0].cached == total


def test_check_names_a_file_that_is_not_declared(tmp_path: Path) -> None:
    found = check_file(plug_in(tmp_path))
    (said,) = [finding for finding in found.findings if finding.check == "files"]
    assert said.ok
    assert said.sentence.startswith("mine.py names 'w.txt', which lies beside it.")
    assert '@register.measurement(files=("w.txt",))' in said.sentence
    found = check_file(plug_in(tmp_path, declared="files=('w.txt',)"))
    assert [finding for finding in found.findings if finding.check == "files"] == []


# -- a call in a process of its own --------------------------------------------------------------------------

CALLED = """
import numpy as np
from penultimate import register

@register.loss
def untidy(logits, targets, *, deed=""):
    np.sum = len
    np.seterr(all="raise")
    exec(deed)
    return 7
"""


def called(deed: str) -> int:
    answer: int = registry.entry("loss", "untidy").resolve()(None, None, deed=deed)
    return answer


@pytest.fixture
def untidy(tmp_path: Path) -> None:
    (tmp_path / "untidy.py").write_text(CALLED)
    load_plugin(tmp_path / "untidy.py")
    assert loaded()[-1].path == tmp_path / "untidy.py"


@pytest.mark.usefixtures("untidy")
def test_a_child_has_the_plug_ins_and_what_they_do_to_it_ends_with_it() -> None:
    assert in_child(called, "") == 7
    assert in_child(eval, "__import__('numpy').sum([3, 4])") == 7


@pytest.mark.usefixtures("untidy")
def test_an_exception_of_a_child_comes_back_with_its_line() -> None:
    with pytest.raises(RequestError, match=r"^the plug-in 'untidy.py', line 9: ValueError: too long$"):
        in_child(called, "raise ValueError('too long')")


def test_a_child_that_dies_is_told(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"^a process .* was killed by signal 9; is there enough memory"):
        in_child(os.kill, 0, signal.SIGKILL)
    with pytest.raises(RequestError, match=r"^a process that runs your code ended with code 3$"):
        in_child(os._exit, 3)
