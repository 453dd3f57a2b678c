"""Studies with a known truth: chosen means, chosen noise, for the exhibits that judge and relearn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from penultimate.objectives.presets import PRESETS, resolve
from penultimate.records.table import Row, Table
from penultimate.report.base import StudyResults

NINE = tuple(PRESETS)
TARGETS = ("syllabics", "newfaces")
OFFICIAL = {"syllabics": "top1", "newfaces": "mean_per_class"}
TEMPERATURES = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08)


def swept(temperatures: Sequence[float] = TEMPERATURES) -> tuple[str, ...]:
    """Cosine softmax with its loss scaled by the temperature."""
    return tuple(f"cosine_softmax(temperature={t}, scale={t})" for t in temperatures)


def planted(
    truth: Mapping[str, Mapping[str, float]],
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    noise: float = 0.05,
    limited: bool = False,
    labels: Mapping[str, str] | None = None,
    without: Sequence[tuple[str, int]] = (),
    seeds_of: Mapping[str, Sequence[int]] | None = None,
    draws: Sequence[float] = (),
) -> StudyResults:
    """A study whose objectives have these means: {spec: {quantity: value}}, accuracies in per cent.

    Quantities: accuracy, separation, linear, knn, and relearned_N for N images per class. Each run adds
    normal noise of `noise` points (a thousandth of it in separation). `without`: (spec, seed) that diverged.
    `seeds_of`: fewer seeds of some. `draws`: what each seed's draw of the world adds to every accuracy. Those
    that are `swept` are of the arm "temperature".
    """
    rows: list[Row] = []
    for place, (text, means) in enumerate(truth.items()):
        spec = resolve(text).canonical
        for seed in (seeds_of or {}).get(text, seeds):
            draw = np.random.default_rng([place, seed]).normal
            base: dict[str, Any] = {
                "objective": spec,
                "backbone": "glyphnet",
                "arm": _arm(text) or None,
                "source": "glyphs",
                "seed": seed,
                "draw": seed,
            }
            base["status"] = "limited" if limited else "done"
            if (text, seed) in without:
                gone = {**base, "status": "diverged", "epoch": 1, "target": "glyphs", "split": "train"}
                rows.append(Row(step=f"train.{place}-s{seed}.00", metric="top1", value=0.1, **gone))
                continue
            for quantity, mean in means.items():
                shift = noise * float(draw())
                if quantity == "separation":
                    facts = {"metric": "class_separation", "target": "glyphs", "split": "train"}
                    rows.append(Row(step="s", value=mean + shift / 1000, unit="ratio", **base, **facts))
                    continue
                value = (mean + shift + (draws[seed] if draws else 0)) / 100
                for facts in _facts(quantity):
                    rows.append(Row(step="s", value=value, unit="fraction", split="test", **base, **facts))
    return StudyResults(_description(truth, seeds, limited, labels or {}), Table(rows))


def _facts(quantity: str) -> list[dict[str, str]]:
    if quantity in ("linear", "knn"):
        return [{"metric": f"{quantity}_{OFFICIAL[target]}", "target": target} for target in TARGETS]
    if quantity.startswith("relearned_"):
        setting = f"shots={quantity.removeprefix('relearned_')}"
        return [{"metric": "relearn_top1", "target": "glyphs", "setting": setting}]
    return [{"metric": "top1", "target": "glyphs"}]


def _arm(text: str) -> str:
    return "temperature" if text in swept() else ""


def _description(
    truth: Mapping[str, Any], seeds: Sequence[int], limited: bool, labels: Mapping[str, str]
) -> dict[str, Any]:
    arms: dict[str, list[str]] = {"": []}
    for text in truth:
        arms.setdefault(_arm(text), []).append(resolve(text).canonical)
    return {
        "name": "planted",
        "title": "Planted",
        "question": "Is the truth found?",
        "source": "glyphs",
        "targets": list(TARGETS),
        "networks": [
            {
                "objectives": objectives,
                "recipe": {},
                "backbones": ["glyphnet"],
                "seeds": list(seeds),
                "draws": "seed",
                "arm": arm,
                "measure": None,
            }
            for arm, objectives in arms.items()
        ],
        "measure": ["accuracy", "class_separation", "linear", "knn", "relearning(shots=(5, 40))"],
        "objectives": [
            {**entry, "label": labels.get(text, entry["label"])} for text, entry in _listed(truth)
        ],
        "limited": limited,
    }


def _listed(truth: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """Every objective as a study describes it: the first of a preset by the preset's name."""
    listed: list[tuple[str, dict[str, str]]] = []
    for text in truth:
        composition = resolve(text)
        first = composition.preset and composition.preset not in [entry["slug"] for _, entry in listed]
        slug = str(composition.preset) if first else composition.canonical
        label = composition.label if first else composition.detailed_label
        listed.append((text, {"slug": slug, "label": label, "spec": composition.canonical}))
    return listed


def as_in_the_paper(sign: int = 1) -> dict[str, dict[str, float]]:
    """Nine objectives and a sweep in which every claim is true by far, or (sign -1) false by far."""
    truth = {}
    for place, name in enumerate(NINE):
        effect = sign * place
        truth[name] = {
            "accuracy": 77 + effect,
            "separation": 0.4 + 0.03 * place,
            "linear": 85 - effect,
            "knn": 84 - effect,
            "relearned_5": 55 + 3 * effect,
            "relearned_40": 60 + 3 * effect,
        }
    for place, text in enumerate(swept()):
        gained = min(place, 2) if sign > 0 else place
        truth[text] = {
            "accuracy": 70 + 2 * gained,
            "separation": 0.4 + 0.03 * sign * place,
            "linear": 85 - sign * place,
        }
    return truth
