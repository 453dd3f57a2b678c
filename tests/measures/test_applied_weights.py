"""Weights as the logits use them: a cosine head's rows have length 1 in table E.2 and figure E.2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.measures.steps import Parents, measured, value
from tests.measures.worlds import network, world

from penultimate.data.images import load_images
from penultimate.engine.execute import Outcome
from penultimate.features.extraction import extract
from penultimate.networks.trained import WEIGHTS, load_network


def with_rows_of_lengths(folder: Path, lengths: list[float]) -> Path:
    """The network with the rows of its final layer scaled."""
    tensors = load_file(folder / WEIGHTS)
    (name,) = (name for name in tensors if name.startswith("objective.") and name.endswith("weight"))
    tensors[name] = tensors[name] * torch.tensor(lengths)[:, None]
    save_file(tensors, folder / WEIGHTS)
    return folder


def of(root: Path, spec: str, what: str, lengths: list[float]) -> Outcome:
    images, folder = world(root), with_rows_of_lengths(network(root, spec), lengths)
    bank = extract(load_network(folder), load_images(images, "train"))
    return measured(what, Parents(root).network(folder).bank("train", bank))


@pytest.mark.parametrize("spec", ["cosine_softmax", "cosine_softmax + dropout"])
def test_the_length_of_a_cosine_heads_rows_changes_nothing(tmp_path: Path, spec: str) -> None:
    found = [
        of(tmp_path / str(place), spec, "collapse", lengths).rows
        for place, lengths in enumerate(([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 9.0]))
    ]
    assert [row.value for row in found[0]] == pytest.approx([row.value for row in found[1]], abs=1e-6)
    assert value(found[1], "nc_weight_norm_cv") < 1e-6


def test_the_rows_of_a_linear_head_count_as_they_are(tmp_path: Path) -> None:
    rows = of(tmp_path, "softmax", "collapse", [1.0, 2.0, 3.0, 9.0]).rows
    assert value(rows, "nc_weight_norm_cv") > 0.3


def test_so_do_the_singular_values(tmp_path: Path) -> None:
    spectra = []
    for place, lengths in enumerate(([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 9.0])):
        root = tmp_path / str(place)
        of(root, "cosine_softmax", "spectra", lengths)
        (file,) = (root / "out").glob("*.npz")
        spectra.append(np.load(file)["weights"])
    assert spectra[0] == pytest.approx(spectra[1], rel=1e-5)
