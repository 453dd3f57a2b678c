"""Steps that look inside a trained network: collapse, sparsity, hardness, spectra, distances."""

from __future__ import annotations

from typing import Any

from penultimate.study.context import Context, Outcome
from penultimate.table import Row


def collapse(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.metrics.collapse import neural_collapse
    from penultimate.training import load_network

    split = context.config["split"]
    bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
    assert bank.logits is not None
    head = load_network(context.parents["train"]).objective.head
    # The network's own predictions: a cosine head's are not those of W x + b.
    found = neural_collapse(bank.features, bank.labels, head.weight, predictions=bank.logits.argmax(1))
    rows = []
    for name, value in found._asdict().items():
        if name == "nc4":
            rows.append(context.row("nc4", value, "fraction", split=split))
        elif name == "rank":
            rows.append(context.row("nc_rank", value, "count", split=split))
        else:
            rows.append(context.row(f"nc_{name}", value, "ratio", split=split))
    return Outcome(rows)


def sparsity(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.metrics.activations import sparsity as measure

    split = context.config["split"]
    bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
    return Outcome([context.row("sparsity", measure(bank.features), "fraction", split=split)])


def hardness(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.metrics.hardness import angular_visual_hardness, hardness_density
    from penultimate.training import load_network

    split = context.config["split"]
    bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
    weight = load_network(context.parents["train"]).objective.head.weight
    scores = angular_visual_hardness(bank.features, bank.labels, weight)
    density = hardness_density(scores, len(weight))
    return Outcome(
        [
            context.row("angular_visual_hardness", float(scores.mean()), "ratio", split=split),
            _points(context, "hardness_density", split, **density._asdict()),
        ]
    )


def spectra(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.metrics.activations import class_centroids, singular_values
    from penultimate.training import load_network

    split = context.config["split"]
    bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
    row = _points(
        context,
        "singular_values",
        split,
        activations=singular_values(bank.features),
        weights=singular_values(load_network(context.parents["train"]).objective.head.weight),
        centroids=singular_values(class_centroids(bank.features, bank.labels)),
    )
    return Outcome([row])


def distances(context: Context) -> Outcome:
    from penultimate.bank import FeatureBank
    from penultimate.metrics.activations import cosine_distances

    split = context.config["split"]
    bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
    found = cosine_distances(bank.features, bank.labels, context.config["count"], context.config["seed"])
    arrays = {"points": found.points, "within": found.within, "between": found.between}
    return Outcome(
        [
            context.row("cosine_distance_within", found.mean_within, "distance", split=split),
            context.row("cosine_distance_between", found.mean_between, "distance", split=split),
            _points(context, "cosine_distance_density", split, **arrays),
        ]
    )


def _points(context: Context, metric: str, split: str, **arrays: Any) -> Row:
    """Leave arrays as METRIC.npz in the step's folder; the row that points to them counts the longest."""
    import numpy as np

    plain = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez(context.folder / f"{metric}.npz", **plain)  # type: ignore[arg-type]
    return context.row(metric, max(map(len, plain.values())), "points", split=split)
