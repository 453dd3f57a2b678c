"""Schedules, the average, weight decay, checkpoints: each against its literal equation, or spoilt."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from penultimate.errors import RequestError
from penultimate.objectives.objective import objective
from penultimate.training import Recipe, train
from penultimate.training.averaging import WeightAverage
from penultimate.training.checkpoints import Checkpoints
from penultimate.training.decay import parameter_groups
from penultimate.training.regime import IMAGENET, matched, regime, weight_decay
from penultimate.training.schedules import learning_rate
from tests.oracles import training as oracle
from tests.training.worlds import TINY, squares

RECIPE = Recipe(epochs=8, batch_size=32, learning_rate=0.2)


@given(
    st.integers(1, 60),
    st.floats(0, 1),
    st.sampled_from(["exponential", "cosine", "constant"]),
    st.floats(0.001, 1),
    st.floats(1e-3, 10),
)
def test_the_learning_rate_is_its_equation(
    steps: int, warmup: float, kind: str, final: float, peak: float
) -> None:
    recipe = Recipe(learning_rate=peak, warmup=warmup, schedule=kind, final_fraction=final)
    ours = [learning_rate(recipe, step, steps) for step in range(steps)]
    literal = oracle.learning_rates(peak, round(warmup * steps), steps, kind, final)
    assert ours == pytest.approx(literal, rel=1e-12, abs=1e-15)
    assert max(ours) <= peak * (1 + 1e-12)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30), st.floats(0, 0.999))
def test_the_average_is_its_equation(weights: list[float], momentum: float) -> None:
    module = nn.Linear(1, 1, bias=False).double()
    with torch.no_grad():
        module.weight.fill_(0.5)
        average = WeightAverage(module, momentum)
        for step, weight in enumerate(weights):
            module.weight.fill_(weight)
            average.update(step)
    assert float(average.module.weight) == pytest.approx(oracle.average(0.5, weights, momentum), abs=1e-12)


def test_the_optimiser_is_nesterov_with_decay_on_weights_only() -> None:
    recipe = Recipe(momentum=0.9, weight_decay=0.1)
    module = nn.Linear(1, 1).double()
    groups = parameter_groups(module, recipe, recipe.weight_decay)
    with torch.no_grad():
        module.weight.fill_(1.5)
        module.bias.fill_(-0.5)
    optimiser = torch.optim.SGD(groups, lr=1.0, momentum=0.9, nesterov=True, fused=True)
    rates, gradients = [0.1, 0.2, 0.05, 0.3], [1.0, -2.0, 0.5, 0.25]
    for rate, gradient in zip(rates, gradients, strict=True):
        for group in optimiser.param_groups:
            group["lr"] = rate
        for parameter in module.parameters():
            parameter.grad = torch.full_like(parameter, gradient)
        optimiser.step()
    assert module.weight.item() == pytest.approx(oracle.nesterov(1.5, gradients, rates, 0.9, 0.1), abs=1e-12)
    assert module.bias.item() == pytest.approx(oracle.nesterov(-0.5, gradients, rates, 0.9, 0.0), abs=1e-12)


@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("biases", [False, True])
def test_what_decays_is_what_the_recipe_says(norms: bool, biases: bool) -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), objective("softmax", 2, 3))
    groups = parameter_groups(network, Recipe(decay_batch_norm=norms, decay_biases=biases), 0.1)
    decayed = {id(parameter) for parameter in groups[0]["params"]}
    convolution, norm, head = network
    expected = [convolution.weight, head.head.weight]
    expected += [norm.weight, norm.bias] if norms else []
    expected += [convolution.bias, head.head.bias] if biases else []
    assert decayed == {id(parameter) for parameter in expected}
    assert sum(len(group["params"]) for group in groups) == len(list(network.parameters()))
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]


@pytest.mark.parametrize("byte", [0, 70, -1])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path: Path, byte: int) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save({"step": 1, "weights": torch.arange(3.0)})
    checkpoints.save({"step": 2, "weights": torch.arange(3.0) + 1})
    path = tmp_path / "checkpoint-1"
    content = bytearray(path.read_bytes())
    content[byte] ^= 1
    path.write_bytes(content)
    again = Checkpoints(tmp_path)
    state = again.load()
    assert state is not None
    assert state["step"] == 1
    assert again.damaged == ["checkpoint-1 is not what was written (its sha256 differs)"]
    (tmp_path / "checkpoint-0").write_bytes(b"")
    assert Checkpoints(tmp_path).load() is None


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"epochs": 0}, "epochs"),
        ({"epochs": True}, "epochs"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"warmup": 1.1}, "warmup"),
        ({"weight_decay": -1}, "weight_decay"),
        ({"schedule": "cosin"}, "Did you mean 'cosine'"),
        ({"precision": "bf16"}, "precision"),
        ({"stopping": "bst"}, "Did you mean 'best'"),
        ({"patience": -1}, "patience"),
        ({"decay_biases": 1}, "True or False"),
        ({"augmentation": {"shift": -1}}, "shift"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(settings: dict[str, object], answer: str) -> None:
    with pytest.raises(RequestError, match=answer):
        Recipe(**settings)  # type: ignore[arg-type]


def test_exposure_is_weight_decay_by_another_name(tmp_path: Path) -> None:
    steps = 8 * (256 // RECIPE.batch_size)
    recipe = replace(RECIPE, exposure=3.0)
    rates = [learning_rate(recipe, step, steps) for step in range(steps)]
    decay = 3.0 * (1 - recipe.momentum) / math.fsum(rates)
    assert weight_decay(recipe, steps) == pytest.approx(decay, rel=1e-12)
    assert regime(recipe, steps).exposure == pytest.approx(3.0)
    kept = {}
    for name, own in (("by exposure", recipe), ("directly", replace(RECIPE, weight_decay=decay))):
        folder = tmp_path / name
        train("softmax", TINY, squares(256, 0), squares(64, 1), own, 5, folder)
        kept[name] = safetensors.torch.load_file(folder / "network.safetensors")
    for name, value in kept["directly"].items():
        assert torch.allclose(kept["by exposure"][name], value, atol=1e-6), name
    assert weight_decay(replace(RECIPE, exposure=None), steps) == RECIPE.weight_decay


@given(st.integers(1, 400), st.floats(0.01, 10))
def test_a_matched_recipe_is_in_the_papers_regime_at_any_length(steps: int, peak: float) -> None:
    ours = regime(matched(Recipe(learning_rate=peak)), steps)
    assert ours.exposure == pytest.approx(IMAGENET.exposure)
    assert (ours.warmup, ours.final_fraction) == (IMAGENET.warmup, IMAGENET.final_fraction)
    if steps > 10:  # below, the window holds less than two steps
        assert ours.averaging_window == pytest.approx(IMAGENET.averaging_window)


def test_the_papers_regime_is_that_of_its_recipe() -> None:
    steps = 146 * 1_281_167 // 4096
    recipe = Recipe(
        learning_rate=1.6,
        warmup=10 / 146,
        final_fraction=0.975**136,
        weight_decay=8e-5,
        averaging_momentum=0.9999,
    )
    theirs = regime(recipe, steps)
    assert (theirs.warmup, theirs.final_fraction) == (IMAGENET.warmup, IMAGENET.final_fraction)
    assert theirs.averaging_window == pytest.approx(IMAGENET.averaging_window, abs=5e-4)
    assert theirs.exposure == pytest.approx(IMAGENET.exposure, abs=0.05)
