"""Results that no study measured, shaped like real ones: WORLD.md's numbers with a little noise."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from penultimate.data.catalog import card
from penultimate.objectives.presets import resolve
from penultimate.records.table import Row, Table
from penultimate.results.rows import Run

HOSTILE = "<script>alert(1)</script>"
TARGETS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")
OFFSETS = (6.1, 3.4, 4.2, 9.0, 1.1, -22.5, 4.6, -2.4)
MEASURED = {
    "softmax": (89.8, 77.1, 0.350, 85.2, 84.2),
    "label_smoothing(alpha=0.1)": (90.6, 78.9, 0.331, 85.8, 85.0),
    "sigmoid": (88.1, 76.3, 0.344, 85.1, 83.4),
    "final_layer_l2(lambda_final=0.0003)": (90.0, 78.1, 0.382, 85.0, 83.8),
    "dropout(keep=0.9)": (87.7, 75.8, 0.353, 84.6, 84.0),
    "logit_penalty(beta=0.003)": (90.7, 80.4, 0.400, 85.0, 84.4),
    "logit_norm(temperature=0.08)": (91.8, 80.2, 0.397, 84.2, 83.2),
    "cosine_softmax(scale=0.5, temperature=0.06)": (89.4, 76.2, 0.405, 83.2, 82.2),
    "squared_error(kappa=9, scale=0.5, target=10)": (84.9, 75.6, 0.511, 83.6, 82.2),
}
"""Objective -> train and test top-1, R^2, mean linear and kNN transfer."""


def study(
    seeds: Sequence[int] = (0,),
    *,
    objectives: Sequence[str] = tuple(MEASURED),
    targets: Sequence[str] = TARGETS,
    probes: Sequence[str] = ("linear", "knn"),
    separation: bool = True,
    diverged: tuple[str, int] | None = None,
    limited: bool = False,
    label: str = "",
    sheet: bytes | None = None,
    epochs: int = 20,
) -> Run:
    """A study with these seeds; `diverged` names a NaN run, `label` renames the last objective."""
    rows: list[Row] = []
    canonical = [resolve(text).canonical for text in objectives]
    for place, (text, spec) in enumerate(zip(objectives, canonical, strict=True)):
        for seed in seeds:
            base: dict[str, Any] = {
                "objective": spec,
                "backbone": "glyphnet",
                "source": "glyphs",
                "seed": seed,
                "draw": seed,
                "status": "limited" if limited else "done",
            }
            if diverged == (text, seed):
                rows += _diverged(base, f"train.{resolve(text).preset}-s{seed}.0123456789abcdef")
            else:
                noise = np.random.default_rng([place, seed])
                rows += _run(base, text, noise, targets, probes, separation, epochs)
    described = _description(objectives, canonical, seeds, targets, limited, label)
    return Run(Table(rows).frame(), described, PROVENANCE, sheet=sheet)


def _run(
    base: dict[str, Any],
    text: str,
    noise: np.random.Generator,
    targets: Sequence[str],
    probes: Sequence[str],
    separation: bool,
    epochs: int,
) -> list[Row]:
    rows: list[Row] = []

    def add(
        metric: str,
        value: float,
        split: str,
        target: str = "glyphs",
        unit: str = "fraction",
        epoch: int | None = None,
    ) -> None:
        about = {**base, "metric": metric, "value": float(value), "split": split, "target": target}
        rows.append(Row(step="step", unit=unit, epoch=epoch, **about))

    train, test, r2, linear, knn = MEASURED.get(text, (88.0, 77.0, 0.36, 84.5, 83.5))
    shift = noise.normal(0, 0.35)
    for split, top1 in (("train", train), ("test", test)):
        value = (top1 + shift) / 100
        add("top1", value, split)
        add("top5", 1 - (1 - value) * 0.35, split)
    for epoch in range(1, epochs + 1):
        for split, top1 in (("train", train), ("holdout", test)):
            grown = top1 / 100 * (1 - 0.8 * np.exp(-4.5 * epoch / epochs)) + noise.normal(0, 0.004)
            add("top1", grown, split, epoch=epoch)
    for split, lift in (("train", 0.0), ("test", -0.02)) if separation else ():
        value = r2 + lift + noise.normal(0, 0.004)
        for metric, more in (("", 0.0), ("_cosine_centered", -0.003), ("_euclidean", -0.012)):
            add(f"class_separation{metric}", value + more, split, unit="ratio")
    for probe, mean in (("linear", linear), ("knn", knn)):
        for target, offset in zip(TARGETS, OFFSETS, strict=True):
            if probe in probes and target in targets:
                value = (mean + offset - 0.4375 + noise.normal(0, 0.5)) / 100
                add(f"{probe}_{card(target).accuracy}", value, "test", target)
    return rows


def _diverged(base: dict[str, Any], step: str) -> list[Row]:
    facts = {**base, "status": "diverged", "target": "glyphs", "split": "train", "metric": "top1"}
    return [Row(step=step, value=0.1 * epoch, unit="fraction", epoch=epoch, **facts) for epoch in (1, 2, 3)]


def _description(
    objectives: Sequence[str],
    canonical: Sequence[str],
    seeds: Sequence[int],
    targets: Sequence[str],
    limited: bool,
    label: str,
) -> dict[str, Any]:
    listed = [
        {"slug": resolve(text).preset or spec, "label": resolve(text).label, "spec": spec}
        for text, spec in zip(objectives, canonical, strict=True)
    ]
    if label:
        listed[-1]["label"] = label
    return {
        "name": "quickstart",
        "title": "Quickstart: nine objectives on the glyph world",
        "question": "Which training objective gives features that transfer?",
        "source": "glyphs",
        "targets": list(targets),
        "networks": [
            {
                "objectives": list(canonical),
                "recipe": {"epochs": 20, "batch_size": 64, "learning_rate": 1.0, "schedule": "exponential"},
                "backbones": ["glyphnet"],
                "seeds": list(seeds),
                "draws": "seed",
                "arm": "",
                "measure": None,
            }
        ],
        "measure": ["accuracy", "class_separation", "linear", "knn"],
        "objectives": listed,
        "num_features": 256,
        "limited": limited,
    }


PROVENANCE: dict[str, Any] = {
    "command": "penultimate run quickstart",
    "commit": ["0f3c2a9e1b7d4c5f8a6b0c1d2e3f4a5b6c7d8e9f"],
    "dirty": False,
    "hosts": ["machine"],
    "processor": "A processor (2 cores)",
    "device": "cpu",
    "threads": 1,
    "python": "3.11.9",
    "packages": {"torch": "2.15.0", "numpy": "2.4.6", "penultimate": "0.1.0"},
    "data": {"glyphs (draw 0)": "a1" * 32, "digits (draw 0)": "b2" * 32},
    "seconds": {"train": 301.4, "linear": 22.0, "knn": 3.1},
    "steps": {"train": [9, 9], "linear": [72, 72]},
    "diverged": {},
}


def picture(width: int = 64, height: int = 24) -> bytes:
    """A small valid PNG, grey."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress((b"\x00" + b"\x80" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
