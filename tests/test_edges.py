"""Every public function of arrays, at the edge of float64 and beyond: a right value or a sentence.

A call is one line of a table; so is a kind of input. Where a quantity does not depend on the scale of its
input, its value at another scale has to be the value at scale 1; where it is proportional, the multiple.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import jaxtyping
import numpy as np
import pandas
import pytest
import scipy.sparse
import torch

from penultimate import FeatureBank, KNNProbe, LinearProbe, RequestError, compare_networks, extract
from penultimate.errors import DamagedFileError, PenultimateError
from penultimate.layers.comparison import compare_banks
from penultimate.layers.profiles import profile_layers
from penultimate.metrics.accuracy import accuracy, mean_per_class, subset_accuracy, top_k
from penultimate.metrics.activations import class_centroids, cosine_distances, nonzero_share, singular_values
from penultimate.metrics.agreement import (
    AgreementAccumulator,
    agreement,
    ensemble,
    half_and_half,
    pairwise_agreement,
)
from penultimate.metrics.calibration import (
    CalibrationAccumulator,
    expected_calibration_error,
    negative_log_likelihood,
)
from penultimate.metrics.collapse import (
    neural_collapse,
    streamed_neural_collapse,
    variability_collapse,
)
from penultimate.metrics.dendrogram import dendrogram
from penultimate.metrics.density import gaussian_density
from penultimate.metrics.hardness import angular_visual_hardness, hardness_density
from penultimate.metrics.robustness import mean_corruption_error
from penultimate.metrics.separation import (
    SeparationAccumulator,
    class_separation,
    streamed_class_separation,
    variance_ratios,
)
from penultimate.metrics.similarity import linear_cka, minibatch_cka
from penultimate.metrics.source_classes import assignment_accuracy, leep, nce
from penultimate.metrics.temperature import fit_temperature
from penultimate.metrics.transferability import h_score, logme, transrate

N, M, K = 42, 5, 3
Y = np.repeat(np.arange(K), N // K)
random = np.random.default_rng(0)
X = random.normal(size=(N, M)) + 2 * np.eye(K, M)[Y]
W = random.normal(size=(K, M))
Z = random.normal(size=(N, K)) + np.eye(K)[Y]
P = np.exp(Z) / np.exp(Z).sum(1, keepdims=True)


@pytest.fixture(autouse=True)
def as_for_users() -> Iterator[None]:
    """Without the tests' checks of annotations, which would answer before the functions do."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


class Call(NamedTuple):
    """A function of features [n m] (or logits, probabilities: as `like`) and labels [n].

    It goes with the given power of the features' scale, or with none. `slices`: it is about a part of its
    input, which then is an array.
    """

    function: Callable[[Any, Any], Any]
    like: np.ndarray = X
    power: int | None = 0
    slices: bool = False


def knn(metric: str) -> Callable[[Any, Any], Any]:
    def call(x: Any, y: Any) -> Any:
        probe = KNNProbe(metric, max_k=9).fit(x, y)
        return probe.k_, probe.leave_one_out_, probe.score(x, y)

    return call


