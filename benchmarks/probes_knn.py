"""Leave-one-out accuracy for k = 1..200, exact in float64, against scikit-learn, on one thread.

    python -m benchmarks.probes_knn [--quick] [--json FILE]        about fifteen minutes; --quick, ten seconds

Peers, in the same rounds: one `NearestNeighbors(algorithm="brute").kneighbors()` with the neighbours' votes
accumulated over k in NumPy, and what most people write, `KNeighborsClassifier(k).score(None, y)` for every k.
For the latter only every 20th k is fitted, and the time is multiplied by 20.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from benchmarks.probes_linear import relu_features
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from threadpoolctl import threadpool_limits

from penultimate.probes.knn import KNNProbe


def one_search(features: np.ndarray, labels: np.ndarray, metric: str, most: int) -> tuple[float, np.ndarray]:
    """Seconds and leave-one-out accuracies from one search of scikit-learn and cumulative votes."""
    began = time.perf_counter()
    search = NearestNeighbors(n_neighbors=most, algorithm="brute", metric=metric).fit(features)
    votes = labels[search.kneighbors(return_distance=False)]
    counts = np.zeros((len(labels), labels.max() + 1), dtype=np.int32)
    rows = np.arange(len(labels))
    accuracies = np.empty(most)
    for place in range(most):
        counts[rows, votes[:, place]] += 1
        accuracies[place] = np.mean(counts.argmax(1) == labels)
    return time.perf_counter() - began, accuracies


def refitting(
    features: np.ndarray, labels: np.ndarray, metric: str, most: int, every: int
) -> tuple[float, dict[int, float]]:
    """Seconds for all k, extrapolated from every `every`-th, and the accuracies of these."""
    began = time.perf_counter()
    accuracies = {
        k: float(
            KNeighborsClassifier(k, algorithm="brute", metric=metric)
            .fit(features, labels)
            .score(None, labels)
        )
        for k in range(every, most + 1, every)
    }
    return (time.perf_counter() - began) * every, accuracies


def measure(quick: bool) -> dict[str, object]:
    examples, columns, classes, most, rounds = (1000, 64, 10, 100, 1) if quick else (4000, 256, 50, 200, 5)
    features, labels = relu_features(examples, columns, classes)
    result: dict[str, object] = {"n": examples, "p": columns, "k": classes, "max_k": most}
    print(
        f"n = {examples}, p = {columns}, K = {classes}, k = 1..{most}, float64, one thread, {rounds} rounds"
    )
    for metric in ("cosine", "euclidean"):
        ours, theirs = [], []
        for _ in range(rounds):
            began = time.perf_counter()
            probe = KNNProbe(metric, max_k=most).fit(features, labels)
            ours.append(time.perf_counter() - began)
            spent, accuracies = one_search(features, labels, metric, most)
            theirs.append(spent)
        refit, at_some = refitting(features, labels, metric, most, 20)
        share = statistics.median(o / t for o, t in zip(ours, theirs, strict=True))
        faster = refit / statistics.median(ours)
        off = max(
            abs(probe.leave_one_out_ - accuracies).max(),
            *(abs(probe.leave_one_out_[k - 1] - accuracy) for k, accuracy in at_some.items()),
        )
        print(
            f"  {metric:9}  ours {statistics.median(ours):6.2f} s;  one search of scikit-learn"
            f" {statistics.median(theirs):6.2f} s: {share:.2f} of its time (aim 1.10);"
            f"  refitting per k {refit:6.1f} s: {faster:.0f} x faster (aim 50 x);"
            f"  accuracies differ by {off:.0e}"
        )
        result[metric] = {
            "seconds": statistics.median(ours),
            "one_search": {"seconds": statistics.median(theirs), "share": share, "target": 1.1},
            "refitting": {"seconds": refit, "ratio": faster, "target": 50.0},
            "largest_difference": float(off),
        }
    result["many"] = many(quick)
    return result


def many(quick: bool) -> dict[str, object]:
    """Seconds of leave-one-out over many examples of few features, also of whole numbers, which tie."""
    examples, most = (4000, 50) if quick else (160_000, 200)
    random = np.random.default_rng(0)
    labels = np.arange(examples) % 10
    features = random.normal(size=(10, 8))[labels] + random.normal(size=(examples, 8))
    seconds = {}
    for kind, values in (("as they are", features), ("whole numbers", np.round(features))):
        began = time.perf_counter()
        KNNProbe("euclidean", max_k=most).fit(values, labels)
        seconds[kind] = time.perf_counter() - began
        print(f"  n = {examples}, p = 8, {kind}: {seconds[kind]:.1f} s")
    return {"n": examples, "p": 8, "seconds": seconds}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a small problem, one round")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        result = measure(options.quick)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
