"""Curves of transfer from few labels: 50,000 x 768 features of 100 classes, 10,000 test images.

`python -m benchmarks few_labels [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. First one episode
of each size is learnt by our ridge regression and by scikit-learn's RidgeCV on the indicators of the classes,
from the same examples and with the same nine penalties, in turn; both choose the penalty by leaving one
example out. The seconds of processor time and their ratio are printed, and the share of the test images of
which both say the same. It ends with an error if that is less than 99.9 % at some size. Then the whole
measurement is timed: two probes, ten sizes, ten episodes of each but of the last.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from benchmarks.outside import CLASSES, WIDTH, drawn
from sklearn.linear_model import RidgeCV

import penultimate as pu
from penultimate.measures.few_labels import few_labels
from penultimate.probes.closed_form import PENALTIES, ridge
from penultimate.probes.episodes import episode_order, sizes_of

SHOTS, PERCENT = (1, 2, 5, 10, 20), (1, 3, 10, 30, 100)
AGREED = 0.999


def peer(features: Any, codes: Any, test: Any) -> Any:
    """What scikit-learn's ridge regression on the indicators of the classes predicts."""
    usual = np.square(features - features.mean(0)).sum(1).mean()
    targets = np.eye(CLASSES)[codes]
    return RidgeCV(usual * np.array(PENALTIES)).fit(features, targets).predict(test).argmax(1)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks few_labels", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the images")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    rows, tested = (5_000, 1_000) if options.quick else (50_000, 10_000)

    (train, labels), (test, truth) = drawn(rows, 1), drawn(tested, 2)
    print(f"{rows:,} x {WIDTH} of {CLASSES} classes, {tested:,} tested, {torch.get_num_threads()} thread(s)")
    counts = np.bincount(labels)
    order = episode_order(labels, "benchmark", 0, 0, np.arange(rows))
    numbers: dict[str, dict[str, float]] = {}
    for size in sizes_of(SHOTS, PERCENT, counts)[0]:
        mask = order < size.of(counts)[labels]
        started = time.process_time()
        own = ridge(train[mask], labels[mask], CLASSES).predict(test)
        between = time.process_time()
        others = peer(train[mask], labels[mask], test)
        ours, theirs = between - started, time.process_time() - between
        agreed = float((own == others).mean())
        numbers[f"{size.kind}={size.value}"] = {"seconds": ours, "peer_seconds": theirs, "agreed": agreed}
        line = f"  {size.kind} {size.value:>3}  {ours:7.2f} s   RidgeCV {theirs:7.2f} s"
        line += f", {theirs / ours:5.1f} times"
        print(f"{line}   the same for {100 * agreed:.2f} %   accuracy {100 * (own == truth).mean():.1f} %")
    banks = {
        "train": pu.FeatureBank(train.astype(np.float32), labels),
        "test": pu.FeatureBank(test.astype(np.float32), truth),
    }
    started, wall = time.process_time(), time.perf_counter()
    inputs: Any = SimpleNamespace(features=banks.__getitem__, target="benchmark", accuracy="top1")
    for _ in few_labels(inputs, shots=SHOTS, percent=PERCENT):
        pass
    spent, waited = time.process_time() - started, time.perf_counter() - wall
    print(f"  the whole measurement: {spent:.1f} s of processor time, {waited:.1f} s by the clock")
    if options.json is not None:
        options.json.write_text(json.dumps({"sizes": numbers, "whole": spent}))
    if min(each["agreed"] for each in numbers.values()) < AGREED:
        sys.exit("the two disagree")
