"""Feature banks and how they are made."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.worlds import squares
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from penultimate.errors import DamagedFileError, RequestError
from penultimate.features.bank import FeatureBank
from penultimate.features.extraction import extract
from penultimate.objectives.objective import objective


def bank(n: int = 7) -> FeatureBank:
    random = np.random.default_rng(0)
    return FeatureBank(
        random.random((n, 3), np.float32),
        np.arange(n),
        random.random((n, 2), np.float32),
        np.arange(n) * 10,
        {"a": 1},
    )


def test_a_bank_comes_back_as_it_was(tmp_path: Path) -> None:
    one = bank()
    one.save(tmp_path / "x.npz")
    again = FeatureBank.load(tmp_path / "x.npz")
    for name in ("features", "labels", "logits", "ids"):
        assert np.array_equal(getattr(one, name), getattr(again, name))
    assert again.provenance == {"a": 1}
    without = FeatureBank(one.features, one.labels)
    without.save(tmp_path / "y.npz")
    again = FeatureBank.load(tmp_path / "y.npz")
    assert (again.logits, again.ids) == (None, None)


def test_a_changed_bank_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    bank().save(path)
    whole = path.read_bytes()
    for position in range(0, len(whole), 97):
        content = bytearray(whole)
        content[position] ^= 16
        path.write_bytes(content)
        try:
            again = FeatureBank.load(path)
        except (DamagedFileError, RequestError):
            continue
        assert again.digest() == bank().digest()
    path.write_bytes(whole[:100])
    with pytest.raises(DamagedFileError, match="cannot be read"):
        FeatureBank.load(path)
    with pytest.raises(RequestError, match="no feature bank"):
        FeatureBank.load(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"features": np.full((7, 3), np.nan)}, "rows 0, 1, 2, 3, 4, ..."),
        ({"features": np.zeros(7)}, "features are"),
        ({"labels": np.arange(6)}, "7 features, but 6 labels"),
        ({"labels": np.arange(7) - 1}, "label -1"),
        ({"labels": np.arange(7.0)}, "labels are integers"),
        ({"labels": np.full((7, 2), 2)}, r"labels \[n l\] are 1 \(present\), 0 \(absent\) and -1"),
        ({"labels": np.zeros((7, 2, 1), int)}, r"labels are integers \[n\] \(or \[n l\], several"),
        ({"ids": np.zeros((7, 1), int)}, r"ids are integers \[n\], not"),
        ({"ids": np.zeros(7, int)}, "unique"),
        ({"logits": np.full((7, 2), np.inf)}, "logits of 7 examples"),
    ],
)
def test_a_bank_that_cannot_be_is_refused(change: dict[str, np.ndarray], answer: str) -> None:
    with pytest.raises(RequestError, match=answer):
        replace(bank(), **change)


def test_any_module_gives_a_bank_and_gets_its_mode_back() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.ReLU())
    model[1].eval()
    batches = [(torch.ones(2, 3), torch.tensor([0, 1])), (torch.ones(1, 3), torch.tensor([1]))]
    found = extract(model, batches)
    assert found.features.shape == (3, 4)
    assert np.allclose(found.features[0], found.features[2])
    assert (model.training, model[0].training, model[1].training) == (True, True, False)


@pytest.mark.parametrize(
    ("model", "data", "answer"),
    [
        (nn.Identity(), [], "no batch"),
        (nn.Identity(), [(torch.ones(2, 3, 4), torch.zeros(2))], r"features are \[n m\]"),
        (nn.Identity(), squares(4, 0), "goes with a Network"),
        (nn.Identity(), [(torch.ones(2, 3),)], r"batch 0 must be \(images, labels\) or .* got a tuple"),
        (lambda batch: [batch] * 2, [(torch.ones(2, 3), [0, 1])], r"the output is a list of \[2, 3\], "),
        (
            nn.Identity(),
            [(torch.ones(2, 3), torch.tensor([0, 1]), torch.tensor([5, 6])), (torch.ones(1, 3), [0])],
            "1 of 2 batches have ids",
        ),
        (nn.Identity(), [(torch.ones(2, 3), [0, 1], [7, 7])], "ids must be unique"),
        (nn.Identity(), [(torch.full((1, 2), torch.nan), torch.tensor([0]))], "not finite"),
        (
            nn.Linear(3, 2),
            [(torch.ones(2, 3, dtype=torch.uint8), [0, 1])],
            r"the model refused batch 0, uint8 \[2, 3\]: .*; most models take float32 from 0 to 1",
        ),
        (nn.Linear(3, 2), [(torch.ones(5, 4, 2), [0, 1])], "a batch is .*: give a data set to a DataLoader"),
        (
            nn.Identity(),
            iter([{"image": torch.ones(2, 3), "y": [0]}]),
            "a dict with 'image', 'y': of mappings give",
        ),
        (nn.Identity(), iter([torch.ones(2, 3)]), "got a Tensor: .* zeros for images without labels"),
        (nn.Identity(), [(torch.ones(2, 3), [[4], [1]])], r"not 4; class numbers are \[n\]: labels\[:, 0\]"),
        (nn.Conv2d(3, 4, 1), [(torch.ones(2, 5, 6, 3), [0, 1])], "channels stand first: images.permute"),
    ],
)
def test_what_cannot_be_extracted_is_said(model, data, answer: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=answer):
        extract(model, data)


@pytest.mark.parametrize("of_batch", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("of_module", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_modules_and_batches_of_every_kind_are_computed_in_float32(
    of_module: torch.dtype, of_batch: torch.dtype
) -> None:
    torch.manual_seed(0)
    net, images = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(of_module), torch.rand(5, 3)
    state = {name: value.clone() for name, value in net.state_dict().items()}
    with torch.no_grad():
        expected = copy.deepcopy(net).float()[:2](images.to(of_batch).float())
    batches = [(images[part].to(of_batch), torch.arange(5)[part]) for part in (slice(3), slice(3, 5))]
    for layer in (None, "1"):
        np.testing.assert_allclose(extract(net, batches, layer=layer).features, expected, atol=1e-6)
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert net[0].weight.dtype == of_module


@pytest.mark.parametrize(
    ("layer", "answer"),
    [
        ("poool", "no layer matches 'poool'; the nearest names: pool"),
        ("conv", r"features are \[n m\] for labels \[n\]; for \[6\] the model gave \[6, 8, 3, 3\]"),
        ("*", "'\\*' is 4 layers; features are those of one"),
    ],
)
def test_a_layer_that_gives_no_features_is_said(layer: str, answer: str) -> None:
    with pytest.raises(RequestError, match=answer):
        extract(Classifier(), BATCHES, layer=layer)


class Classifier(nn.Module):
    """A small net of torchvision's form: convolution, pooling, flattening, a final linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.pool(self.relu(self.conv(x))).flatten(1))


