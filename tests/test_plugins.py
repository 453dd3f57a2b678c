"""Plug-in files and packages: loaded whole or not at all, identified by their code, run in processes."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import penultimate as pu
from penultimate import plugins, registry
from penultimate.checking import check_file
from penultimate.cli import main
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.plan import plan
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.plugins import identity, in_child, load_plugin, load_source
from penultimate.records.reading import study_folders
from penultimate.study.selection import load_study
from penultimate.study.settings import override
from penultimate.study.unfold import unfold
from tests.inprocess import InProcess

SAMPLES = Path(__file__).parent / "plugins"
LOSS = """
from penultimate import register

@register.loss
def {name}(logits, targets, *, factor={factor}):
    return factor * -(targets * logits.log_softmax(-1)).sum(-1)
"""


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    before = registry.registered()
    yield
    for kind, name in registry.registered().keys() - before.keys():
        registry.forget(kind, name)
    assert registry.registered() == before


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(textwrap.dedent(text))
    return file


def python(code: str, **environment: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


# -- files and packages --------------------------------------------------------------------------------------


def test_a_strangers_focal_loss_runs_as_an_objective() -> None:
    file = SAMPLES / "focal.py"
    plugin = load_plugin(file)
    assert [(entry.kind, entry.name, entry.paper) for entry in plugin.entries] == [
        ("loss", "focal", "Lin et al., ICCV 2017, eq. 4")
    ]
    assert (plugin.path, plugin.source) == (file.resolve(), file.read_bytes())
    features, labels = torch.rand(8, 16), torch.arange(8) % 5
    focal, softmax = (
        pu.objective(text, num_features=16, num_classes=5) for text in ("focal(gamma=2)", "softmax")
    )
    p = softmax.probabilities(softmax(features))[torch.arange(8), labels]
    expected = (1 - p) ** 2 * softmax.loss(features, labels)
    torch.testing.assert_close(focal.loss(features, labels), expected)
    mixed = pu.objective("focal(gamma=0) + dropout(keep=1) + logit_penalty", num_features=16, num_classes=5)
    penalised = pu.objective("logit_penalty", num_features=16, num_classes=5)
    torch.testing.assert_close(mixed.loss(features, labels), penalised.loss(features, labels))


def test_loading_a_file_again_executes_nothing_unless_its_names_are_gone(tmp_path: Path) -> None:
    count = tmp_path / "count"
    counting = f"with open({str(count)!r}, 'a') as f: f.write('x')\n"
    file = written(tmp_path, LOSS.format(name="again", factor=1) + counting)
    first = load_plugin(file)
    (tmp_path / "folder").mkdir()
    assert load_plugin(str(tmp_path / "folder" / ".." / "mine.py")) is first
    assert (count.read_text(), first in plugins.loaded()) == ("x", True)
    registry.forget("loss", "again")
    assert first not in plugins.loaded()
    load_plugin(file)
    assert (count.read_text(), "again" in registry.names("loss")) == ("xx", True)


def test_a_changed_file_replaces_its_own_names_and_a_spoilt_one_leaves_them(tmp_path: Path) -> None:
    text = LOSS.format(name="kept", factor=1)
    first = load_plugin(written(tmp_path, text + LOSS.format(name="dropped", factor=1)))
    changed = text.replace("factor=1", "factor=3") + LOSS.format(name="new", factor=1)
    second = load_plugin(written(tmp_path, changed))
    assert [entry.name for entry in second.entries] == ["kept", "new"]
    assert "dropped" not in registry.names("loss")
    assert resolve("kept").canonical == "kept(factor=3)"
    assert second in plugins.loaded()
    assert first not in plugins.loaded()
    before, module = registry.registered(), sys.modules[second.entries[0].target.__module__]
    for spoilt in ("def :", LOSS.format(name="kept", factor=5) + "1 / 0", "x = 1"):
        with pytest.raises(RequestError):
            load_plugin(written(tmp_path, spoilt))
        assert registry.registered() == before
        assert sys.modules[module.__name__] is module
    assert load_plugin(written(tmp_path, changed)) is second


REGISTER = "from penultimate import register\n"
BAD = {
    "a syntax error": ("x = 1\ndef f(:\n    pass\n", "is not Python: invalid syntax (mine.py, line 2)"),
    "no Python at all": ("\x00", "is not Python"),
    "an exception": ("def g():\n    return {}['x']\n\ng()\n", "line 2: KeyError: 'x'"),
    "an exception without words": ("raise ValueError\n", "line 1: ValueError"),
    "a package that is missing": (
        "import math\nimport no_such_package.part\n",
        "line 2: it needs the package 'no_such_package', which is not installed",
    ),
    "a name that is missing": (
        "from penultimate import registr\n",
        "line 1: ImportError: cannot import name",
    ),
    "a file beside it": (
        "import beside\n",
        "line 1: 'beside' lies beside the plug-in, whose folder is not searched",
    ),
    "the end of the program": ("import sys\nsys.exit(0)\n", "line 2: SystemExit: 0"),
    "nothing registered": ("def focal(logits, targets): ...\n", "registers nothing"),
    "a study": ("STUDY = 1\n", "is a study file, not a plug-in; penultimate run"),
    "an unknown kind": (REGISTER + "@register.los\ndef f(z, t): ...\n", "'los'. Did you mean 'loss'?"),
    "a built-in's name": (
        REGISTER + "\n@register.head\ndef cosine(x, w, b): ...\n",
        "line 3: the name 'cosine' is registered twice: as head by penultimate.objectives.heads:cosine and",
    ),
    "an objective's name": (
        REGISTER + "@register.loss\ndef sigmoid(z, t): ...\n",
        "the name 'sigmoid' is registered twice: as objective by",
    ),
    "no name": (
        REGISTER + "register.loss(lambda z, t: z.sum(-1))\n",
        "a loss must be named by a Python identifier",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_fails_is_told_in_a_sentence_and_leaves_nothing(tmp_path: Path, what: str) -> None:
    text, phrase = BAD[what]
    written(tmp_path, "", "beside.py")
    file = tmp_path / "mine.py"
    file.write_text(text)
    before, modules = registry.registered(), set(sys.modules)
    with pytest.raises(RequestError) as caught:
        load_plugin(file)
    assert phrase in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert registry.registered() == before
    assert not any(name.startswith("penultimate_plug") for name in set(sys.modules) - modules)


def test_a_path_that_is_no_file_is_told_with_the_nearest(tmp_path: Path) -> None:
    written(tmp_path, "", "focal.py")
    for path, phrase in (
        (tmp_path, "cannot be read: Is a directory"),
        (
            tmp_path / "fcal.py",
            f"there is no plug-in file '{tmp_path}/fcal.py'. Did you mean '{tmp_path}/focal",
        ),
        (tmp_path / ("x" * 300 + ".py"), "cannot be read: File name too long"),
    ):
        with pytest.raises(RequestError) as caught:
            load_plugin(path)
        assert phrase in str(caught.value)


def test_another_process_loads_the_same_text_though_the_file_has_changed(tmp_path: Path) -> None:
    file = written(tmp_path, LOSS.format(name="travelling", factor=7))
    plugin = load_plugin(file)
    file.unlink()
    code = f"""
        from penultimate.objectives.presets import resolve
        from penultimate.plugins import identity, load_source
        load_source({str(plugin.path)!r}, {plugin.source!r})
        print(resolve("travelling").canonical, identity("loss", "travelling")["loss:travelling"])
    """
    assert python(code) == f"travelling(factor=7) {identity('loss', 'travelling')['loss:travelling']}"
    assert load_source(plugin.path, plugin.source) is plugin


def package(folder: Path, name: str, text: str) -> None:
    """What `pip install` leaves of a package that announces one plug-in."""
    written(folder, text, f"{name}.py")
    about = folder / f"{name}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(f"[penultimate.plugins]\n{name} = {name}\n")


def test_installed_packages_are_loaded_when_asked_for_and_their_failures_told(tmp_path: Path) -> None:
    package(tmp_path, "good_losses", LOSS.format(name="installed", factor=1))
    package(tmp_path, "bad_losses", LOSS.format(name="half", factor=1) + "import no_such_package\n")
    package(tmp_path, "same_losses", REGISTER + "@register.head\ndef cosine(x, w, b): ...\n")
    code = """
        import sys
        import good_losses  # a session may have imported it already
        from penultimate import registry
        from penultimate.plugins import identity
        print(len(identity("loss", "installed")["loss:installed"]))
        print([name in registry.names("loss") for name in ("installed", "half")])
        print(registry.entry("head", "cosine").is_plugin, "torch" in sys.modules)
        print(*sorted(registry.open_packages()), sep="\\n")
    """
    answer = python(code, PYTHONPATH=str(tmp_path)).splitlines()
    assert answer[:3] == ["64", "[True, False]", "False False"]
    of = "the plug-in '{0}' of the installed package {0} 1.2 cannot be loaded: "
    needed = "it needs the package 'no_such_package', which is not installed here"
    assert answer[3] == of.format("bad_losses") + needed
    assert answer[4].startswith(of.format("same_losses") + "the name 'cosine' is registered twice")


def test_loading_and_reporting_need_no_tensor_library() -> None:
    code = f"""
        import sys
        import penultimate.checking
        from penultimate import registry
        from penultimate.plugins import load_plugin
        load_plugin({str(SAMPLES / "focal.py")!r})
        registry.open_packages()
        heavy = set("torch torchvision timm scipy sklearn matplotlib numpy pandas".split())
        print(sorted(heavy & set(sys.modules)))
    """
    assert python(code) == "[]"


# -- identity: what changes a plug-in, and what happens then -------------------------------------------------

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
SETTINGS = ["objectives=softmax", "measure=weighed", "recipe.epochs=1", "targets=digits_smoke"]


def plug_in(folder: Path, declared: str = "", inside: str = "pass") -> Path:
    (folder / "mine.py").write_text(METRIC.format(declared=declared, inside=inside))
    if not (folder / "w.txt").exists():
        (folder / "w.txt").write_text("1")
    return folder / "mine.py"


def studied(file: Path, accept: bool = False) -> tuple[Summary, list[str]]:
    """Run a study of one network with the metric of a plug-in; return also what was said meanwhile."""
    load_plugin(file)
    told: list[str] = []
    observer = Observer()
    observer.noticed = told.append  # type: ignore[method-assign]
    study = override(load_study("smoke"), SETTINGS)
    return run(study, file.parent / "runs", observer=observer, engine=InProcess(), accept=accept), told


def test_a_comment_in_a_plugin_retrains_nothing_and_another_line_of_code_does(tmp_path: Path) -> None:
    text = LOSS.format(name="dated", factor=1)

    def trained(source: str) -> set[str]:
        load_plugin(written(tmp_path, source))
        study = override(load_study("smoke"), ["objectives=dated"])
        return {step_id for step_id, step in unfold(study).steps.items() if step.name == "train"}

    before = trained(text)
    remarked = text.replace("    return", "    '''Explained.'''\n\n    # A remark.\n    return  ")
    assert trained(remarked) == before
    assert registry.entry("loss", "dated").summary == "Explained."
    assert not trained(remarked.replace("factor *", "2 * factor *")) & before


def test_a_comment_measures_nothing_again_and_a_line_that_changes_is_told(tmp_path: Path) -> None:
    total = studied(plug_in(tmp_path))[0].total
    file = plug_in(tmp_path, inside='"""Explained."""\n    # A remark.\n    pass')
    assert studied(file)[0].cached == total
    summary, told = studied(plug_in(tmp_path, inside="inputs = inputs"))
    assert summary.computed == 1
    assert told[0].startswith("the measurement 'weighed' has changed since the study was last run;")


def test_a_declared_file_counts_and_another_does_not(tmp_path: Path) -> None:
    for use in (studied, check_file):
        with pytest.raises(RequestError, match=r"'weighed' declares the file '.*/gone\.npz', which cannot"):
            use(plug_in(tmp_path, declared="files='gone.npz'"))
    file = plug_in(tmp_path, declared="files=('w.txt',)")
    total = studied(file)[0].total
    (tmp_path / "w.txt").write_text("2")
    assert studied(file)[0].computed == 1
    (tmp_path / "w.txt").write_text("1")
    assert studied(file)[0].cached == total
    file = plug_in(tmp_path)
    studied(file)
    (tmp_path / "w.txt").write_text("2")
    assert studied(file)[0].cached == total


def test_a_file_that_changes_while_a_step_runs_is_no_result_of_the_study(tmp_path: Path) -> None:
    changing = "(Path(__file__).parent / 'w.txt').write_text('2')"
    with pytest.raises(RequestError, match="a file that the measurement 'weighed' reads was changed since"):
        studied(plug_in(tmp_path, declared="files=('w.txt',)", inside=changing))


def test_a_change_that_is_accepted_keeps_what_is_done_from_then_on(tmp_path: Path) -> None:
    total = studied(plug_in(tmp_path))[0].total
    file = plug_in(tmp_path, inside="raise KeyboardInterrupt if inputs else None")
    with pytest.raises(KeyboardInterrupt):
        studied(file)
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


def test_check_names_a_file_that_is_not_declared(tmp_path: Path) -> None:
    found = check_file(plug_in(tmp_path))
    (finding,) = [finding for finding in found.findings if finding.check == "files"]
    assert finding.ok
    assert finding.sentence.startswith("mine.py names 'w.txt', which lies beside it.")
    assert '@register.measurement(files=("w.txt",))' in finding.sentence
    found = check_file(plug_in(tmp_path, declared="files=('w.txt',)"))
    assert [finding for finding in found.findings if finding.check == "files"] == []


def test_the_page_on_plugins_says_by_an_example_that_files_must_be_declared() -> None:
    text = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text("utf-8")
    assert "**A file that a plug-in reads must be declared**" in text
    assert '@register.loss(files=("class_weights.npz",))' in text
    assert "if a file that is not declared changes, the old results stay" in text


# -- a call in a process of its own --------------------------------------------------------------------------

CALLED = """
import numpy as np
import torch
from penultimate import register