def linear(x: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return LinearProbe(lambdas=[100.0]).fit(x, y).score(x, y)


CALLS = {
    "class_separation": Call(class_separation),
    "class_separation centred": Call(lambda x, y: class_separation(x, y, "cosine_centered")),
    "class_separation euclidean": Call(lambda x, y: class_separation(x, y, "euclidean")),
    "class_separation by class": Call(
        lambda x, y: SeparationAccumulator(by_class=True).update(x, y).compute()
    ),
    "streamed_class_separation": Call(lambda x, y: streamed_class_separation([(x, y), (x, y)])),
    "neural_collapse": Call(lambda x, y: neural_collapse(x, y, W)),
    "neural_collapse of weights": Call(lambda x, y: neural_collapse(X, np.arange(N), x)),
    "streamed_neural_collapse": Call(lambda x, y: streamed_neural_collapse([(x, y)], W)),
    "variability_collapse": Call(variability_collapse),
    "logme": Call(logme),
    "h_score": Call(h_score),
    "transrate": Call(transrate, power=None),
    "leep": Call(leep, P, None),
    "nce": Call(lambda x, y: nce(y, Y)),
    "nce of labels": Call(lambda x, y: nce(Y, y)),
    "assignment_accuracy": Call(lambda x, y: assignment_accuracy(y, Y, y, Y)),
    "assignment_accuracy on labels": Call(lambda x, y: assignment_accuracy(Y, y, Y, y)),
    "angular_visual_hardness": Call(lambda x, y: angular_visual_hardness(x, y, W)),
    "angular_visual_hardness of weights": Call(lambda x, y: angular_visual_hardness(X, np.arange(N), x)),
    "minibatch_cka": Call(lambda x, y: minibatch_cka([x], [X])),
    "minibatch_cka with itself": Call(lambda x, y: minibatch_cka([x, x], [x[:, :3], x[:, :3]]), slices=True),
    "linear_cka": Call(lambda x, y: linear_cka(x, X)),
    "linear_cka debiased": Call(lambda x, y: linear_cka(x, X, debiased=True)),
    "singular_values": Call(lambda x, y: singular_values(x), power=1),
    "class_centroids": Call(class_centroids, power=1),
    "cosine_distances": Call(cosine_distances),
    "nonzero_share": Call(lambda x, y: nonzero_share(x)),
    "knn cosine": Call(knn("cosine")),
    "knn euclidean": Call(knn("euclidean")),
    "linear": Call(linear, power=None),
    "top_k": Call(top_k, Z),
    "subset_accuracy": Call(lambda x, y: subset_accuracy(x, y, [0, 1, 2]), Z),
    "accuracy": Call(lambda x, y: accuracy(y, y)),
    "mean_per_class": Call(lambda x, y: mean_per_class(y, Y)),
    "agreement": Call(lambda x, y: agreement(y, Y, Y)),
    "pairwise_agreement": Call(lambda x, y: pairwise_agreement([y, Y], y).same),
    "ensemble": Call(lambda x, y: ensemble([y, y])),
    "half_and_half": Call(lambda x, y: half_and_half([y, y], [Y, Y])),
    "fit_temperature": Call(fit_temperature, Z, 1),
    "expected_calibration_error": Call(expected_calibration_error, P, None),
    "negative_log_likelihood": Call(negative_log_likelihood, P, None),
    "update_logits": Call(
        lambda x, y: CalibrationAccumulator().update_logits(x, y).negative_log_likelihood(), Z, None
    ),
    "gaussian_density": Call(lambda x, y: gaussian_density(x[:, 0], x[:, 1], 0.1), power=None, slices=True),
    "hardness_density": Call(
        lambda x, y: hardness_density(x[:, 0], 3, points=9).density, P, None, slices=True
    ),
    "dendrogram": Call(lambda x, y: dendrogram(x).order, power=None),
    "of values": Call(lambda x, y: (gaussian_density(y, [0.0, 1.0], 0.1), hardness_density(y, 3).density)),
    "FeatureBank": Call(lambda x, y: FeatureBank(x, y).features, power=1),
    "compare_banks": Call(
        lambda x, y: compare_banks(
            {"a": FeatureBank(x, y, ids=np.arange(N)), "b": FeatureBank(X, Y, ids=np.arange(N))}
        ).matrix[0, 1]
    ),
    "extract": Call(lambda x, y: extract(lambda batch: batch, [(x, y)]).features, power=1),
    "profile_layers": Call(
        lambda x, y: [
            (p.nonzero_share, p.class_separation)
            for p in profile_layers(torch.nn.Sequential(torch.nn.Identity()), [(x, y)], "0")
        ]
    ),
}
SCALES = (
    1e-320,
    1e-310,
    1e-200,
    1e-170,
    1e-155,
    1e-130,
    1e-100,
    1e-60,
    1e-30,
    1e-6,
    1e6,
    1e30,
    1e60,
    1e100,
    1e150,
)
SCALES += (1e155, 1e200, 1e300)


def numbers(value: Any) -> np.ndarray:
    """All numbers of a result, in order."""
    if isinstance(value, torch.Tensor):
        value = value.double().numpy()
    if isinstance(value, tuple | list | type({}.values())):
        return np.concatenate([np.zeros(0), *map(numbers, value)])
    return np.zeros(0) if value is None else np.asarray(value, np.float64).ravel()


def outcome(function: Callable[[Any, Any], Any], x: Any, y: Any) -> np.ndarray | None:
    """The numbers, or None for a sentence; anything else that is raised or warned of fails the test."""
    with warnings.catch_warnings():
        # Of what a probe could not certify, and of tables that pandas turns into arrays.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return numbers(function(x, y))
        except PenultimateError as error:
            assert len(str(error)) > 15  # noqa: PT017
            return None


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.power is not None])
def test_another_scale_is_the_same_or_refused(name: str) -> None:
    function, like, power, _ = CALLS[name]
    single = name in ("FeatureBank", "compare_banks", "extract")
    answered = 0
    for scale in SCALES:
        with np.errstate(over="ignore", under="ignore"):
            scaled = like * scale
            unscaled = scaled / scale  # near 1e-320 a number has few digits
            beyond = not np.isfinite(scaled).all()
        found = outcome(function, scaled, Y)
        if found is None:
            continue
        assert not beyond
        answered += 1
        with np.errstate(under="ignore"):
            found = found / scale if power else found
        expected = numbers(function(unscaled, Y))
        tolerance = 1e-6 if single else 1e-2 if scale < 1e-300 else 1e-9
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance, err_msg=f"{name} at {scale}"
        )
    assert answered >= (2 if single else 4)


