"""Class separation of 1,000,000 x 2048 float32 features in one pass, beside the machine's copy rate.

`python -m benchmarks separation [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. The features are
one block of 512 MiB, drawn once and reused until a million rows have been seen: larger than any cache, so
every pass reads from memory. Each round measures a block by us, by the same closed form in plain PyTorch
(float32, without an origin), and copies it; ratios are medians over rounds.
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

from penultimate.metrics.separation import SeparationAccumulator

DIMENSIONS, CLASSES, BLOCK = 2048, 1000, 65_536


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def plain_float32(features: Tensor, labels: Tensor, sums: Tensor, counts: Tensor) -> None:
    """What one would write first: normalise, add up by class (|u|^2 = 1 is all the form needs besides)."""
    sums.index_add_(0, labels, torch.nn.functional.normalize(features))
    counts += torch.bincount(labels, minlength=len(counts))


def plain_value(sums: Tensor, counts: Tensor) -> float:
    means = sums / counts[:, None]
    return float(1 - (1 - means.square().sum(1).mean()) / (1 - means.mean(0).square().sum()))


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks separation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    total = 100_000 if options.quick else 1_000_000

    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (BLOCK,), generator=generator)
    centers = torch.randn(CLASSES, DIMENSIONS, generator=generator)
    features = torch.randn(BLOCK, DIMENSIONS, generator=generator).add_(centers[labels]).relu_()
    target = torch.empty_like(features).copy_(features)
    sums, counts = torch.zeros(CLASSES, DIMENSIONS), torch.zeros(CLASSES)
    before = peak_mebibytes()  # of two blocks, both in use: what comes on top is ours
    SeparationAccumulator().update(features, labels)
    extra = peak_mebibytes() - before

    accumulator = SeparationAccumulator()
    rounds: list[tuple[int, float, float, float]] = []
    for start in range(0, total, BLOCK):
        rows = min(BLOCK, total - start)
        block, classes = features[:rows], labels[:rows]
        ours = seconds(lambda: accumulator.update(block, classes))  # noqa: B023
        plain = seconds(lambda: plain_float32(block, classes, sums, counts))  # noqa: B023
        copy = seconds(lambda: target[:rows].copy_(block))  # noqa: B023
        rounds.append((rows, ours, plain, copy))
    value = accumulator.compute()

    size = total * DIMENSIONS * 4 / 1e9
    spent = [sum(times) for times in list(zip(*rounds, strict=True))[1:]]
    to_copy = statistics.median(copy / ours for _, ours, _, copy in rounds)
    to_plain = statistics.median(plain / ours for _, ours, plain, _ in rounds)
    state = (
        sum(part.nbytes for part in vars(accumulator._moments).values() if isinstance(part, Tensor)) / 2**20
    )
    print(
        f"{total:,} x {DIMENSIONS} float32 ({size:.2f} GB), {CLASSES} classes,"
        f" {torch.get_num_threads()} thread(s): {len(rounds)} passes over one block of"
        f" {features.nbytes / 2**20:.0f} MiB"
    )
    plain_r2 = plain_value(sums, counts)
    for what, took, remark in [
        ("penultimate, float64 sums", spent[0], f"R^2 = {value:.9f}"),
        ("plain PyTorch, float32", spent[1], f"R^2 = {plain_r2:.9f}"),
        ("copying the features", spent[2], "(and as many bytes written)"),
    ]:
        print(f"  {what:<26}{took:7.2f} s {size / took:7.2f} GB/s   {remark}")
    print(
        f"  medians: {to_copy:.2f} of the copy rate, {to_plain:.2f} x plain PyTorch;"
        f" state {state:.0f} MiB, peak +{extra:.0f} MiB"
    )
    if options.json:
        numbers = {
            "benchmark": "separation",
            "rows": total,
            "dimensions": DIMENSIONS,
            "classes": CLASSES,
            "threads": torch.get_num_threads(),
            "seconds": spent[0],
            "gigabytes_per_second": size / spent[0],
            "plain_gigabytes_per_second": size / spent[1],
            "copy_gigabytes_per_second": size / spent[2],
            "ratio_to_copy": to_copy,
            "ratio_to_plain": to_plain,
            "state_mebibytes": state,
            "peak_extra_mebibytes": extra,
        }
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
