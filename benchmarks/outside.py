"""Images of other data told by three scores: 50,000 x 768 features of 100 classes, 10,000 + 10,000 images.

`python -m benchmarks outside [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. Each score is
computed by us and, if it is installed, by pytorch-ood, on the same arrays in float64. The seconds of
processor time of both are printed, and how far the AUROC and the false positive rate at 95 % are apart
(inside images as positives, which is pytorch-ood's rate with the signs turned round). It ends with an error
if any is by more than 1e-9. pytorch-ood's Mahalanobis distance adds a ridge of 1e-6 to the sum of squares,
which changes less.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from penultimate.metrics.auc import auc
from penultimate.metrics.outside import (
    false_positive_rate,
    log_max_probability,
    mahalanobis_squared,
    within_class_whitening,
)
from penultimate.probes.kth import KthNeighbour

WIDTH, CLASSES, NEIGHBOUR = 768, 100, 50
AGREED = 1e-9
Scores = npt.NDArray[np.float64]


def drawn(rows: int, seed: int, shift: float = 0.0) -> tuple[Scores, npt.NDArray[np.int64]]:
    """Features after a ReLU around class means, and their labels; those of other data are shifted."""
    random = np.random.default_rng(seed)
    means = np.random.default_rng(0).normal(size=(CLASSES, WIDTH))
    labels = np.arange(rows) % CLASSES
    points = 2 * random.normal(size=(rows, WIDTH)) + means[labels] + shift
    return np.maximum(points, 0.0), labels


def scored(train: Scores, labels: Any, logits: list[Scores], features: list[Scores]) -> dict[str, Any]:
    """Our functions by score: each returns the scores of both sets, higher for those that look inside."""

    def mahalanobis() -> list[Scores]:
        fitted = within_class_whitening(train, labels)
        return [-mahalanobis_squared(each, *fitted) for each in features]

    def neighbour() -> list[Scores]:
        search = KthNeighbour(train, NEIGHBOUR)
        return [-search.distances(each) for each in features]

    return {
        "msp": lambda: [log_max_probability(each) for each in logits],
        "mahalanobis": mahalanobis,
        "knn": neighbour,
    }


def peer_scored(train: Scores, labels: Any, logits: list[Scores], features: list[Scores]) -> dict[str, Any]:
    """pytorch-ood's detectors by score, whose outlier scores are turned round."""
    from pytorch_ood import detector

    x, y = torch.from_numpy(train), torch.from_numpy(labels)
    outputs, points = map(torch.from_numpy, logits), [torch.from_numpy(each) for each in features]
    outputs = list(outputs)

    def fitted(kind: Any) -> list[Scores]:
        torch.set_default_dtype(torch.float64)  # its Mahalanobis distance is of the default one
        try:
            made = kind.fit_features(x, y)
            return [-made.predict_features(each).double().numpy() for each in points]
        finally:
            torch.set_default_dtype(torch.float32)

    return {
        "msp": lambda: [-detector.MaxSoftmax.score(each).numpy() for each in outputs],
        "mahalanobis": lambda: fitted(detector.Mahalanobis(None)),
        "knn": lambda: fitted(detector.KNN(None, k=NEIGHBOUR)),
    }


def told(own: Scores, others: Scores) -> tuple[float, float]:
    """The AUROC and the false positive rate of two sets of scores."""
    both = np.concatenate([own, others])
    return auc(both, np.arange(len(both)) < len(own)), false_positive_rate(own, others)


def told_by_peer(own: Scores, others: Scores) -> tuple[float, float]:
    """The same by pytorch-ood, which takes other data for positives: inside ones take their place."""
    from pytorch_ood.metrics.functional import auroc, fpr_at_tpr

    scores = torch.from_numpy(np.concatenate([own, others]))
    is_inside = torch.arange(len(scores)) < len(own)
    labels = torch.where(is_inside, -1, 0)
    return float(auroc(scores, labels)), float(fpr_at_tpr(scores, labels, 0.95))


def seconds(work: Callable[[], list[Scores]]) -> tuple[float, list[Scores]]:
    """The processor time of some work, over all threads, and what it returns."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks outside", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the images")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    rows, tested = (5_000, 1_000) if options.quick else (50_000, 10_000)

    train, labels = drawn(rows, 1)
    features = [drawn(tested, 2)[0], drawn(tested, 3, 0.1)[0]]
    head = np.random.default_rng(0).normal(size=(CLASSES, WIDTH)) / 30
    inputs = (train, labels, [each @ head.T for each in features], features)
    ours = scored(*inputs)
    peers = peer_scored(*inputs) if importlib.util.find_spec("pytorch_ood") else {}
    threads = torch.get_num_threads()
    print(f"{rows:,} x {WIDTH} of {CLASSES} classes, {tested:,} + {tested:,} images, {threads} thread(s)")
    numbers: dict[str, dict[str, float]] = {}
    for name, work in ours.items():
        spent, found = seconds(work)
        area, rate = told(*found)
        numbers[name] = {"seconds": spent, "auroc": area, "fpr95": rate}
        line = f"  {name:<12}{spent:7.2f} s   AUROC {area:.6f}   FPR95 {rate:.6f}"
        if name in peers:
            its, others = seconds(peers[name])
            apart = [abs(a - b) for a, b in zip((area, rate), told_by_peer(*others), strict=True)]
            numbers[name] |= {"peer_seconds": its, "auroc_apart": apart[0], "fpr95_apart": apart[1]}
            line += f"   pytorch-ood {its:7.2f} s, apart by {apart[0]:.1e} and {apart[1]:.1e}"
        print(line)
    whole = sum(each["seconds"] for each in numbers.values())
    print(f"  all three   {whole:7.2f} s of processor time, {whole / 2:.0f} s on two cores")
    if not peers:
        print("  pytorch-ood is not installed here, so it was not measured")
    apart_most = max(
        each.get(f"{name}_apart", 0.0) for each in numbers.values() for name in ("auroc", "fpr95")
    )
    if options.json:
        content = {"benchmark": "outside", "rows": rows, "tested": tested, "threads": threads}
        options.json.write_text(json.dumps({**content, "scores": numbers}, indent=1) + "\n")
    if apart_most > AGREED:
        sys.exit(f"we and pytorch-ood differ by {apart_most:.1e}, which is more than {AGREED:g}")
