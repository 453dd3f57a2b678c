"""Networks of users' Python files, and how the images of any network are prepared."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision import models, transforms

from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.engine.plan import plan
from penultimate.errors import RequestError
from penultimate.evaluation.request import Request
from penultimate.networks.architectures import IMAGENET, preparation
from penultimate.networks.building import what_is_built
from penultimate.networks.given import GivenNetwork
from penultimate.networks.sources import fingerprint, read_source
from penultimate.networks.store import fetch, load_given

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, channels=3, end="logits"):
        super().__init__()
        self.end = end
        self.block = nn.Sequential(nn.Conv2d(channels, 8, 3, stride=2), nn.ReLU())
        self.neck = nn.Linear(8, 7)
        self.fc = nn.Linear(7, 5)

    def forward(self, x):
        features = self.neck(self.block(x).mean((2, 3))).relu()
        logits = self.fc(features)
        return {
            "logits": logits,
            "tuple": (features, logits),
            "dict": {"features": features, "logits": logits},
            "nan": logits / 0 * 0,
            "maps": [self.block(x)],
            "headless": features,
        }[self.end]

def build(): return Net()
def grey(): return Net(1)
def a_tuple(): return Net(end="tuple")
def a_dict(): return Net(end="dict")
def nan(): return Net(end="nan")
def maps(): return Net(end="maps")
def headless(): return Net(end="headless")
def fails(): return Net(chanels=3)
def wrong(): return "resnet"
def told():
    from penultimate.data.images import ChannelStatistics
    from penultimate.data.disk.preparation import Preparation
    net = Net()
    net.preparation = Preparation(20, 16, "bicubic", ChannelStatistics((0.5,) * 3, (0.25,) * 3))
    return net
"""
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 40, 50, 3), dtype=np.uint8)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my net.py"
    path.write_text(NET)
    return path


def given(text: str, folder: Path, classes: int = 0) -> GivenNetwork:
    stored = folder / "stored"
    stored.mkdir()
    fetch(text, tuple(map(str, range(classes))), stored)
    return load_given(stored)


def test_a_function_of_a_file_builds_the_network_and_its_weights_are_loaded(
    file: Path, tmp_path: Path
) -> None:
    scope: dict[str, type[nn.Module]] = {}
    exec(NET, scope)
    trained = scope["Net"]().eval()
    torch.save({"state_dict": trained.state_dict()}, tmp_path / "best.pth")
    text = f"{file}:build(weights={str(tmp_path / 'best.pth')!r}, crop=32)"
    assert set(fingerprint(text)) == {"my net.py", "best.pth"}
    network = given(text, tmp_path, classes=5)
    file.unlink()
    images = torch.from_numpy(IMAGES)
    features = network.features(images)
    assert features.shape == (6, 7)
    with torch.no_grad():
        expected = trained(network.prepared(images))
    torch.testing.assert_close(network.logits(features), expected)


@pytest.mark.parametrize("function", ["a_tuple", "a_dict"])
def test_of_a_tuple_or_a_dict_the_logits_are_found(function: str, file: Path, tmp_path: Path) -> None:
    network = given(f"{file}:{function}(crop=32)", tmp_path, classes=5)
    features = network.features(torch.from_numpy(IMAGES))
    assert features.shape == (6, 7)
    assert network.logits(features).shape == (6, 5)


def test_a_network_of_one_channel_sees_grey(file: Path, tmp_path: Path) -> None:
    network = given(f"{file}:grey(crop=32)", tmp_path)
    prepared = network.prepared(torch.from_numpy(IMAGES))
    assert prepared.shape == (6, 1, 32, 32)
    assert network.preparation.statistics == ChannelStatistics((0.449,), (0.226,))
    grey = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in IMAGES])[..., None]
    torch.testing.assert_close(prepared, network.prepared(torch.from_numpy(grey)))
    assert network.features(torch.from_numpy(IMAGES)).shape == (6, 7)