BATCHES = [(torch.rand(6, 3, 5, 5, generator=torch.Generator().manual_seed(0)), torch.arange(6))]


def test_of_a_classifier_it_takes_what_the_final_layer_is_given() -> None:
    net = Classifier()
    bank = extract(net, BATCHES)
    assert bank.features.shape == (6, 8)
    assert bank.logits is not None
    assert np.array_equal(bank.features, extract(net, BATCHES, layer="pool").features)
    with torch.no_grad():
        assert np.array_equal(bank.logits, net(BATCHES[0][0]).numpy())
    assert np.array_equal(extract(net, BATCHES, layer="fc").features, bank.logits)
    for wrapped in (nn.DataParallel(net), torch.compile(net, backend="eager")):
        assert np.array_equal(extract(wrapped, BATCHES).features, bank.features)
    with torch.inference_mode():
        assert np.array_equal(extract(net, BATCHES).features, bank.features)


def test_the_final_layer_may_be_an_objective() -> None:
    head = objective("cosine_softmax", 8, 4)
    net = Classifier()
    net.fc = nn.Identity()
    whole, body = extract(nn.Sequential(net, head), BATCHES), extract(net, BATCHES)
    assert np.array_equal(whole.features, body.features)
    assert body.logits is None
    assert whole.logits is not None
    assert np.allclose(whole.logits, head(body.features).detach())


