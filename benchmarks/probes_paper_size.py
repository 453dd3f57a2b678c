"""The linear probe at the size of the paper's Food-101: 75,750 x 2048 x 101, 45 lambdas, features on disk.

    OMP_NUM_THREADS=2 python -m benchmarks probes_paper_size [--quick] [--fraction=F] [--float16]

The whole took 1,403 s on two cores that ten other processes shared (426 s of processors), 290 passes, 1.8 GB;
--fraction=0.125 is an eighth of the examples, --quick a 64th with 256 features. The bank is a folder of
arrays, written block by block and memory-mapped; the probe is fitted and scored in a process of its own,
whose largest resident memory counts the mapped pages of the bank too.

Passes: those of the path, at 4 n p k flop each, and their share of the time at the rate of the same matrix
products measured in the same run. Certificates, rotations and the refit are the rest of the time.

The peer: `LogisticRegression(solver="lbfgs")` in float32 with its default tolerance, on a tenth of the
examples at one lambda, the one that was chosen, against our certified optimum of the same; and F of both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.probes_linear import objective
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from penultimate.probes.linear import LinearProbe
from penultimate.probes.path import trace
from penultimate.probes.rows import in_order

EXAMPLES, TESTED, FEATURES, CLASSES = 75_750, 25_250, 2048, 101
PEER_SHARE = 0.1


def write_bank(folder: Path, examples: int, columns: int, precision: str, seed: int) -> None:
    """Penultimate features as a ResNet's: of one sign, correlated, classes that overlap; written in blocks.

    A class is a point among 20 groups of classes that look alike; class and noise share a power-law spectrum,
    and a random layer and a ReLU follow.
    """
    world = np.random.default_rng(0)
    spectrum = np.arange(1, columns + 1) ** -0.6
    spectrum /= np.linalg.norm(spectrum)
    distance = 0.16 * (2048 / columns) ** 0.5  # so that three in four are told apart
    groups = world.standard_normal((20, columns))[np.arange(CLASSES) % 20]
    means = (groups + 0.7 * world.standard_normal((CLASSES, columns))) * spectrum
    layer = world.standard_normal((columns, columns)).astype(np.float32)
    offset = 0.5 * world.standard_normal(columns) - 0.3
    scale = 0.5 * np.exp(0.5 * world.standard_normal(columns))
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(examples) % CLASSES)
    shape = (examples, columns)
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", precision, shape)
    for start in range(0, examples, 4096):
        block = labels[start : start + 4096]
        noise = generator.standard_normal((len(block), columns)) * spectrum
        latent = (distance * means[block] + noise).astype(np.float32)
        features[start : start + 4096] = np.maximum(latent @ layer + offset, 0) * scale
    np.save(folder / "labels.npy", labels)


def read_bank(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    return np.load(folder / "features.npy", mmap_mode="r"), np.load(folder / "labels.npy")


def memory(what: str) -> float:
    """A line of this process's status, GB: VmHWM is the largest resident memory so far, with the pages of
    mapped files (not `getrusage`'s, which begins at that of the process that started this one); RssAnon what
    is resident now without them."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) / 1e6


def anonymous_peak(work: Callable[[], None]) -> float:
    """The most memory that is not a mapped file while `work` runs, GB, looked at ten times a second."""
    largest, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal largest
        while not done.wait(0.1):
            largest = max(largest, memory("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return largest


def fit(root: Path) -> dict[str, object]:
    """Fit on the bank in this process, and score; the time and the memory of it."""
    found: dict[str, object] = {"memory before, GB": memory("VmHWM")}

    def work() -> None:
        began, processors = time.perf_counter(), time.process_time()
        probe = LinearProbe().fit(*read_bank(root / "train"))
        found["seconds"] = time.perf_counter() - began
        found["processor seconds"] = time.process_time() - processors
        found["accuracy"] = probe.score(*read_bank(root / "test"))
        found["training accuracy"] = probe.score(*read_bank(root / "train"))
        found["lambda"] = probe.lambda_
        found["passes"] = int(probe.n_iter_.sum())
        found["most passes"] = int(probe.n_iter_.max())
        found["largest gap"] = float(max(*probe.certificates_, probe.certificate_))
        found["certified"] = int((probe.certificates_ <= probe.tolerance).sum())
        found["passes by lambda"] = probe.n_iter_.tolist()
        found["validation accuracies"] = [round(float(value), 4) for value in probe.validation_accuracy_]

    found["anonymous memory, GB"] = anonymous_peak(work)
    found["peak memory, GB"] = memory("VmHWM")
    return found


def gemm_rate(columns: int) -> float:
    """Flop a second of a pass's two products, in blocks that the threads share; the median of nine."""
    rows, count = 1297, 16
    features = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    weight = np.ones((CLASSES, columns), np.float32)
    parts = [slice(0, rows)] * count

    def work(_: slice) -> np.ndarray:
        return np.asarray((weight @ features.T) @ features)

    times = []
    for _ in range(9):
        began = time.perf_counter()
        for _ in in_order(work, parts, features):
            pass
        times.append(time.perf_counter() - began)
    return 4 * rows * columns * CLASSES * count / statistics.median(times)


def beside_scikit_learn(root: Path, penalty: float, share: float) -> dict[str, float]:
    """Both at one lambda on a share of the examples, in memory."""
    features, labels = read_bank(root / "train")
    count = int(share * len(features))
    features, labels = np.asarray(features[:count], np.float32), labels[:count]
    began = time.perf_counter()
    (optimum,) = trace(features, labels, CLASSES, [penalty])
    ours = time.perf_counter() - began
    began = time.perf_counter()
    model = LogisticRegression(C=1 / penalty, max_iter=10_000).fit(features, labels)
    theirs = time.perf_counter() - began
    return {
        "examples": count,
        "seconds": ours,
        "peer seconds": theirs,
        "ratio": theirs / ours,
        "gap": optimum.gap,
        "peer F above ours": objective(model, features, labels, penalty) / optimum.objective - 1,
    }


def measure(fraction: float, columns: int, precision: str, share: float) -> dict[str, Any]:
    examples, tested = round(EXAMPLES * fraction), round(TESTED * fraction)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for seed, (split, count) in enumerate((("train", examples), ("test", tested)), 1):
            (root / split).mkdir()
            write_bank(root / split, count, columns, precision, seed)
        found: dict[str, Any] = {"n": examples, "p": columns, "k": CLASSES, "precision": precision}
        load, rate = os.getloadavg()[0], gemm_rate(columns)
        child = [sys.executable, "-m", "benchmarks.probes_paper_size", f"--fit={root}"]
        answer = subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True)
        found |= json.loads(answer.stdout.splitlines()[-1])
        rate = (rate + gemm_rate(columns)) / 2
        flop = 4 * 0.8 * examples * columns * CLASSES
        found |= {
            "load before and after": [round(load, 2), round(os.getloadavg()[0], 2)],
            "GFlop a pass": flop / 1e9,
            "GFlop/s": rate / 1e9,
            "flop limit, seconds": found["passes"] * flop / rate,
        }
        report(found)
        found["beside scikit-learn"] = peer = beside_scikit_learn(root, found["lambda"], share)
    print(
        f"  one lambda, {peer['examples']} examples: ours {peer['seconds']:.1f} s (certified to"
        f" {peer['gap']:.0e}), scikit-learn {peer['peer seconds']:.1f} s ({peer['ratio']:.1f} x), its F"
        f" {peer['peer F above ours']:+.1e} of ours"
    )
    return found


def report(found: dict[str, Any]) -> None:
    for line in (
        "n = {n}, p = {p}, K = {k}, {precision}; {certified} of 45 lambdas certified to {largest gap:.1e}",
        "{seconds:.0f} s, {processor seconds:.0f} s of processors; load {load before and after}",
        "lambda = {lambda:.2g}, test accuracy {accuracy:.4f}, training accuracy {training accuracy:.4f}",
        "{passes} passes (at most {most passes} a lambda) of {GFlop a pass:.1f} GFlop",
        "their flop limit at the {GFlop/s:.0f} GFlop/s measured: {flop limit, seconds:.0f} s",
        "memory at most {peak memory, GB:.2f} GB with mapped files ({memory before, GB:.2f} GB before the"
        " fit); {anonymous memory, GB:.2f} GB without mapped files",
    ):
        print("  " + line.format(**found), flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a 64th of the examples, 256 features")
    parser.add_argument("--fraction", type=float, default=1.0, help="of the examples (default: 1)")
    parser.add_argument("--float16", action="store_true", help="the bank in half precision")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.fit:
        print(json.dumps(fit(options.fit)))
        return
    fraction, columns = (1 / 64, 256) if options.quick else (options.fraction, FEATURES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        precision = "float16" if options.float16 else "float32"
        found = measure(fraction, columns, precision, min(1.0, PEER_SHARE / fraction))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
