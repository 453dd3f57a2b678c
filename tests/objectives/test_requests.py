"""What an objective refuses, and how it says so: targets, sizes, plug-ins of the wrong form."""

from __future__ import annotations

import math

import pytest
import torch

from penultimate import RequestError, objective, register, registry

N, M, K = 6, 5, 4


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan, math.inf])
def test_a_calibration_temperature_out_of_range_is_refused(temperature):
    with pytest.raises(RequestError, match=r"temperature must be a number in \(0, inf\)"):
        objective("softmax", M, K).probabilities(torch.zeros(1, K), temperature)


FEATURES = torch.zeros(N, M)


@pytest.mark.parametrize(
    ("features", "targets", "message"),
    [
        (torch.zeros(N, M + 1), torch.zeros(N, dtype=torch.int64), "features must be [n 5], got [6, 6]"),
        (torch.zeros(M), torch.zeros(N, dtype=torch.int64), "features must be [n 5], got [5]"),
        (
            torch.zeros(N, M, dtype=torch.complex64),
            torch.zeros(N, dtype=torch.int64),
            "features must be real",
        ),
        (FEATURES, torch.tensor([0, 1, 2, 3, 4, 0]), "in 0..3, got 4 at position 4"),
        (FEATURES, torch.tensor([0, 1, -1, 3, 0, 0]), "in 0..3, got -1 at position 2"),
        (FEATURES, torch.zeros(N), "must be integer class indices, got torch.float32"),
        (FEATURES, torch.zeros(N, dtype=torch.bool), "must be integer class indices, got torch.bool"),
        (
            FEATURES,
            torch.zeros(N + 1, dtype=torch.int64),
            "class indices [6] or distributions [6 4] for 6 examples",
        ),
        (FEATURES, torch.zeros(N, K + 1), "got [6, 5]"),
        (FEATURES, torch.zeros(N, 1, dtype=torch.int64), "got [6, 1]"),
        (
            FEATURES,
            torch.zeros(N, K, dtype=torch.int64),
            "must be floating-point distributions, got torch.int64",
        ),
        (FEATURES, torch.zeros(N, K), "row 0 has sum 0 and smallest entry 0"),
        (FEATURES, torch.tensor([[1.5, -0.5, 0, 0]] * N), "row 0 has sum 1 and smallest entry -0.5"),
        (FEATURES, torch.full((N, K), math.nan), "row 0 has sum nan"),
    ],
)
def test_bad_features_and_targets_are_refused(features, targets, message):
    with pytest.raises(RequestError) as raised:
        objective("softmax", M, K).loss(features, targets)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("num_features", "num_classes", "message"),
    [
        (M, 1, "num_classes must be an integer >= 2, got 1"),
        (M, True, "num_classes must be an integer >= 2, got True"),
        (0, K, "num_features must be an integer >= 1, got 0"),
    ],
)
def test_sizes_out_of_range_are_refused(num_features, num_classes, message):
    with pytest.raises(RequestError, match=message):
        objective("softmax", num_features, num_classes)


@pytest.mark.parametrize(
    ("kind", "function", "message"),
    [
        ("loss", lambda logits, targets: logits.mean(), r"'example_wrong' must return one value per example"),
        ("head", lambda x, W, b: x, r"must return logits for every class, \[2, 4\] here, got \[2, 5\]"),
        ("penalty", lambda logits, head: 0.0, r"must return one value per example, \[2\] here, got float"),
    ],
)
def test_a_plugin_of_the_wrong_form_fails_when_it_is_built(kind, function, message):
    decorator = {"penalty": "regulariser"}.get(kind, kind)
    getattr(register, decorator)(name="example_wrong")(function)
    try:
        with pytest.raises(RequestError, match=message):
            objective("example_wrong", M, K)
    finally:
        registry.forget(kind, "example_wrong")


def test_a_component_named_by_itself_is_checked_when_it_is_built():
    with pytest.raises(RequestError, match="temperature must be a number"):
        objective("cosine(temperature=-1)", M, K)
    features, labels = torch.rand(N, M), torch.zeros(N, dtype=torch.int64)
    direct, preset = objective("cosine(temperature=0.05)", M, K), objective("cosine_softmax", M, K)
    assert torch.equal(direct.loss(features, labels), preset.loss(features, labels))
