"""LogME, H-score, TransRate and LEEP of 100,000 x 2048 float32 features, 1000 classes, beside plain NumPy.

`python -m benchmarks scores [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. The plain scores are
what their authors' listings come to: each class's evidence from the singular vectors by a fixed-point
iteration; the inverse of Ledoit and Wolf's covariance (scikit-learn's); a determinant of dimensions x
dimensions for each class; a matrix of predictions [n k]. All are in float64, in which ours are too. The last
column is how far the two lie apart (TransRate's weights are the same for classes of one size). LogME's plain
time is measured with all but 50 classes as one, and scaled to all; so is the value that ours is compared to.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from sklearn.covariance import LedoitWolf

from penultimate.metrics.source_classes import leep
from penultimate.metrics.transferability import EPSILON, FeatureScores, h_score, logme, transrate

Array = npt.NDArray[np.float64]
SIZES = {False: (100_000, 2048, 1000), True: (10_000, 512, 200)}
SOME_CLASSES = 50


def timed(work: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    value = work()
    return time.perf_counter() - start, value


def plain_logme(x: Array, labels: npt.NDArray[np.int64]) -> tuple[float, float, float]:
    """Seconds of the decomposition and of a class, and the mean evidence."""
    start = time.perf_counter()
    vectors, squares, _ = np.linalg.svd(x.T @ x)
    once = time.perf_counter() - start
    n, m = x.shape
    start = time.perf_counter()
    evidences = []
    for label in np.unique(labels):
        y = (labels == label).astype(np.float64)
        projected = vectors.T @ (x.T @ y)
        a = b = 1.0
        for _ in range(100):
            gamma = (b * squares / (a + b * squares)).sum()
            weights = vectors @ (projected * b / (a + b * squares))
            length, misfit = weights @ weights, ((x @ weights - y) ** 2).sum()
            before, a, b = a / b, gamma / length, (n - gamma) / misfit
            if abs(a / b - before) <= 1e-3 * before:
                break
        log_det = np.log(a + b * squares).sum()
        fit = n * np.log(b) + m * np.log(a) - log_det - b * misfit - a * length - n * np.log(2 * np.pi)
        evidences.append(fit / (2 * n))
    return once, (time.perf_counter() - start) / len(evidences), float(np.mean(evidences))


def plain_h_score(x: Array, labels: npt.NDArray[np.int64]) -> float:
    fitted = LedoitWolf().fit(x)
    means = np.stack([x[labels == label].mean(0) for label in np.unique(labels)])[labels]
    between = np.cov(means, rowvar=False, bias=True)
    return float((1 - fitted.shrinkage_) * np.trace(np.linalg.pinv(fitted.covariance_) @ between))


def coding_rate(x: Array) -> float:
    n, m = x.shape
    return float(np.linalg.slogdet(np.eye(m) + x.T @ x / (n * EPSILON))[1] / 2)


def plain_transrate(x: Array, labels: npt.NDArray[np.int64]) -> float:
    centred = x - x.mean(0)
    known = [coding_rate(centred[labels == label]) for label in np.unique(labels)]
    return coding_rate(centred) - float(np.mean(known))


def plain_leep(probabilities: Array, labels: npt.NDArray[np.int64]) -> float:
    n, k = probabilities.shape
    joint = np.stack([probabilities[labels == label].sum(0) / n for label in range(k)])
    predicted = probabilities @ (joint / joint.sum(0)).T
    return float(np.log(predicted[np.arange(n), labels]).mean())


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks scores", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 x 512, 200 classes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    n, m, k = SIZES[options.quick]

    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % k
    centers = torch.randn(k, m, generator=generator) / 4
    features = torch.randn(n, m, generator=generator).add_(centers[labels]).add_(0.5).relu_()
    logits = torch.randn(n, k, generator=generator).add_(4 * torch.eye(k)[labels])
    probabilities = logits.softmax(1)
    y = labels.numpy()

    x = features.double().numpy()
    ours, _ = timed(lambda: logme(features, labels))
    fewer = labels.clamp(max=SOME_CLASSES)
    once, a_class, plain = plain_logme(x, fewer.numpy())
    rows = [("LogME", ours, once + k * a_class, abs(logme(features, fewer) - plain))]
    for name, work, peer in (
        ("H-score", lambda: h_score(features, labels), lambda: plain_h_score(x, y)),
        ("TransRate", lambda: transrate(features, labels), lambda: plain_transrate(x, y)),
        ("LEEP", lambda: leep(probabilities, labels), lambda: plain_leep(probabilities.double().numpy(), y)),
    ):
        ours, value = timed(work)
        theirs, plain = timed(peer)
        rows.append((name, ours, theirs, abs(value - plain)))
    together, _ = timed(lambda: all_three(FeatureScores(features, labels)))

    print(f"{n:,} x {m} float32, {k} classes, {torch.get_num_threads()} thread(s)")
    for name, ours, theirs, apart in rows:
        print(
            f"  {name:<10}{ours:8.2f} s   plain {theirs:9.2f} s   {theirs / ours:8.1f} x   apart {apart:.0e}"
        )
    print(f"  the first three in one: {together:.2f} s")
    if options.json:
        numbers = {
            "benchmark": "scores",
            "rows": n,
            "dimensions": m,
            "classes": k,
            "together_seconds": together,
        }
        for name, ours, theirs, apart in rows:
            found = {"seconds": ours, "plain_seconds": theirs, "ratio": theirs / ours, "apart": apart}
            numbers |= {f"{name.lower()}_{what}": value for what, value in found.items()}
        options.json.write_text(json.dumps({**numbers, "threads": torch.get_num_threads()}, indent=1) + "\n")


def all_three(scores: FeatureScores) -> float:
    return scores.logme() + scores.h_score() + scores.transrate()
