"""Simplex-ETF measures of 1,000,000 x 2048 float32 features of 1000 classes, streamed, NC4 included.

`python -m benchmarks collapse [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. The features are
one block of 64 MiB, drawn once and reused until all rows have been seen twice: for the class means, and about
them. Each round times a block of the second pass, which takes most of the time, for us and for what one would
first write: Sigma_W as a matrix, in plain PyTorch and float32, without NC4; the ratio is the median over
rounds. The last line compares the trace itself, ours and that of float32's `pinv(Sigma_B)`, with the truth in
float64, on features whose class means span two and a half decades (their covariance five, of which PyTorch's
`pinv` keeps what is above m eps = 3e-5 of the largest).
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from penultimate.metrics.collapse import ClassMeans, CollapseAccumulator, neural_collapse

DIMENSIONS, CLASSES, BLOCK = 2048, 1000, 8192


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def plain_trace(within: Tensor, means: Tensor) -> float:
    centred = means - means.mean(0)
    return float((within * torch.linalg.pinv(centred.T @ centred / len(means)).T).sum() / len(means))


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def drawn(dimensions: int, rows: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Post-ReLU features of clustered classes with a strong common direction, labels, and weights."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(rows) % classes
    centers = torch.randn(classes, dimensions, generator=generator)
    features = torch.randn(rows, dimensions, generator=generator).add_(centers[labels]).add_(1).relu_()
    return features, labels, centers + torch.randn(classes, dimensions, generator=generator)


def peak_of_one_block(features: Tensor, labels: Tensor, weight: Tensor, bias: Tensor) -> float:
    """What both passes and the measures add to peak memory, in MiB, whatever the number of blocks."""
    before = peak_mebibytes()
    accumulator = CollapseAccumulator(ClassMeans(CLASSES).update(features, labels), weight, bias)
    accumulator.update(features, labels).compute()
    return peak_mebibytes() - before


def accuracy() -> tuple[float, float]:
    """Relative errors of Tr(Sigma_W Sigma_B^+)/C: ours and that of the plain float32 computation."""
    classes = 100
    features, labels, weight = drawn(DIMENSIONS // 8, 20 * classes, classes)
    features *= torch.logspace(0, -2.5 * features.shape[1] / classes, features.shape[1])
    ours = neural_collapse(features, labels, weight).trace_sw_pinv_sb_over_c
    truth = 0.0
    plain = 0.0
    for dtype in (torch.float64, torch.float32):
        x = features.to(dtype)
        means = torch.stack([x[labels == label].mean(0) for label in range(classes)])
        residuals = x - means[labels]
        within = residuals.T @ residuals / len(x)
        if dtype == torch.float32:
            plain = plain_trace(within, means)
        else:
            values, vectors = torch.linalg.eigh((means - means.mean(0)).T @ (means - means.mean(0)) / classes)
            kept = slice(-(classes - 1), None)
            spread = torch.einsum("mr,mn,nr->r", vectors[:, kept], within, vectors[:, kept])
            truth = float((spread / values[kept]).sum() / classes)
    return abs(ours / truth - 1), abs(plain / truth - 1)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks collapse", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    total = 20_000 if options.quick else 1_000_000

    features, labels, weight = drawn(DIMENSIONS, BLOCK, CLASSES)
    bias = torch.zeros(CLASSES)
    extra = peak_of_one_block(features, labels, weight, bias)
    parts = [min(BLOCK, total - start) for start in range(0, total, BLOCK)]
    means = ClassMeans(CLASSES)
    first = seconds(lambda: [means.update(features[:rows], labels[:rows]) for rows in parts])
    accumulator = CollapseAccumulator(means, weight, bias)
    rounds: list[tuple[float, float]] = []
    within = torch.zeros(DIMENSIONS, DIMENSIONS)
    plain_means = (means.moments.means() + means.moments.origin).float()
    for rows in parts:
        block, classes = features[:rows], labels[:rows]
        ours = seconds(lambda: accumulator.update(block, classes))  # noqa: B023
        plain = seconds(lambda: scatter(within, block, plain_means[classes]))  # noqa: B023
        rounds.append((ours, plain))
    last = seconds(accumulator.compute)
    collapse = accumulator.compute()
    naive = plain_trace(within / total, plain_means)
    state = sum(part.nbytes for part in vars(accumulator).values() if isinstance(part, Tensor)) / 2**20
    error, plain_error = accuracy()

    second, plain_second = (sum(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(plain / ours for ours, plain in rounds)
    print(f"{total:,} x {DIMENSIONS} float32, {CLASSES} classes, {torch.get_num_threads()} thread(s)")
    print(f"  class means           {first:8.2f} s {total / first:12,.0f} rows/s")
    print(
        f"  about them, with NC4  {second:8.2f} s {total / second:12,.0f} rows/s"
        f"   {collapse.trace_sw_pinv_sb_over_c:.6f}"
    )
    print(f"  plain float32, no NC4 {plain_second:8.2f} s {total / plain_second:12,.0f} rows/s   {naive:.6f}")
    print(f"  the measures of those {last:8.2f} s")
    print(f"  median {ratio:.2f} of plain PyTorch's rate; state {state:.0f} MiB, peak +{extra:.0f} MiB")
    print(f"  error of the trace, 256 dimensions: {error:.1e}; plain float32: {plain_error:.1e}")
    if options.json:
        numbers = {
            "benchmark": "collapse",
            "rows": total,
            "dimensions": DIMENSIONS,
            "classes": CLASSES,
            "threads": torch.get_num_threads(),
            "first_pass_seconds": first,
            "second_pass_seconds": second,
            "measures_seconds": last,
            "plain_seconds": plain_second,
            "ratio_to_plain": ratio,
            "state_mebibytes": state,
            "peak_extra_mebibytes": extra,
            "trace_relative_error": error,
            "plain_trace_relative_error": plain_error,
        }
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


def scatter(within: Tensor, block: Tensor, means: Tensor) -> None:
    residuals = block - means
    within.addmm_(residuals.T, residuals)
