"""The composed module: every preset and every combination of table C.4 against the literal equations."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import objectives as oracle

from penultimate import objective, register, registry
from penultimate.objectives.presets import resolve
from penultimate.paper import published

pytestmark = pytest.mark.filterwarnings("ignore:squared_error:UserWarning")  # of few classes
N, M, K = 6, 5, 4
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
every_preset = pytest.mark.parametrize("name", published.objectives())
seeds = st.integers(0, 10_000)

# Every combination printed in table C.4 of the paper: rows (a regularizer) x columns (an objective).
SOFTMAX, SMOOTH, SIGMOID, COSINE = "softmax", "label_smoothing(alpha=0.1)", "sigmoid", "cosine_softmax"
TABLE_C4 = [
    *itertools.product((SOFTMAX, COSINE), ["softmax"]),
    *itertools.product((SOFTMAX, SMOOTH, SIGMOID, COSINE), [f"dropout(keep={rho})" for rho in (0.7, 0.8)]),
    *itertools.product((SMOOTH, SIGMOID, COSINE), [f"dropout(keep={rho})" for rho in (0.9, 0.95)]),
    *itertools.product(
        (SOFTMAX, SMOOTH, SIGMOID, COSINE),
        [f"logit_penalty(beta={b})" for b in (5e-5, 1e-4, 2e-4, 4e-4, 6e-4)],
    ),
    *itertools.product((SMOOTH, SIGMOID), ["logit_norm(temperature=0.02)"]),
    *itertools.product(
        (SOFTMAX, SMOOTH, SIGMOID), [f"logit_norm(temperature={tau})" for tau in (0.03, 0.04, 0.05, 0.06)]
    ),
    *itertools.product((SOFTMAX, SIGMOID), [f"cosine_softmax(temperature={t})" for t in (0.045, 0.05, 0.06)]),
]


def draw(seed: int = 0, n: int = N) -> tuple[torch.Tensor, torch.Tensor]:
    """Features [n M] and soft targets [n K], float64."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, M, generator=generator, dtype=torch.float64)
    targets = torch.rand(n, K, generator=generator, dtype=torch.float64)
    return features, targets / targets.sum(1, keepdim=True)


def build(text: str, seed: int = 0):
    """An objective whose weight and bias are of the size that training gives them, outside training."""
    obj = objective(text, M, K, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        obj.head.weight.normal_(0, 0.5, generator=generator)
        obj.head.bias.normal_(0, 0.5, generator=generator)
    return obj.double().eval()


def literal(text: str, obj, features, targets) -> list[float]:
    """The loss of a combination from the equations alone: the data loss of its head, plus the penalties."""
    terms = {term.name: term.arguments for term in resolve(text).terms}
    W, b = obj.head.weight.tolist(), obj.head.bias.tolist()
    values = []
    for x, t in zip(features.tolist(), targets.tolist(), strict=True):
        if "cosine_softmax" in terms:
            z = oracle.cosine_logits(x, W, b, terms["cosine_softmax"]["temperature"])
        elif "logit_norm" in terms:
            z = oracle.normalised_logits(x, W, b, terms["logit_norm"]["temperature"])
        else:
            z = oracle.linear(x, W, b)
        if "label_smoothing" in terms:
            value = oracle.smooth_loss(z, t, terms["label_smoothing"]["alpha"])
        else:
            value = (oracle.sigmoid_loss if "sigmoid" in terms else oracle.softmax_loss)(z, t)
        if "logit_penalty" in terms:
            value += terms["logit_penalty"]["beta"] * oracle.norm(z) ** 2
        values.append(value)
    return values


@every_preset
@given(seed=seeds)
@settings(max_examples=20)
def test_a_preset_equals_its_equation(name, seed):
    obj = build(name, seed)
    features, targets = draw(seed)
    W, b = obj.head.weight.tolist(), obj.head.bias.tolist()
    (term,) = resolve(name).terms
    expected = [
        oracle.PRESETS[name](x, t, W, b, **term.arguments)
        for x, t in zip(features.tolist(), targets.tolist(), strict=True)
    ]
    assert obj.loss(features, targets).tolist() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("first", "second"), TABLE_C4)