def kinds(array: np.ndarray) -> Iterator[tuple[str, Any, np.ndarray | None]]:
    """Ways to hand over an array (or another one): their names, and the same numbers as float64, if any."""
    tensor = torch.from_numpy(array.copy())
    locked = array.copy()
    locked.setflags(write=False)
    same = {
        "list": array.tolist(),
        "tuple": tuple(map(tuple, array.tolist())),
        "other byte order": array.astype(">f8"),
        "gradient": tensor.clone().requires_grad_(True),
        "negated lazily": torch.complex(tensor, -tensor).conj().imag,
        "column by column": np.asfortranarray(array),
        "strides of two": np.repeat(array, 2, 0)[::2],
        "backwards": array[::-1, ::-1].copy()[::-1, ::-1],
        "read-only": locked,
        "nothing masked": np.ma.masked_array(array),
        "table": pandas.DataFrame(array),
        "parameter": torch.nn.Parameter(tensor),
    }
    for name, value in same.items():
        yield name, value, array
    for dtype in ("int8", "uint8", "uint16", "uint32", "uint64", "int64", "bool"):
        with np.errstate(invalid="ignore"):
            cast = np.abs(array * 3).astype(dtype)
        yield dtype, cast, cast.astype(np.float64)
        yield f"torch {dtype}", torch.from_numpy(cast), cast.astype(np.float64)
    for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"):
        cast = tensor.to(getattr(torch, name))
        yield name, cast, cast.double().numpy()
    for dtype in ("longdouble", "complex128", "U4", "S3", "object", "datetime64[s]"):
        yield dtype, array.astype("int64").astype(dtype), None
    yield "complex", tensor.to(torch.complex64), None
    yield "sparse", tensor.to_sparse(), None
    yield "meta", tensor.to("meta"), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of what is new or old in it
        odd = {
            "sparse rows": tensor.to_sparse_csr(),
            "nested": torch.nested.nested_tensor([tensor, tensor]),
            "quantised": torch.quantize_per_tensor(tensor.float(), 0.1, 0, torch.qint8),
        }
    for name, value in odd.items():
        yield name, value, None
    yield "scipy", scipy.sparse.csr_array(array), None
    yield "masked", np.ma.masked_array(array, array > np.median(array)), None
    yield "missing", pandas.DataFrame(array).astype("Float64").mask(array > np.median(array)), None
    for value in (np.nan, np.inf, -np.inf):
        spoilt = array.copy()
        spoilt[2, 1] = value
        yield str(value), spoilt, None
    others = {
        "rank 1": array[:, 0],
        "rank 3": array[:, :, None],
        "rank 0": np.float64(3),
        "None": None,
        "text": "abc",
        "bytes": b"abc",
        "mapping": {"a": 1},
        "set": {1, 2},
        "ragged": [[1.0], [1.0, 2.0]],
        "tensors": list(tensor),
        "generator": (row for row in array),
        "range": range(N),
        "no row": array[:0],
        "no column": array[:, :0],
        "one row": array[:1],
        "one column": array[:, :1],
        "one short": array[:-1],
        "ones": np.ones_like(array),
        "zeros": np.zeros_like(array),
        "one tiny row": np.vstack([array[:1] * 1e-150, array[1:]]),
        "tiny and huge": array * np.where(np.arange(N) % 2, 1e-150, 1e149)[:, None],
    }
    for name, value in others.items():
        yield name, value, None


