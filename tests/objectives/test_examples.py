"""The objectives that ship as examples: published formulas, slopes, extremes, resuming, and bad input."""

from __future__ import annotations

import doctest
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.plugged import plugged
from tests.training.worlds import TINY, squares
from torch import Tensor

from penultimate import RequestError, objective, registry, shipped
from penultimate.checking import check_file, example
from penultimate.networks.trained import load_network
from penultimate.objectives.objective import Objective
from penultimate.objectives.presets import COMPONENT_KINDS, PRESETS, hyperparameters_of_term, resolve
from penultimate.training import Recipe, train
from penultimate.training.run import Run
from penultimate.tuning.axes import axes_of

FILES = tuple(shipped.contents())
N, M, K = 7, 5, 4
COUNTS = (50, 3, 20, 7)
Array = NDArray[np.float64]


@pytest.fixture(scope="module", autouse=True)
def loaded() -> Iterator[None]:
    with plugged(*(f"{shipped.PREFIX}{file}" for file in FILES)):
        yield


def built(text: str, dtype: torch.dtype = torch.float64) -> Objective:
    """An objective whose weights are of the size that training gives them."""
    made = objective(text, M, K, class_counts=COUNTS)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.7 * torch.randn(parameter.shape, generator=generator))
    return made.to(dtype)


def features() -> Tensor:
    return torch.randn(N, M, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


LABELS = np.array([0, 1, 1, 3, 0, 1, 3])
SOFT = np.random.default_rng(1).dirichlet(np.ones(K), N)

# The published formulas, one example, one class at a time.


def softmax(z: Array) -> Array:
    return np.exp(z) / np.exp(z).sum()


def cosines(x: Array, made: Objective) -> Array:
    rows = made.head.weight.detach().numpy()
    return np.array([x @ row / np.linalg.norm(x) / np.linalg.norm(row) for row in rows])


def affine(x: Array, made: Objective) -> Array:
    return made.head.weight.detach().numpy() @ x + made.head.bias.detach().numpy()


def focal(x: Array, y: int, made: Objective) -> float:
    p = softmax(affine(x, made))[y]
    return float(-((1 - p) ** 1.5) * np.log(p))


def poly1(x: Array, y: int, made: Objective) -> float:
    p = softmax(affine(x, made))[y]
    return float(-np.log(p) + 2 * (1 - p))


def additive(x: Array, y: int, made: Objective, margin: float, scale: float) -> float:
    cosine = cosines(x, made)
    rest = sum(math.exp(scale * cosine[k]) for k in range(K) if k != y)
    right = math.exp(scale * (cosine[y] - margin))
    return -math.log(right / (right + rest))


def cosface(x: Array, y: int, made: Objective) -> float:
    return additive(x, y, made, 0.35, 8)


def negative_margin(x: Array, y: int, made: Objective) -> float:
    return additive(x, y, made, -0.3, 8)


def arcface(x: Array, y: int, made: Objective) -> float:
    cosine = cosines(x, made)
    angle = math.acos(cosine[y])
    wide = math.cos(angle + 0.5) if angle < math.pi - 0.5 else cosine[y] - 0.5 * math.sin(0.5)
    rest = sum(math.exp(8 * cosine[k]) for k in range(K) if k != y)
    return -math.log(math.exp(8 * wide) / (math.exp(8 * wide) + rest))


def elogitnorm(x: Array, y: int, made: Objective) -> float:
    rows, f = made.head.weight.detach().numpy(), affine(x, made)
    c = int(f.argmax())
    apart = [abs(f[c] - f[k]) / np.linalg.norm(rows[c] - rows[k]) if k != c else 0.0 for k in range(K)]
    return float(-np.log(softmax(f / (sum(apart) / K))[y]))


def logit_adjustment(x: Array, y: int, made: Objective) -> float:
    f = affine(x, made)
    weights = [math.exp(f[k] + 0.5 * math.log(COUNTS[k] / sum(COUNTS))) for k in range(K)]
    return -math.log(weights[y] / sum(weights))


FORMULAS: dict[str, Callable[[Array, int, Objective], float]] = {
    "focal(gamma=1.5)": focal,
    "poly1(epsilon=2)": poly1,
    "cosface(margin=0.35, scale=8)": cosface,
    "arcface(margin=0.5, scale=8)": arcface,
    "negative_margin(margin=-0.3, scale=8)": negative_margin,
    "elogitnorm": elogitnorm,
    "logit_adjustment(tau=0.5)": logit_adjustment,
}
EVERY = (*FORMULAS, "supcon(temperature=0.2, weight=0.7)", "detached + supcon")


@pytest.mark.parametrize("text", FORMULAS)
def test_each_is_its_published_formula(text: str) -> None:
    made = built(text)
    x = features()
    expected = [FORMULAS[text](x[i].numpy(), int(LABELS[i]), made) for i in range(N)]
    assert made.loss(x, torch.tensor(LABELS)).tolist() == pytest.approx(expected, rel=1e-9)


def test_arcface_goes_on_falling_where_the_angle_and_its_margin_exceed_pi() -> None:
    made = built("arcface(margin=0.5, scale=8)")
    x = -made.head.weight.detach()[:2] + 1e-3
    expected = [arcface(x[i].numpy(), i, made) for i in range(2)]
    assert made.loss(x, torch.tensor([0, 1])).tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("soft", [False, True])
def test_supervised_contrast_is_its_published_formula_over_pairs(soft: bool) -> None:
    x = features().numpy()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    targets = SOFT if soft else np.eye(K)[LABELS]
    expected = []
    for i in range(N):
        bottom = sum(math.exp(unit[i] @ unit[a] / 0.2) for a in range(N) if a != i)
        pairs = {p: float(targets[i] @ targets[p]) for p in range(N) if p != i}
        total = sum(
            share * math.log(math.exp(unit[i] @ unit[p] / 0.2) / bottom) for p, share in pairs.items()
        )
        expected.append(-0.7 * total / sum(pairs.values()) if sum(pairs.values()) else 0.0)
    made, plain = built("supcon(temperature=0.2, weight=0.7)"), built("softmax")
    found = made.loss(features(), torch.tensor(targets)) - plain.loss(features(), torch.tensor(targets))
    assert found.tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("focal(gamma=0)", "softmax"),
        ("poly1(epsilon=0)", "softmax"),
        ("logit_adjustment(tau=0)", "softmax"),
        ("cosface(margin=0, scale=20)", "cosine_softmax(temperature=0.05)"),
        ("arcface(margin=0, scale=20)", "cosine_softmax(temperature=0.05)"),
        ("negative_margin(margin=0, scale=20)", "cosine_softmax(temperature=0.05)"),
        ("supcon(weight=0)", "softmax"),
    ],
)
def test_at_strength_zero_each_is_what_it_changes(text: str, plain: str) -> None:
    one, other = built(text), built(plain)
    with torch.no_grad():
        other.head.bias.mul_(0 if "cosine" in plain else 1)
    for targets in (torch.tensor(LABELS), torch.tensor(SOFT)):
        torch.testing.assert_close(one.loss(features(), targets), other.loss(features(), targets))