def test_a_layer_may_be_named_and_the_output_of_a_network_without_a_head(file: Path, tmp_path: Path) -> None:
    for said, name in (("", "none"), (", layer='output'", "one"), (", layer='neck'", "two")):
        (tmp_path / name).mkdir()
        network = given(f"{file}:headless(crop=32{said})", tmp_path / name)
        assert network.features(torch.from_numpy(IMAGES)).shape == (6, 7)
        assert network.final is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("{file}:fails", "line 32: fails() fails: TypeError: "),
        ("{file}:build(mean=(0.5,), std=(0.5,))", "refuses images [2, 1, 224, 224]: "),
        ("{file}:build(mean=(0.5, 0.5))", "expected a mean and a std for each channel"),
        ("{file}:build(std=(0.5, 0.5, 0))", "std is positive"),
        ("{file}:build(interpolation='bicubik')", "Did you mean 'bicubic'?"),
        ("{file}:build(layer='blok')", "no layer matches 'blok'; the nearest names: block"),
        ("{file}:build(wights='x')", "unknown setting"),
        ("{file}:build(ema=True)", "ema=True goes with weights='FILE'"),
        ("{file}", "name the function"),
        ("{folder}/none.py:build", "there is no network file"),
    ],
)
def test_what_is_wrong_is_a_sentence(file: Path, tmp_path: Path, text: str, answer: str) -> None:
    with pytest.raises(RequestError) as error:
        fetch(text.format(file=file, folder=tmp_path), (), tmp_path)
    assert answer in str(error.value)
    assert not (tmp_path / "given.json").exists()


def test_a_final_layer_for_other_classes_comes_with_its_weights(tmp_path: Path) -> None:
    import timm

    torch.save(timm.create_model("test_resnet", num_classes=7).state_dict(), tmp_path / "w.pth")
    source = f"timm:test_resnet(weights={str(tmp_path / 'w.pth')!r}"
    with pytest.raises(RequestError, match="num_classes=7 makes one"):
        fetch(f"{source})", (), tmp_path)
    assert given(f"{source}, num_classes=7)", tmp_path, classes=7).class_names == tuple("0123456")


# -- what the file depends on -------------------------------------------------------------------------------

SMALL = """
import json, os, random
from pathlib import Path
import numpy as np
import torch
from torch import nn

HERE = Path(__file__).parent

class Net(nn.Module):
    def __init__(self, act=torch.tanh, by=1.0):
        super().__init__()
        self.neck, self.fc = nn.Linear(3, 7), nn.Linear(7, 5)
        self.act, self.by = act, by

    def forward(self, x):
        return self.fc(self.act(self.neck(x.mean((2, 3)))) * self.by)

def fresh():
    return Net()

def own_weights():
    net = Net()
    net.load_state_dict(torch.load(HERE / "own.pth"))
    return net

def by_configuration():
    return Net(by=json.loads((HERE / "net.json").read_text())["by"])

def by_environment():
    return Net(by=float(os.environ["OF_A_TEST"]))

def by_module():
    import layers
    return Net(act=layers.act)

def by_package():
    from parts.inner import act
    return Net(act=act)

def hidden():
    net = Net()
    net.register_buffer("scale", torch.from_numpy(np.load(HERE / "scale.npy")), persistent=False)
    return net

def drawn():
    net = Net()
    net.fc.weight.data *= random.random() + np.random.rand()
    return net

def unsteady():
    net = Net()
    net.fc.weight.data[0, 0] = int.from_bytes(os.urandom(3), "big")
    return net
"""
SMALLEST = "(crop=8)"


