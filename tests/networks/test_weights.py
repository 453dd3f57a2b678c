"""Weights from files: wrappers come off, what does not fit is named, and nothing in a file is executed."""

from __future__ import annotations

import argparse
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.networks.weights import load_weights, read_weights

State = dict[str, Tensor]


def small(classes: int = 4, width: int = 6) -> nn.Module:
    net = nn.Sequential()
    net.add_module("stem", nn.Sequential(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.ReLU()))
    net.add_module("head", nn.Linear(width, classes))
    return net


def prefixed(state: State, prefix: str) -> State:
    return {f"{prefix}{name}": value for name, value in state.items()}


WRAPPED: dict[str, Callable[[State], Any]] = {
    "bare": lambda state: state,
    "state_dict": lambda state: {"epoch": 3, "state_dict": state, "args": argparse.Namespace(lr=0.1)},
    "model": lambda state: {"model": state, "optimizer": {"state": {}}},
    "DataParallel": lambda state: {"state_dict": prefixed(state, "module.")},
    "compiled": lambda state: prefixed(state, "_orig_mod."),
    "both": lambda state: {"model": prefixed(state, "module._orig_mod.")},
    "compiled inside": lambda state: {k.replace("stem.", "stem._orig_mod."): v for k, v in state.items()},
    "Lightning": lambda state: {"state_dict": prefixed(state, "model."), "loops": {}},
    "old": lambda state: {k: v for k, v in state.items() if "num_batches" not in k},
}


@pytest.mark.parametrize("how", WRAPPED)
def test_the_usual_wrappers_come_off(how: str, tmp_path: Path) -> None:
    given, taken = small(), small()
    torch.save(WRAPPED[how](given.state_dict()), tmp_path / "w.pth")
    load_weights(taken, read_weights(tmp_path / "w.pth"), tmp_path / "w.pth")
    for name, value in given.named_parameters():
        assert torch.equal(taken.get_parameter(name), value)


def test_averaged_weights_are_taken_by_option(tmp_path: Path) -> None:
    plain, averaged = small(), small()
    ema = {"n_averaged": torch.tensor(7), **prefixed(averaged.state_dict(), "module.")}
    for key in ("model_ema", "state_dict_ema"):
        torch.save({"model": plain.state_dict(), key: ema}, tmp_path / "w.pth")
        for wanted, flag in ((plain, False), (averaged, True)):
            taken = small()
            load_weights(taken, read_weights(tmp_path / "w.pth", flag), tmp_path / "w.pth")
            assert torch.equal(taken.head.weight, wanted.head.weight)
    torch.save({"model": plain.state_dict(), "epoch": 1}, tmp_path / "w.pth")
    with pytest.raises(RequestError, match=r"holds no averaged weights .*; it holds model, epoch"):
        read_weights(tmp_path / "w.pth", ema=True)


def misfit(state: State, net: nn.Module | None = None) -> str:
    with pytest.raises(RequestError) as error:
        load_weights(net or small(), state, Path("best.pth"))
    return str(error.value)


def test_what_does_not_fit_is_named() -> None:
    state = small().state_dict()
    without = {name: value for name, value in state.items() if name != "head.bias"}
    start = "'best.pth' does not hold weights of this network (Sequential): "
    assert misfit(without) == f"{start}of its 9 tensors 8 fit, 1 is missing (head.bias)"
    more = {**state, **{f"tail.{place}": torch.zeros(3) for place in range(6)}}
    beside = "6 more are there that it does not have (tail.0, tail.1, tail.2, tail.3, ...)"
    assert misfit(more) == f"{start}all 9 of its tensors fit, and {beside}"
    renamed = {**without, "tail.bias": torch.zeros(4)}
    assert misfit(renamed).endswith("(head.bias), and 1 more is there that it does not have (tail.bias)")
    said = misfit({**state, "head.weight": torch.zeros(9, 6), "head.bias": torch.zeros(9)})
    shapes = "head.weight is [9, 6], not [4, 6], head.bias is [9], not [4]"
    assert f"of its 9 tensors 7 fit, 2 are of another shape ({shapes})" in said
    assert "a final layer for 9 classes? num_classes=9" in said
    assert "is it of another architecture?" not in said
    other = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.Linear(8, 2)).state_dict()
    said = misfit(other)
    assert "of its 8 tensors none fits, 8 are missing (stem.0.weight, " in said
    assert said.endswith("; is it of another architecture?")
    assert said.count("stem.") <= 4


def test_a_network_without_a_value_is_told(tmp_path: Path) -> None:
    state = small().state_dict()
    state["stem.0.weight"][0] = float("nan")
    assert "'stem.0.weight' holds values that are not finite" in misfit(state)


class Hostile:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("ending", ["pth", "pt", "ckpt", "bin"])
def test_of_a_hostile_pickle_nothing_runs(tmp_path: Path, ending: str, zipped: bool) -> None:
    mark, file = tmp_path / "ran", tmp_path / f"w.{ending}"
    content = {"state_dict": small().state_dict(), "args": Hostile(mark)}
    if zipped:
        torch.save(content, file)
    else:
        file.write_bytes(pickle.dumps(Hostile(mark)))
    with pytest.raises(RequestError, match=r"(?s)holds more than tensors.*nothing in it was run") as error:
        read_weights(file)
    assert not mark.exists()
    assert not zipped or "system" in str(error.value)


def test_a_whole_pickled_module_is_refused_with_the_way_out(tmp_path: Path) -> None:
    torch.save(small(), tmp_path / "w.pth")
    with pytest.raises(RequestError, match=r"torch\.save\(model\.state_dict\(\), FILE\), or safetensors"):
        read_weights(tmp_path / "w.pth")


def test_files_that_hold_no_weights_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(b"\xff" * 40)
    (tmp_path / "empty.pth").write_bytes(b"")
    torch.save(torch.ones(3), tmp_path / "tensor.pth")
    torch.save({"epoch": 3, "model_ema": small().state_dict()}, tmp_path / "ema.pth")
    with zipfile.ZipFile(tmp_path / "zip.pth", "w") as archive:
        archive.writestr("../../evil", "x")
    safetensors.torch.save_file({"w": torch.ones(2)}, tmp_path / "cut.safetensors")
    whole = (tmp_path / "cut.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-4])
    for name, answer in {
        "a.safetensors": "does not hold weights",
        "cut.safetensors": "does not hold weights",
        "empty.pth": "does not hold weights",
        "zip.pth": "does not hold weights",
        "none.pth": "No such file",
        "tensor.pth": "does not hold weights but a Tensor",
        "ema.pth": "Averaged weights are taken by ema=True",
    }.items():
        with pytest.raises(RequestError, match=answer):
            read_weights(tmp_path / name)
