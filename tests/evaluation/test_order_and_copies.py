"""Networks as classifiers in whatever order they were trained; copies left out; images counted once."""

from __future__ import annotations

import html
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.conftest import rows_in
from torch import Tensor, nn

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.evaluation import Evaluation
from penultimate.evaluation.request import Request
from penultimate.report import exhibit
from penultimate.study.unfold import unfold

SIDE = 16
CLASSES = [f"kind_{number}" for number in range(1, 13)]
TEXT, NATURAL = sorted(CLASSES), CLASSES
MEAN, STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])


def colour(name: str) -> np.ndarray:
    number = CLASSES.index(name)
    return np.array([number * 37 % 200 + 20, number * 91 % 200 + 20, number * 151 % 200 + 20])


class Nearest(nn.Module):
    """A network whose outputs are the classes in an order, and which is right on every image."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        centres = (torch.tensor(np.stack([colour(name) for name in order])) / 255 - MEAN) / STD
        self.pool, self.last = nn.AdaptiveAvgPool2d(1), nn.Linear(3, len(order))
        self.last.weight.data = (200 * centres).float()
        self.last.bias.data = (-100 * (centres * centres).sum(1)).float()

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.last(self.pool(images).flatten(1))
        return logits


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four training and three test images of each class."""
    root, random = tmp_path_factory.mktemp("colours"), np.random.default_rng(0)
    for split, count in (("train", 4), ("test", 3)):
        for name in CLASSES:
            (root / split / name).mkdir(parents=True)
            for number in range(count):
                pixels = colour(name) + random.integers(-6, 6, (SIDE, SIDE, 3))
                Image.fromarray(pixels.astype(np.uint8)).save(root / split / name / f"{number}.png")
    return root


def evaluated(order: list[str], colours: Path, out: Path, **said: object) -> Evaluation:
    data = {"task": colours, "source": colours}
    networks = {"mine": Nearest(order)}
    return pu.evaluate(networks, data, source="source", classifies=True, size=SIDE, out=out, **said)  # type: ignore[arg-type]


def top1(done: Evaluation) -> list[float]:
    return [row.value for row in rows_in(done.out, done.study).where(metric="top1", split="test")]


def page(done: Evaluation) -> str:
    return " ".join(html.unescape(done.report.read_text()).split())


@pytest.mark.long
def test_a_network_of_imagefolder_is_right_without_a_word(colours: Path, tmp_path: Path) -> None:
    done = evaluated(TEXT, colours, tmp_path)
    assert top1(done) == [1.0]
    (order,) = done.remarks
    assert "for the classes of source sorted as plain text, as torchvision's ImageFolder" in order
    assert "kind_1, kind_10, kind_11, kind_12, kind_2" in order
    assert "Hugging Face number them: kind_1, kind_10, kind_11, kind_12, kind_2" in page(done)
    assert order in repr(done)


@pytest.mark.long
def test_another_order_is_said_by_its_name_or_by_a_file(colours: Path, tmp_path: Path) -> None:
    assert top1(evaluated(NATURAL, colours, tmp_path / "a")) == [pytest.approx(1 / 12)]
    assert top1(evaluated(NATURAL, colours, tmp_path / "b", class_order="natural")) == [1.0]
    shuffled = [CLASSES[place] for place in np.random.default_rng(1).permutation(12)]
    (tmp_path / "order.json").write_text(json.dumps({name: place for place, name in enumerate(shuffled)}))
    said = evaluated(shuffled, colours, tmp_path / "b", class_order=tmp_path / "order.json")
    assert top1(said) == [1.0]
    assert "taken for the classes of source as you gave them" in said.remarks[0]


@pytest.mark.long
def test_an_order_may_hold_classes_of_which_there_are_no_images(colours: Path, tmp_path: Path) -> None:
    few = tmp_path / "few"
    for split in ("train", "test"):
        for name in ("kind_2", "kind_10", "kind_7"):
            shutil.copytree(colours / split / name, few / split / name)
    done = pu.evaluate(
        {"mine": Nearest(NATURAL)},
        {"task": colours, "source": few},
        source="source",
        classifies=True,
        size=SIDE,
        out=tmp_path / "out",
        class_order=NATURAL,
    )
    assert top1(done) == [1.0]


