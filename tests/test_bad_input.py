"""Whatever the command and the library are given, they do it or say in a sentence what is wrong with it."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penultimate import read_bank, registry, userfile
from penultimate.cli import main
from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.catalog import card
from penultimate.data.readers.class_order import read_class_order
from penultimate.data.readers.opening import open_dataset
from penultimate.data.world.generation import generate
from penultimate.errors import PenultimateError, RequestError
from penultimate.features.bank import FeatureBank
from penultimate.features.files import extract_files
from penultimate.graph import Step
from penultimate.networks.sources import fingerprint
from penultimate.plugins import load_plugin, one_line
from penultimate.records.keeping import write_kept
from penultimate.records.table import write_rows
from penultimate.study import Given, Runs, Search, Study, load_study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from tests.data.photographs import folder_of
from tests.engine.processes import wait_for
from tests.features.test_files import small

# -- files that a user has written ---------------------------------------------------------------------------

EXITS = {
    "SystemExit": "raise SystemExit\n",
    "sys.exit": "import sys\nsys.exit(0)\n",
    "os._exit": "import os\nos._exit(0)\n",
    "os._exit by its name": "from os import _exit\n_exit(0)\n",
}
LOOPS = {
    "a loop": "x = 1\nwhile True: pass\n",
    "a pause": "import time\ntime.sleep(1e6)\n",
    "a loop that catches errors": "while True:\n    try: int('x')\n    except Exception: pass\n",
    "a loop that goes on nine times": "for _ in 'nine more':\n    try:\n        while True: pass\n"
    "    except BaseException as error: last = error\nraise last\n",
}
DEAF = "import time\nwhile True:\n    try: time.sleep(1)\n    except: pass\n"


@pytest.mark.parametrize("what", EXITS)
@pytest.mark.parametrize("load", [load_study, load_plugin])
def test_a_file_that_ends_the_program_is_no_success(tmp_path: Path, load: Any, what: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(EXITS[what])
    with pytest.raises(RequestError, match=rf"{file}', line \d: it ends the whole program"):
        load(str(file))
    assert os._exit.__module__ == "posix"


def test_a_plugin_that_ends_the_program_when_it_is_called_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import os\nfrom penultimate import register\n\n@register.metric\ndef vanish(bank): os._exit(0)\n\n"
    )
    try:
        assert main(["check", str(file)]) == 1
    finally:
        registry.forget("metric", "vanish")
    assert "vanish raises on line 5 of mine.py: SystemExit" in " ".join(capsys.readouterr().out.split())


class WordlessError(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_an_exception_without_words_is_told_by_its_name() -> None:
    assert one_line(WordlessError()) == "WordlessError"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may end in a callback
@pytest.mark.parametrize("what", LOOPS)
@pytest.mark.parametrize("load", [load_study, load_plugin])
def test_a_file_that_does_not_come_to_an_end_is_stopped_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Any, what: str
) -> None:
    monkeypatch.setattr(userfile, "LIMIT", 1.0)
    file = tmp_path / "mine.py"
    file.write_text(LOOPS[what])
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(RequestError, match=rf"{file}'(, line \d)?: it was still running after 1 s"):
        load(str(file))
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (before, (0, 0))


def test_a_file_that_hears_no_exception_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DEAF)
    code = (
        "import sys; from penultimate import userfile; from penultimate.cli import main\n"
        "userfile.LIMIT = 0.2; sys.exit(main(['check', 'mine.py']))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert answer.returncode == 2
    assert answer.stderr.startswith("penultimate: the plug-in 'mine.py': it was still running after 0.2 s")


def test_control_c_ends_a_check_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("open('begun', 'w')\nwhile True: pass\n")
    command = [sys.executable, "-m", "penultimate.cli", "check", "mine.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for((tmp_path / "begun").exists)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in said, "stopped" in said) == (130, False, True)


# -- settings ------------------------------------------------------------------------------------------------

TEXTS = ["", " ", "3", "-1", "0", "1.5", "nan", "inf", "1e999", "-1e999", "1j", "True", "None", "...", "b'x'"]
TEXTS += ["[]", "()", "{}", "''", "'x'", "maybe", "[1,1]", "(1,'a',None)", "{'a':1}", "{1,2}", "[[1],[2]]"]
TEXTS += ["9" * 500, "9" * 5000, "0x" + "f" * 5000, "(" * 200 + ")" * 200, "[" * 10_000, "-" * 10_000 + "1"]
TEXTS += ["[" * 10_000 + "]" * 10_000, "a\nb", "\x1b[31m", "é", "\u202e", "'a\\x00b'", "softmax + softmax"]
TEXTS += [
    "lambda: 1",
    "__import__('os')",
    "softmax(a=0x" + "f" * 1500 + ")",
    "99999999999999999999",
    "\udcff",
]
PATHS = [item.name for cls in (Study, Runs) for item in dataclasses.fields(cls)]
PATHS += [f"recipe.{item.name}" for item in dataclasses.fields(Recipe)]
PATHS += ["", ".", "recipe.", ".epochs", "a.b.c.d", "recipe.augmentation.shift", "recipe.x.y", "seeds_of"]
ALL = pytest.mark.long


def answered(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says when it refuses; "" when it does not."""
    code = main(arguments)
    said = capsys.readouterr()
    assert code in (0, 2)
    assert all(character.isprintable() or character == "\n" for character in said.err)
    assert len(said.err) < 3000
    assert said.err.startswith("penultimate: ") == (code == 2)
    return said.err if code else ""


