"""What a module has learnt, of every kind of tensor: digested, stored, and given to another of its class."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.networks.given import GivenNetwork, fetch, load_given
from penultimate.networks.live import keep
from penultimate.networks.state import (
    bytes_of,
    packed,
    packed_others,
    parts_to_digest,
    unpack,
    unpacked_others,
)

KINDS = (
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.float8_e8m0fnu,
    torch.complex64,
    torch.complex128,
    torch.uint16,
    torch.bool,
)


class Odd(nn.Module):
    """A module with tensors of many kinds, of which one lies in no state dictionary."""

    def __init__(self, fill: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((2, 3), fill))
        self.same = self.weight
        for place, kind in enumerate(KINDS):
            self.register_buffer(f"kind{place}", torch.full((2, 2), fill).to(kind))
        self.register_buffer("scalar", torch.tensor(fill, dtype=torch.complex128))
        self.register_buffer("empty", torch.zeros(0, 4))
        self.register_buffer("turned", torch.full((3, 2), fill).T)
        self.register_buffer("conjugated", torch.full((2,), complex(0, fill)).conj())
        self.register_buffer("unsaved", torch.full((3,), fill), persistent=False)
        self.steps = {"fill": fill, "mean": torch.full((2,), fill)}

    def get_extra_state(self) -> Any:
        return self.steps

    def set_extra_state(self, state: Any) -> None:
        self.steps = state


def digest(module: nn.Module) -> str:
    state = hashlib.sha256()
    for part in parts_to_digest(module):
        state.update(part)
    return state.hexdigest()


def test_a_module_of_all_kinds_of_tensors_is_another_ones_copy() -> None:
    one, other = Odd(1.0), Odd(0.0)
    assert digest(one) != digest(other)
    unpack(other, safetensors.torch.load(packed(one)), unpacked_others(packed_others(one)))
    assert digest(one) == digest(other)
    assert other.unsaved.tolist() == [1.0] * 3
    assert other.steps["fill"] == 1.0


@pytest.mark.parametrize("name", ["unsaved", "kind0", "kind3", "scalar", "conjugated"])
def test_each_tensor_is_part_of_the_digest(name: str) -> None:
    one, other = Odd(1.0), Odd(1.0)
    assert digest(one) == digest(other)
    value = getattr(other, name)
    setattr(other, name, torch.zeros_like(value))
    assert digest(one) != digest(other)


def test_an_extra_state_is_part_of_the_digest() -> None:
    one, other = Odd(), Odd()
    other.steps = {**other.steps, "mean": torch.ones(2)}
    assert digest(one) != digest(other)


def test_bytes_are_those_in_memory() -> None:
    assert bytes(bytes_of(torch.tensor([1.0], dtype=torch.bfloat16))) == b"\x80\x3f"
    turned = torch.arange(6).reshape(2, 3).T
    assert bytes(bytes_of(turned)) == np.ascontiguousarray(turned.numpy()).tobytes()


class Conv(nn.Module):
    """A small classifier; `kind` is the type of its weights."""

    def __init__(self, kind: torch.dtype = torch.float32, cast: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.fc = nn.Conv2d(3, 8, 3, stride=2), nn.Linear(8, 5)
        self.kind = kind if cast else None
        self.to(kind)

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.kind is None else x.to(self.kind)
        return self.fc(self.conv(x).relu().mean((2, 3)))


class Counting(Conv):
    """One that keeps a count as its extra state, and gives a different answer for it."""

    def __init__(self, extra: Any = 0) -> None:
        super().__init__()
        self.extra = extra

    def get_extra_state(self) -> Any:
        return self.extra

    def set_extra_state(self, state: Any) -> None:
        self.extra = state


@pytest.mark.parametrize("extra", [{"version": 1}, torch.ones(3), b"\x00", None])
def test_a_live_module_with_an_extra_state_is_a_network(extra: Any, tmp_path: Path) -> None:
    source = keep("n", Counting(extra), {"crop": 32})
    assert source != keep("n", Counting({"version": 2}), {"crop": 32})
    fetch(source, (), tmp_path)
    assert load_given(tmp_path).features(torch.zeros(2, 32, 32, 3, dtype=torch.uint8)).shape == (2, 8)


FILE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, kind=torch.float32):
        super().__init__()
        self.conv, self.fc, self.shift = nn.Conv2d(3, 8, 3, stride=2), nn.Linear(8, 5), 0.0
        self.register_buffer("noise", torch.rand(8), persistent=False)
        self.to(kind)
    def get_extra_state(self): return {"shift": self.shift}
    def set_extra_state(self, state): self.shift = state["shift"]
    def forward(self, x): return self.fc(self.conv(x).relu().mean((2, 3)) + self.shift + self.noise)

def build(): return Net()
def half(): return Net(torch.bfloat16)
def double(): return Net(torch.float64)
def sparse():
    net = Net()
    net.register_buffer("table", torch.eye(3).to_sparse())
    return net
def meta():
    net = Net()
    net.register_buffer("table", torch.zeros(3, device="meta"))
    return net
def lazy():
    net = Net()
    net.register_module("more", nn.LazyLinear(3))
    return net
"""