def test_a_linear_layer_before_the_end_is_none_of_the_final_ones() -> None:
    """An in-place non-linearity returns the tensor that the linear layer made: a body that was cut off."""
    cut = nn.Sequential(nn.Flatten(), nn.Linear(75, 7), nn.ReLU(inplace=True), nn.Dropout())
    bank = extract(cut, BATCHES)
    assert (bank.features.shape, bank.logits) == ((6, 7), None)
    assert bank.features.min() == 0


def test_ids_come_with_the_data_or_there_are_none() -> None:
    """Of two loaders that shuffle, banks without ids are not taken for the same order."""
    images, labels = torch.rand(40, 3), torch.arange(40) % 4
    data = TensorDataset(images, labels, torch.arange(40))
    banks = {}
    for seed, name in enumerate(("one", "other")):
        order = torch.Generator().manual_seed(seed)
        banks[name] = extract(nn.Flatten(), DataLoader(data, 10, shuffle=True, generator=order))
        assert banks[name].ids is not None
        assert np.array_equal(banks[name].features, images[banks[name].ids].numpy())
    assert extract(nn.Flatten(), [(images, labels)]).ids is None


NAMES = ["b.jpg", "a.jpg", "c.jpg"]
THREE = torch.eye(3)


@pytest.mark.parametrize("ids", [NAMES, tuple(NAMES), np.array(NAMES), [Path(name) for name in NAMES]])
def test_file_names_are_ids_and_class_names_are_labels(ids: Any) -> None:
    bank = extract(nn.Flatten(), [(THREE, ["bee", "ant", b"bee"], ids)])
    assert bank.ids is not None
    assert bank.ids.tolist() == NAMES
    assert (bank.labels.tolist(), bank.provenance["class_names"]) == ([1, 0, 1], ["ant", "bee"])


@pytest.mark.parametrize("place", [1, 2])
def test_names_and_numbers_in_different_batches_are_refused(place: int) -> None:
    numbers = [THREE, torch.arange(3), torch.arange(3) + 3]
    names = [THREE, torch.arange(3), torch.arange(3)]
    names[place] = NAMES  # type: ignore[call-overload]
    with pytest.raises(RequestError, match="are names in some batches and numbers in others"):
        extract(nn.Flatten(), [tuple(numbers), tuple(names)])


GENERATOR = torch.Generator().manual_seed(1)
ONCE = [(torch.randn(9, 6, generator=torch.Generator().manual_seed(0)), torch.arange(9))]


class Chance(nn.Module):
    """Keeps functional dropout on, or crops at random, in evaluation mode too."""

    def __init__(self, draw: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.draw, self.fc = draw, nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.draw(x))  # type: ignore[no-any-return]


def states() -> tuple[Any, ...]:
    """Where the generators of PyTorch and NumPy stand; the checker of types in tests draws from Python's."""
    return torch.get_rng_state().tolist(), repr(np.random.get_state(legacy=False))  # noqa: NPY002


@pytest.mark.parametrize(
    "draw",
    [
        nn.functional.dropout,
        lambda x: x.roll(int(torch.randint(6, ())), 1),
        lambda x: x.roll(random.randrange(6), 1),
        lambda x: x.roll(np.random.randint(6), 1),  # noqa: NPY002
        lambda x: x + 0.1 * torch.randn(x.shape, generator=GENERATOR),
    ],
)
def test_a_model_whose_passes_differ_is_told(draw: Callable[[torch.Tensor], torch.Tensor]) -> None:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(1)
    with pytest.warns(
        UserWarning, match=r"two passes over the same images differ by up to .*not deterministic"
    ):
        extract(Chance(draw).eval(), ONCE, layer="output")


def test_the_check_of_two_passes_leaves_the_callers_generators_alone() -> None:
    """Only the pass whose features are kept draws from them."""
    net = Chance(nn.functional.dropout)
    torch.manual_seed(3)
    expected = nn.functional.dropout(ONCE[0][0])
    after = states()
    torch.manual_seed(3)
    with pytest.warns(UserWarning, match="two passes"):
        bank = extract(net, ONCE)
    assert np.array_equal(bank.features, expected)
    assert states() == after
