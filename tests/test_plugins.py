"""Plug-in files and packages: loaded whole or not at all, and every failure told in a sentence."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import penultimate as pu
from penultimate import plugins, registry
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.plugins import load_plugin, load_source

SAMPLES = Path(__file__).parent / "plugins"
LOSS = """
from penultimate import register

@register.loss
def {name}(logits, targets, *, factor={factor}):
    return factor * -(targets * logits.log_softmax(-1)).sum(-1)
"""


def table() -> dict[tuple[str, str], registry.Entry]:
    return {
        (kind, name): registry.entry(kind, name) for kind in registry.KINDS for name in registry.names(kind)
    }


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    before = table()
    yield
    for kind, name in table().keys() - before.keys():
        registry.forget(kind, name)
    assert table() == before


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


def test_loading_a_file_again_executes_nothing(tmp_path: Path) -> None:
    count = tmp_path / "count"
    file = written(
        tmp_path, LOSS.format(name="again", factor=1) + f"with open({str(count)!r}, 'a') as f: f.write('x')\n"
    )
    first = load_plugin(file)
    (tmp_path / "folder").mkdir()
    assert load_plugin(tmp_path / "folder" / ".." / "mine.py") is first
    assert load_plugin(str(file)) is first
    assert count.read_text() == "x"
    assert first in plugins.loaded()
    registry.forget("loss", "again")
    assert first not in plugins.loaded()
    assert load_plugin(file).digest == first.digest
    assert (count.read_text(), "again" in registry.names("loss")) == ("xx", True)


def test_a_changed_file_replaces_its_own_names(tmp_path: Path) -> None:
    text = LOSS.format(name="kept", factor=1)
    first = load_plugin(written(tmp_path, text + LOSS.format(name="dropped", factor=1)))
    second = load_plugin(
        written(tmp_path, text.replace("factor=1", "factor=3") + LOSS.format(name="new", factor=1))
    )
    assert first.digest != second.digest
    assert [entry.name for entry in second.entries] == ["kept", "new"]
    assert {"kept", "new"} <= set(registry.names("loss"))
    assert "dropped" not in registry.names("loss")
    assert resolve("kept").canonical == "kept(factor=3)"
    assert second in plugins.loaded()
    assert first not in plugins.loaded()


def test_a_file_that_is_spoilt_leaves_what_it_was(tmp_path: Path) -> None:
    file = written(tmp_path, LOSS.format(name="sound", factor=2))
    sound = load_plugin(file)
    before, module = table(), sys.modules[sound.entries[0].target.__module__]
    for spoilt in ("def :", LOSS.format(name="sound", factor=5) + "1 / 0", "x = 1"):
        with pytest.raises(RequestError):
            load_plugin(written(tmp_path, spoilt))
        assert table() == before
        assert registry.entry("loss", "sound").resolve() is sound.entries[0].target
        assert sys.modules[module.__name__] is module
        assert plugins.loaded()[-1] is sound
    assert load_plugin(written(tmp_path, LOSS.format(name="sound", factor=2))) is sound


REGISTER = "from penultimate import register\n"
BAD = {
    "a syntax error": ("x = 1\ndef f(:\n    pass\n", ["line 2 is not Python", "def f(:"]),
    "no Python at all": ("\x00", ["is not Python"]),
    "an exception": (
        "def g():\n    return {}['x']\n\ng()\n",
        ["line 2: KeyError: 'x'"],
    ),
    "an exception without words": ("raise ValueError\n", ["line 1: ValueError"]),
    "a package that is missing": (
        "import math\nimport no_such_package.part\n",
        ["line 2: it needs the package 'no_such_package', which is not installed"],
    ),
    "a module that is missing": (
        "import json.no_such_part\n",
        ["line 1: it needs the module 'json.no_such_part', which is not installed"],
    ),
    "a name that is missing": (
        "from penultimate import registr\n",
        ["line 1: ImportError: cannot import name"],
    ),
    "a file beside it": (
        "import beside\n",
        ["line 1: 'beside' lies beside the plug-in, whose folder is not searched"],
    ),
    "the end of the program": ("import sys\nsys.exit(0)\n", ["line 2: SystemExit: 0"]),
    "nothing registered": ("def focal(logits, targets): ...\n", ["registers nothing", "above 'focal'"]),
    "an empty file": ("", ["registers nothing", "above a function"]),
    "a decorator that is never used": (REGISTER + "register.loss(paper='x')\n", ["registers nothing"]),
    "an unknown kind": (
        REGISTER + "@register.los\ndef f(z, t): ...\n",
        ["line 2: AttributeError:", "'los'. Did you mean 'loss'?"],
    ),
    "a built-in's name": (
        REGISTER + "\n@register.head\ndef cosine(x, w, b): ...\n",
        [
            "line 3: head 'cosine' is registered twice",
            "penultimate.objectives.heads:cosine",
            "mine.py:cosine",
        ],
    ),
    "an objective's name": (
        REGISTER + "@register.loss\ndef sigmoid(z, t): ...\n",
        ["registers the loss 'sigmoid'", "the objective 'sigmoid' is there already"],
    ),
    "one name for two kinds": (
        REGISTER
        + "@register.loss\ndef both(z, t): ...\n@register.regulariser(name='both')\ndef p(z, h): ...\n",
        ["'both' is there already, and a spec string could mean either"],
    ),
    "one name twice": (
        REGISTER + "@register.loss\ndef f(z, t): ...\n\n@register.loss()\ndef f(z, t): ...\n",
        ["line 5: loss 'f' is registered twice"],
    ),
    "no name": (
        REGISTER + "register.loss(lambda z, t: z.sum(-1))\n",
        ["a loss must be named by a Python identifier"],
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_fails_is_told_in_a_sentence_and_leaves_nothing(tmp_path: Path, what: str) -> None:
    text, phrases = BAD[what]
    written(tmp_path, "", "beside.py")
    file = tmp_path / "mine.py"
    file.write_text(text)
    before, modules = table(), set(sys.modules)
    with pytest.raises(RequestError) as caught:
        load_plugin(file)
    for phrase in [*phrases, f"the plug-in '{file}'"]:
        assert phrase in str(caught.value)
    assert "\n" not in str(caught.value)
    assert table() == before
    assert not any(name.startswith("penultimate_plugin_mine") for name in set(sys.modules) - modules)


def test_a_path_that_is_no_plugin_is_told_with_the_nearest(tmp_path: Path) -> None:
    written(tmp_path, "", "focal.py")
    written(tmp_path, "", "notes.txt")
    (tmp_path / "empty").mkdir()
    for path, phrase in [
        (
            tmp_path,
            f"is a folder; a plug-in is one Python file; give one file, such as '{tmp_path}/focal.py'",
        ),
        (tmp_path / "empty", "is a folder; a plug-in is one Python file"),
        (
            tmp_path / "fcal.py",
            f"there is no plug-in file '{tmp_path}/fcal.py'. Did you mean '{tmp_path}/focal.py'?",
        ),
        (tmp_path / "none" / "x.py", "there is no plug-in file"),
        (tmp_path / "notes.txt", "is not a Python file"),
        (Path("/dev/null"), "is not a Python file"),
        (tmp_path / ("x" * 300 + ".py"), "cannot be read: File name too long"),
    ]:
        with pytest.raises(RequestError) as caught:
            load_plugin(path)
        assert phrase in str(caught.value)


def test_a_name_belongs_to_one_file(tmp_path: Path) -> None:
    text = LOSS.format(name="shared", factor=1)
    first, second = written(tmp_path, text, "first.py"), written(tmp_path, text, "second.py")
    load_plugin(first)
    with pytest.raises(RequestError) as caught:
        load_plugin(second)
    assert "second.py', line 4" in str(caught.value)
    assert f"registered twice: by {first}:shared and by {second}:shared" in str(caught.value)
    load_plugin(first)


def test_comments_docstrings_and_layout_do_not_count_and_code_does(tmp_path: Path) -> None:
    text = LOSS.format(name="dated", factor=1)
    plugin = load_plugin(written(tmp_path, text))
    assert resolve("dated").plugin_digests() == {"loss:dated": plugin.digest}
    remarked = text.replace("    return", "    '''Explained.'''\n\n    # A remark.\n    return  ")
    again = load_plugin(written(tmp_path, remarked))
    assert again.digest == plugin.digest
    assert again.entries[0].summary == "Explained."
    load_plugin(written(tmp_path, remarked.replace("factor *", "2 * factor *")))
    assert resolve("dated").plugin_digests()["loss:dated"] != plugin.digest


def test_another_process_loads_the_same_text_though_the_file_has_changed(tmp_path: Path) -> None:
    file = written(tmp_path, LOSS.format(name="travelling", factor=7))
    plugin = load_plugin(file)
    file.unlink()
    code = f"""
        from penultimate.objectives.presets import resolve
        from penultimate.plugins import load_source
        load_source({str(plugin.path)!r}, {plugin.source!r})
        print(resolve("travelling").canonical, resolve("travelling").plugin_digests()["loss:travelling"])
    """
    assert python(code) == f"travelling(factor=7) {plugin.digest}"
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
    package(tmp_path, "no_losses", "x = 1\n")
    package(tmp_path, "same_losses", REGISTER + "@register.head\ndef cosine(x, w, b): ...\n")
    code = """
        import sys
        from penultimate import registry
        from penultimate.plugins import load_installed
        print("installed" in registry.names("loss"))
        found = load_installed()
        print([entry.name for plugin in found.plugins for entry in plugin.entries])
        print(load_installed() is found, [name in registry.names("loss") for name in ("installed", "half")])
        entry = registry.entry("loss", "installed")
        print(entry.source_digest() == found.plugins[0].digest, registry.entry("head", "cosine").is_plugin)
        print("torch" in sys.modules)
        print(*sorted(found.failures), sep="\\n")
    """
    answer = python(code, PYTHONPATH=str(tmp_path)).splitlines()
    assert answer[:5] == ["False", "['installed']", "True [True, False]", "True False", "False"]
    of = "the plug-in '{0}' of the installed package {0} 1.2"
    needed = "cannot be loaded: it needs the package 'no_such_package', which is not installed here"
    assert answer[5] == f"{of.format('bad_losses')} {needed}"
    assert answer[6] == (
        f"{of.format('no_losses')} cannot be loaded: its module no_losses registers nothing: it has no"
        " @register above a function"
    )
    assert answer[7].startswith(
        f"{of.format('same_losses')} cannot be loaded: head 'cosine' is registered twice"
    )


def test_loading_and_reporting_need_no_tensor_library() -> None:
    code = f"""
        import sys
        import penultimate.checking
        from penultimate import registry
        from penultimate.plugins import load_installed, load_plugin
        load_plugin({str(SAMPLES / "focal.py")!r})
        load_installed()
        heavy = set("torch torchvision timm scipy sklearn matplotlib numpy pandas".split())
        print(sorted(heavy & set(sys.modules)))
    """
    assert python(code) == "[]"