BENT = "import torch\ndef act(x): return torch.relu(x)\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "lies").mkdir()
    path = tmp_path / "lies" / "small.py"
    path.write_text(SMALL)
    scope: dict[str, Any] = {"__file__": str(path)}
    exec(SMALL, scope)
    torch.save(scope["Net"]().state_dict(), path.parent / "own.pth")
    (path.parent / "net.json").write_text('{"by": 1.5}')
    (path.parent / "layers.py").write_text("import torch\ndef act(x): return torch.tanh(x)\n")
    (path.parent / "parts").mkdir()
    (path.parent / "parts" / "__init__.py").touch()
    (path.parent / "parts" / "inner.py").write_text("from .act import act\n")
    (path.parent / "parts" / "act.py").write_text("import torch\ndef act(x): return torch.tanh(x)\n")
    np.save(path.parent / "scale.npy", np.ones(2, np.float32))
    return path


def known(file: Path, function: str) -> dict[str, Any]:
    found = what_is_built(f"{file}:{function}{SMALLEST}")
    assert "unbuilt" not in found, found
    return found


def other_weights(folder: Path) -> None:
    state = torch.load(folder / "own.pth")
    state["fc.bias"][0] += 1e-3
    torch.save(state, folder / "own.pth")


CHANGES: dict[str, Callable[[Path], object]] = {
    "own_weights": other_weights,
    "by_configuration": lambda folder: (folder / "net.json").write_text('{"by": 2.5}'),
    "by_environment": lambda folder: os.environ.update(OF_A_TEST="3"),
    "by_module": lambda folder: (folder / "layers.py").write_text(
        "import torch\ndef act(x): return torch.relu(x)\n"
    ),
    "by_package": lambda folder: (folder / "parts" / "act.py").write_text(BENT),
    "hidden": lambda folder: np.save(folder / "scale.npy", np.full(2, 2, np.float32)),
}