@pytest.mark.parametrize("text", FORMULAS)
def test_soft_targets_that_are_one_hot_are_the_labels(text: str) -> None:
    made, hot = built(text), torch.tensor(np.eye(K)[LABELS])
    assert torch.equal(made.loss(features(), hot), made.loss(features(), torch.tensor(LABELS)))


@pytest.mark.parametrize("text", EVERY)
def test_gradients_are_the_slopes_of_the_value(text: str) -> None:
    made, targets = built(text), torch.tensor(SOFT)
    x = features().requires_grad_()
    if "detached" not in text:  # the slope of the head's part is cut there on purpose
        assert torch.autograd.gradcheck(lambda given: made.loss(given, targets), (x,))
    loss = made.loss(x, targets).sum()
    (slope,) = torch.autograd.grad(loss, made.head.weight)
    place, step = (1, 2), 1e-6
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            made.head.weight[place] += sign * step
            ends.append(float(made.loss(x, targets).sum()))
            made.head.weight[place] -= sign * step
    assert float(slope[place]) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-8)


def test_detached_supervised_contrast_trains_the_body_by_the_contrast_alone() -> None:
    targets = torch.tensor(LABELS)
    x = features().requires_grad_()
    slopes = [
        torch.autograd.grad(built(text).loss(x, targets).sum(), x)[0]
        for text in ("detached + supcon", "supcon", "softmax")
    ]
    torch.testing.assert_close(slopes[0], slopes[1] - slopes[2])
    made = built("detached + supcon")
    assert torch.autograd.grad(made.loss(x, targets).sum(), made.head.weight)[0].abs().sum() > 0


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("size", [1e-6, 0.0, 1e6])
def test_values_and_slopes_are_finite_whatever_the_size_of_the_features(text: str, size: float) -> None:
    made = built(text, torch.float32)
    x = (size * features()).float().requires_grad_()
    loss = made.loss(x, torch.tensor(LABELS))
    loss.sum().backward()  # type: ignore[no-untyped-call]
    assert loss.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert made.head.weight.grad is not None
    assert made.head.weight.grad.isfinite().all()


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_body_in_half_precision_gives_the_loss_of_its_features(text: str, dtype: torch.dtype) -> None:
    made = built(text, torch.float32)
    x = features().to(dtype)
    with torch.autocast("cpu", dtype):
        loss = made.loss(x, torch.tensor(LABELS))
    assert loss.dtype is torch.float32
    torch.testing.assert_close(loss, made.loss(x.float(), torch.tensor(LABELS)))


