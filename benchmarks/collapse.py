"""Simplex-ETF measures of 81,920 x 2048 float32 features of 1000 classes, NC4 included.

`python -m benchmarks collapse [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. The peer is what
one would first write: Sigma_W as a matrix, in plain PyTorch and float32, without NC4. The last line compares
the trace itself, ours and that of float32 pinv(Sigma_B), with the truth in float64, on features whose
class means span two and a half decades.
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

from penultimate.metrics.collapse import neural_collapse

DIMENSIONS, CLASSES = 2048, 1000


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
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    total = 8_192 if options.quick else 81_920

    features, labels, weight = drawn(DIMENSIONS, total, CLASSES)
    means = torch.zeros(CLASSES, DIMENSIONS).index_add_(0, labels, features) / labels.bincount()[:, None]
    before = peak_mebibytes()
    neural_collapse(features, labels, weight, torch.zeros(CLASSES))
    extra = peak_mebibytes() - before
    rounds = []
    for _ in range(3):
        within = torch.zeros(DIMENSIONS, DIMENSIONS)
        ours = seconds(lambda: neural_collapse(features, labels, weight, torch.zeros(CLASSES)))
        plain = seconds(lambda: plain_trace(scatter(within, features, means[labels]), means))  # noqa: B023
        rounds.append((ours, plain))
    ratio = statistics.median(plain / ours for ours, plain in rounds)
    error, plain_error = accuracy()
    print(f"{total:,} x {DIMENSIONS} float32, {CLASSES} classes, {torch.get_num_threads()} thread(s)")
    print(f"  {rounds[0][0]:.2f} s, {ratio:.2f} of plain PyTorch's rate (no NC4); peak +{extra:.0f} MiB")
    print(f"  error of the trace, 256 dimensions: {error:.1e}; plain float32: {plain_error:.1e}")
    if options.json:
        numbers = {
            "benchmark": "collapse",
            "rows": total,
            "ratio_to_plain": ratio,
            "peak_extra_mebibytes": extra,
        }
        errors = {"trace_relative_error": error, "plain_trace_relative_error": plain_error}
        options.json.write_text(json.dumps({**numbers, **errors}, indent=1) + "\n")


def scatter(within: Tensor, block: Tensor, means: Tensor) -> Tensor:
    residuals = block - means
    return within.addmm_(residuals.T, residuals) / len(block)
