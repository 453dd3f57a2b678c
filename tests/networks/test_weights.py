"""Weights from files: the usual prefixes and keys are read; of anything else it is said what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.networks.weights import load_weights, read_weights


def network(classes: int = 3) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, classes))


STATE = {name: value + 0.5 for name, value in network().state_dict().items() if value.is_floating_point()}
WRITTEN: dict[str, Any] = {
    "plain": STATE,
    "state_dict": {"epoch": 3, "state_dict": STATE},
    "one other key": {"epoch": 3, "resnet": STATE},
    "model beside averaged weights": {
        "model": STATE,
        "model_ema": {name: 2 * of for name, of in STATE.items()},
    },
    "distributed": {f"module.{name}": value for name, value in STATE.items()},
    "compiled and distributed": {f"_orig_mod.module.{name}": value for name, value in STATE.items()},
    "lightning": {
        "state_dict": {**{f"model.{name}": of for name, of in STATE.items()}, "loss.weight": torch.ones(3)}
    },
}


@pytest.mark.parametrize("form", WRITTEN)
def test_weights_are_found_in(form: str, tmp_path: Path) -> None:
    torch.save(WRITTEN[form], tmp_path / "w.pth")
    net = network()
    left_out = load_weights(net, read_weights(tmp_path / "w.pth"), tmp_path / "w.pth")
    assert all(torch.equal(net.state_dict()[name], value) for name, value in STATE.items())
    assert ("loss.weight" in left_out) == (form == "lightning")


def test_safetensors_and_parts_are_read(tmp_path: Path) -> None:
    safetensors.torch.save_file(STATE, tmp_path / "w.safetensors")
    assert read_weights(tmp_path / "w.safetensors").keys() == STATE.keys()
    torch.save({"student": STATE, "teacher": {"a": torch.ones(1)}, "ema": STATE}, tmp_path / "w.pth")
    assert [*read_weights(tmp_path / "w.pth", part="teacher")] == ["a"]
    assert read_weights(tmp_path / "w.pth", ema=True).keys() == STATE.keys()
    with pytest.raises(RequestError, match="part='student', part='teacher'"):
        read_weights(tmp_path / "w.pth")
    with pytest.raises(RequestError, match="no weights under part='net'; it holds student, teacher"):
        read_weights(tmp_path / "w.pth", part="net")


def test_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    def refusal(net: nn.Module, tensors: dict[str, Tensor]) -> str:
        with pytest.raises(RequestError) as raised:
            load_weights(net, tensors, tmp_path / "w.pth")
        return str(raised.value)

    less = {name: value for name, value in STATE.items() if name != "3.bias"}
    assert "1 is missing (3.bias)" in refusal(network(), less)
    assert "1 is left over (4.bias)" in refusal(network(), {**STATE, "4.bias": torch.ones(1)})
    assert "num_classes=3 makes one" in refusal(network(7), STATE)
    assert "of another architecture" in refusal(network(), {"other": torch.ones(1)})
    assert "not finite" in refusal(network(), {**STATE, "3.bias": torch.full((3,), torch.nan)})
    assert "quantised" in refusal(network(), {**STATE, "3.bias": torch.ones(3, dtype=torch.int8)})
