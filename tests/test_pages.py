"""What README and the documentation show can be done: code runs, commands parse, links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from docs import gallery, notebooks, reference
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import penultimate
from penultimate import registry
from penultimate.cli import _parser
from tests import lightning_stand_in
from tests.plugged import released

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
TESTED = {"console", "bash", "python", "diff", "toml", ""}
"""The languages of blocks that these tests run, parse or look up; Sphinx builds the directives."""
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
STOPS = ("|", "&&", ">", ";", "&")


def blocks(path: Path, *languages: str) -> list[str]:
    """The blocks of a page in these languages; of a notebook, those in its words."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        words = (cell for cell in notebooks.cells(path) if cell["cell_type"] == notebooks.MARKDOWN)
        text = "\n".join(map(notebooks.source, words)) + "\n"
    return [block for language, block in BLOCK.findall(text) if language in languages]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Net(nn.Module):
    """A classifier of torchvision's form, with a block, `avgpool` and `fc`."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(inplace=True))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.fc(self.avgpool(self.features(images)).flatten(1))


def data(examples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random, labels = np.random.default_rng(seed), np.arange(examples) % 5
    return random.normal(size=(examples, 512)) + 0.1 * np.eye(5, 512)[labels], labels


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the pages' Python takes for granted: features, labels, networks, a loader and images."""
    monkeypatch.chdir(tmp_path)
    lightning_stand_in.module(monkeypatch)
    for place in range(8):
        folder = tmp_path / "my/photographs" / ("cat", "dog")[place % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((9, 9, 3), 20 * place, np.uint8)).save(folder / f"{place}.png")
    torch.manual_seed(0)
    (features, labels), (test_features, test_labels) = data(60, 0), data(20, 1)
    return {
        "__name__": "page",
        "features": features,
        "labels": labels,
        "findings": np.stack([labels == 0, labels > 2], axis=1),
        "source_probabilities": np.random.default_rng(3).dirichlet(np.ones(7), 60),
        "source_predictions": labels % 3,
        "test_features": test_features,
        "test_labels": test_labels,
        "weight": np.random.default_rng(2).normal(size=(5, 512)),
        "network": Net(),
        "classifier": Net(),
        "ours": Net(),
        "theirs": Net(),
        "body": nn.Sequential(nn.Flatten(), nn.Linear(243, 512), nn.ReLU()),
        "loader": DataLoader(TensorDataset(torch.rand(40, 3, 9, 9), torch.arange(40) % 4), batch_size=20),
        "held_out": (torch.rand(40, 3, 9, 9), torch.arange(40) % 4),
        "images": np.full((2, 32, 32, 3), 128, np.uint8),
        "targets": labels,
    }


SHAPES = {
    "docs/tutorials/features.md": {"bank.features.shape": (40, 8), "bank.logits.shape": (40, 10)},
    "docs/howto/loop.md": {
        "images.shape": (20, 3, 9, 9),
        "len(train)": 50,
        "next(iter(loader))[0].shape[1:]": (3, 24, 24),
    },
    "docs/howto/monitor.md": {"table.shape": (3, 6), "len(monitor.history)": 0},
}
"""What must have come of a page's Python."""
WITH_PYTHON = [path for path in PAGES if blocks(path, "python")]


@pytest.mark.filterwarnings("ignore:squared_error", *lightning_stand_in.WARNINGS)
@pytest.mark.parametrize("path", WITH_PYTHON, ids=named)
def test_the_python_of_a_page_runs_block_after_block(path: Path, names: dict[str, Any]) -> None:
    with released(), torch.random.fork_rng():
        for block in blocks(path, "python"):
            exec(compile(block, named(path), "exec"), names)
    for name, shape in SHAPES.get(named(path), {}).items():
        assert eval(name, names) == shape


def test_the_training_loop_moves_body_and_head(names: dict[str, Any]) -> None:
    """Without objective.parameters() among the optimiser's, the head would stay as it began."""
    block = next(
        block for block in blocks(ROOT / "docs/howto/loop.md", "python") if "body.parameters" in block
    )
    setting_up, loop = block.split("for images, targets in loader:")
    names |= {"pu": penultimate, "torch": torch}
    exec(setting_up, names)
    weights = [weight for part in ("body", "objective") for weight in names[part].parameters()]
    assert len(weights) == 4
    before = [weight.detach().clone() for weight in weights]
    images, targets = next(iter(names["loader"]))
    first = names["objective"](names["body"](images)).detach()
    for _ in range(10):
        exec(f"for images, targets in loader:{loop}", names)
    assert not any(torch.equal(old, new) for old, new in zip(before, weights, strict=True))
    with torch.no_grad():
        learned = names["objective"](names["body"](images))
    wrong, right = (nn.functional.cross_entropy(logits, targets) for logits in (first, learned))
    assert right < wrong / 2


