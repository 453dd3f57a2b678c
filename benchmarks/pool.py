"""Pool efficiency of the local engine: the share of the processes' time that is spent inside steps.

`python -m benchmarks pool [--quick] [--json=FILE]`; one thread per process. The study is smoke with several
seeds: hundreds of steps, most of which take a few hundredths of a second, so everything but the work itself
shows: starting processes, importing PyTorch, checking digests, writing folders, handing out steps. For one
and for two processes:

    efficiency = CPU seconds of all steps, from their meta.json / (wall seconds x processes)

over the whole run, and from the start of the first step, without the start of the processes. Other load on
the machine takes its part of the wall time and appears as lost efficiency; the wall time of one process over
that of two, the last column, suffers less.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from penultimate.engine.observer import Observer
from penultimate.engine.run import run
from penultimate.graph import Step
from penultimate.records.reading import study_folder
from penultimate.study import load_study
from penultimate.study.selection import restrict
from penultimate.study.spec import MEASURE

PROCESSES = (1, 2)


class Clock(Observer):
    """An observer that records the time of the first step."""

    def __init__(self) -> None:
        self.first = 0.0

    def started(self, step: Step) -> None:
        self.first = self.first or time.perf_counter()


def measured(seeds: int, processes: int) -> dict[str, float]:
    study = restrict(load_study("smoke"), (), range(seeds))
    if seeds == 1:
        study = dataclasses.replace(study, measure=MEASURE)
    clock = Clock()
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        summary = run(study, out, processes, clock)
        ended = time.perf_counter()
        metas = study_folder(out).metas().values()
    assert summary.complete, summary.failed
    busy = sum(meta.content["cpu_seconds"] for meta in metas)
    return {
        "steps": len(metas),
        "wall_seconds": ended - began,
        "busy_seconds": busy,
        "efficiency": busy / (ended - began) / processes,
        "efficiency_after_start": busy / (ended - clock.first) / processes,
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks pool", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, no instruments, one round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    seeds, count = (1, 1) if options.quick else (4, 3)
    rounds = [{processes: measured(seeds, processes) for processes in PROCESSES} for _ in range(count)]
    steps = int(rounds[0][1]["steps"])
    print(f"{steps} steps of study smoke, {seeds} seed(s), {os.cpu_count()} cores; {count} round(s)")
    numbers: dict[str, Any] = {"benchmark": "pool", "steps": steps, "cores": os.cpu_count()}
    for processes in PROCESSES:
        medians = {
            name: statistics.median(times[processes][name] for times in rounds)
            for name in rounds[0][processes]
        }
        medians["speedup"] = statistics.median(
            times[1]["wall_seconds"] / times[processes]["wall_seconds"] for times in rounds
        )
        numbers[f"{processes} processes"] = medians
        print(
            f"  {processes} process{'es' if processes > 1 else '  '} {medians['wall_seconds']:7.1f} s wall"
            f" {medians['busy_seconds']:7.1f} s in steps   efficiency {medians['efficiency']:5.1%}, after the"
            f" start {medians['efficiency_after_start']:5.1%}   {medians['speedup']:.2f} x one process"
        )
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