REFUSED = (
    "longdouble",
    "complex128",
    "U4",
    "complex",
    "sparse",
    "sparse rows",
    "meta",
    "nested",
    "masked",
    "nan",
)
"""Kinds that no call answers if it reads its first argument."""


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if not call.slices])
def test_any_kind_of_array_is_read_rightly_or_refused(name: str) -> None:
    function, like, *_ = CALLS[name]
    ignores = outcome(function, "nothing", Y) is not None
    for kind, value, same in kinds(like):
        found = outcome(function, value, Y)
        if same is not None:
            expected = outcome(function, same, Y)
            # Half precision sums to 1 only roughly, and calibration allows for it.
            assert (found is None) == (expected is None) or kind in ("bfloat16", "float16"), kind
            if found is not None and expected is not None:
                np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3, err_msg=kind)
        elif not ignores and kind in REFUSED:
            assert found is None or (kind == "nan" and np.isfinite(found).all()), kind
        if found is not None and name != "compare_banks":  # NaN for a constant layer, which its notes name
            assert not np.isnan(found).any(), kind


def label_kinds() -> Iterator[tuple[str, Any]]:
    for dtype in ("float64", "bool", "uint8", "uint16", "uint64", "int8", "U3", "object", "complex128"):
        yield dtype, Y.astype(dtype)
    for name, replaced in {"2^62": 2**62, "2^64 - 1": np.uint64(2**64 - 1), "NaN": np.nan, "-1": -1}.items():
        yield name, np.where(Y == 1, replaced, Y.astype(np.asarray(replaced).dtype))
    tensor = torch.from_numpy(Y)
    others = {
        "torch uint16": tensor.to(torch.uint16),
        "sparse": tensor.to_sparse(),
        "meta": tensor.to("meta"),
        "series": pandas.Series(Y),
        "masked": np.ma.masked_array(Y, Y == 1),
        "list": Y.tolist(),
        "rank 0": 1,
        "one class": 0 * Y,
        "one short": Y[:-1],
        "none": Y[:0],
        "one-hot": np.eye(K)[Y],
        "None": None,
        "text": "abc",
        "every other number": 2 * Y,
        "a million": 500_000 * Y,
        "all different": np.arange(N),
    }
    yield from others.items()


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if not call.slices])
def test_any_kind_of_label_is_read_rightly_or_refused(name: str) -> None:
    function, like, *_ = CALLS[name]
    expected = outcome(function, like, Y)
    for kind, labels in label_kinds():
        found = outcome(function, like, labels)
        if kind in ("uint8", "uint16", "uint64", "int8", "torch uint16", "series", "list"):
            np.testing.assert_array_equal(found, expected, err_msg=kind)
        if found is not None:
            assert not np.isnan(found).any(), kind