@register.loss
def untidy(logits, targets, *, deed=""):
    np.sum = len
    np.seterr(all="raise")
    torch.set_default_dtype(torch.float64)
    exec(deed)
    return 7
"""


def called(deed: str) -> int:
    answer: int = registry.entry("loss", "untidy").resolve()(None, None, deed=deed)
    return answer


def state_of_libraries() -> tuple[object, ...]:
    return np.sum([3, 4]), np.geterr()["over"], torch.get_default_dtype()


def test_a_child_has_the_plug_ins_and_what_they_do_to_it_ends_with_it(tmp_path: Path) -> None:
    load_plugin(written(tmp_path, CALLED, "untidy.py"))
    assert in_child(called, "") == 7
    assert in_child(state_of_libraries) == state_of_libraries() == (7, "warn", torch.float32)
    with pytest.raises(RequestError, match=r"^the plug-in 'untidy.py', line 11: ValueError: too long$"):
        in_child(called, "raise ValueError('too long')")


def test_a_child_that_dies_is_told() -> None:
    with pytest.raises(RequestError, match=r"^a process that runs your code was killed by signal 9"):
        in_child(os.kill, 0, signal.SIGKILL)
    with pytest.raises(RequestError, match=r"^a process that runs your code ended with code 3$"):
        in_child(os._exit, 3)