@pytest.mark.long
@pytest.mark.parametrize("share", [pytest.param(1, marks=ALL), 9])
def test_any_value_of_any_setting_is_taken_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], share: int
) -> None:
    """All values of all settings, and, when there is little time, one in nine."""
    monkeypatch.chdir(tmp_path)
    compiling = ("recipe.compile", "True")  # a plan times a step, and what is compiled has no type checkers
    cases = [case for case in itertools.product(PATHS, TEXTS) if case != compiling][::share]
    for path, text in cases:
        answered(["plan", "smoke", "--set", f"{path}={text}"], capsys)


@pytest.mark.parametrize(
    ("assignment", "answer"),
    [
        ("expected_seconds=5", "expected_seconds is {step: seconds}, not 5"),
        ("expected_seconds={'train': nan}", "expected_seconds is {step: seconds}"),
        ("counterparts=5", "counterparts are {target: {class: (source class, ...)}}, not 5"),
        ("counterparts={'digits_smoke': {'1': 'a'}}", "counterparts are {target: {class:"),
        ("counterparts={'digit_smoke': {}}", "Did you mean 'digits_smoke'?"),
        ("limited=maybe", "limited is True or False, not 'maybe'"),
        ("title=3", "title is text, not 3"),
        ("name='" + "a" * 101 + "'", "at most 100 letters"),
        ("tuned_by=../smoke", "at most 100 letters"),
        ("tuned_by=one,two,one", "tuned_by names 'one' twice; name it once"),
        ("targets=[1]", "targets holds names, not 1"),
        ("recipe.learning_rate=1" + "0" * 400, "learning_rate is a number above 0"),
        ("measure=relearning(shots=(5,1))", "shots must be an integer in [2, inf), got 1"),
        ("measure=distances(count=0)", "count must be an integer in [2, inf), got 0"),
        ("measure=similarity(passes=0)", "passes must be an integer in [1, 1000], got 0"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], assignment: str, answer: str
) -> None:
    assert answer in answered(["plan", "smoke", "--set", assignment], capsys)


@pytest.mark.parametrize("seeds", ["0-99999999999", "0-9999,10000-20000", ",".join(["0-9999"] * 99)])
def test_more_seeds_than_anyone_can_mean_are_refused(capsys: pytest.CaptureFixture[str], seeds: str) -> None:
    assert "more than 10,000 seeds; give fewer" in answered(["plan", "smoke", "--seeds", seeds], capsys)


SMOKE = load_study("smoke")
SAMPLES = (SMOKE, SMOKE.main, Given({"ours": "timm:resnet18"}), Recipe(), Augmentation(), Search())
FIELDS = [(sample, item.name) for sample in SAMPLES for item in dataclasses.fields(sample)]
ODD: list[Any] = [object(), int, 10**400, -(10**400), range(10**12), range(10**30), "softmax", "glyphs_smoke"]
ODD += ["timm:", "timm:x(", "folder:\0", "timm:resnet18(seed=1e999)", "softmax(", "a" * 3000, "+", "linear("]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.binary(max_size=4)
    | st.text(max_size=20)
    | st.sampled_from(ODD),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.none() | st.integers() | st.text(max_size=5), inner, max_size=3)
        | st.sets(st.integers(), max_size=2)
    ),
    max_leaves=6,
)


def put(owner: Any, field: str, value: Any) -> None:
    """Give a field of a study, or of a part of one, a value, and unfold the study."""
    made = dataclasses.replace(owner, **{field: value})
    if isinstance(made, Runs | Given):
        made = dataclasses.replace(SMOKE, networks=(made,))
    if isinstance(made, Study):
        made.describe()
        if made.runs:  # the networks of others may have to be fetched
            unfold(made)


