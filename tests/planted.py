"""Studies with a known truth: chosen means, chosen noise, for the exhibits that judge and relearn."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from penultimate.objectives.presets import resolve
from penultimate.paper import published
from penultimate.records.table import Row, Table

NINE = published.objectives()
TARGETS = ("syllabics", "newfaces")
OFFICIAL = {"syllabics": "top1", "newfaces": "mean_per_class"}
TEMPERATURES = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08)


@dataclasses.dataclass(frozen=True, eq=False)
class StudyResults:
    """The description of a study and its rows."""

    description: Mapping[str, Any]
    table: Table
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def described(results: StudyResults, **changes: Any) -> StudyResults:
    """The same rows under another description."""
    return dataclasses.replace(results, description={**results.description, **changes})


def with_rows(results: StudyResults, rows: Iterable[Row]) -> StudyResults:
    """The study with further rows."""
    return dataclasses.replace(results, table=Table([*results.table, *rows]))


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
    alike: tuple[float, float] | None = None,
) -> StudyResults:
    """A study whose objectives have these means: {spec: {quantity: value}}, accuracies in per cent.

    Quantities: accuracy, train, separation, separation_before, ece, linear, knn, and relearned_N for N
    images per class; linear_TASK for one task alone; train@E, accuracy@E and separation@E after epoch E.
    Each run adds normal noise of `noise` points (a thousandth of it in separation and ece). `without`:
    (spec, seed) that diverged. `seeds_of`: fewer seeds of some. `alike`: the shares of equal mistakes, in per
    cent, of two networks of one objective and of two of different ones (those of one seed are all alike).
    `draws`: what each seed's draw of the world adds to every accuracy. Those that are `swept` are of the arm
    "temperature".
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
                name, _, epoch = quantity.partition("@")
                after: dict[str, Any] = {"epoch": int(epoch)} if epoch else {}
                if name in RATIOS:
                    for facts in RATIOS[name]:
                        value = mean + shift / 1000
                        rows.append(Row(step="s", value=value, **base, **facts, **after))
                    continue
                value = (mean + shift + (draws[seed] if draws else 0)) / 100
                for facts in _facts(name, means):
                    facts = {"split": "test", **facts, **after}
                    rows.append(Row(step="s", value=value, unit="fraction", **base, **facts))
    if alike:
        rows += _mistakes([text for text in truth if not _arm(text)], seeds, *alike, noise)
    return StudyResults(_description(truth, seeds, limited, labels or {}), Table(rows))


LAYERS = ("block1", "bottleneck2", "penultimate")
_OURS = {"target": "glyphs", "split": "test"}
_R2 = {"metric": "class_separation", "unit": "ratio"}
RATIOS = {
    "separation": [{**_R2, "target": "glyphs", "split": "train"}],
    "separation_before": [{**_R2, "layer": layer, **_OURS} for layer in LAYERS],
    "ece": [{"metric": "ece", "unit": "fraction", **_OURS}],
}


def _mistakes(
    specs: Sequence[str], seeds: Sequence[int], own: float, others: float, noise: float
) -> list[Row]:
    """The shares of equal mistakes of every pair of networks."""
    networks = [(resolve(text).canonical, seed) for text in specs for seed in seeds]
    rows = []
    for place, ((a, seed), (b, seed_b)) in enumerate(itertools.combinations(networks, 2)):
        share = 99.0 if seed == seed_b else own if a == b else others
        share += noise * float(np.random.default_rng([9, place]).normal())
        facts: dict[str, Any] = {"objective_b": b, "seed_b": seed_b, **_OURS, "source": "glyphs"}
        facts |= {"objective": a, "seed": seed, "backbone": "glyphnet", "status": "done", "unit": "fraction"}
        rows.append(Row(step="s", metric="agreement_same_when_both_wrong", value=share / 100, **facts))
    return rows


def _facts(quantity: str, means: Mapping[str, float]) -> list[dict[str, str]]:
    kind, _, task = quantity.partition("_")
    if kind in ("linear", "knn"):
        tasks = [task] if task else [one for one in TARGETS if f"{kind}_{one}" not in means]
        return [{"metric": f"{kind}_{OFFICIAL[target]}", "target": target} for target in tasks]
    if quantity == "train":
        return [{"metric": "top1", "target": "glyphs", "split": "train"}]
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


ALIKE = {1: (60.0, 50.0), -1: (50.0, 60.0)}
"""The shares of equal mistakes that go with `as_in_the_paper`."""
SEPARATED_BEFORE = ("final_layer_l2", "logit_penalty", "squared_error")


def as_in_the_paper(sign: int = 1) -> dict[str, dict[str, float]]:
    """Nine objectives and a sweep in which every claim is true by far, or (sign -1) false by far.

    But for one: that accuracy and calibration are unrelated, which nine objectives cannot show.
    """
    truth = {}
    for place, name in enumerate(NINE):
        effect, is_softmax = sign * place, place == 0
        at_end, lower = 90 - effect, 0.05 * (is_softmax if sign > 0 else not is_softmax)
        truth[name] = {
            "accuracy": 77 + effect,
            "train": at_end,
            "separation": 0.4 + 0.03 * (4.5 if is_softmax and sign < 0 else place),
            "separation_before": 0.2 + 0.05 * (name in SEPARATED_BEFORE if sign > 0 else not is_softmax),
            "ece": 0.05 + 0.01 * (place * 4 % 9 if sign > 0 else place),
            "linear": 85 - effect,
            "linear_newfaces": 85 - sign * (place > 0) - 0.01 * sign * (place * 4 % 9),
            "knn": 84 - effect,
            "relearned_5": 55 + 3 * effect,
            "relearned_40": 60 + 3 * effect,
        }
        for epoch in (4, 8, 12):
            truth[name][f"train@{epoch}"] = 30.0 + 5 * epoch
            truth[name][f"accuracy@{epoch}"] = 25.0 + 4 * epoch + effect
            truth[name][f"separation@{epoch}"] = 0.3 + 0.01 * epoch - (lower if epoch == 12 else 0)
    for place, text in enumerate(swept()):
        gained = min(place, 2) if sign > 0 else place
        truth[text] = {
            "accuracy": 70 + 2 * gained,
            "separation": 0.4 + 0.03 * sign * place,
            "linear": 85 - sign * place,
        }
    return truth
