"""Projectors, fixed heads and regularisers: against literal equations, finite differences and bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from penultimate import RequestError, objective, register, registry
from penultimate.objectives.fixed_heads import simplex_etf
from penultimate.objectives.objective import Objective
from penultimate.objectives.parts import PARTS
from penultimate.objectives.presets import resolve

N, M, K = 7, 5, 4
REGULARISERS = tuple(part.name for part in PARTS.values() if part.kind == "regulariser")


def features(seed: int = 0) -> Tensor:
    return torch.randn(N, M, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def soft(seed: int = 1) -> Tensor:
    drawn = torch.rand(N, K, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn / drawn.sum(1, keepdim=True)


def built(text: str, num_features: int = M) -> Objective:
    """An objective in float64 whose parameters are all of the size that training gives them."""
    made = objective(text, num_features, K)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.requires_grad:
                parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator))
    return made.double()


# The algebra.


def test_the_parts_compose_in_any_order_and_keep_their_names() -> None:
    terms = ("projector(depth=1, width=8)", "koleo(weight=0.1)", "center_loss", "label_smoothing(alpha=0.2)")
    found = {resolve(" + ".join(order)) for order in itertools.permutations((*terms, "simplex_etf"))}
    (one,) = found
    assert one.canonical == (
        "center_loss(weight=0.01) + koleo(weight=0.1) + label_smoothing(alpha=0.2)"
        " + projector(depth=1, width=8) + simplex_etf(scale=1)"
    )
    assert one.projector is not None
    assert [part.name for part in one.regularisers] == ["center_loss", "koleo"]
    assert one.has_fixed_head
    assert {part.kind for part in one.components} == {"fixed_head", "loss", "projector", "regulariser"}
    assert "Center loss (weight = 0.01) + KoLeo" in one.detailed_label
    assert resolve(one.canonical) == one
    assert resolve("softmax + koleo").canonical == "koleo(weight=0.1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("projector + projector(depth=1)", "the projector is set twice, by projector and by projector"),
        ("simplex_etf + cosine_softmax", "the head is set twice"),
        ("simplex_etf + simplex_etf(scale=2)", "the head is set twice"),
        ("koleo + koleo(weight=1)", "the regulariser koleo is set twice"),
        ("simplex_etf + final_layer_l2", "final_layer_l2 changes nothing beside simplex_etf, whose weight"),
        ("projector(depth=4)", "projector: depth must be an integer in [0, 3]"),
        ("projector(depth=-1)", "depth must be an integer in [0, 3]"),
        ("projector(depth=1.5)", "depth must be an integer"),
        ("projector(width=0)", "width must be an integer in [1, inf)"),
        ("koleo(weight=-0.1)", "koleo: weight must be a number in [0, inf)"),
        ("center_loss(wieght=1)", "Did you mean 'weight'"),
        ("simplex_etf(scale=0)", "scale must be a number in (0, inf)"),
        ("projektor", "Did you mean 'projector'"),
    ],
)
def test_what_no_objective_can_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(RequestError) as raised:
        resolve(text)
    assert message in str(raised.value)


# The projector.


def test_the_projector_is_its_equation() -> None:
    made = built("sigmoid + projector(depth=2, width=6)")
    h = features().numpy()
    layers = list(made.projector)  # type: ignore[arg-type]
    assert [type(layer).__name__ for layer in layers] == ["Linear", "BatchNorm1d", "ReLU"] * 2
    for linear, norm in zip(layers[::3], layers[1::3], strict=True):
        assert linear.bias is None
        v = h @ linear.weight.detach().numpy().T
        scaled = (v - v.mean(0)) / np.sqrt(v.var(0) + 1e-5)
        h = np.maximum(0, norm.weight.detach().numpy() * scaled + norm.bias.detach().numpy())
    expected = h @ made.head.weight.detach().numpy().T + made.head.bias.detach().numpy()
    np.testing.assert_allclose(made(features()).detach().numpy(), expected, atol=1e-12)
    assert made.head.weight.shape == (K, 6)
    assert made.num_features == M


def test_a_projector_of_no_layers_is_none() -> None:
    plain, deep = objective("softmax", M, K, 3), objective("softmax + projector(depth=0)", M, K, 3)
    assert deep.projector is None
    x, labels = features().float(), torch.arange(N) % K
    assert torch.equal(plain.loss(x, labels), deep.loss(x, labels))
    assert plain.state_dict().keys() == deep.state_dict().keys()


def test_its_weights_follow_from_the_seed_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one, same, other = (objective("projector(depth=1, width=8)", M, K, seed) for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in one.state_dict().items():
        assert torch.equal(value, same.state_dict()[name]), name
    assert not torch.equal(one.projector[0].weight, other.projector[0].weight)  # type: ignore[index]
    assert one.projector[1].num_batches_tracked == 0  # type: ignore[index]
    assert one.training


def test_dropout_acts_on_what_the_head_is_given() -> None:
    made = built("projector(depth=1, width=400) + dropout(keep=0.5)")
    with torch.no_grad():
        made.head.weight.fill_(1.0)
    seen: list[Tensor] = []
    made.head.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    made.reseed(1, 0, 0)
    made.loss(features(), soft())
    made(features())
    dropped, whole = seen
    assert dropped.shape == whole.shape == (N, 400)
    kept = dropped[whole > 0] / whole[whole > 0]
    assert set(kept.detach().round(decimals=6).tolist()) == {0.0, 2.0}


def test_in_evaluation_each_example_is_treated_alone() -> None:
    made = built("projector(depth=3, width=6)")
    for seed in range(5):
        made(features(seed))
    made.eval()
    whole = made(features())
    alone = torch.cat([made(features()[place : place + 1]) for place in range(N)])
    torch.testing.assert_close(alone, whole)


# Regularisers.


def literal(name: str, x: list[list[float]], t: list[list[float]], centres: list[list[float]]) -> list[float]:
    """The value of each example before its weight, by loops over numbers."""
    if name == "center_loss":
        return [
            sum(share * math.dist(row, c) ** 2 for share, c in zip(shares, centres, strict=True)) / 2
            for row, shares in zip(x, t, strict=True)
        ]
    if name == "koleo":
        x = [[value / math.hypot(*row) for value in row] for row in x]
    return [
        -math.log(min(math.dist(row, other) for at, other in enumerate(x) if at != place))
        for place, row in enumerate(x)
    ]


@pytest.mark.parametrize("name", REGULARISERS)
def test_a_regulariser_is_its_equation_added_to_the_loss(name: str) -> None:
    made, plain = built(f"{name}(weight=0.3)"), built("softmax")
    with torch.no_grad():
        plain.head.weight.copy_(made.head.weight)
        plain.head.bias.copy_(made.head.bias)
    x, t = features(), soft()
    added = made.loss(x, t) - plain.loss(x, t)
    centres = made.head.centres.tolist() if name == "center_loss" else []
    expected = [0.3 * value for value in literal(name, x.tolist(), t.tolist(), centres)]
    assert added.tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", REGULARISERS)
def test_a_regulariser_sees_the_features_before_the_projector(name: str) -> None:
    deep, flat = (built(text) for text in (f"{name} + projector(depth=1, width=3)", name))
    for made in (deep, flat):
        with torch.no_grad():
            made.head.weight.zero_()
            made.head.bias.zero_()
            if name == "center_loss":
                made.head.centres.fill_(0.5)
    torch.testing.assert_close(deep.loss(features(), soft()), flat.loss(features(), soft()))


@pytest.mark.parametrize(
    "text",
    [
        *REGULARISERS,
        "projector(depth=2, width=6)",
        "simplex_etf(scale=2)",
        "simplex_etf + projector(depth=1, width=4) + center_loss + koleo + sigmoid",
    ],
)
def test_gradients_are_the_slopes_of_the_value(text: str) -> None:
    """By finite differences, by the features and by every parameter that is trained."""
    made = built(text)
    trained = {name: value for name, value in made.named_parameters() if value.requires_grad}

    def value(x: Tensor, *parameters: Tensor) -> Tensor:
        weights = dict(zip(trained, parameters, strict=True))
        found: Tensor = torch.func.functional_call(made, weights, (x, soft()))
        return found

    leaves = [each.detach().clone().requires_grad_() for each in (features(), *trained.values())]
    assert torch.autograd.gradcheck(value, leaves, atol=1e-6)


@pytest.mark.parametrize("name", ["koleo", "entropy"])
def test_copies_dead_features_and_a_single_example_are_no_division_by_zero(name: str) -> None:
    made = objective(name, M, K)
    x = features().float()
    x[1], x[2:4] = x[0], 0
    x.requires_grad_()
    made.loss(x, torch.arange(N) % K).mean().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    alone, plain = (objective(text, M, K).loss(x[:1], torch.tensor([0])) for text in (name, "softmax"))
    assert torch.equal(alone, plain)


def test_what_compares_examples_is_known() -> None:
    found = {
        name: objective(name, M, K).compares_examples for name in (*REGULARISERS, "sigmoid", "projector")
    }
    assert found == {
        **{"center_loss": False, "koleo": True, "entropy": True},
        **{"sigmoid": False, "projector": False},
    }


def test_centres_move_to_the_means_of_their_classes() -> None:
    made = built("center_loss(weight=1)")
    x, labels = features(), torch.arange(N) % K
    optimiser = torch.optim.SGD([made.head.centres], lr=2.0)
    for _ in range(400):
        optimiser.zero_grad()
        made.loss(x, labels).mean().backward()
        optimiser.step()
    means = torch.stack([x[labels == k].mean(0) for k in range(K)])
    torch.testing.assert_close(made.head.centres.detach(), means, atol=1e-6, rtol=0)


# Fixed heads.


@pytest.mark.parametrize(("classes", "width"), [(2, 1), (4, 3), (4, 4), (10, 64), (128, 256)])
def test_the_frame_is_a_simplex_of_any_width_that_holds_one(classes: int, width: int) -> None:
    weight = simplex_etf(classes, width, torch.Generator().manual_seed(0), scale=3.0)
    gram = (weight.double() @ weight.double().T).numpy()
    expected = np.full((classes, classes), -9 / (classes - 1))
    np.fill_diagonal(expected, 9)
    np.testing.assert_allclose(gram, expected, atol=1e-5)
    np.testing.assert_allclose(weight.sum(0).numpy(), 0, atol=1e-5)


def test_a_fixed_head_is_linear_has_no_gradient_and_differs_by_seed() -> None:
    made, other = (objective("simplex_etf + sigmoid", M, K, seed) for seed in (0, 1))
    x = features().float().requires_grad_()
    logits = made(x)
    torch.testing.assert_close(logits, x @ made.head.weight.T - math.log(K))
    made.loss(x, torch.arange(N) % K).mean().backward()
    assert made.head.weight.grad is None
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    assert not torch.equal(made.head.weight, other.head.weight)
    assert [name for name, value in made.named_parameters() if value.requires_grad] == []


# Plug-ins that are wrong.

WRONG = {
    "a number for all examples": (
        "regulariser",
        lambda features, targets, head: features.square().mean(),
        r"must return one value per example, \[3\] here, got \[\]",
    ),
    "a number for a single example": (
        "regulariser",
        lambda features, targets, head: features.sum(1).squeeze(),
        r"must return one value per example, \[1\] here, got \[\]",
    ),
    "values in double precision": (
        "regulariser",
        lambda features, targets, head: features.double().sum(1),
        "must return torch.float32, like its inputs",
    ),
    "a module of unknown width": (
        "projector",
        lambda num_features: nn.Linear(num_features, 3),
        "must return an nn.Module with an integer num_features, got Linear",
    ),
    "no module": ("projector", lambda num_features: 3, "must return an nn.Module"),
    "a module of another width": (
        "projector",
        lambda num_features: _claiming(num_features, 4),
        r"must return its num_features for every example, \[2, 4\] here, got \[2, 3\]",
    ),
    "a transposed weight": (
        "head",
        lambda num_classes, num_features, generator: torch.zeros(num_features, num_classes),
        r"must return a weight for every class and feature, \[4, 5\] here, got \[5, 4\]",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_part_that_returns_another_form_is_named_when_it_is_built(case: str) -> None:
    kind, function, message = WRONG[case]
    before = registry.registered()
    getattr(register, kind)(name="example_wrong")(function)
    try:
        with pytest.raises(RequestError, match=f"'example_wrong' {message}"):
            objective("softmax + example_wrong", M, K)
    finally:
        for of_kind, name in registry.registered().keys() - before.keys():
            registry.forget(of_kind, name)


def _claiming(num_features: int, claimed: int) -> nn.Module:
    layer = nn.Linear(num_features, 3)
    layer.num_features = claimed  # type: ignore[assignment]
    return layer
