"""What plug-ins read is part of the identity of what they compute."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from penultimate import origin, plugins, registry
from penultimate.answers import WrongError
from penultimate.checking import check_file
from penultimate.engine.messages import Ready, Unfit
from penultimate.engine.observer import Silent, Summary
from penultimate.engine.process import load, sources
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.origin import Seen, called
from penultimate.plugins import Plugin, load_plugin, loaded, origins
from penultimate.study.selection import load_study
from penultimate.study.settings import override
from tests.conftest import penultimate
from tests.inprocess import InProcess

METRIC = """
from pathlib import Path
from penultimate import register

HERE = Path(__file__).parent
{top}

@register.metric
def weighed(bank):
    {inside}
    return 1.0
"""


@pytest.fixture(autouse=True)
def _registry_as_before() -> Iterator[None]:
    yield
    for plugin in loaded():
        for entry in plugin.entries:
            registry.forget(entry.kind, entry.name)


def plug_in(folder: Path, top: str = "", inside: str = "") -> Path:
    """A plug-in with statements at the top of the file, and in the function."""
    top, inside = top.strip(), inside.strip().replace("\n", "\n    ")
    (folder / "mine.py").write_text(METRIC.format(top=top, inside=inside))
    return folder / "mine.py"


def text(folder: Path, number: int) -> None:
    (folder / "w.txt").write_text(str(number))


def array(folder: Path, number: int) -> None:
    np.save(folder / "w.npy", np.full(3, number))


def arrays(folder: Path, number: int) -> None:
    np.savez(folder / "w.npz", w=np.full(3, number))


def raw(folder: Path, number: int) -> None:
    np.full(3, number).tofile(folder / "w.bin")


def checkpoint(folder: Path, number: int) -> None:
    torch.save({"w": number}, folder / "w.pt")


def image(folder: Path, number: int) -> None:
    Image.new("L", (2, 2), number).save(folder / "w.png")


def database(folder: Path, number: int) -> None:
    with sqlite3.connect(folder / "w.db") as connection:
        connection.execute("create table if not exists w (w)")
        connection.execute(f"insert into w values ({number})")
    connection.close()


def helper(folder: Path, number: int) -> None:
    text(folder, number)
    (folder / "helping.py").write_text(
        "from pathlib import Path\nW = (Path(__file__).parent / 'w.txt').read_text()\ndef use(): return W\n"
    )


def code(folder: Path, number: int) -> None:
    (folder / "helping.py").write_text(f"def use(): return {10**number}\n")


def link(folder: Path, number: int) -> None:
    for each in (1, 2):
        (folder / f"version-{each}").write_text(str(each))
    (folder / "w.txt").unlink(missing_ok=True)
    (folder / "w.txt").symlink_to(f"version-{number}")


IMPORTED = "import sys\nsys.path.insert(0, str(HERE))\nimport helping\nsys.path.pop(0)\nhelping.use()"
READERS: dict[str, tuple[Callable[[Path, int], None], str]] = {
    "open": (text, "with open(HERE / 'w.txt') as file: file.read()"),
    "pathlib": (text, "(HERE / 'w.txt').read_text()"),
    "relative": (text, "with open('w.txt') as file: file.read()"),
    "descriptor": (text, "import os\nos.close(os.open(HERE / 'w.txt', os.O_RDONLY))"),
    "link": (link, "with open(HERE / 'w.txt') as file: file.read()"),
    "json": (text, "import json\nwith open(HERE / 'w.txt') as file: json.load(file)"),
    "csv": (text, "import csv\nwith open(HERE / 'w.txt') as file: list(csv.reader(file))"),
    "executed": (text, "exec((HERE / 'w.txt').read_text())"),
    "copied": (text, "import shutil\nshutil.copy(HERE / 'w.txt', HERE / 'copy.txt')"),
    "loadtxt": (text, "import numpy as np\nnp.loadtxt(HERE / 'w.txt')"),
    "pandas": (text, "import pandas\npandas.read_csv(HERE / 'w.txt')"),
    "np.load": (array, "import numpy as np\nnp.load(HERE / 'w.npy')"),
    "mmap": (array, "import numpy as np\nnp.load(HERE / 'w.npy', mmap_mode='r')"),
    "npz": (arrays, "import numpy as np\nnp.load(HERE / 'w.npz')['w']"),
    "memmap": (raw, "import numpy as np\nnp.memmap(HERE / 'w.bin')"),  # for reading and writing by default
    "fromfile": (raw, "import numpy as np\nnp.fromfile(HERE / 'w.bin')"),
    "torch.load": (checkpoint, "import torch\ntorch.load(HERE / 'w.pt')"),
    "torch.load mmap": (checkpoint, "import torch\ntorch.load(HERE / 'w.pt', mmap=True)"),
    "PIL": (image, "from PIL import Image\nImage.open(HERE / 'w.png').load()"),
    "sqlite": (
        database,
        "import sqlite3\nsqlite3.connect(HERE / 'w.db').execute('select w from w').fetchall()",
    ),
    "helper": (helper, IMPORTED),
    "code of a helper": (code, IMPORTED),
}


@pytest.fixture(params=READERS)
def reader(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Callable[[Path, int], None], str]:
    if request.param == "pandas" and importlib.util.find_spec("pandas") is None:
        pytest.skip("pandas is not installed")
    monkeypatch.chdir(tmp_path)
    return READERS[request.param]


Reader = tuple[Callable[[Path, int], None], str]


@pytest.mark.long
def test_a_file_that_is_read_at_the_top_tells_plug_ins_apart(tmp_path: Path, reader: Reader) -> None:
    write, statements = reader
    sys.modules.pop("helping", None)
    write(tmp_path, 1)
    file = plug_in(tmp_path, top=statements)
    first = load_plugin(file)
    assert first.origin.text != first.digest == first.entries[0].source_digest()
    assert load_plugin(file) is first
    write(tmp_path, 2)
    second = load_plugin(file)
    assert (second.source, second.origin.text) == (first.source, first.origin.text)
    assert second.digest != first.digest
    if write is not database:
        write(tmp_path, 1)
        assert load_plugin(file).digest == first.digest


def called_once(plugin: Plugin, root: Path) -> str:
    """The identity of a plug-in at the start of a process that calls it."""
    seen = Seen(root)
    root.mkdir(exist_ok=True)
    start = plugin.origin.identity(seen)
    with called(origins(), [], seen):
        assert plugin.entries[0].resolve()(None) == 1.0
    return start


def test_what_stands_in_the_place_of_a_list_of_files_is_named_and_not_written_to(tmp_path: Path) -> None:
    mine, seen = tmp_path / "mine", Seen(tmp_path)
    mine.write_text("mine")
    (tmp_path / "opened").mkdir()
    (tmp_path / "opened/link.jsonl").symlink_to(mine)
    (tmp_path / "opened/dangling.jsonl").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "opened/pipe.jsonl")
    for text in ("link", "dangling", "pipe"):
        for use in (lambda text: seen.known(text), lambda text: seen.note(text, "x", "0")):
            with pytest.raises(RequestError, match=rf"{text}.jsonl' is no ordinary file; move it away"):
                use(text)
    assert mine.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "opened/nested.jsonl").write_text("[" * 100_000)
    assert seen.known("nested") == {}


@pytest.mark.long
def test_a_file_that_is_read_when_called_tells_plug_ins_apart_once_it_changes(
    tmp_path: Path, reader: Reader
) -> None:
    write, statements = reader
    sys.modules.pop("helping", None)
    write(tmp_path, 1)
    plugin = load_plugin(plug_in(tmp_path, inside=statements))
    runs = tmp_path / "runs"
    assert plugin.digest == plugin.origin.text == called_once(plugin, runs) == called_once(plugin, runs)
    write(tmp_path, 2)
    changed = plugin.origin.identity(Seen(runs))
    assert changed != plugin.digest
    assert called_once(plugin, runs) == changed == plugin.origin.identity(Seen(runs))
    if write is not database:
        write(tmp_path, 1)
        assert plugin.origin.identity(Seen(runs)) == plugin.digest


LEFT_ALONE = {
    "a log": "with (HERE / 'log').open('a') as file: file.write('run\\n')",
    "a new log": "import time\n(HERE / 'log').write_text(str(time.time_ns()))",
    "a count": (
        "path = HERE / 'count'\ncount = int(path.read_text()) if path.exists() else 0\n"
        "path.write_text(str(count + 1))"
    ),
    "a database": (
        "import sqlite3\nwith sqlite3.connect(HERE / 'w.db') as log:\n"
        "    log.execute('create table if not exists w (w)')\n    log.execute('insert into w values (1)')\n"
        "log.close()"
    ),
    "what was renamed": (
        "import os, time\n(HERE / 'new').write_text(str(time.time_ns()))\n"
        "os.replace(HERE / 'new', HERE / 'w')\n(HERE / 'w').read_text()"
    ),
    "a temporary folder": (
        "import subprocess, tempfile\nwith tempfile.TemporaryDirectory() as folder:\n"
        "    subprocess.run(['touch', f'{folder}/w'])\n    (Path(folder) / 'w').read_text()"
    ),
    "a library's own": "import inspect, torch\ninspect.getsource(torch.nn.Linear)",
    "the system's": "Path('/proc/self/stat').read_text()\nPath('/etc/passwd').read_text()",
    "its own text": "Path(__file__).read_text()",
    "a folder": "import os\nos.listdir(HERE)\nlist(HERE.iterdir())",
}


@pytest.mark.long
@pytest.mark.parametrize("statements", LEFT_ALONE.values(), ids=list(LEFT_ALONE))
@pytest.mark.parametrize("place", ["top", "inside"])
def test_what_is_written_or_is_a_librarys_changes_nothing(
    tmp_path: Path, place: str, statements: str
) -> None:
    file = plug_in(tmp_path, **{place: statements})
    for _ in range(3):
        plugin = load_plugin(file)
        assert plugin.digest == plugin.origin.text == called_once(plugin, tmp_path / "runs")
        registry.forget("metric", "weighed")  # so that the file is executed again


def studied(file: Path, measure: str = "weighed") -> tuple[Summary, list[str]]:
    """A study of one network with the metric of a plug-in is run here, and what is said meanwhile."""
    load_plugin(file)
    settings = ["objectives=softmax", f"measure={measure}", "recipe.epochs=1", "targets=digits_smoke"]
    told: list[str] = []
    observer = Silent()
    observer.noticed = told.append  # type: ignore[method-assign]
    study = override(load_study("smoke"), settings)
    return run(study, file.parent / "runs", observer=observer, engine=InProcess()), told


def test_a_study_does_again_what_rests_on_a_file_that_changed(tmp_path: Path) -> None:
    text(tmp_path, 1)
    file = plug_in(tmp_path, inside="(HERE / 'w.txt').read_text()")
    total = studied(file)[0].total
    assert studied(file)[0].cached == total
    text(tmp_path, 2)
    summary, told = studied(file)
    assert (summary.computed, summary.cached) == (1, total - 1)
    assert told[0].startswith("files that plug-ins read have changed since the study was last run (w.txt);")
    summary, told = studied(file)
    assert (summary.computed, told) == (0, [])
    (tmp_path / "w.txt").unlink()
    with pytest.raises(WrongError, match="No such file or directory"):
        studied(file)
    text(tmp_path, 1)
    assert studied(file)[0].cached == total


def test_a_step_that_ends_with_another_file_than_its_study_began_with_is_refused(tmp_path: Path) -> None:
    text(tmp_path, 1)
    changes = (
        "path = HERE / 'w.txt'\nnumber = path.read_text()\nif number == '2': os.system(f'echo 3 > {path}')"
    )
    file = plug_in(tmp_path, top="import os", inside=changes)
    studied(file)
    text(tmp_path, 2)
    with pytest.raises(
        RequestError, match=r"what the metric 'weighed' reads when .* \('w.txt'\) was changed since"
    ):
        studied(file)


def test_a_process_of_the_study_refuses_another_file_than_its_study_began_with(tmp_path: Path) -> None:
    text(tmp_path, 1)
    plugin = load_plugin(plug_in(tmp_path, top="(HERE / 'w.txt').read_text()"))
    (sent,) = [each for each in sources() if each[0] == str(plugin.path)]
    assert load([sent]) == Ready()
    text(tmp_path, 2)
    assert isinstance(told := load([sent]), Unfit)
    assert "'w.txt', which the plug-in" in told.reason
    assert load_plugin(plugin.path).digest != plugin.digest  # what is loaded again goes on


def test_a_file_that_a_plug_in_makes_where_it_is_missing_is_its_own(tmp_path: Path) -> None:
    cached = "path = HERE / 'made'\nif path.exists(): path.read_text()\nelse: path.write_text('1')"
    file = plug_in(tmp_path, top=cached)
    assert studied(file)[0].cached == 0
    registry.forget("metric", "weighed")
    origin._wrote.clear()  # as in a process that finds the file there
    summary, told = studied(file)
    assert (summary.computed, told) == (0, [])


def test_what_a_package_reads_counts_from_the_first_time_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "site-packages"
    place.mkdir()
    reading = plug_in(tmp_path, top="(HERE.parent / 'w.txt').read_text()").read_text()
    (place / "a_package.py").write_text(reading)
    monkeypatch.syspath_prepend(place)
    text(tmp_path, 1)
    found = plugins._imported("a_package", "a package")
    runs = tmp_path / "runs"
    runs.mkdir()
    try:
        ours = plugins.origin_of(found.entries[0])
        with called(origins(), [], Seen(runs)):
            assert found.entries[0].resolve()(None) == 1.0
        assert ours.identity(Seen(runs)) == found.digest
        text(tmp_path, 2)
        assert ours.identity(Seen(runs)) != found.digest
    finally:
        registry.forget("metric", "weighed")


LOSS = """
from pathlib import Path
import numpy as np
from penultimate import register