def lines(path: Path) -> list[list[str]]:
    """The words of each `penultimate ...` line in the console blocks of a page."""
    found = []
    for block in blocks(path, "console", "bash", ""):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("penultimate "):
                words = shlex.split(line.replace("`", ""), comments=True)[1:]
                ends = [place for place, word in enumerate(words) if word in STOPS]
                found.append(words[: ends[0]] if ends else words)
    return found


def test_every_command_of_every_page_parses() -> None:
    found = [(named(path), words) for path in (*PAGES, *notebooks.NOTEBOOKS) for words in lines(path)]
    found += [
        (name, shlex.split(portrait.provenance["command"])[1:])
        for name, portrait in gallery.portraits().items()
    ]
    assert len(found) > 60
    wrong = []
    for page, words in found:
        if words and not words[-1].startswith("  ") and words[-2:] != ["--set", "--help"]:
            try:
                _parser().parse_args(words)
            except penultimate.PenultimateError as error:
                wrong.append(f"{page}: penultimate {shlex.join(words)}: {error}")
    assert not wrong, "\n".join(wrong)


def test_no_line_of_words_is_a_comment() -> None:
    """MyST leaves out a line that begins with a percent sign, without a warning, and ends the paragraph."""
    lost = re.compile(r"^\s*%.*", re.MULTILINE)
    for path in PAGES:
        assert not lost.findall(BLOCK.sub("", path.read_text(encoding="utf-8"))), named(path)


def test_every_other_line_of_a_console_block_names_what_is_there() -> None:
    """Targets of make, extras of pip, modules of python, and tools that the pages say how to get."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {*project["optional-dependencies"]}
    elsewhere = {"export", "nvidia-cuda-mps-control", "openssl", "ray", "rm"}
    elsewhere |= {"empty/bin/pip", "empty/bin/penultimate"}
    for path in PAGES:
        for block in blocks(path, "console"):
            for line in filter(None, block.replace("\\\n", " ").splitlines()):
                words = shlex.split(line, comments=True)
                match words:
                    case ["make", target]:
                        assert target in targets, f"{named(path)}: {line}"
                    case ["pip", "install", what]:
                        assert set(re.findall(r"\[(.*?)\]", what)) <= extras, f"{named(path)}: {line}"
                    case ["python", "-c", code]:
                        compile(code, named(path), "exec")
                    case ["python", "-m", module, *_]:
                        assert importlib.util.find_spec(module), f"{named(path)}: {line}"
                    case _:
                        known = not words or words[0] == "penultimate" or words[0] in elsewhere
                        assert known, f"{named(path)}: {line}"


def test_every_page_stands_in_a_table_of_contents() -> None:
    found = set()
    for path in PAGES:
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", path.read_text("utf-8"), re.S | re.M):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            found |= {(path.parent / entry).resolve() for entry in entries}
    written = [path for suffix in ("md", "ipynb") for path in (ROOT / "docs").rglob(f"*.{suffix}")]
    pages = {path.with_suffix("") for path in written}
    assert pages - found == {ROOT / "docs/index"}
    made = ("gallery/index", "reference/index", "contributing", "changelog")
    assert found - pages == {ROOT / "docs" / name for name in made}


def test_every_registered_name_that_a_command_gives_exists() -> None:
    kinds = {"show": "exhibit", "why": "exhibit", "run": "study", "plan": "study"}
    for path in PAGES:
        for words in lines(path):
            if words and words[0] in kinds and words[1].islower() and words[1].isidentifier():
                registry.entry(kinds[words[0]], words[1])


def test_every_link_of_every_page_leads_somewhere() -> None:
    """To a file that is distributed, or to a page that is made when the site is built."""
    exhibits = {f"docs/gallery/{name}.md" for name in ("index", *registry.names("exhibit"))}
    listed = {title.lower().replace(" ", "-") for title in reference.KINDS.values()}
    made = exhibits | {f"docs/reference/{name}.md" for name in (*listed, *reference.FURTHER)}
    wrong = []
    for path in PAGES:
        for link in LINK.findall(BLOCK.sub("", path.read_text(encoding="utf-8"))):
            place, _, _ = link.partition("#")
            target = (path.parent / place).resolve()
            if place and "://" not in place and not target.exists() and named(target) not in made:
                wrong.append(f"{named(path)}: {link}")
    assert not wrong, "\n".join(wrong)


def test_readme_is_short_and_begins_with_what_one_can_do() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    order = [
        text.index(part)
        for part in ("make demo", "make test", "pip install", "## Three ways in", "## What came out")
    ]
    assert order == sorted(order)
