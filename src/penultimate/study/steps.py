"""What each step does: from its parents' folders to rows and files in its own."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
import traceback
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from penultimate.errors import DamagedFileError, RequestError
from penultimate.metrics import UndefinedError
from penultimate.store import Store
from penultimate.study import inside, plugin_steps, predictions
from penultimate.study.context import ROWS, Context, Outcome, Progress
from penultimate.study.dynamics import dynamics
from penultimate.study.graph import VERSIONS, Step
from penultimate.study.layers import layers, similarity
from penultimate.study.robustness import corrupted, hard, robustness
from penultimate.table import write_rows

SCRATCH = ("checkpoint*", "*.tmp")


class DamagedParentError(DamagedFileError):
    """A parent's file changed since it was written; the parent has to be computed anew."""

    def __init__(self, parent: str, reason: str) -> None:
        super().__init__(reason)
        self.parent = parent


def data(context: Context) -> Outcome:
    from penultimate.data import generate

    manifest = generate(context.config["name"], context.config["draw"], context.folder)
    return Outcome([], facts={"content_digest": manifest["digest"]})


def train(context: Context) -> Outcome:
    from penultimate.data.images import load_images
    from penultimate.training import Recipe
    from penultimate.training import train as run_training
    from penultimate.training.network import CARD

    config = context.config
    result = run_training(
        config["objective"],
        config["backbone"],
        load_images(context.parents["data"], "train"),
        load_images(context.parents["data"], "holdout"),
        Recipe(**config["recipe"]),
        config["seed"],
        context.folder,
        context.progress,
        float(os.environ.get("PENULTIMATE_CHECKPOINT_SECONDS", "20")),
    )
    rows = [
        context.row(
            point["metric"],
            point["value"],
            "loss" if point["metric"] == "mean_loss" else "fraction",
            epoch=point["epoch"],
            split=point["split"],
            status=result.status,
        )
        for point in result.curves
    ]
    facts: dict[str, Any] = {"epoch": result.epoch, "reason": result.reason}
    if result.status == "done":
        facts["num_features"] = json.loads((context.folder / CARD).read_text())["num_features"]
    if result.damaged:
        facts["damaged"] = result.damaged
    return Outcome(rows, result.status, facts)


def extract(context: Context) -> Outcome:
    from penultimate.data.images import load_images
    from penultimate.extraction import extract as run_extraction
    from penultimate.training import load_network

    network = load_network(context.parents["train"])
    for split in context.config["splits"]:
        run_extraction(network, load_images(context.parents["data"], split)).save(
            context.folder / f"{split}.npz"
        )
    return Outcome([])


def sheet(context: Context) -> Outcome:
    from penultimate.data.catalog import card
    from penultimate.data.images import load_images
    from penultimate.data.sheet import contact_sheet

    sets = []
    for folder in context.parents.values():
        name = json.loads((folder / "manifest.json").read_text())["name"]
        sets.append((card(name).title, load_images(folder, "train")))
    (context.folder / "sheet.png").write_bytes(contact_sheet(sets))
    return Outcome([])