PATH = Path(__file__).parent / "w.npy"
{top}

@register.loss
def scaled(logits, targets):
    {inside}
    return -WEIGHT * (targets * logits.log_softmax(-1)).sum(-1)
"""


@pytest.mark.long
@pytest.mark.parametrize(("engine", "place"), [("local", "inside"), ("ray", "top")])
def test_a_network_is_trained_again_when_its_loss_reads_other_weights(
    tmp_path: Path, engine: str, place: str
) -> None:
    places = {"top": "", "inside": "", place: "WEIGHT = float(np.load(PATH)[0])"}
    (tmp_path / "mine.py").write_text(LOSS.format(**places))
    settings = ("--set", "measure=accuracy", "--set", "recipe.epochs=1", "--set", "targets=digits_smoke")

    def runs() -> str:
        answer = penultimate(
            "run", "smoke", "--plugin", "mine.py", "--set", "objectives=scaled", *settings, "--on", engine,
            "--processes", "2", cwd=tmp_path,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    array(tmp_path, 1)
    runs()
    assert "Everything is done already" in runs()
    before = {path.name for path in (tmp_path / "runs/steps").iterdir()}
    array(tmp_path, 2)
    assert "files that plug-ins read have changed since the study was last run (w.npy)" in runs()
    fresh = {
        path.name.partition(".")[0] for path in (tmp_path / "runs/steps").iterdir() if path.name not in before
    }
    assert fresh == {"train", "accuracy", "extract"}
    assert "Everything is done already" in runs()


def test_check_names_what_is_read_when_a_plug_in_is_called(tmp_path: Path) -> None:
    text(tmp_path, 1)
    found = check_file(plug_in(tmp_path, inside="(HERE / 'w.txt').read_text()"))
    (said,) = [each.sentence for each in found.findings if each.check == "files"]
    assert found.ok
    assert said.startswith("weighed reads w.txt when it is called.")
    both = "(HERE / 'w.txt').read_text()"
    found = check_file(plug_in(tmp_path, top=both, inside=both))
    assert [each for each in found.findings if each.check == "files"] == []
