"""Calibration of 1,000,000 x 1000 float32 logits in one pass; the temperature of 10,000 x 1000.

`python -m benchmarks calibration [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. The logits are
one block of 250 MiB, drawn once and reused until a million rows have been seen: larger than any cache, so
every pass reads from memory. Each interleaved round gives the block to us (ECE, NLL and the reliability
diagram at once), to plain PyTorch as one would first write it (softmax, max, bins: ECE only) and, if it is
installed, to torchmetrics (ECE only). Ratios are medians over rounds; errors are relative to float64. The
temperature is compared with the snippet that most people copy: torch.optim.LBFGS(lr=0.01, max_iter=50).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from penultimate.metrics.calibration import calibration_of_logits
from penultimate.metrics.temperature import fit_temperature

CLASSES, BLOCK, BINS = 1000, 65_536, 15


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Plain:
    """ECE as one would first write it; its bins are (lo, hi] too, its sums float32."""

    def __init__(self) -> None:
        self.sums = torch.zeros(BINS)
        self.examples = 0

    def update(self, logits: Tensor, labels: Tensor) -> None:
        confidence, predicted = logits.softmax(1).max(1)
        place = torch.bucketize(confidence, torch.linspace(0, 1, BINS + 1)[1:-1])
        self.sums.index_add_(0, place, (predicted == labels).float() - confidence)
        self.examples += len(labels)

    def compute(self) -> float:
        return float(self.sums.abs().sum() / self.examples)


class Torchmetrics:
    """Its multiclass calibration error; the softmax is ours, since it takes probabilities."""

    def __init__(self) -> None:
        from torchmetrics.classification import MulticlassCalibrationError

        self.metric: Any = MulticlassCalibrationError(CLASSES, n_bins=BINS, norm="l1", validate_args=False)

    def update(self, logits: Tensor, labels: Tensor) -> None:
        self.metric.update(logits.softmax(1), labels)

    def compute(self) -> float:
        return float(self.metric.compute())

    def mebibytes(self) -> float:
        kept = [*self.metric.confidences, *self.metric.accuracies]
        return sum(part.nbytes for part in kept) / 2**20


def example(rows: int) -> tuple[Tensor, Tensor]:
    """Logits of a network that is right three times in four, but less confident than that."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    logits = torch.randn(rows, CLASSES, generator=generator).mul_(2)
    logits[torch.arange(rows), labels] += 9
    return logits, labels


def reference(logits: Tensor, labels: Tensor) -> tuple[float, float]:
    """ECE and NLL in float64, by slices."""
    sums, loss = torch.zeros(BINS, dtype=torch.float64), 0.0
    for part, truth in zip(logits.split(4096), labels.split(4096), strict=True):
        scores = part.double().log_softmax(1)
        confidence, predicted = scores.exp().max(1)
        place = torch.bucketize(confidence, torch.arange(1, BINS, dtype=torch.float64) / BINS)
        sums += torch.bincount(place, (predicted == truth).double() - confidence, minlength=BINS)
        loss -= float(scores.gather(1, truth[:, None]).sum())
    return float(sums.abs().sum()) / len(labels), loss / len(labels)


def snippet(logits: Tensor, labels: Tensor) -> float:
    """Temperature scaling as most people copy it."""
    temperature = torch.nn.Parameter(torch.ones(1) * 1.5)
    optimiser = torch.optim.LBFGS([temperature], lr=0.01, max_iter=50)

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits / temperature, labels)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)
    return float(temperature.detach())


def temperatures(rows: int) -> dict[str, float]:
    """The temperature by us and by the snippet, the seconds that it took, and the NLL that it leaves."""
    logits, labels = example(rows)
    results: dict[str, float] = {"rows": rows}
    for name, fit in (("ours", fit_temperature), ("snippet", snippet)):
        started = time.perf_counter()
        results[f"{name}_temperature"] = temperature = fit(logits, labels)
        results[f"{name}_seconds"] = time.perf_counter() - started
        results[f"{name}_nll"] = calibration_of_logits(logits, labels, temperature).negative_log_likelihood
    return results


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks calibration", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an eighth of the rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    total, fitted = (131_072, 2_000) if options.quick else (1_000_000, 10_000)

    logits, labels = example(BLOCK)
    target = torch.empty_like(logits).copy_(logits)
    peers: dict[str, Any] = {"plain PyTorch": Plain()}
    if importlib.util.find_spec("torchmetrics"):
        peers["torchmetrics"] = Torchmetrics()
    spent: dict[str, list[float]] = {name: [] for name in ("penultimate", *peers, "copying")}
    for start in range(0, total, BLOCK):
        rows = min(BLOCK, total - start)
        block, classes = logits[:rows], labels[:rows]
        spent["penultimate"].append(seconds(lambda: calibration_of_logits(block, classes)))  # noqa: B023
        for name, peer in peers.items():
            spent[name].append(seconds(lambda: peer.update(block, classes)))  # noqa: B023
        spent["copying"].append(seconds(lambda: target[:rows].copy_(block)))  # noqa: B023

    ece, nll = reference(logits, labels)
    once = calibration_of_logits(logits, labels)
    errors = {"penultimate": abs(once.expected_calibration_error - ece)}
    for name, kind in (("plain PyTorch", Plain), ("torchmetrics", Torchmetrics)):
        if name in peers:
            fresh: Any = kind()
            fresh.update(logits, labels)
            errors[name] = abs(fresh.compute() - ece)
    size = total * CLASSES * 4 / 1e9
    print(f"{total:,} x {CLASSES} float32 ({size:.2f} GB), {torch.get_num_threads()} thread(s)")
    ratios = {}
    for name, times in spent.items():
        pairs = zip(times, spent["penultimate"], strict=True)
        ratios[name] = statistics.median(peer_seconds / our_seconds for peer_seconds, our_seconds in pairs)
        error = f"ECE off by {errors[name]:.1e}" if name in errors else ""
        rate = size / sum(times)
        print(f"  {name:<16}{sum(times):7.2f} s{rate:7.2f} GB/s {ratios[name]:6.2f} x ours   {error}")
    nll_error = abs(once.negative_log_likelihood - nll)
    print(f"  ours: NLL off by {nll_error:.1e}")
    if "torchmetrics" in peers:
        print(f"  torchmetrics keeps {peers['torchmetrics'].mebibytes():.1f} MiB")
    else:
        print("  torchmetrics is not installed here, so it was not measured")
    fits = temperatures(fitted)
    print(f"the temperature of {fitted:,} x {CLASSES}:")
    for name in ("ours", "snippet"):
        excess = fits[f"{name}_nll"] - fits["ours_nll"]
        print(
            f"  {name:<16}{fits[f'{name}_seconds']:7.2f} s   T = {fits[f'{name}_temperature']:.6f}"
            f"   NLL {fits[f'{name}_nll']:.6f} (+{excess:.1e})"
        )
    if options.json:
        numbers = {
            "benchmark": "calibration",
            "rows": total,
            "classes": CLASSES,
            "threads": torch.get_num_threads(),
            "seconds": {name: sum(times) for name, times in spent.items()},
            "median_ratio_to_ours": ratios,
            "ece_error": errors,
            "nll_error": nll_error,
            "temperature": fits,
        }
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
