"""Feature banks and how they are made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.test_loop import RECIPE
from tests.training.worlds import TINY, squares
from torch import nn

from penultimate.errors import DamagedFileError, RequestError
from penultimate.features.bank import FeatureBank
from penultimate.features.extraction import extract
from penultimate.networks.trained import load_network
from penultimate.training import train


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
    assert FeatureBank.load(tmp_path / "y.npz").logits is None


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
        ({"ids": np.zeros(7, int)}, "unique"),
        ({"logits": np.full((7, 2), np.inf)}, "logits of 7 examples"),
    ],
)
def test_a_bank_that_cannot_be_is_refused(change: dict[str, np.ndarray], answer: str) -> None:
    with pytest.raises(RequestError, match=answer):
        replace(bank(), **change)


def test_the_batch_size_changes_nothing_that_matters(tmp_path: Path) -> None:
    images = squares(50, 2)
    train("softmax", TINY, squares(64, 0), images, replace(RECIPE, epochs=1), 0, tmp_path)
    network = load_network(tmp_path)
    one, other = extract(network, images, batch_size=7), extract(network, images, batch_size=50)
    assert np.allclose(one.features, other.features, atol=1e-5)
    assert one.logits is not None
    assert one.logits.shape == (50, 4)
    assert np.array_equal(one.ids, images.ids)
    assert (one.features >= 0).all()
    logits = network.objective(torch.from_numpy(one.features)).detach().numpy()
    assert np.allclose(one.logits, logits, atol=1e-5)


def test_any_module_gives_a_bank_and_gets_its_mode_back() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
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
        (nn.Identity(), [(torch.full((1, 2), torch.nan), torch.tensor([0]))], "not finite"),
    ],
)
def test_what_cannot_be_extracted_is_said(model, data, answer: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=answer):
        extract(model, data)