def test_focal_keeps_its_digits_where_the_right_class_is_all_but_certain() -> None:
    function = registry.entry("loss", "focal").resolve()
    target = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    logits = torch.tensor([[20.0, 0.0, -1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    loss = function(logits, target, gamma=0.5)
    (slope,) = torch.autograd.grad(loss.sum(), logits)
    wrong = sum(math.exp(z - 20) for z in (0.0, -1.0, 1.0))
    assert float(loss.detach()) == pytest.approx(wrong**1.5, rel=1e-6, abs=0)
    assert float(slope[0, 0]) == pytest.approx(-1.5 * wrong**1.5, rel=1e-6, abs=0)
    certain = torch.tensor([[200.0, 0.0, -1.0, 1.0]], requires_grad=True)
    (flat,) = torch.autograd.grad(function(certain, target.float(), gamma=0.5).sum(), certain)
    assert flat.isfinite().all()


# As a user meets them.


@pytest.mark.parametrize("file", FILES)
def test_each_passes_the_check_and_its_examples_run(file: str) -> None:
    report = check_file(shipped.path_of(file))
    assert report.ok, report.wrong
    assert example(file) == shipped.path_of(file).read_text()
    module = sys.modules[registry.entry(*_first(file)).resolve().__module__]
    found = doctest.DocTestFinder(recurse=True).find(module, module.__name__)
    asked = [one for one in found if one.examples]
    assert asked
    for one in asked:
        assert doctest.DocTestRunner(verbose=False).run(one).failed == 0


def _first(file: str) -> tuple[str, str]:
    name = shipped.contents()[file][0]
    return next(kind for kind in COMPONENT_KINDS if name in registry.names(kind)), name


@pytest.mark.parametrize("name", [name for names in shipped.contents().values() for name in names])
def test_each_states_its_paper_its_ranges_and_its_grid(name: str) -> None:
    kind = next(kind for kind in COMPONENT_KINDS if name in registry.names(kind))
    entry = registry.entry(kind, name)
    assert entry.paper
    assert entry.summary.endswith(".")
    for one in hyperparameters_of_term(name):
        assert str(one.interval) != "(-inf, inf)"
        assert one.default in one.interval
        if kind != "head":
            assert one.grid
            axes = {axis.key: axis for axis in axes_of(name, Recipe(), {}).values()}
            assert {*one.grid} <= {*axes[one.name].grid}
            assert one.default in axes[one.name].grid


def test_a_value_that_is_asked_for_joins_the_grid_of_the_example() -> None:
    (axis,) = axes_of("focal(gamma=3)", Recipe(), {}).values()
    assert (axis.grid, axis.centre) == ((0.2, 0.5, 1, 2, 3, 5), 3)
    (given,) = axes_of("focal", Recipe(), {"gamma": (1, 4)}).values()
    assert given.grid == (1, 4)


def test_they_are_none_of_the_presets_and_are_named_as_in_their_papers() -> None:
    assert len(PRESETS) == 9
    assert not {*PRESETS} & {*shipped.every_name()}
    labels = [resolve(text).label for text in ("cosface", "arcface", "elogitnorm", "supcon", "poly1")]
    assert labels == ["CosFace", "ArcFace", "ELogitNorm", "SupCon", "Poly-1"]
    assert resolve("arcface(margin=0.2)").head.arguments == (("scale", 64),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("focal(gamma=-1)", r"gamma must be a number in \[0, inf\), got -1"),
        ("poly1(epsilon=-2)", r"epsilon must be a number in \[-1, inf\), got -2"),
        ("cosface(margin=-0.1)", r"margin must be a number in \[0, 2\], got -0.1"),
        ("cosface(scale=0)", r"scale must be a number in \(0, inf\), got 0"),
        ("arcface(margin=2)", r"margin must be a number in \[0, 1.57\], got 2"),
        ("negative_margin(margin=0.1)", r"margin must be a number in \[-2, 0\], got 0.1"),
        ("supcon(temperature=0)", r"temperature must be a number in \(0, inf\), got 0"),
        ("logit_adjustment(tau=-1)", r"tau must be a number in \[0, inf\), got -1"),
        ("cosine_softmax + arcface", "the head is set twice, by cosine_softmax and by arcface"),
        ("focal + poly1", "the loss is set twice"),
        ("elogitnorm + logit_norm", "the head is set twice"),
    ],
)
def test_what_is_out_of_range_or_set_twice_is_refused(text: str, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        resolve(text)


@pytest.mark.parametrize("text", EVERY)
def test_one_class_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="num_classes must be an integer >= 2, got 1"):
        objective(text, M, 1, class_counts=[5])


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        (None, "needs the number of training images of each class"),
        ([1, 2, 3], r"a number for each of 4 classes, got \[3\]"),
        ([5, 0, 3, 3], "at least one training image of each class; class 1 has 0"),
        ([5, math.nan, 3, 3], "class 1 has nan"),
    ],
)
def test_class_counts_that_are_missing_or_wrong_are_refused(counts: list[float] | None, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        objective("logit_adjustment", M, K, class_counts=counts)


def test_a_batch_of_one_example_per_class_is_worth_nothing_to_the_contrast_and_says_so() -> None:
    made, plain, labels = built("supcon"), built("softmax"), torch.arange(K)
    x = features()[:K].requires_grad_()
    with pytest.warns(UserWarning, match="no two images of a batch of 4 are of one class"):
        loss = made.loss(x, labels)
    assert torch.equal(loss, plain.loss(x, labels))
    (slope,) = torch.autograd.grad(loss.sum(), x)
    assert slope.isfinite().all()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        made.loss(x, labels)
    assert made.compares_examples


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("focl", "unknown example 'focl'. Did you mean 'focal'?"),
        ("", "unknown example ''."),
    ],
)
def test_an_example_that_there_is_not_is_refused_with_the_nearest(name: str, why: str) -> None:
    with pytest.raises(RequestError) as error:
        shipped.resolved(f"{shipped.PREFIX}{name}")
    assert why in str(error.value)


