"""A module with what is said of it: the same features from extract, evaluate and the layers' functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.evaluation.pictures import class_folders
from torch import Tensor, nn

import penultimate as pu
from penultimate.data.images import ImageSet
from penultimate.errors import RequestError
from penultimate.networks.batches import preparer
from penultimate.networks.building import keep
from penultimate.networks.store import fetch

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 20, 20, 3), dtype=np.uint8)
LABELS = torch.arange(6) % 2
SAID: dict[str, Any] = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4)}


class Net(nn.Module):
    """A body, a neck and a head; a test may take its head off."""

    def __init__(self, head: nn.Module | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.neck, self.fc = nn.Linear(32, 7), nn.Linear(7, 4) if head is None else head

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.neck(self.body(x)).relu())  # type: ignore[no-any-return]


def by_hand(net: Net, side: int) -> Tensor:
    """What the neck gives for the images, normalised and resized by hand."""
    sized = [
        np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR)) for image in IMAGES
    ]
    values = torch.from_numpy(np.stack(sized)).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(SAID[name]).view(1, 3, 1, 1) for name in ("mean", "std"))
    with torch.no_grad():
        return net.neck(net.body((values - mean) / std))  # type: ignore[no-any-return]


def test_bytes_are_prepared_as_they_are_for_a_network_that_is_named() -> None:
    net = Net()
    model = pu.Model(net, layer="neck", size=16, share=1.0, **SAID)
    expected = by_hand(net, 16)
    bytes_first = torch.from_numpy(IMAGES).permute(0, 3, 1, 2)
    images = ImageSet(IMAGES, LABELS.numpy(), np.arange(6), ("a", "b"))
    for data in ([(torch.from_numpy(IMAGES), LABELS)], [(bytes_first, LABELS)], images):
        bank = pu.extract(model, data)
        np.testing.assert_allclose(bank.features, expected, rtol=1e-4, atol=1e-5)
    assert isinstance(net.neck, nn.Linear)
    assert not net.neck._forward_hooks


def test_of_floats_what_is_said_is_done_and_nothing_else() -> None:
    net, values = Net(), torch.from_numpy(IMAGES).permute(0, 3, 1, 2) / 255
    np.testing.assert_array_equal(preparer(pu.Model(net, layer="neck"))(values), values)
    expected = by_hand(net, 20)
    found = pu.extract(
        pu.Model(net, layer="neck", mean=list(SAID["mean"]), std=np.array(SAID["std"])), [(values, LABELS)]
    )
    np.testing.assert_allclose(found.features, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(preparer(pu.Model(net, size=10))(values), values)


def test_layers_are_profiled_and_compared_of_a_model_too() -> None:
    net, values = Net(), torch.from_numpy(IMAGES).permute(0, 3, 1, 2) / 255
    model = pu.Model(net, layer="neck")
    (found,) = pu.profile_layers(model, [(values, LABELS)], "penultimate")
    assert found.dimensions == 7
    compared = pu.compare_networks({"one": model, "other": net}, [values], "neck")
    assert compared.matrix[0, 1] == pytest.approx(1)
    images = ImageSet(IMAGES, LABELS.numpy(), np.arange(6), ("a", "b"))
    assert pu.profile_layers(pu.Model(net, layer="neck", size=20), images, "penultimate")[0].dimensions == 7


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (
            lambda net: pu.Model(net, laier="neck"),
            "unknown setting of 'a Model' 'laier'. Did you mean 'layer'?",
        ),
        (lambda net: pu.Model("timm:resnet18"), "made of an nn.Module, not of a str"),
        (lambda net: pu.Model(net, size=8, crop=8), "size and crop are the same"),
        (lambda net: pu.Model(net, size="big"), "crop is of type int, not 'big'"),
        (lambda net: pu.Model(net, crop=0.9), "is said as share=0.9"),
        (lambda net: pu.Model(net, mean=(0.5, 0.5, 0.5), std=(0.0, 1, 1)), "std is positive"),
        (lambda net: pu.Model(net, mean=("a",)), "mean is a number for each channel, not"),
        (lambda net: pu.Model(net, interpolation="bilinaer"), "Did you mean 'bilinear'?"),
    ],
)
def test_what_no_model_can_be_made_of_is_told(make: Any, answer: str) -> None:
    with pytest.raises(RequestError) as error:
        make(Net())
    assert answer in str(error.value)


class Dropping(Net):
    """Leaves its dropout on."""

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(nn.functional.dropout(self.neck(self.body(x))))  # type: ignore[no-any-return]


@pytest.mark.long
def test_modules_without_a_head_with_a_layer_and_with_chance_are_evaluated(tmp_path: Path) -> None:
    data = {"shapes": class_folders(tmp_path / "shapes", ("disc", "square"), 10)}
    networks = {
        "headless": Net(nn.Identity()),
        "told": pu.Model(Net(), layer="neck", size=16, **SAID),
        "chance": Dropping(),
    }
    made = pu.evaluate(networks, data, size=24, out=tmp_path / "runs")
    assert not made.summary.failed
    page = made.report.read_text()
    assert "two passes over the same images differ" in page
    assert "not deterministic" in page
    again = pu.evaluate(networks, data, size=24, out=tmp_path / "runs")
    assert again.summary.computed == 0
    assert again.ranking == made.ranking


class Doing(nn.Module):
    """Does something to its images before a layer is applied to them."""

    def __init__(self, first: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.fc = first, nn.Linear(192, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.first(x).flatten(1))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (lambda x: x.sub_(0.5), ""),
        (lambda x: x[: len(x)] * 2, ""),
        (nn.functional.dropout, "two passes over the same images differ"),
    ],
)
def test_what_a_networks_numbers_depend_on_is_noted(
    first: Callable[[torch.Tensor], torch.Tensor], told: str, tmp_path: Path
) -> None:
    noted = fetch(keep("net", pu.Model(Doing(first), size=8), {}), (), tmp_path).get("noted", {})
    assert told in noted.get("not deterministic", "")
    assert bool(told) == ("not deterministic" in noted)
