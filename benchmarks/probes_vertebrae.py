"""The linear probe beside vertebrae's (PyPI), the nearest peer, on the same features and the same folds.

    python -m benchmarks probes_vertebrae [--quick] [--json=FILE]

vertebrae's `LinearProbeMetric` fits scikit-learn's `LogisticRegression(C=1)` on rows of unit length, once for
each of five folds, and scores the predictions of the examples left out. Three ways, each in processes of its
own, interleaved, on one memory-mapped bank:

- vertebrae: its metric as it comes;
- ours, one lambda: the same folds, rows and lambda, every optimum certified;
- ours, 45 lambdas: what `LinearProbe` does (features as they are, lambda chosen on a fifth of the training
  examples, refitted), on the same folds.

Memory is what the kernel counted at most, less what the process held before (with all of it imported).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmarks.probes_linear import relu_features
from benchmarks.probes_paper_size import memory

from penultimate.probes.linear import LinearProbe
from penultimate.probes.path import trace

FOLDS, SEED = 5, 42


def folds(labels: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """vertebrae's: stratified, shuffled with its default seed."""
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    return list(splitter.split(np.zeros(len(labels)), labels))


def vertebrae(features: np.ndarray, labels: np.ndarray) -> dict[str, object]:
    from vertebrae import LinearProbeMetric

    result = LinearProbeMetric().score(features, labels)
    return {"accuracy": result.diagnostics["metrics"]["accuracy"], "warnings": result.warnings}


def one_lambda(features: np.ndarray, labels: np.ndarray) -> dict[str, object]:
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    hits, gaps = 0, []
    for train, holdout in folds(labels):
        (optimum,) = trace(unit[train], labels[train], int(labels.max()) + 1, [1.0])
        predicted = (unit[holdout] @ optimum.weight.T + optimum.intercept).argmax(1)
        hits += int((predicted == labels[holdout]).sum())
        gaps.append(optimum.gap)
    return {"accuracy": hits / len(labels), "largest gap": max(gaps)}


def all_lambdas(features: np.ndarray, labels: np.ndarray) -> dict[str, object]:
    hits, gaps, chosen = 0, [], []
    for train, holdout in folds(labels):
        probe = LinearProbe().fit(features[train], labels[train])
        hits += round(probe.score(features[holdout], labels[holdout]) * len(holdout))
        gaps.append(float(max(*probe.certificates_, probe.certificate_)))
        chosen.append(probe.lambda_)
    return {"accuracy": hits / len(labels), "largest gap": max(gaps), "lambdas": chosen}


WAYS: dict[str, Callable[[np.ndarray, np.ndarray], dict[str, object]]] = {
    "vertebrae": vertebrae,
    "ours, one lambda": one_lambda,
    "ours, 45 lambdas": all_lambdas,
}


def alone(way: str, folder: Path) -> dict[str, object]:
    """One way in this process: seconds, memory and what it found."""
    features = np.load(folder / "features.npy", mmap_mode="r")
    labels = np.load(folder / "labels.npy")
    small = np.random.default_rng(0)
    WAYS[way](small.random((200, 5), np.float32), np.arange(200) % 3)  # what is imported late is imported
    before = memory("VmHWM")
    began, processors = time.perf_counter(), time.process_time()
    found = WAYS[way](features, labels)
    found["seconds"], found["processor seconds"] = (
        time.perf_counter() - began,
        time.process_time() - processors,
    )
    found["memory, MB"] = 1e3 * (memory("VmHWM") - before)
    return found


def measure(examples: int, columns: int, classes: int, rounds: int) -> dict[str, object]:
    features, labels = relu_features(examples, columns, classes)
    results: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "features.npy", features.astype(np.float32))
        np.save(Path(folder) / "labels.npy", labels)
        for _ in range(rounds):
            for way in WAYS:
                child = [
                    sys.executable,
                    "-m",
                    "benchmarks.probes_vertebrae",
                    f"--way={way}",
                    f"--on={folder}",
                ]
                answer = subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True)
                results[way].append(json.loads(answer.stdout.splitlines()[-1]))
    print(f"n = {examples}, p = {columns}, K = {classes}, float32, {FOLDS} folds, {rounds} rounds")
    table: dict[str, object] = {"n": examples, "p": columns, "k": classes}
    for way, found in results.items():
        row = {key: found[0][key] for key in found[0] if key not in ("seconds", "processor seconds")}
        for clock in ("seconds", "processor seconds"):
            row[clock] = statistics.median(each[clock] for each in found)
            ratios = [peer[clock] / own[clock] for peer, own in zip(results["vertebrae"], found, strict=True)]
            row[f"ratio, {clock}"] = statistics.median(ratios)
        row["memory, MB"] = max(each["memory, MB"] for each in found)
        table[way] = row
        print(
            f"  {way:<18} {row['seconds']:7.1f} s ({row['processor seconds']:.1f} s of processors)"
            f"  {row['ratio, processor seconds']:5.2f} x vertebrae's speed by processors"
            f"  {row['memory, MB']:6.0f} MB  accuracy {row['accuracy']:.4f}"
            + (f"  certified to {row['largest gap']:.0e}" if "largest gap" in row else "")
        )
    return table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="1,500 examples, one round")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--on", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.way:
        print(json.dumps(alone(options.way, options.on)))
        return
    if not importlib.util.find_spec("vertebrae"):
        print("  vertebrae is not installed here, so it was not measured (pip install vertebrae)")
        return
    found = measure(1500, 128, 20, 1) if options.quick else measure(6000, 512, 50, 3)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
