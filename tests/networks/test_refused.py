"""What cannot be loaded as a network is refused in one sentence, which says what was found and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from torchvision import models

import penultimate as pu
from penultimate.errors import RequestError

TINY = "timm:test_resnet(pretrained=False)"
NET = """
import torch
from torch import nn
from torch.nn import functional as F

class Bare(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.body, self.w, self.scale = nn.Flatten(), nn.Parameter(torch.randn(4, 12)), scale
    def forward(self, x):
        return self.scale * F.linear(F.normalize(self.body(x)), F.normalize(self.w))

def bare(): return Bare(30.0)
def maps(): return nn.Conv2d(3, 4, 1)
def wrong(): return "resnet"
def fails(): return Bare(scal=1)
"""


class Evil:
    """A pickle that would make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of weights of all kinds, and a Python file."""
    place = tmp_path_factory.mktemp("refused")
    state = timm.create_model("test_resnet").state_dict()
    written: dict[str, Any] = {
        "other": models.shufflenet_v2_x0_5().state_dict(),
        "less": {name: value for name, value in state.items() if name != "fc.bias"},
        "more": {**state, "fc2.bias": torch.ones(1)},
        "seven": timm.create_model("test_resnet", num_classes=7).state_dict(),
        "nan": {**state, "fc.bias": torch.full((1000,), torch.nan)},
        "several": {"student": state, "teacher": state},
        "list": [1, 2],
        "none": {"epoch": 3},
        "evil": {"state_dict": Evil(place / "made")},
    }
    for name, content in written.items():
        torch.save(content, place / f"{name}.pth")
    old = {"state_dict": Evil(place / "made")}
    torch.save(old, place / "evil_old.pth", _use_new_zipfile_serialization=False)
    (place / "empty.pth").touch()
    (place / "page.pth").write_text("<html>not found</html>")
    (place / "cut.pth").write_bytes((place / "less.pth").read_bytes()[:5000])
    (place / "net.py").write_text(NET)
    return place


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("other", r"weights of this network \(ResNet\): 70 are missing .* 6 are of another shape"),
        ("less", r"1 is missing \(fc.bias\)"),
        ("more", r"1 is left over \(fc2.bias\)"),
        ("seven", "a final layer for 7 classes.* num_classes=7 makes one"),
        ("nan", "'fc.bias' holds values that are not finite; the training diverged"),
        ("several", "several keys; say which: part='student', part='teacher'"),
        ("list", "does not hold weights but a list"),
        ("none", "holds no weights by name; it holds epoch"),
        (
            "evil",
            r"more than tensors and plain values \(posix.mkdir\); nothing in it was run. Save torch.save",
        ),
        ("evil_old", "more than tensors and plain values .*; nothing in it was run"),
        ("empty", "it is empty"),
        ("page", "neither a checkpoint of torch.save.* nor safetensors"),
        ("cut", "cut short or damaged .*; copy it again"),
        ("nowhere", "it is missing"),
    ],
)
def test_weights_that_do_not_fit_or_cannot_be_read(weights: str, said: str, folder: Path) -> None:
    with pytest.raises(RequestError, match=said):
        pu.load(TINY, weights=folder / f"{weights}.pth")
    assert not (folder / "made").exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("timm:test_resnett(pretrained=False)", "timm has no network 'test_resnett'. Did you mean"),
        ("timm:elsewhere:resnet18(pretrained=False)", "no network 'elsewhere:resnet18'"),
        ("timm:resnet18.none(pretrained=False)", "no network 'resnet18.none'. Did you mean 'resnet18'"),
        ("torchvision:raft_small(pretrained=False)", "torchvision has no network 'raft_small'"),
        ("tim:resnet18", "unknown kind of given network 'tim'. Did you mean 'timm'"),
        ("resnet18", "Did you mean 'timm:resnet18'"),
        ("folder:{folder}", "no network in '.*': network.json is missing"),
        ("{folder}/net.py:bild", "defines no function 'bild'"),
        ("{folder}/net.py:wrong", "returns a str, not an nn.Module"),
        ("{folder}/net.py:fails", r"line 16: fails\(\) fails: TypeError: .* Did you mean 'scale'"),
        ("{folder}/net.py:bare(crop=2)", "'w' .* may be its final layer.*head='NAME'.*layer='NAME'"),
        (
            "{folder}/net.py:maps(crop=2)",
            r"features are \[n m\]; its output is \[2, 4, 2, 2\]; nn.Sequential",
        ),
        ("{folder}/net.py:bare(crop=3)", "refuses images .* crop=64"),
    ],
)
def test_networks_that_cannot_be_had_or_proved(source: str, said: str, folder: Path) -> None:
    with pytest.raises(RequestError, match=said):
        pu.load(source.format(folder=folder))


def test_a_final_layer_that_is_no_module_is_found_where_the_features_are_named(folder: Path) -> None:
    assert pu.load(f"{folder}/net.py:bare", crop=2, layer="body").features(torch.ones(1, 3, 2, 2)).shape == (
        1,
        12,
    )


def _unreachable(*arguments: Any, **settings: Any) -> None:
    raise OSError("there is no route to the host")


@pytest.mark.parametrize("source", ["timm:test_resnet", "torchvision:resnet18", "hf:owner/net"])
def test_a_hub_that_cannot_be_reached(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if source.startswith("hf:"):
        pytest.importorskip("transformers")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("timm.models._builder.load_pretrained", _unreachable)
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", _unreachable)
    with pytest.raises(RequestError, match=rf"{source} cannot be loaded: .*HF_HUB_OFFLINE=1.*weights='FILE'"):
        pu.load(source)