def test_layers_compare_at_any_scale_of_rows() -> None:
    """Rows whose sizes differ by 1e40: linear CKA against its definition in fractions."""
    sizes = 10.0 ** np.arange(-20, 20, 5)
    x = random.normal(size=(8, 3)) * sizes[:, None]
    y = random.normal(size=(8, 2)) * sizes[::-1, None]

    def centred_gram(array: np.ndarray) -> list[list[Fraction]]:
        rows = [[Fraction(value) for value in row] for row in array.tolist()]
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        apart = [[value - mean for value, mean in zip(row, means, strict=True)] for row in rows]
        return [[sum(a * b for a, b in zip(one, other, strict=True)) for other in apart] for one in apart]

    def product(a: list[list[Fraction]], b: list[list[Fraction]]) -> Fraction:
        return sum(v * w for one, other in zip(a, b, strict=True) for v, w in zip(one, other, strict=True))

    a, b = centred_gram(x), centred_gram(y)
    exact = float(product(a, b) ** 2 / (product(a, a) * product(b, b))) ** 0.5
    assert linear_cka(x, y) == pytest.approx(exact, rel=1e-12)
    assert linear_cka(x * 2.0**100, y * 2.0**-100) == linear_cka(x, y)


def test_separation_of_rows_of_any_size_is_the_double_sum() -> None:
    """Squared Euclidean distances of rows from 1e-120 to 1e140, in fractions."""
    x = X * 10.0 ** np.linspace(-120, 140, N)[:, None]
    rows = [[Fraction(value) for value in row] for row in x.tolist()]

    def mean_distance(one: np.ndarray, other: np.ndarray) -> Fraction:
        total = sum(
            sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True)) for i in one for j in other
        )
        return Fraction(total) / (len(one) * len(other))

    classes = [np.flatnonzero(k == Y) for k in range(K)]
    within = sum(mean_distance(one, one) for one in classes) / K
    overall = sum(mean_distance(one, other) for one in classes for other in classes) / K**2
    assert class_separation(x, Y, "euclidean") == pytest.approx(float(1 - within / overall), rel=1e-12)


NET = torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU())
BATCHES = [torch.from_numpy(X).float()]
SETTINGS: dict[str, Callable[[Any], Any]] = {
    "distance": lambda value: class_separation(X, Y, value),
    "num_classes": lambda value: SeparationAccumulator(value, distance="cosine").update(X, Y).compute(),
    "r2": variance_ratios,
    "k": lambda value: top_k(Z, Y, value),
    "classes": lambda value: subset_accuracy(Z, Y, value),
    "bins": lambda value: expected_calibration_error(P, Y, value),
    "temperature": lambda value: CalibrationAccumulator().update_logits(Z, Y, value),
    "models": AgreementAccumulator,
    "predictions": lambda value: pairwise_agreement(value, Y),
    "count": lambda value: cosine_distances(X, Y, count=value),
    "seed": lambda value: cosine_distances(X, Y, count=20, seed=value),
    "points": lambda value: cosine_distances(X, Y, points=value),
    "bandwidth": lambda value: gaussian_density([1.0], [1.0], value),
    "weights": lambda value: gaussian_density([1.0], [1.0], 1.0, value),
    "classes of a density": lambda value: hardness_density([0.5], value),
    "bias": lambda value: neural_collapse(X, Y, W, value),
    "center": lambda value: SeparationAccumulator(distance="cosine_centered", center=value).update(X, Y),
    "batches": lambda value: minibatch_cka(value, [X]),
    "pairs of batches": streamed_class_separation,
    "shares": dendrogram,
    "errors": lambda value: mean_corruption_error({"fog": value}, {"fog": [0.5]}),
    "metric of neighbours": lambda value: KNNProbe(value).fit(X, Y),
    "max_k": lambda value: KNNProbe(max_k=value).fit(X, Y),
    "lambdas": lambda value: LinearProbe(lambdas=value).fit(X, Y),
    "metric of accuracy": lambda value: LinearProbe(metric=value).fit(X, Y),
    "tolerance": lambda value: LinearProbe([1.0], tolerance=value).fit(X, Y),
    "validation_fraction": lambda value: LinearProbe([1.0], validation_fraction=value).fit(X, Y),
    "seed of a split": lambda value: LinearProbe([1.0], seed=value).fit(X, Y),
    "layers": lambda value: compare_networks([NET], BATCHES, value),
    "passes": lambda value: compare_networks([NET], BATCHES, "0", passes=value),
    "tokens": lambda value: compare_networks([NET], BATCHES, "0", tokens=value),
    "loader": lambda value: compare_networks([NET], value, "0"),
    "loader of a profile": lambda value: profile_layers(NET, value, "0"),
    "layers of a profile": lambda value: profile_layers(NET, [(BATCHES[0], Y)], value),
    "networks": lambda value: compare_networks(value, BATCHES, "0"),
    "size of batches": lambda value: compare_banks({"a": FeatureBank(X, Y)}, batch_size=value),
    "data": lambda value: extract(NET, value),
    "size of a batch": lambda value: extract(NET, [(BATCHES[0], Y)], value),
    "ids": lambda value: FeatureBank(X, Y, ids=value),
    "logits": lambda value: FeatureBank(X, Y, value),
}
VALUES = (
    None,
    "x",
    "[",
    "[z-a]",
    "[[]",
    b"x",
    [],
    {},
    (),
    0,
    -1,
    1.5,
    10**9,
    10**30,
    1e-320,
    1e300,
    math.nan,
    True,
)
VALUES += (
    math.inf,
    object(),
    [None],
    ["["],
    [5],
    ["x"],
    [[]],
    np.zeros((2, 2)),
    torch.zeros(0, 4),
    [torch.zeros(0, 4)],
)
VALUES += (
    [(torch.zeros(0, 4), torch.zeros(0))],
    [(torch.zeros(4, 5), [0, 1])],
    [5, 6],
    1j,
    {"a": None},
    lambda: 0,
)


