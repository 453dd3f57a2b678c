"""The objectives whose released code differs from the paper's text, beside their equations in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from penultimate import objective
from penultimate.errors import RequestError
from penultimate.objectives.objective import Objective
from penultimate.objectives.presets import resolve

N, M, K = 5, 7, 4
GENERATOR = np.random.default_rng(0)
FEATURES = GENERATOR.normal(size=(N, M))
LABELS = GENERATOR.integers(0, K, N)
TARGETS = np.eye(K)[LABELS]


def built(text: str) -> tuple[Objective, np.ndarray, np.ndarray]:
    """Return an objective in float64 with a weight and a bias that are far from 0."""
    made = objective(text, num_features=M, num_classes=K).double()
    weight, bias = GENERATOR.normal(size=(K, M)), GENERATOR.normal(size=K)
    with torch.no_grad():
        made.head.weight.copy_(torch.from_numpy(weight))
        made.head.bias.copy_(torch.from_numpy(bias))
    return made, weight, bias


def cross_entropy(logits: np.ndarray) -> np.ndarray:
    return np.log(np.exp(logits).sum(1)) - (TARGETS * logits).sum(1)


def loss_of(made: Objective) -> np.ndarray:
    return made.loss(torch.from_numpy(FEATURES), torch.from_numpy(LABELS)).detach().numpy()


def test_half_the_squared_weight() -> None:
    made, weight, bias = built("final_layer_l2(lambda_final=0.3, form='released')")
    expected = cross_entropy(FEATURES @ weight.T + bias) + 0.15 * np.square(weight).sum()
    assert loss_of(made) == pytest.approx(expected)


def test_half_the_squared_logits() -> None:
    made, weight, bias = built("logit_penalty(beta=0.3, form='released')")
    logits = FEATURES @ weight.T + bias
    assert loss_of(made) == pytest.approx(cross_entropy(logits) + 0.15 * np.square(logits).sum(1))


def test_cosine_without_the_norm_of_the_features() -> None:
    made, weight, bias = built("cosine_softmax(temperature=0.5, form='released')")
    rows = weight / np.linalg.norm(weight, axis=1, keepdims=True)
    logits = (FEATURES @ rows.T + bias) / 0.5
    assert made(torch.from_numpy(FEATURES)).detach().numpy() == pytest.approx(logits)
    assert loss_of(made) == pytest.approx(cross_entropy(logits))


def test_squared_error_summed_over_the_classes() -> None:
    made, weight, bias = built("squared_error(kappa=3, target=2, scale=10, form='released')")
    logits = FEATURES @ weight.T + bias
    errors = 3 * TARGETS * np.square(logits - 2) + (1 - TARGETS) * np.square(logits)
    assert loss_of(made) == pytest.approx(10 * errors.sum(1))


def test_logit_normalisation_counts_a_background_class_and_drops_it() -> None:
    made, weight, bias = built("logit_norm(temperature=0.5, form='released')")
    background = GENERATOR.normal(size=M + 1)
    with torch.no_grad():
        made.head.background.copy_(torch.from_numpy(background))
    every = np.column_stack([FEATURES @ background[:-1] + background[-1], FEATURES @ weight.T + bias])
    logits = (every / np.linalg.norm(every, axis=1, keepdims=True) / 0.5)[:, 1:]
    assert made(torch.from_numpy(FEATURES)).detach().numpy() == pytest.approx(logits)


def test_the_text_is_the_default_and_no_spec_names_it() -> None:
    assert resolve("cosine_softmax(form='text')").canonical == resolve("cosine_softmax").canonical
    assert "form='released'" in resolve("cosine_softmax(form='released')").canonical
    assert resolve("cosine_softmax(form='released')").preset == "cosine_softmax"
    with pytest.raises(RequestError, match=r"unknown form of cosine_softmax 'code'\. Known: text, released"):
        objective("cosine_softmax(form='code')", num_features=M, num_classes=K)