def test_every_combination_of_table_c4_equals_its_equations(first, second):
    text = f"{first} + {second}"
    obj = build(text)
    features, targets = draw()
    found = obj.loss(features, targets).tolist()
    assert found == pytest.approx(literal(text, obj, features, targets), rel=1e-10)


def test_the_scale_acts_on_the_data_loss_and_not_on_penalties():
    features, targets = draw()
    plain, scaled, penalised = (
        build(text).loss(features, targets)
        for text in (
            "cosine_softmax",
            "cosine_softmax(scale=0.05)",
            "cosine_softmax(scale=0.05) + logit_penalty(beta=2) + final_layer_l2(lambda_final=3)",
        )
    )
    torch.testing.assert_close(scaled, 0.05 * plain)
    obj = build("cosine_softmax")
    expected = scaled + 2 * obj(features).square().sum(1) + 3 * obj.head.weight.square().sum()
    torch.testing.assert_close(penalised, expected)


@every_preset
def test_gradients(name):
    obj = build(name)
    features, targets = draw(n=3)
    features.requires_grad_()
    inputs = (features, obj.head.weight, obj.head.bias)
    assert torch.autograd.gradcheck(lambda *_: obj.loss(features, targets), inputs)


@every_preset
@given(seed=seeds, order=st.permutations(range(K)))
@settings(max_examples=20)
def test_renaming_the_classes_changes_nothing_else(name, seed, order):
    obj = build(name, seed)
    features, targets = draw(seed)
    renamed = copy.deepcopy(obj)
    with torch.no_grad():
        renamed.head.weight.copy_(obj.head.weight[order])
        renamed.head.bias.copy_(obj.head.bias[order])
    torch.testing.assert_close(renamed(features), obj(features)[:, order])
    torch.testing.assert_close(renamed.loss(features, targets[:, order]), obj.loss(features, targets))


@every_preset
@given(seed=seeds)
@settings(max_examples=10)
def test_an_example_does_not_see_its_batch(name, seed):
    obj = build(name, seed)
    features, targets = draw(seed)
    alone = torch.cat([obj.loss(features[i : i + 1], targets[i : i + 1]) for i in range(N)])
    torch.testing.assert_close(obj.loss(features, targets), alone)


@every_preset
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_class_indices_are_one_hot_distributions(name, dtype):
    obj = build(name)
    features, targets = draw()
    labels = targets.argmax(1)
    expected = obj.loss(features, F.one_hot(labels, K).double())
    assert torch.equal(obj.loss(features, labels.to(dtype)), expected)
    assert torch.equal(obj.loss(features.numpy(), labels.numpy()), expected)


@every_preset
def test_an_empty_batch_has_no_losses(name):
    assert build(name).loss(torch.zeros(0, M), torch.zeros(0, dtype=torch.int64)).shape == (0,)


@every_preset
@pytest.mark.parametrize("size", [0.0, 1e4])
def test_extreme_features_give_finite_losses_and_gradients(name, size):
    obj = objective(name, M, K)
    features = torch.full((2, M), size, requires_grad=True)
    loss = obj.loss(features, torch.tensor([0, K - 1]))
    loss.mean().backward()
    assert loss.isfinite().all()
    gradients = [tensor.grad for tensor in (features, obj.head.weight, obj.head.bias)]
    assert all(gradient.isfinite().all() for gradient in gradients)
    if size == 0:
        assert max(gradient.abs().max() for gradient in gradients) < 1e4


