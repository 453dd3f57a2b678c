"""The final layer of a module is proved with numbers; where it cannot be, the user is asked to name it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import penultimate as pu
from penultimate.backbones.ending import NoHeadError

IMAGES = torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(6) % 3


class Net(nn.Module):
    """A body of 8 features, and an end of 5 numbers."""

    def __init__(self, end: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.end = end
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.conv, self.norm = nn.Conv2d(8, 5, 1), nn.BatchNorm1d(5)
        if end in ("bare", "cosine"):
            self.bare = nn.Parameter(torch.randn(5, 8))
        elif end == "average":
            self.second = nn.Linear(8, 5)
        if end not in ("bare", "cosine", "convolution", "features"):
            self.first = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> object:
        features = self.body(x)
        match self.end:
            case "bare":
                return F.linear(features, self.bare)
            case "cosine":
                return F.linear(F.normalize(features), F.normalize(self.bare))
            case "convolution":
                return self.conv(self.body[:2](x)).mean((2, 3))
            case "average":
                return (self.first(features) + self.second(features)) / 2
            case "named":
                return {"loss": None, "logits": self.first(features)}
            case "norm":
                return self.norm(self.first(features))
            case "unit":
                return F.normalize(self.first(features))
            case "features":
                return features
        z = self.first(features)
        ends = {"softmax": z.softmax(1), "sigmoid": z.sigmoid(), "scaled": z / 0.05, "cubed": z**3}
        return ends.get(self.end, z)


@pytest.mark.parametrize(
    "end", ["linear", "softmax", "sigmoid", "scaled", "convolution", "average", "named", "features"]
)
def test_the_features_are_what_the_final_layer_is_given(end: str) -> None:
    net = Net(end).eval()
    bank = pu.extract(net, [(IMAGES, LABELS)])
    with torch.no_grad():
        np.testing.assert_allclose(bank.features, net.body(IMAGES).numpy(), rtol=1e-5, atol=1e-6)
        made = net.conv(net.body[:2](IMAGES)).mean((2, 3)) if end == "convolution" else None
        logits = net.first(net.body(IMAGES)) if hasattr(net, "first") else made
    if end not in ("features", "average"):
        scale = 20 if end == "scaled" else 1
        np.testing.assert_allclose(bank.logits, scale * logits.numpy(), rtol=1e-4, atol=1e-4)
    assert (bank.logits is None) == (end == "features")


@pytest.mark.parametrize("end", ["norm", "unit"])
def test_an_embedding_that_is_normalised_is_the_features(end: str) -> None:
    bank = pu.extract(Net(end), [(IMAGES, LABELS)])
    assert bank.features.shape == (6, 5)
    assert bank.logits is None


@pytest.mark.parametrize(("end", "said"), [("bare", "'bare'"), ("cosine", "'bare'"), ("cubed", "'first'")])
def test_what_cannot_be_proved_is_asked_for(end: str, said: str) -> None:
    with pytest.raises(NoHeadError, match=rf"{said}.*head='NAME'.*layer='NAME'"):
        pu.extract(Net(end), [(IMAGES, LABELS)])
    assert pu.extract(Net(end), [(IMAGES, LABELS)], layer="body").features.shape == (6, 8)


def test_a_head_that_is_named_is_the_final_layer() -> None:
    bank = pu.extract(Net("cubed"), [(IMAGES, LABELS)], head="first")
    assert bank.features.shape == (6, 8)
    with pytest.raises(pu.RequestError, match="head='neck' is no layer of Net"):
        pu.extract(Net("cubed"), [(IMAGES, LABELS)], head="neck")


def test_a_scripted_module_is_asked_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.trace(Net("linear").eval(), IMAGES)
    with pytest.raises(NoHeadError, match="layer='output'"):
        pu.extract(scripted, [(IMAGES, LABELS)])
    assert pu.extract(scripted, [(IMAGES, LABELS)], layer="output").features.shape == (6, 5)