def test_an_example_that_is_not_loaded_is_named_with_the_option_that_loads_it() -> None:
    entry = registry.entry("loss", "poly1")
    registry.forget("loss", "poly1")
    try:
        with pytest.raises(RequestError, match="--plugin examples:poly1"):
            resolve("poly1")
    finally:
        registry.add(entry)


# In a training.

RECIPE = Recipe(epochs=2, batch_size=16, learning_rate=0.05)


def counted_squares() -> object:
    """Images of four classes, of which some have far fewer than others."""
    whole = squares(160, 0)
    return whole.subset(np.flatnonzero((whole.labels != 2) | (np.arange(160) < 40)))


@pytest.mark.parametrize(
    "text", ["focal", "poly1", "cosface(scale=8)", "elogitnorm", "logit_adjustment", "detached + supcon"]
)
def test_a_run_that_is_broken_off_ends_in_the_same_bits(tmp_path: Path, text: str) -> None:
    world = counted_squares()
    folders = [tmp_path / name for name in ("whole", "broken")]
    for folder in folders:
        folder.mkdir()
    train(text, TINY, world, None, RECIPE, 5, folders[0])  # type: ignore[arg-type]
    broken = Run(text, TINY, world, None, RECIPE, 5, folders[1], "cpu")  # type: ignore[arg-type]
    for batch, _ in zip(broken.batches(), range(3), strict=False):
        broken.advance(batch)
    broken.save()
    train(text, TINY, world, None, RECIPE, 5, folders[1])  # type: ignore[arg-type]
    one, other = ((folder / "network.safetensors").read_bytes() for folder in folders)
    assert one == other


def test_the_class_counts_are_those_of_the_training_images_and_stay_with_the_network(tmp_path: Path) -> None:
    world = counted_squares()
    train("logit_adjustment", TINY, world, None, RECIPE, 5, tmp_path)  # type: ignore[arg-type]
    network = load_network(tmp_path)
    assert network.objective.class_counts is not None
    assert network.objective.class_counts.tolist() == [40, 40, 10, 40]
    absent = Run("logit_adjustment", TINY, world.subset(slice(3)), None, RECIPE, 5, tmp_path, "cpu")  # type: ignore[attr-defined]
    assert absent.network.objective.class_counts.tolist() == [1, 1, 1, 1]
    x = torch.rand(3, network.objective.num_features)
    weight, bias = network.objective.head.weight, network.objective.head.bias
    torch.testing.assert_close(network.logits(x), x @ weight.T + bias)
