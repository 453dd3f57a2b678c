"""The commands of README and the documentation, run: those that read as they are, the others as their plans.

Data of the reader's own are a folder of small images under the name that the page uses, and the reader's own
study is the smoke study. What needs published data, another machine or a download is only parsed
(`test_pages`), with its reason here.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from docs import notebooks
from PIL import Image

from penultimate.cli import main
from tests.plugged import released
from tests.test_pages import PAGES, lines, named

NOT_HERE = {
    "imagenet": "ImageNet",
    "pets": "a published data set",
    "ray": "a cluster",
    "timm:": "weights to download",
    "torchvision:": "weights to download",
    "join": "parts of a study that were run apart",
    "tune": "a search, which has no plan of its own",
    "--networks": "a table of trained networks",
    "--features": "files of features, of which tests/banks run the command",
}
"""What a command with such words needs."""
OF_RUN = {"--gpus": 1, "--processes": 1, "--verify": 0, "--accept": 0}
"""The options that `run` has and `plan` lacks, with the number of their values."""
SMALL = {"/data/birds": "birds", "my/photographs": "birds", "quickstart": "smoke", "digits": "digits_smoke"}
"""What stands in the place of the reader's own data, study and task."""


def in_small(words: list[str]) -> list[str] | None:
    """The command as it is run here, or None if it needs what is not here."""
    if not words or any(text in shlex.join(words) for text in NOT_HERE):
        return None
    kind, *rest = words
    if kind == "run" and "--help" not in rest:
        return ["plan", *_without(rest, OF_RUN)]
    if kind in ("portrait", "evaluate"):
        return [*_without(words, {"--plan": 0, "--gpus": 1}), "--plan"]
    if kind == "plan":
        return words
    if "--reference" in rest:
        return words
    small = [SMALL.get(word, word) for word in words]
    return [*_without(small, {"--allow-limited": 0}), "--allow-limited"] if kind == "show" else small


def _without(words: list[str], options: dict[str, int]) -> list[str]:
    left, skip = list[str](), 0
    for word in words:
        if word in options:
            skip = options[word]
        elif skip:
            skip -= 1
        else:
            left.append(word)
    return left


def commands() -> list[tuple[str, str]]:
    """Every command that can be run here, once, with the page that it stands on."""
    found: dict[str, str] = {}
    for path in (*PAGES, *notebooks.NOTEBOOKS):
        for words in lines(path):
            if in_small(words):
                found.setdefault(shlex.join(words), named(path))
    return list(found.items())


@pytest.fixture(scope="module")
def reader(finished_smoke: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader's: a finished study, images of two classes, and the examples of plug-in files."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(finished_smoke / "runs", folder / "runs")
    draw = np.random.default_rng(0).integers
    for name in ("wren", "robin"):
        (folder / "birds" / name).mkdir(parents=True)
        for place in range(12):
            image = Image.fromarray(draw(0, 256, (32, 32, 3), dtype=np.uint8))
            image.save(folder / "birds" / name / f"{place}.png")
    return folder


@pytest.mark.long
def test_most_commands_of_the_pages_can_be_run_here() -> None:
    every = {shlex.join(words) for path in (*PAGES, *notebooks.NOTEBOOKS) for words in lines(path)}
    assert len(commands()) > 0.55 * len(every)


@pytest.mark.long
@pytest.mark.parametrize(("line", "page"), commands())
def test_a_command_of_a_page_runs(
    line: str, page: str, reader: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(reader)
    words = in_small(shlex.split(line))
    assert words is not None
    for file in {"my_loss.py", "mine.py"} & {*words}:
        assert main(["check", "--example", "focal" if "focal" in line else "loss"]) == 0
        Path(file).write_text(capsys.readouterr().out, encoding="utf-8")
    with released():
        answer = main(words)
    said = capsys.readouterr()
    assert answer == 0, f"{page}: penultimate {line}\n{said.err}"
    assert said.out.strip(), f"{page}: penultimate {line} prints nothing"
