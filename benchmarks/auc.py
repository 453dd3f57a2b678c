"""The exact AUC of 5 labels of 200,000 examples, with and without its DeLong interval, beside scikit-learn's.

`python -m benchmarks auc [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. Rounds are interleaved;
the ratio is the median over rounds of scikit-learn's `roc_auc_score` to ours.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from penultimate.metrics.auc import auc, auc_interval

LABELS = 5


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks auc", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 examples and three rounds")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(arguments)
    examples, rounds = (20_000, 3) if options.quick else (200_000, 11)
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, (LABELS, examples))
    scores = (labels + generator.normal(size=labels.shape)).astype(np.float32)
    pairs = list(zip(scores, labels, strict=True))
    works: dict[str, Callable[[], object]] = {
        "AUC": lambda: [auc(score, label) for score, label in pairs],
        "AUC with its interval": lambda: [auc_interval(score, label) for score, label in pairs],
        "scikit-learn": lambda: [roc_auc_score(label, score) for score, label in pairs],
    }
    for score, label in pairs:
        assert abs(auc(score, label) - roc_auc_score(label, score)) < 1e-12
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            taken[name].append(seconds(work))
    figures: dict[str, float] = {"examples": examples, "labels": LABELS}
    for name, times in taken.items():
        ratios = [peer / own for peer, own in zip(taken["scikit-learn"], times, strict=True)]
        figures[f"{name}, ms"] = round(1000 * statistics.median(times), 1)
        figures[f"{name}, x scikit-learn's speed"] = round(statistics.median(ratios), 2)
        print(f"{name}: {1000 * statistics.median(times):.1f} ms, {statistics.median(ratios):.2f} x")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