def accuracy(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.metrics.accuracy import top_k

    rows = []
    for split in context.config["splits"]:
        bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
        assert bank.logits is not None
        for k in (1, 5):
            value = top_k(bank.logits, bank.labels, k)
            rows.append(context.row(f"top{k}", value, "fraction", split=split))
    return Outcome(rows)


def class_separation(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.metrics.separation import class_separation as measure

    rows, undefined = [], []
    distances = {"cosine": "class_separation"}
    distances.update({other: f"class_separation_{other}" for other in ("cosine_centered", "euclidean")})
    for split in context.config["splits"]:
        bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
        for distance, metric in distances.items():
            try:
                value = measure(bank.features, bank.labels, distance=distance)
            except UndefinedError as error:
                undefined.append(f"{metric} ({split}): {error}")
                continue
            rows.append(context.row(metric, value, "ratio", split=split))
    return Outcome(rows, facts={"undefined": "; ".join(undefined)} if undefined else {})


def linear(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.probes.linear import LinearProbe

    train_bank = FeatureBank.load(context.parents["extract"] / "train.npz")
    test_bank = FeatureBank.load(context.parents["extract"] / "test.npz")
    probe = LinearProbe(metric=context.config["accuracy"], seed=context.config["seed"])
    probe.fit(train_bank.features, train_bank.labels)
    measure = context.config["accuracy"]
    score = probe.score(test_bank.features, test_bank.labels)
    rows = [
        context.row(f"linear_{measure}", score, "fraction", split="test"),
        context.row("linear_lambda", float(probe.lambda_), "lambda", split="train"),
        context.row(
            "linear_validation_accuracy", float(max(probe.validation_accuracy_)), "fraction", split="train"
        ),
        context.row(
            "linear_certified_gap",
            float(max(*probe.certificates_, probe.certificate_)),
            "ratio",
            split="train",
        ),
    ]
    return Outcome(rows)


def knn(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.probes.knn import KNNProbe

    train_bank = FeatureBank.load(context.parents["extract"] / "train.npz")
    test_bank = FeatureBank.load(context.parents["extract"] / "test.npz")
    measure = context.config["accuracy"]
    probe = KNNProbe().fit(train_bank.features, train_bank.labels)
    rows = [
        context.row(
            f"knn_{measure}",
            probe.score(test_bank.features, test_bank.labels, metric=measure),
            "fraction",
            split="test",
        ),
        context.row("knn_k", float(probe.k_), "count", split="train"),
        context.row("knn_leave_one_out", float(max(probe.leave_one_out_)), "fraction", split="train"),
    ]
    return Outcome(rows)


def relearn(context: Context) -> Outcome:
    """The source's own classes learnt anew from a few fresh images each: the first that the split has."""
    import numpy as np

    from penultimate.bank import FeatureBank
    from penultimate.probes.linear import LinearProbe

    own, fresh = context.parents.values()
    shots = context.config["shots"]
    test, few = FeatureBank.load(own / "test.npz"), FeatureBank.load(fresh / "relearn.npz")
    firsts = [np.flatnonzero(few.labels == label)[:shots] for label in range(int(test.labels.max()) + 1)]
    scarce = next((label for label, places in enumerate(firsts) if len(places) < shots), None)
    if scarce is not None:
        raise RequestError(
            f"{shots} images a class are asked for; in the relearn split class {scarce} has"
            f" {len(firsts[scarce])}"
        )
    chosen = np.sort(np.concatenate(firsts))
    probe = LinearProbe(seed=context.config["seed"]).fit(few.features[chosen], few.labels[chosen])
    layer = f"{shots} per class"
    return Outcome(
        [
            context.row(
                "relearn_top1", probe.score(test.features, test.labels), "fraction", split="test", layer=layer
            ),
            context.row("relearn_lambda", float(probe.lambda_), "lambda", split="relearn", layer=layer),
        ]
    )


FUNCTIONS: dict[str, Callable[[Context], Outcome]] = {
    function.__name__: function
    for function in (data, sheet, train, extract, accuracy, class_separation, linear, knn, relearn)
}
FUNCTIONS |= {
    function.__name__: function
    for function in (inside.collapse, inside.sparsity, inside.hardness, inside.spectra, inside.distances)
}
FUNCTIONS |= {"calibration": predictions.calibration, "agreement": predictions.agreement}
FUNCTIONS["dynamics"] = dynamics
FUNCTIONS |= {"layers": layers, "similarity": similarity}
FUNCTIONS |= {function.__name__: function for function in (corrupted, hard, robustness)}
FUNCTIONS |= {"metric": plugin_steps.metric, "probe": plugin_steps.probe}


def execute(store: Store, step: Step, progress: Progress) -> dict[str, Any]:
    """Do one step in its folder, unless another process has done it meanwhile; its meta comes back.

    A measure that has no value here (constant features, say) leaves no row, and its reason in meta.json.
    Raises DamagedParentError when a parent is not what was written; anything else that a step raises
    passes through, and its partial folder stays for the next attempt.
    """
    with store.step_lock(step.id):
        if store.is_whole(step.id):
            meta = store.meta(step.id)
            assert meta is not None
            return meta.content
        parents = {}
        for parent in step.parents:
            if parent in step.absent:
                continue
            try:
                name = parent.partition(".")[0]
                parents[name if name not in parents else parent] = store.verify(parent)
            except DamagedFileError as error:
                raise DamagedParentError(parent, str(error)) from error
        folder = store.begin(step.id)
        began, busy = time.perf_counter(), time.process_time()
        try:
            outcome = FUNCTIONS[step.name](Context(step, folder, parents, progress))
        except UndefinedError as error:
            outcome = Outcome([], facts={"undefined": str(error)})
        write_rows(folder / ROWS, outcome.rows)
        meta_content = {
            "step": step.name,
            "version": VERSIONS[step.name],
            "config": step.config,
            "about": step.about,
            "parents": list(step.parents),
            "status": outcome.status,
            "seconds": round(time.perf_counter() - began, 3),
            "cpu_seconds": round(time.process_time() - busy, 3),
            **outcome.facts,
            **machine(),
        }
        store.finish(step.id, meta_content, SCRATCH)
        return meta_content


@cache
def machine() -> dict[str, Any]:
    """Where this process runs and what it runs with: recorded beside every result, never hashed."""
    import torch

    packages = {}
    for name in ("torch", "numpy", "scipy", "scikit-learn", "matplotlib", "pillow", "penultimate"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = "not installed"
    commit, dirty = code_version()
    return {
        "host": platform.node(),
        "processor": _processor(),
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "packages": packages,
        "commit": commit,
        "dirty": dirty,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()} ({os.cpu_count()} cores)"
    except OSError:
        pass
    return f"{platform.processor() or platform.machine()} ({os.cpu_count()} cores)"


@cache
def code_version() -> tuple[str, bool]:
    """The commit of this package's checkout, and whether it was changed since; ("", False) outside one."""
    here = Path(__file__).resolve().parent
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", str(here)],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "", False
    return commit, bool(changed)


def describe_failure(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
