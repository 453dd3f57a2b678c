"""Tuning throughput: runs per hour of `penultimate tune` on the smoke study, beside a plain loop.

`python -m benchmarks tuning [--quick] [--json=FILE]`; one thread per process. The tuning is the command
itself, in an empty folder, with one and with two processes: it renders the data, trains every cell with every
seed, keeps networks, curves and provenance, chooses, and writes the page. The plain loop trains the same
cells one after another in one process and neither keeps nor chooses anything: a gain over it comes from
parallel work, a loss is the cost of keeping. Everything is timed from the start of Python. Rounds are
interleaved; ratios are medians over rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STUDY = "smoke"
PROCESSES = (1, 2)
PLAIN = "from benchmarks.tuning import plain_loop; plain_loop()"


def command(processes: int, quick: bool) -> list[str]:
    temperatures = "0.03,0.06" if quick else "0.02,0.03,0.04,0.06,0.08,0.12"
    return [
        *("-m", "penultimate.cli", "tune", "cosine_softmax", "--study", STUDY),
        *("--grid", f"temperature={temperatures}", "--grid", "scale=0.5"),
        *("--seeds", "0" if quick else "0,1,2", "--processes", str(processes)),
    ]


def plain_loop() -> None:
    """The runs of the search in the current folder, without penultimate's study."""
    import torch

    from penultimate.data import generate
    from penultimate.data.images import load_images
    from penultimate.records.reading import study_folder
    from penultimate.records.tuning import folder_name
    from penultimate.study import load_study
    from penultimate.training import train

    torch.set_num_threads(1)
    study = load_study(STUDY)
    search = study_folder("runs", folder_name(STUDY)).search()
    assert search is not None
    with tempfile.TemporaryDirectory() as scratch:
        worlds = {seed: Path(scratch) / str(seed) for seed in search.seeds}
        for seed, folder in worlds.items():
            generate(study.source, seed, folder)
        (tuned,) = search.objectives
        runs = [(cell.objective, run.seed) for cell in tuned.cells for run in cell.runs]
        for number, (objective, seed) in enumerate(runs):
            images = (load_images(worlds[seed], split) for split in ("train", "holdout"))
            folder = Path(scratch) / f"run-{number}"
            folder.mkdir()
            train(objective, search.backbone, *images, study.main.recipe, seed, folder)


def seconds(arguments: list[str], folder: Path) -> float:
    """The seconds that a Python process takes in its own folder, from start to end."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def one_round(quick: bool) -> tuple[int, dict[str, float]]:
    """The number of runs of the tuning, and the seconds of each variant."""
    taken: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for processes in PROCESSES:
            folder = Path(scratch) / str(processes)
            folder.mkdir()
            taken[f"tune, {processes} process{'es' * (processes > 1)}"] = seconds(
                command(processes, quick), folder
            )
        runs = len(list((folder / "runs/steps").glob("train.*")))
        taken["plain loop, 1 process"] = seconds(["-c", PLAIN], folder)
    return runs, taken


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks tuning", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of a few runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    rounds = [one_round(options.quick) for _ in range(1 if options.quick else 3)]
    runs = rounds[0][0]
    print(
        f"{runs} runs of study {STUDY}, 1 thread per process, {os.cpu_count()} cores; {len(rounds)} round(s)"
    )
    numbers: dict[str, Any] = {"benchmark": "tuning", "runs": runs, "cores": os.cpu_count()}
    for name in rounds[0][1]:
        rates = [3600 * count / taken[name] for count, taken in rounds]
        ratio = statistics.median(taken["plain loop, 1 process"] / taken[name] for _, taken in rounds)
        numbers[name] = {"runs_an_hour": statistics.median(rates), "ratio_to_plain": ratio}
        print(f"  {name:<24}{statistics.median(rates):8.0f} runs/h   {ratio:.2f} x the plain loop")
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
