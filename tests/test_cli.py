"""The command: quick, torch-free where it can be, and never a traceback for a user's mistake."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penultimate.cli import COMMANDS, EXIT_CODES, main
from penultimate.command import tell
from penultimate.engine.observer import Summary
from penultimate.study.selection import load_study
from penultimate.study.settings import override
from tests.conftest import penultimate


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["rn", "smoke"], "Did you mean 'run'"),
        (["run"], "required: study"),
        (["run", "quikstart"], "Did you mean 'quickstart'"),
        (["run", "./none.py"], "no study file"),
        (["run", "smoke", "--only", "sofmax"], "Did you mean 'softmax'"),
        (["run", "smoke", "--seeds", "a"], "--seeds wants numbers"),
        (["run", "smoke", "--only", " ,"], "--only names no objective"),
        (["run", "smoke", "--seeds", "1,1"], "twice"),
        (["run", "smoke", "--seeds", "3-1"], "--seeds wants numbers such as 0,1,2 or 0-7; got '3-1'"),
        (["run", "smoke", "--processes", "0"], "at least 1"),
        (["run", "smoke", "--set", "recipe.epoch=1"], "Did you mean 'epochs'"),
        (["run", "smoke", "--set", "epochs=1"], "Did you mean 'recipe.epochs'"),
        (["run", "smoke", "--set", "cosine decay.source=x"], "it is none of cosine decay.objectives, "),
        (["run", "smoke", "--on", "json:JSONDecoder"], "there is no engine at 'json:JSONDecoder': "),
        (
            ["run", "smoke", "--on", "builtins:str"],
            "is no engine: it has no run(graph, store, observer)",
        ),
        (["evaluate", "--model", "timm:resnet18", "--data", "cifar10"], "Where the images of 'cifar10' lie"),
        (["run", "smoke", "--out", "a-file"], "the output folder 'a-file' is a file; give --out a folder"),
        (["run", "smoke", "--out", "/proc/nowhere"], "output folder"),
        (
            ["run", "smoke", "--set", "objectives=softmax + sigmoid"],
            "does not add losses up. Leave softmax out",
        ),
        (["list", "objective"], "Did you mean 'objectives'"),
        (["show", "table1", "--reference", "--out", "mine"], "give one of them"),
        (["show", "table11"], "Did you mean 'table1'"),
        (["show", "table1"], "is read with --reference"),
        (["run", "nin"], "Did you mean 'nine'? All "),
        (["run", "nine", "--sedes", "3"], "Did you mean '--seeds'?\nusage: penultimate run"),
        (["run", "nine", "--plan"], "That is a command: penultimate plan."),
        (["evaluate", "net.py:f", "pets"], "Did you mean --model net.py:f --data pets?"),
        (["run", "nine", "--add", "poly1"], "add --plugin examples:poly1"),
        (["evaluate", "--model", "resnet50", "--data", "digits"], "Did you mean 'timm:resnet50'?"),
        (["evaluate", "--model", "digits", "--data", "timm:resnet18"], "'digits' is a data set; data are"),
        (["evaluate", "--model", "timm:resnet18", "--data", "timm:resnet18"], "is a network, not data"),
        (["why", "table1", "softmax"], "no study has been run"),
    ],
)
def test_a_wrong_request_is_answered_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    answer: str,
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.chdir(tmp_path)
    code = main(arguments)
    said = capsys.readouterr()
    assert code == 2, said.out + said.err
    assert answer in said.err
    assert "Traceback" not in said.err


def test_what_cannot_be_read_is_not_taken_for_absent_nor_hides_what_can(
    finished_smoke: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(finished_smoke / "runs/studies", tmp_path / "runs/studies")
    (tmp_path / "runs/studies/other").mkdir()
    (tmp_path / "runs/studies/other/study.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    assert main(["status"]) == 2
    told = capsys.readouterr()
    assert "smoke: 0 of" in told.out
    assert "other/study.json' is not what was written; run the study again" in told.err

    def refused(path: Path | str, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert main(["status"]) == 1
    assert "study.json': Permission denied" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("list studies | true", 141),
        ("run smoke --set measure=accuracy --only softmax | true", 141),
    ],
)
def test_a_closed_pipe_is_no_traceback(tmp_path: Path, line: str, code: int) -> None:
    command = f"{sys.executable} -m penultimate.cli {line}"
    shell = ["bash", "-c", f"sleep 0.1; {command}; exit ${{PIPESTATUS[0]}}"]
    answer = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == code, answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.long
def test_the_window_system_of_a_notebook_is_none_of_the_commands(
    finished_smoke: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "module://nowhere.backend")
    answer = penultimate("report", "--out", str(finished_smoke / "runs"), "--to", "page.html", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr


def test_what_a_sum_of_objectives_is_stands_where_one_can_be_written(tmp_path: Path) -> None:
    for arguments in (["list", "objectives"], ["tune", "--help"]):
        told = " ".join(penultimate(*arguments, cwd=tmp_path).stdout.split())
        assert (
            "+ joins one projector, one head, one loss, any penalties and regularisers, dropout and a scale;"
            " it does not add losses up" in told
        )
    told = penultimate("list", "objectives", cwd=tmp_path).stdout
    for part in ("projector", "simplex_etf", "center_loss", "koleo", "entropy"):
        assert f"\n{part} " in told
    assert "fixed head: A final layer that is not trained" in told


def test_why_traces_a_number_to_its_data(finished_smoke: Path) -> None:
    answer = penultimate("why", "table1", "softmax", "digits_smoke", cwd=finished_smoke)
    assert answer.returncode == 0, answer.stderr
    for part in ("linear_top1", "knn_top1", "train.softmax", "data.d0-digits_smoke", "sha256", "commit"):
        assert part in answer.stdout
    turned = penultimate("why", "table1", "digits_smoke", "softmax", cwd=finished_smoke)
    assert turned.stdout == answer.stdout
    wrong = penultimate("why", "table1", "softmax", "digit_smoke", cwd=finished_smoke)
    assert (wrong.returncode, "Did you mean 'digits_smoke'" in " ".join(wrong.stderr.split())) == (2, True)


def test_a_limited_study_is_refused_as_evidence_unless_asked(finished_smoke: Path) -> None:
    answer = penultimate("show", "table1", cwd=finished_smoke)
    assert answer.returncode == 2
    assert "--allow-limited" in answer.stderr
    asked = penultimate("show", "table1", "--allow-limited", cwd=finished_smoke)
    assert asked.returncode == 0, asked.stderr
    assert "limited" in asked.stdout.lower()


def test_plan_and_status_tell_what_is_done(finished_smoke: Path, tmp_path: Path) -> None:
    assert "complete" in penultimate("status", cwd=finished_smoke).stdout
    assert "No study" in penultimate("status", cwd=tmp_path).stdout
    planned = penultimate("plan", "smoke", cwd=finished_smoke).stdout
    assert "left: 0 steps; 0 s of work" in planned


def test_a_command_that_has_no_number_to_show_exits_with_1(
    finished_smoke: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(finished_smoke / "runs"), "--study", "smoke"]
    for shown, code in (("table1", 0), ("foretold", 1), ("plugins", 1)):
        assert main(["show", shown, "--allow-limited", *out]) == code, shown
        assert capsys.readouterr().out
    assert main(["why", "foretold", "softmax", *out]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("penultimate: ")


def test_what_has_failed_is_named_with_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "failed-given.a.log"
    log.write_text("a traceback", "utf-8")
    failed = {"given.a": "build() fails", "given.b": "it is gone"}
    tell(Summary(total=5, failed=failed, skipped=["x"]), tmp_path / "report.html")
    err = capsys.readouterr().err
    assert f"failed: given.a: build() fails (log: {log})\n" in err
    assert "failed: given.b: it is gone\n" in err


def test_the_help_says_what_the_exit_codes_mean(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert EXIT_CODES in capsys.readouterr().out


@pytest.mark.long
def test_the_report_is_written_where_it_is_asked_for(finished_smoke: Path, tmp_path: Path) -> None:
    out = finished_smoke / "runs"
    answer = penultimate("report", "--out", str(out), "--to", "mine.html", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    report = (out / "studies/smoke/report.html").read_text()
    assert (tmp_path / "mine.html").read_text().replace("mine_files", "report_files") == report
    assert (tmp_path / "mine_files" / "results.csv").read_bytes() == (
        out / "studies/smoke/report_files/results.csv"
    ).read_bytes()


@pytest.mark.parametrize("before", [("run", "smoke"), ("plan", "smoke"), ("run",), ("tune",)])
def test_the_settings_are_listed_with_their_values(
    before: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*before, "--set", "--help"]) == 0
    study = load_study("smoke" if "smoke" in before else "nine")
    first, *lines = capsys.readouterr().out.splitlines()
    assert study.name in first
    assert f"  recipe.epochs={study.main.recipe.epochs}" in lines
    assert f"  targets={','.join(study.targets)}" in lines
    for line in lines:
        if " characters ..." not in line:
            override(study, [line.strip()])


def test_studies_that_are_parts_of_others_are_listed_only_if_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from penultimate.registry import entry, names

    assert main(["list", "studies"]) == 0
    said = capsys.readouterr().out
    listed = {line.split()[0] for line in said.splitlines() if line}
    on_a_laptop = [
        name
        for name in names("study")
        if name in listed and not name.startswith(("kornblith", "imagenet", "cifar", "glyphs_512"))
    ]
    assert len(on_a_laptop) <= 8
    assert {"smoke", "quickstart", "nine", "glyphs", "full", "evidence", "sweep"} < {*on_a_laptop}
    folded = [name for name in names("study") if name not in listed]
    assert f"{len(folded)} more, such as {folded[0]}: penultimate list studies --all" in said
    assert {"glyphs_first", "matched_search", "sweep_smallest"} < {*folded}
    assert main(["list", "studies", "--all"]) == 0
    every = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in every] == names("study")
    assert all(entry("study", name).resolve() for name in folded)


@pytest.mark.parametrize(
    ("code", "where", "message"),
    [
        (
            errno.ENOSPC,
            "page.html",
            "'page.html': No space left on device; nothing done is lost: free some space",
        ),
        (errno.EACCES, "page.html", "'page.html': Permission denied; nothing done is lost"),
        (errno.EIO, None, "penultimate: Input/output error; nothing done is lost"),
    ],
)
def test_what_the_system_refuses_is_said_with_the_place_and_what_helps(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: int,
    where: str | None,
    message: str,
) -> None:
    def refused(_: object) -> int:
        raise OSError(code, os.strerror(code), where)

    monkeypatch.setitem(COMMANDS, "list", dataclasses.replace(COMMANDS["list"], do=refused))
    assert main(["list"]) == 1
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("doctor", "the command 'doctor' is gone: penultimate status --verify"),
        ("plan smoke --device=h100", "The option --device is gone: a plan tells the time"),
    ],
)
def test_what_is_gone_names_what_replaces_it(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    assert told in capsys.readouterr().err
    assert main(["list", "studies", "--no-timing"]) == 0
    assert "the option --no-timing is gone: nothing is timed any more" in capsys.readouterr().err