@pytest.mark.parametrize("function", CHANGES)
def test_a_network_is_another_where_what_it_depends_on_is(
    small: Path, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_A_TEST", "2")
    first = known(small, function)
    assert known(small, function) == first
    CHANGES[function](small.parent)
    second = known(small, function)
    assert (second["weights"], second["outputs"]) != (first["weights"], first["outputs"])


@pytest.mark.parametrize("function", ["own_weights", "by_module", "by_package", "hidden"])
def test_later_steps_find_what_lies_beside_the_file(small: Path, tmp_path: Path, function: str) -> None:
    network = given(f"{small}:{function}{SMALLEST}", tmp_path)
    assert network.features(torch.from_numpy(IMAGES)).shape == (6, 7)


def test_the_text_is_kept_and_weights_too(small: Path, tmp_path: Path) -> None:
    network = given(f"{small}:own_weights{SMALLEST}", tmp_path)
    expected = network.features(torch.from_numpy(IMAGES))
    other_weights(small.parent)
    small.write_text("def own_weights(): return None\n")
    found = load_given(tmp_path / "stored").features(torch.from_numpy(IMAGES))
    torch.testing.assert_close(found, expected)


def test_what_has_gone_or_changed_since_is_told(small: Path, tmp_path: Path) -> None:
    given(f"{small}:by_module{SMALLEST}", tmp_path)
    (small.parent / "layers.py").write_text(BENT)
    with pytest.raises(RequestError, match=r"small\.py:by_module' builds was changed since"):
        load_given(tmp_path / "stored")
    shutil.rmtree(small.parent)
    with pytest.raises(
        RequestError, match=r"needs the package 'layers'.*It lay at '.*small\.py', and what it"
    ):
        load_given(tmp_path / "stored")


def test_a_network_that_needs_nothing_beside_it_goes_on_without_its_file(small: Path, tmp_path: Path) -> None:
    given(f"{small}:fresh{SMALLEST}", tmp_path)
    shutil.rmtree(small.parent)
    assert load_given(tmp_path / "stored").features(torch.from_numpy(IMAGES)).shape == (6, 7)


def test_what_changes_between_the_start_and_its_step_is_refused(small: Path, tmp_path: Path) -> None:
    text = f"{small}:own_weights{SMALLEST}"
    began = what_is_built(text)
    other_weights(small.parent)
    with pytest.raises(RequestError, match="was changed since the study began; start it again"):
        fetch(text, (), tmp_path, began)


def test_a_network_that_is_another_each_time_is_refused(small: Path, tmp_path: Path) -> None:
    text = f"{small}:unsteady{SMALLEST}"
    with pytest.raises(RequestError, match="builds another network each time that it is called"):
        fetch(text, (), tmp_path, what_is_built(text))


def test_what_could_not_be_built_at_the_start_is_told_by_its_step(small: Path, tmp_path: Path) -> None:
    text = f"{small}:own_weights{SMALLEST}"
    (small.parent / "own.pth").rename(tmp_path / "own.pth")
    began = what_is_built(text)
    with pytest.raises(RequestError, match=r"own_weights\(\) fails: FileNotFoundError: .*own\.pth"):
        fetch(text, (), tmp_path, began)
    (tmp_path / "own.pth").rename(small.parent / "own.pth")
    with pytest.raises(RequestError, match="could not be built when the study began, and now it can"):
        fetch(text, (), tmp_path, began)


def test_a_study_builds_once_for_a_start_and_its_identity_follows(small: Path) -> None:
    count = small.parent / "count"
    small.write_text(SMALL + f"\nwith open({str(count)!r}, 'a') as f: f.write('x')\n")
    study = Request({"mine": f"{small}:own_weights{SMALLEST}"}, {"digits_smoke": ""}).study()

    def step() -> str:
        return next(
            each for each in plan(study, small.parent / "runs").graph.steps if each.startswith("given")
        )

    first = step()
    assert (count.read_text(), step()) == ("x", first)
    other_weights(small.parent)
    assert step() != first


# -- how images are prepared --------------------------------------------------------------------------------


def test_a_users_network_may_say_how_its_images_are_prepared(file: Path, tmp_path: Path) -> None:
    network = given(f"{file}:told", tmp_path)
    half = ChannelStatistics((0.5,) * 3, (0.25,) * 3)
    assert network.preparation == Preparation(20, 16, "bicubic", half)


def test_torchvisions_weights_bring_their_own(tmp_path: Path) -> None:
    module = models.resnet50()

    def of(text: str) -> Preparation:
        return preparation(read_source(text), module)[0]

    assert of("torchvision:resnet50(weights='IMAGENET1K_V1')") == Preparation(256, 224, "bilinear", IMAGENET)
    assert of("torchvision:resnet50").resize == 232
    assert of("torchvision:resnet50(weights='a/resnet50-0676ba61.pth')").resize == 256
    assert of("torchvision:resnet50(crop=128)").resize == round(232 * 128 / 224)
    assert of("torchvision:resnet50(crop=160, share=0.9)").resize == 177
    assert preparation(read_source("torchvision:resnet50(share=1.0)"), module)[1] == (
        "its weights at torchvision; share=1.0 as told"
    )
    for settings in ("resize=200, share=0.9", "share=0.0", "share=1.5"):
        with pytest.raises(RequestError, match="share is the fraction of the resized image"):
            of(f"torchvision:resnet50({settings})")


@pytest.mark.parametrize("shape", [(24, 24), (40, 50), (300, 260)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest", "lanczos"])
@pytest.mark.parametrize("squash", [False, True])
def test_bytes_in_memory_are_prepared_as_by_torchvision(
    shape: tuple[int, int], interpolation: str, squash: bool
) -> None:
    wanted = Preparation(73, 64, interpolation, IMAGENET, squash)  # type: ignore[arg-type]
    network = GivenNetwork(nn.Identity(), None, wanted, ())
    images = np.random.default_rng(1).integers(0, 256, (2, *shape, 3), dtype=np.uint8)
    transform = transforms.Compose(
        [
            transforms.Resize((73, 73) if squash else 73, transforms.InterpolationMode(interpolation)),
            transforms.CenterCrop(64),
            transforms.ToTensor(),
            transforms.Normalize(IMAGENET.mean, IMAGENET.std),
        ]
    )
    expected = torch.stack([transform(Image.fromarray(image)) for image in images])
    found = network.prepared(torch.from_numpy(images))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