@pytest.mark.parametrize("count", [pytest.param(3000, marks=ALL), 100])
def test_any_value_of_any_field_is_taken_or_refused(count: int) -> None:
    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(FIELDS), VALUES)
    def check(place: tuple[Any, str], value: Any) -> None:
        with contextlib.suppress(RequestError):
            put(*place, value)

    check()


# -- places --------------------------------------------------------------------------------------------------


@pytest.fixture
def odd_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x = 1\n")
    Path("folder.py").mkdir()
    Path("loop.py").symlink_to("loop.py")
    os.mkfifo("fifo.py")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("socket.py")
    names = ["", "file", "folder.py", "loop.py", "fifo.py", "socket.py", "file/below", "a" * 300, "a/" * 3000]
    return [
        *names,
        "\n",
        "\x1b[31m",
        "\u202e",
        "é",
        "-x",
        "--",
        "'\"",
        "%s{0}",
        "\udcff",
        "/dev/null",
    ]


def test_any_path_is_taken_or_refused(odd_places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for place in odd_places:
        for command in (["status"], ["plan", "smoke"], ["list", "exhibits"]):
            answered([*command, "--out", place], capsys)
        for command in (["show", "table1"], ["why", "table1", "softmax"], ["report"], ["keep", "--to", "x"]):
            assert answered([*command, "--out", place], capsys)
        for command in (["plan"], ["run"], ["check"], ["show"], ["list"], ["tune"], []):
            assert answered([*command, place], capsys) or [*command, place] == ["list", "--"]
            assert answered([*command, "./" + place], capsys)
        for option in ("--plugin", "--seeds", "--only", "--processes", "--out"):
            if place or option == "--plugin":
                answered(["plan", "smoke", option, place], capsys)
    assert not Path("runs").exists()


def test_a_report_replaces_nothing_but_a_file(
    finished_smoke: Path, odd_places: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusals come at once, before anything is drawn."""
    before = sorted(Path().iterdir())
    store = ["--out", str(finished_smoke / "runs")]
    for place in (".", "/", "folder.py", "fifo.py", "socket.py", "file/below", "a" * 300, "/dev/null"):
        assert answered(["report", *store, "--to", place], capsys)
    for place in ("file", "fifo.py", "socket.py", "file/below", "a" * 300, "a\0b"):
        assert answered(["keep", *store, "--to", place], capsys)
    assert sorted(Path().iterdir()) == before
    assert Path("/dev/null").is_char_device()


# -- names that become paths --------------------------------------------------------------------------------

NOWHERE = (
    "..",
    ".",
    "/",
    ".lock",
    "../../etc",
    "a.",
    " ",
    "-x",
    "new\nline",
    "",
    "a.csv(label='x')",
)
PLANNED = ["evaluate", "--plan"]
NETWORK = ["--model", "timm:test_vit(pretrained=False)"]


@pytest.mark.long
@pytest.mark.parametrize("name", NOWHERE)
@pytest.mark.parametrize(
    "command",
    [
        ["status", "--out=NAME"],
        ["show", "table1", "--study=NAME"],
        ["show", "table1", "--reference", "--study=NAME"],
        ["report", "--study=NAME"],
        ["keep", "--study=NAME", "--to=kept"],
        ["why", "table1", "softmax", "--study=NAME"],
        ["report", "--reference", "--study=full", "--to=NAME"],
        ["join", "smoke", "NAME", "--to=NAME"],
        ["data", "prepare", "--size=8", "--to=NAME", "NAME"],
        ["data", "check", "--root=NAME", "glyphs"],
        ["tune", "NAME", "--study=NAME"],
        ["plan", "NAME"],
        ["plan", "smoke", "--only=NAME"],
        ["status", "--verify", "--out=NAME"],
        ["data", "check", "--", "NAME"],
        ["data", "check", "pets", "--root=NAME"],
        ["data", "get", "birdsnap", "--root=NAME"],
        ["evaluate", "--features", "a=NAME", "--features", "b=NAME"],
        [*PLANNED, "--data", "digits", "--model", "NAME"],
        [*PLANNED, *NETWORK, "--data", "digits", "--data", "NAME"],
        [*PLANNED, *NETWORK, "--data", "digits", "--source", "NAME"],
        [*PLANNED, *NETWORK, "--data", "pets", "--root=NAME"],
        [*PLANNED, *NETWORK, "--data", "digits", "--class-order=NAME"],
        [*PLANNED, *NETWORK, "--weights", "NAME", "--data", "digits"],
        [*PLANNED, *NETWORK, "--data", "digits", "--name=NAME"],
        ["plan", "imagenet", "--root=NAME"],
        ["plan", "imagenet", "--data=imagenet=NAME"],
    ],
    ids=" ".join,
)
def test_a_command_with_a_name_that_is_no_path_ends_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    name: str,
) -> None:
    if name == "/" and command[0] == "data":
        pytest.skip("all files of this machine are many")
    inner = tmp_path / "above/inner"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    monkeypatch.setattr("penultimate.report.page.page.render_report", lambda *_: {"": b""})
    try:
        code = main([part.replace("NAME", name) for part in command])
    except SystemExit as error:  # from the parser
        code = int(error.code or 0)
    assert code in (0, 1, 2)
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "nothing done is lost" not in said  # as the command says of an error of the system
    if ".." not in name or "--to=NAME" not in command:  # else that is where it is to be written
        assert [path.name for path in tmp_path.iterdir()] == ["above"]
        assert [path.name for path in (tmp_path / "above").iterdir()] == ["inner"]


WRITTEN: dict[str, Callable[[str], object]] = {
    "a bank": lambda name: FeatureBank(np.zeros((2, 3), np.float32), np.array([0, 1])).save(name),
    "rows": lambda name: write_rows(name, []),
    "images": lambda name: generate("digits_smoke", 0, name),
    "features": lambda name: extract_files({"net": small()}, folder_of(Path("images"), 3), name, workers=0),
    "a kept study": lambda name: write_kept(name, [], {"name": "any"}, {}),
}
READ: dict[str, Callable[[str], object]] = {
    "a bank": FeatureBank.load,
    "features": read_bank,
    "a folder": lambda name: fingerprint(f"folder:{name}"),
    "a file": lambda name: fingerprint(f"{name or 'x'}.py:build"),
    "a graph": lambda name: fingerprint(f"onnx:{name or 'x'}.onnx"),
    "weights": lambda name: fingerprint(f"timm:test_vit(weights={name!r})"),
    "data": open_dataset,
    "an order of classes": read_class_order,
}


@pytest.mark.parametrize("name", [*NOWHERE, "/dev/null/x", "pipe", "circle", "folder", "missing/x"])
@pytest.mark.parametrize("what", [*(f"write {name}" for name in WRITTEN), *(f"read {name}" for name in READ)])
def test_a_path_that_cannot_be_is_an_error_for_people_in_python_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, name: str
) -> None:
    if name == "/" and what.startswith("write") and os.access("/", os.W_OK):
        pytest.skip("whoever may write there would leave files in the root of this machine")
    inner = tmp_path / "above/inner"
    (inner / "folder").mkdir(parents=True)
    os.mkfifo(inner / "pipe")
    (inner / "circle").symlink_to("circle")
    monkeypatch.chdir(inner)
    how, _, which = what.partition(" ")
    with contextlib.suppress(PenultimateError):
        ({"write": WRITTEN, "read": READ}[how][which])(name)
    assert not [*tmp_path.rglob("*.tmp")]
    if ".." not in name:
        assert [path.name for path in (tmp_path / "above").iterdir()] == ["inner"]


@pytest.mark.parametrize("name", ["..", "", "a/b", "x" * 101, "é" * 99, "a b", "a\nb", "con."])
def test_a_study_that_no_folder_can_be_called_by_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match="a study's name consists of"):
        dataclasses.replace(load_study("smoke"), name=name)


def test_the_longest_names_can_be_run_and_tuned() -> None:
    for name in ("x" * 100, "é" * 97):
        dataclasses.replace(load_study("smoke"), name=name)
        dataclasses.replace(load_study("smoke"), name=f"tune-{name}")


@pytest.mark.parametrize("name", ["x" * 300, "..", "a/b", "", "a b", ".lock"])
def test_a_plugin_that_no_folder_can_be_called_by_is_refused(name: str) -> None:
    for kind in registry.PLUGIN_KINDS:
        with pytest.raises(RequestError, match="identifier"):
            getattr(registry.register, kind)(name=name)(lambda: None)


@pytest.mark.parametrize(
    "split", ["..", ".", "", "/x", "a/../b", "a/b/c", "x" * 51, "a\0", "a\nb", ".lock", 3]
)
def test_a_split_that_no_file_can_be_called_by_is_refused(split: object) -> None:
    with pytest.raises(RequestError, match="files are called by the name of a split"):
        dataclasses.replace(card("digits"), sizes={"train": 1, split: 1})


@pytest.mark.long
def test_the_folder_of_a_step_has_room_for_what_is_added_to_its_name() -> None:
    step = Step("é" * 50, 1, {}, {}, label="-".join(["x" * 40] * 9))
    assert len(step.id.encode()) == 200
    assert step.id != dataclasses.replace(step, version=2).id
    for name in registry.names("study"):
        study = load_study(name)
        if not study.data and not study.nowhere:
            assert max(len(step_id) for step_id in unfold(study).steps) < 200