@every_preset
def test_computes_in_float32_whatever_autocast_says(name):
    obj = build(name).float()
    features, targets = draw()
    half = features.bfloat16()
    expected = obj.loss(half.float(), targets.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = obj.loss(half, targets)
        logits = obj(half)
    assert found.dtype == logits.dtype == torch.float32
    assert torch.equal(found, expected)
    assert obj.loss(features, targets).dtype == torch.float64


@pytest.mark.parametrize("device", DEVICES)
@every_preset
def test_runs_where_its_weights_are(name, device):
    obj = build(name).float()
    features, targets = draw()
    expected = obj.loss(features.float(), targets.float())
    moved = obj.to(device).loss(features.float().to(device), targets.float().to(device))
    torch.testing.assert_close(moved.cpu(), expected)


@pytest.fixture
def seen():
    """The logits that a loss saw, by a penalty that adds nothing."""
    logits_seen: list[torch.Tensor] = []

    @register.regulariser(name="example_witness")
    def witness(logits, head):
        logits_seen.append(logits.detach())
        return torch.zeros(len(logits))

    yield logits_seen
    registry.forget("penalty", "example_witness")


def test_dropout_keeps_features_with_its_probability_and_divides_by_it(seen):
    """Ones through an identity weight are the mask itself."""
    size, keep = 100, 0.7
    obj = objective(f"dropout(keep={keep}) + example_witness", size, size)
    with torch.no_grad():
        obj.head.weight.copy_(torch.eye(size))
    obj.reseed(0, 0, 0)
    losses = obj.loss(torch.ones(size, size), torch.arange(size))
    mask = seen[-1]
    torch.testing.assert_close(mask.unique(), torch.tensor([0.0, 1 / keep]))
    share = (mask > 0).double().mean().item()
    assert abs(share - keep) < 6 * math.sqrt(keep * (1 - keep) / size**2)
    expected = [
        oracle.softmax_loss(z, t) for z, t in zip(mask.tolist(), torch.eye(size).tolist(), strict=True)
    ]
    assert losses.tolist() == pytest.approx(expected, rel=1e-5)
    assert not torch.equal(mask[0], mask[1])


def test_dropout_acts_in_the_training_loss_only():
    obj = objective("dropout(keep=0.5)", M, K)
    features, targets = draw()
    plain = build("softmax").float()
    plain.head.load_state_dict(obj.head.state_dict())
    assert obj.training
    assert torch.equal(obj(features), plain(features))
    assert not torch.equal(obj.loss(features, targets), plain.loss(features, targets))
    assert torch.equal(obj.eval().loss(features, targets), plain.loss(features, targets))


@every_preset
def test_called_with_targets_it_is_the_loss_also_through_what_wraps_modules(name):
    obj = objective(name, M, K).eval()
    features, targets = draw()
    expected = obj.loss(features, targets)
    replica = torch.nn.Module._replicate_for_data_parallel(obj)
    replica.head = torch.nn.Module._replicate_for_data_parallel(obj.head)
    replica.head.weight, replica.head.bias = (torch.clone(tensor) for tensor in obj.parameters())
    for wrapped in (obj, torch.nn.DataParallel(obj), replica):
        assert torch.equal(wrapped(features, targets), expected)
        assert torch.equal(wrapped(features), obj(features))


def test_dropout_acts_when_it_is_called_with_targets():
    obj = objective("dropout(keep=0.5)", M, K)
    features, targets = draw()
    obj.reseed(0, 0, 0)
    expected = obj.loss(features, targets)
    obj.reseed(0, 0, 0)
    assert torch.equal(obj(features, targets), expected)
    assert not torch.equal(obj.eval()(features, targets), expected)


def test_masks_come_from_seed_epoch_and_step_alone():
    obj = objective("dropout(keep=0.5)", M, K)
    features, targets = draw()

    def after(*stream: int, of=obj) -> torch.Tensor:
        of.reseed(*stream)
        return of.loss(features, targets)

    first = after(1, 2, 3)
    second = obj.loss(features, targets)
    assert torch.equal(after(1, 2, 3), first)
    assert torch.equal(obj.loss(features, targets), second)
    assert torch.equal(after(1, 2, 3, of=copy.deepcopy(obj)), first)
    others = [
        second,
        *(after(*stream) for stream in ((0, 2, 3), (1, 0, 3), (1, 2, 0), (3, 2, 1), (1, 23, 0))),
    ]
    assert not any(torch.equal(first, other) for other in others)


def test_the_global_generator_is_left_alone_once_reseeded():
    features, targets = draw()
    before = torch.random.get_rng_state()
    obj = objective("dropout + label_smoothing", M, K, seed=3)
    obj.reseed(0, 0, 0)
    obj.loss(features, targets)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_without_reseed_masks_come_from_the_global_generator():
    obj = objective("dropout", M, K)
    features, targets = draw()
    with torch.random.fork_rng():
        torch.manual_seed(7)
        first, second = obj.loss(features, targets), obj.loss(features, targets)
        torch.manual_seed(7)
        assert torch.equal(obj.loss(features, targets), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("head", ["softmax", "logit_norm", "cosine_softmax"])
def test_first_weights(head):
    deviation = 1 / 16 if head == "cosine_softmax" else 0.01
    for text, bias in ((head, 0.0), (f"{head} + sigmoid".removeprefix("softmax + "), -math.log(200))):
        obj = objective(text, 256, 200, seed=1)
        assert obj.head.weight.std().item() == pytest.approx(deviation, rel=0.02)
        assert abs(obj.head.weight.mean().item()) < 5 * deviation / math.sqrt(256 * 200)
        assert obj.head.bias.tolist() == pytest.approx([bias] * 200)
        assert torch.equal(obj.head.weight, objective(text, 256, 200, seed=1).head.weight)
        assert not torch.equal(obj.head.weight, objective(text, 256, 200, seed=2).head.weight)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@every_preset
def test_probabilities_equal_their_equation(name, temperature):
    obj = build(name)
    logits = obj(draw()[0])
    equation = oracle.sigmoid_probabilities if name == "sigmoid" else oracle.softmax_probabilities
    expected = torch.tensor([equation(z, temperature) for z in logits.tolist()], dtype=torch.float64)
    found = obj.probabilities(logits, temperature)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found.log(), obj.log_probabilities(logits, temperature))
    fitted_outside = (obj.log_probabilities(logits) / temperature).softmax(1)
    torch.testing.assert_close(found, fitted_outside)
    assert torch.equal(obj.probabilities(logits.detach().numpy(), temperature), found)


@every_preset
def test_probabilities_of_extreme_logits_sum_to_one(name):
    obj = objective(name, M, K)
    logits = torch.tensor([[-1e4, -1e4, -1e4, -1e4], [1e4, 1e4, 0.0, 0.0], [1e4, -1e4, 0.0, 1.0]])
    found = obj.probabilities(logits)
    torch.testing.assert_close(found.sum(1), torch.ones(3))
    assert found[0].tolist() == [0.25] * 4
    assert obj.log_probabilities(logits).isfinite().all()
    assert obj.probabilities(logits.bfloat16()).dtype == torch.float32


def test_survives_saving_copying_and_its_own_spec():
    obj = objective("dropout(keep=0.9) + sigmoid + final_layer_l2", M, K, seed=5)
    assert sorted(obj.state_dict()) == ["head.bias", "head.weight"]
    again = objective(obj.spec, M, K)
    again.load_state_dict(obj.state_dict())
    features, targets = draw()
    for other in (again, copy.deepcopy(obj), pickle.loads(pickle.dumps(obj))):
        other.reseed(1, 1, 1)
        obj.reseed(1, 1, 1)
        assert torch.equal(other.loss(features, targets), obj.loss(features, targets))
    assert obj.spec in repr(obj)
