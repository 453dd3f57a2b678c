"""The 45-lambda path of the linear probe against scikit-learn's, both to F <= (1 + 1e-4) F*, on one thread.

    python -m benchmarks.probes_linear [--quick] [--json FILE]    about five minutes; --quick, half a minute

Ours: one certified path, in float64 and in float32, with certificates included in its time. The peer:
`LogisticRegression(solver="lbfgs", warm_start=True)` in float64, lambda ascending, as in the paper. Its `tol`
says nothing about F, so the comparison favours it: for every lambda, starting from the last solution, `tol`
is divided by ten until F is reached, and only the fit with the sufficient `tol` is timed. It has to reach
F <= (1 + 1e-4) F_ref, where F_ref >= F* is ours at tolerance 1e-6.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from penultimate.probes.linear import LAMBDAS
from penultimate.probes.path import trace

WITHIN = 1e-4
TARGETS = {"float64": 10.0, "float32": 18.0}


def relu_features(examples: int, columns: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Synthetic penultimate features [n p] and labels [n]: sparse, of one sign, with a decaying spectrum.

    Latent class means and noise share a power-law spectrum; a random layer and a ReLU follow, and every
    feature has its own scale. Six in ten activations are zero.
    """
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, examples)
    spectrum = np.arange(1, columns + 1) ** -0.75
    spectrum /= np.linalg.norm(spectrum)
    means = generator.standard_normal((classes, columns)) * spectrum
    latent = means[labels] + generator.standard_normal((examples, columns)) * spectrum
    mixed = latent @ generator.standard_normal((columns, columns))
    mixed += 0.05 * generator.standard_normal((examples, columns))
    activations = np.maximum(mixed + 0.5 * generator.standard_normal(columns) - 0.3, 0)
    return activations * np.exp(0.5 * generator.standard_normal(columns)), labels


def objective(model: LogisticRegression, features: np.ndarray, labels: np.ndarray, penalty: float) -> float:
    """F of a fitted scikit-learn model, with the cross-entropy through log1p."""
    logits = features @ model.coef_.T + model.intercept_
    logits -= logits[np.arange(len(labels)), labels][:, None]
    others = np.exp(logits)
    others[np.arange(len(labels)), labels] = 0
    return float(np.log1p(others.sum(1)).sum() + penalty / 2 * (model.coef_**2).sum())


def peer_path(
    features: np.ndarray, labels: np.ndarray, references: dict[float, float], tolerances: dict[float, float]
) -> float:
    """Seconds of scikit-learn's path; first finds missing `tolerances`, which is not timed."""
    seconds = 0.0
    last: LogisticRegression | None = None
    guess = 1e-3
    for penalty in sorted(references):
        guess = tolerances.get(penalty, min(10 * guess, 1e-3))
        while True:
            model = LogisticRegression(C=1 / penalty, tol=guess, max_iter=100_000, warm_start=True)
            if last is not None:
                model.coef_, model.intercept_ = last.coef_.copy(), last.intercept_.copy()
                model.classes_ = last.classes_
            began = time.perf_counter()
            model.fit(features, labels)
            spent = time.perf_counter() - began
            reached = objective(model, features, labels, penalty) <= (1 + WITHIN) * references[penalty]
            if reached or guess < 1e-16:
                break
            guess /= 10
        seconds += spent
        tolerances[penalty] = guess
        last = model
    return seconds


def our_path(features: np.ndarray, labels: np.ndarray) -> tuple[float, float, int]:
    """Seconds, largest certified gap, passes over the features."""
    began = time.perf_counter()
    optima = list(trace(features, labels, int(labels.max()) + 1, LAMBDAS, WITHIN))
    spent = time.perf_counter() - began
    return spent, max(optimum.gap for optimum in optima), sum(optimum.passes for optimum in optima)


def measure(quick: bool) -> dict[str, object]:
    examples, columns, classes, rounds = (1000, 128, 20, 1) if quick else (4000, 256, 50, 3)
    features, labels = relu_features(examples, columns, classes)
    inputs = {"float64": features, "float32": features.astype(np.float32)}
    exact = trace(features, labels, classes, LAMBDAS, 1e-6)
    references = {optimum.penalty: optimum.objective for optimum in exact}
    tolerances: dict[float, float] = {}
    times: dict[str, list[float]] = {"float64": [], "float32": [], "scikit-learn": []}
    gaps: dict[str, float] = {}
    passes: dict[str, int] = {}
    for _ in range(rounds):
        for dtype, given in inputs.items():
            spent, gaps[dtype], passes[dtype] = our_path(given, labels)
            times[dtype].append(spent)
        times["scikit-learn"].append(peer_path(features, labels, references, tolerances))
    result: dict[str, object] = {"n": examples, "p": columns, "k": classes, "lambdas": len(LAMBDAS)}
    print(
        f"n = {examples}, p = {columns}, K = {classes}, {len(LAMBDAS)} lambdas, one thread, {rounds} rounds"
    )
    peer = statistics.median(times["scikit-learn"])
    print(
        f"  scikit-learn, warm, ascending   {peer:8.2f} s   (tol from {max(tolerances.values()):.0e} down"
        f" to {min(tolerances.values()):.0e})"
    )
    for dtype, target in TARGETS.items():
        ratio = statistics.median(p / o for p, o in zip(times["scikit-learn"], times[dtype], strict=True))
        ours = statistics.median(times[dtype])
        print(
            f"  ours, {dtype}                   {ours:8.2f} s   {ratio:5.1f} x faster (aim {target:.0f} x),"
            f" every gap certified <= {gaps[dtype]:.1e}, {passes[dtype]} passes"
        )
        result[dtype] = {
            "seconds": ours,
            "ratio": ratio,
            "target": target,
            "largest_gap": gaps[dtype],
            "passes": passes[dtype],
        }
    result["peer"] = {"name": "scikit-learn LogisticRegression lbfgs, warm, ascending", "seconds": peer}
    return result


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a small problem, one round")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = measure(options.quick)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
