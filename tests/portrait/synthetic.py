"""Results that no study measured, shaped like real ones: WORLD.md's numbers with a little noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from penultimate.data.catalog import card
from penultimate.objectives.presets import resolve
from penultimate.records.table import Row, Table
from penultimate.results.rows import Run

TARGETS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")
OFFSETS = (6.1, 3.4, 4.2, 9.0, 1.1, -22.5, 4.6, -2.4)
EPOCHS = 20
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
PROVENANCE: dict[str, Any] = {
    "command": "penultimate run quickstart",
    "processor": "A processor (2 cores)",
    "data": {"glyphs (draw 0)": "a1" * 32, "digits (draw 0)": "b2" * 32},
    "seconds": {"train": 301.4, "linear": 22.0, "knn": 3.1},
    "steps": {"train": [9, 9], "linear": [72, 72]},
}


def study(
    seeds: Sequence[int] = (0,),
    objectives: Sequence[str] = tuple(MEASURED),
    diverged: tuple[str, int] | None = None,
) -> Run:
    """Return a study with these seeds; `diverged` names a run that ended without a number."""
    rows: list[Row] = []
    for place, text in enumerate(objectives):
        for seed in seeds:
            base = {"objective": resolve(text).canonical, "seed": seed, "draw": seed}
            base |= {"backbone": "glyphnet", "source": "glyphs", "step": "step"}
            if diverged == (text, seed):
                about = {
                    **base,
                    "status": "diverged",
                    "target": "glyphs",
                    "split": "train",
                    "unit": "fraction",
                }
                rows += [Row(metric="top1", value=0.1 * epoch, epoch=epoch, **about) for epoch in (1, 2, 3)]
            else:
                noise = np.random.default_rng([place, seed])
                rows += [Row(**base, **cells) for cells in _cells(text, noise)]
    return Run(Table(rows).frame(), _description(objectives, seeds), PROVENANCE)


def _cells(text: str, noise: np.random.Generator) -> Iterator[dict[str, Any]]:
    train, test, r2, linear, knn = MEASURED.get(text, (88.0, 77.0, 0.36, 84.5, 83.5))
    shift = noise.normal(0, 0.35)

    def cell(metric: str, value: float, split: str, target: str = "glyphs", **more: Any) -> dict[str, Any]:
        about = {"metric": metric, "value": float(value), "split": split, "target": target}
        return {"unit": "fraction", **about, **more}

    for split, top1 in (("train", train), ("test", test)):
        value = (top1 + shift) / 100
        yield cell("top1", value, split)
        yield cell("top5", 1 - (1 - value) * 0.35, split)
    for epoch in range(1, EPOCHS + 1):
        for split, top1 in (("train", train), ("holdout", test)):
            grown = top1 / 100 * (1 - 0.8 * np.exp(-4.5 * epoch / EPOCHS)) + noise.normal(0, 0.004)
            yield cell("top1", grown, split, epoch=epoch)
    for split, lift in (("train", 0.0), ("test", -0.02)):
        value = r2 + lift + noise.normal(0, 0.004)
        for metric, more in (("", 0.0), ("_cosine_centered", -0.003), ("_euclidean", -0.012)):
            yield cell(f"class_separation{metric}", value + more, split, unit="ratio")
    for probe, mean in (("linear", linear), ("knn", knn)):
        for target, offset in zip(TARGETS, OFFSETS, strict=True):
            value = (mean + offset - 0.4375 + noise.normal(0, 0.5)) / 100
            yield cell(f"{probe}_{card(target).accuracy}", value, "test", target)


def _description(objectives: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    grid = {
        "objectives": [resolve(text).canonical for text in objectives],
        "recipe": {"epochs": EPOCHS, "batch_size": 64, "learning_rate": 1.0, "schedule": "exponential"},
        "backbones": ["glyphnet"],
        "seeds": list(seeds),
        "draws": "seed",
        "arm": "",
        "measure": None,
    }
    return {
        "name": "quickstart",
        "title": "Quickstart: nine objectives on the glyph world",
        "source": "glyphs",
        "targets": list(TARGETS),
        "networks": [grid],
        "measure": ["accuracy", "class_separation", "linear", "knn"],
        "objectives": [
            {
                "slug": resolve(text).preset or resolve(text).canonical,
                "label": resolve(text).label,
                "spec": resolve(text).canonical,
            }
            for text in objectives
        ],
        "num_features": 256,
        "limited": False,
    }