BUILDS = """
import torch
from torch import nn


def natural():
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 12))
    network.load_state_dict(torch.load({weights!r}))
    return network


def text():
    network = natural()
    order = {order}
    for name, tensor in network[2].named_parameters():
        tensor.data = tensor.data[order]
    return network


def one_more():
    network, last = natural(), nn.Linear(3, 13)
    for name, tensor in last.named_parameters():
        tensor.data[1:] = getattr(network[2], name).data
        tensor.data[0] = -1e4 if name == "bias" else 0
    network[2] = last
    return network
"""


@pytest.mark.long
def test_orders_are_said_through_the_command(
    colours: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Keras, torchvision and timm number the folders 1 to 12 in two ways; a file says a third."""
    last = Nearest(NATURAL).last.state_dict()
    torch.save({f"2.{name}": tensor for name, tensor in last.items()}, tmp_path / "w.pt")
    order = [NATURAL.index(name) for name in TEXT]
    (tmp_path / "net.py").write_text(BUILDS.format(weights=str(tmp_path / "w.pt"), order=order))

    def said(name: str, order: str, *builds: str) -> tuple[dict[str, float], str]:
        models = [text for build in builds for text in ("--model", f"{build}={tmp_path}/net.py:{build}")]
        where = ["--data", f"task={colours}", "--source", f"source={colours}", "--classifies", "all"]
        further = ["--class-order", order] if order else []
        study = ["--size", str(SIDE), "--out", str(tmp_path / "runs"), "--name", name, "--processes", "1"]
        assert main(["evaluate", *models, *where, *further, *study]) == 0
        rows = rows_in(tmp_path / "runs", name)
        printed = " ".join(capfd.readouterr().out.split())
        return {str(row.objective): row.value for row in rows.where(metric="top1", split="test")}, printed

    both, told = said("taken", "", "natural", "text")
    assert both == {"natural": pytest.approx(1 / 12), "text": 1.0}
    assert "for the classes of source sorted as plain text, as torchvision's ImageFolder" in told
    names = {"class_to_idx": {name: place for place, name in enumerate(["none", *NATURAL])}}
    (tmp_path / "saved.json").write_text(json.dumps(names))
    assert said("saved", str(tmp_path / "saved.json"), "one_more")[0] == {"one_more": 1.0}
    (tmp_path / "right.json").write_text(json.dumps({str(place): name for place, name in enumerate(NATURAL)}))
    assert said("right", str(tmp_path / "right.json"), "natural")[0] == {"natural": 1.0}


def test_what_cannot_be_said_of_an_order(colours: Path) -> None:
    where = {"task": str(colours), "source": str(colours)}
    with pytest.raises(RequestError, match="an order of classes goes with a source on disk"):
        Request({"a": "timm:test_vit"}, where, class_order="text").study()
    with pytest.raises(RequestError, match="copies are to 'keep' or to 'drop', not 'some'"):
        Request({"a": "timm:test_vit"}, where, copies="some").study()
    with pytest.raises(RequestError, match=r"lacks 11 classes \('kind_10'"):
        unfold(Request({"a": "timm:test_vit"}, where, "source", True, class_order=("kind_1",)).study())
    arguments = ["evaluate", "--model", "timm:test_vit", "--data", str(colours), "--source", f"s={colours}"]
    assert main([*arguments, "--classifies", "all", "--class-order", "sorted"]) == 2


@pytest.mark.long
def test_copies_are_said_and_left_out_and_every_table_counts_the_same_images(
    colours: Path, tmp_path: Path
) -> None:
    root = tmp_path / "copied"
    shutil.copytree(colours, root)
    shutil.copy(root / "test/kind_1/0.png", root / "train/kind_1/copy.png")
    shutil.copy(root / "test/kind_1/0.png", root / "test/kind_1/copy.png")
    (root / "test/kind_2/0.png").write_bytes(b"no image")
    networks = {"mine": Nearest(TEXT)}
    counts = {}
    for copies in ("keep", "drop"):
        done = pu.evaluate(networks, {"task": root}, size=SIDE, out=tmp_path / copies, copies=copies)
        assert "1 train image" not in " ".join(done.remarks)
        told = page(done)
        assert "1 test image is there more than once: 'test/kind_1/copy.png' and" in told
        assert "2 test images of 37 are exact copies of train images" in told
        assert ("of these copies 2 are left out" in told) == (copies == "drop")
        (table,) = [each for each in exhibit("basis", done.out).tables if each.name == "basis_data"]
        (row,) = table.rows
        counts[copies] = [row.cells[place].text for place in (2, 3)]
        ranked = {each["test_images"] for each in done if each["task"] == "task"}
        assert ranked == {int(counts[copies][1])}
    assert counts == {"keep": ["49", "36"], "drop": ["48", "35"]}
