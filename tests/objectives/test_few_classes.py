"""Squared error with the paper's values, which were chosen for 1000 classes, and few classes."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from sklearn.datasets import load_digits
from tests.conftest import penultimate
from torch import nn

from penultimate import objective
from penultimate.objectives.presets import resolve


@pytest.mark.parametrize(
    "text", ["squared_error", "dropout + squared_error", "squared_error + cosine_softmax"]
)
def test_few_classes_are_said_with_what_to_set(text: str) -> None:
    with pytest.warns(
        UserWarning, match=r"choice for 1000 classes; with 10 its gradients are 100 times"
    ) as told:
        found = objective(text, 5, 10)
    assert "'squared_error(kappa=1, scale=10, target=1)'" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective(text, 5, 100)
        assert (
            objective(found.spec, 5, 10).spec == found.spec
        )  # written out, as a step's configuration has it


def test_the_identity_of_squared_error_does_not_depend_on_the_classes() -> None:
    assert resolve("squared_error").canonical == "squared_error(kappa=9, scale=10, target=60)"


def accuracy(text: str) -> float:
    """On held-out digits, after a plain loop at a learning rate that suits softmax."""
    digits = load_digits()
    images, labels = torch.tensor(digits.data / 16).float(), torch.tensor(digits.target)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        train, test = torch.randperm(len(images)).split(1200)
        head = objective(text, 128, 10)
        optimiser = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1, momentum=0.9)
        for batch in (part for _ in range(5) for part in train[torch.randperm(1200)].split(64)):
            optimiser.zero_grad()
            head.loss(body(images[batch]), labels[batch]).mean().backward()
            optimiser.step()
    with torch.no_grad():
        return float((head(body(images[test])).argmax(1) == labels[test]).double().mean())


@pytest.mark.filterwarnings("ignore:squared_error:UserWarning")
def test_what_it_says_to_set_learns_where_the_defaults_do_not() -> None:
    assert accuracy("squared_error") < 0.2
    assert accuracy("squared_error(kappa=1, scale=10, target=1)") > 0.9


def test_a_study_says_it_too(tmp_path: Path) -> None:
    told = penultimate("plan", "smoke", "--set", "objectives=softmax,squared_error", cwd=tmp_path)
    assert told.returncode == 0
    assert "with 16 its gradients are 62 times as large" in told.stderr
    assert "squared_error" not in penultimate("plan", "smoke", cwd=tmp_path).stderr