@pytest.mark.parametrize("name", SETTINGS)
def test_any_setting_is_taken_or_refused(name: str) -> None:
    """A sentence or an answer, soon and in little memory; what is right of them is tested where they live."""
    start = time.perf_counter()
    for value in VALUES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                SETTINGS[name](value)
            except PenultimateError as error:
                assert len(str(error)) > 15  # noqa: PT017
    assert time.perf_counter() - start < 30


def test_what_was_refused_with_a_traceback() -> None:
    for call, message in (
        (lambda: class_separation(X, Y, None), "unknown distance 'None'"),  # type: ignore[arg-type]
        (lambda: LinearProbe(lambdas="x").fit(X, Y), "lambdas must be positive numbers"),
        (lambda: fit_temperature(Z * 1e-200, Y), "differ by numbers below 1e-130"),
        (lambda: expected_calibration_error(P, Y, 10**9), "at most 1048576"),
        (lambda: compare_networks([NET], BATCHES, ["["]), r"no layer matches '\['"),
        (
            lambda: angular_visual_hardness(X, Y, W * 1e-170),
            "weight are not 0 but shorter than 1e-130 in rows 0, 1",
        ),
        (lambda: class_separation(X * 1e151, Y), "beyond 1e.150 in row"),
        (lambda: FeatureBank(X * 1e-60, Y), "too small for float32 in rows 0, 1"),
    ):
        with pytest.raises(RequestError, match=message):
            call()


def test_a_bank_whose_facts_are_something_else(tmp_path: Path) -> None:
    bank = FeatureBank(X, Y)
    for facts in ([], {}, {"digest": 5, "provenance": {}}, {"digest": bank.digest(), "provenance": 5}, None):
        arrays = {"features": bank.features, "labels": bank.labels, "ids": np.arange(N)}
        np.savez(tmp_path / "bank.npz", facts=np.frombuffer(json.dumps(facts).encode(), np.uint8), **arrays)
        with pytest.raises(DamagedFileError, match="the feature bank"):
            FeatureBank.load(tmp_path / "bank.npz")