def network(text: str, folder: Path) -> GivenNetwork:
    (folder / "stored").mkdir()
    fetch(text, (), folder / "stored")
    return load_given(folder / "stored")


def test_the_extra_state_of_a_file_and_unsaved_buffers_are_the_networks_own(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FILE)
    scope: dict[str, Any] = {}
    exec(FILE, scope)
    trained = scope["Net"]().eval()
    trained.shift = 3.0
    torch.save({"state_dict": trained.state_dict()}, tmp_path / "w.pth")
    found = network(f"{tmp_path / 'net.py'}:build(weights='{tmp_path / 'w.pth'}', seed=4, crop=32)", tmp_path)
    torch.manual_seed(4)
    again = scope["Net"]()
    again.load_state_dict(trained.state_dict())
    assert found.body.shift == 3.0
    assert torch.equal(found.body.noise, again.noise)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("cast", [False, True])
def test_a_live_module_of_other_numbers_is_computed(kind: torch.dtype, cast: bool, tmp_path: Path) -> None:
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8))
    net = Conv(kind, cast)
    facts = fetch(keep("n", net, {"crop": 32}), (), tmp_path)
    given = load_given(tmp_path)
    exact = Conv().eval()
    exact.load_state_dict(net.state_dict())
    x = given.prepared(images)
    with torch.no_grad():
        expected = exact.conv(x).relu().mean((2, 3))
    close = {"rtol": 2e-2, "atol": 1e-2} if cast else {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(given.features(images), expected, **close)
    assert ("noted" in facts) == (not cast)
    assert next(net.parameters()).dtype == kind


@pytest.mark.parametrize("function", ["half", "double"])
def test_a_built_module_of_other_numbers_is_computed(function: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FILE)
    found = network(f"{tmp_path / 'net.py'}:{function}(crop=32)", tmp_path)
    features = found.features(torch.zeros(2, 32, 32, 3, dtype=torch.uint8))
    assert (features.shape, features.dtype) == ((2, 8), torch.float32)


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("sparse", r"'table' of Net is a sparse tensor .*to_dense"),
        ("meta", "'table' of Net has a shape and no values: it is on the meta device"),
        ("lazy", r"'more\.weight' of Net has no size yet"),
    ],
)
def test_a_tensor_that_cannot_be_kept_is_a_sentence(function: str, answer: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FILE)
    with pytest.raises(RequestError, match=answer):
        network(f"{tmp_path / 'net.py'}:{function}(crop=32)", tmp_path)
    scope: dict[str, Any] = {}
    exec(FILE, scope)
    with pytest.raises(RequestError, match=answer):
        keep("n", scope[function](), {"crop": 32})
