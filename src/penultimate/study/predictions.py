"""Measurements on the predictions of finished networks, as columns of rows: calibration and likeness."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from penultimate.bank import FeatureBank
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics import agreement as likeness
from penultimate.metrics.accuracy import accuracy
from penultimate.metrics.calibration import BINS, CalibrationAccumulator
from penultimate.metrics.temperature import fit_temperature
from penultimate.objectives.objective import objective
from penultimate.study.context import Context, Outcome

Columns = dict[str, Any]
Network = tuple[str, int]
"""A trained network's objective (its canonical spec) and seed."""

SHARES = ("same", "both_right_or_wrong", "same_when_both_wrong")


def calibration(context: Context) -> Outcome:
    """The step: a network's test bank, before and after the temperature fitted on its holdout bank."""
    own, held = context.parents.values()
    holdout, test = FeatureBank.load(held / "holdout.npz"), FeatureBank.load(own / "test.npz")
    rows, undefined = calibration_rows(context.config["objective"], holdout, test)
    facts = {"undefined": undefined} if undefined else {}
    return Outcome([context.row(**columns) for columns in rows], facts=facts)


def agreement(context: Context) -> Outcome:
    """The step: the test banks of all networks of a study but those whose run diverged."""
    folders = iter(context.parents.values())
    banks = {
        (str(spec), int(seed)): FeatureBank.load(next(folders) / "test.npz")
        for parent, (spec, seed) in zip(context.step.parents, context.config["models"], strict=True)
        if parent not in context.step.absent
    }
    return Outcome([context.row(**columns) for columns in likeness_rows(banks)] if banks else [])


def calibration_rows(spec: str, holdout: FeatureBank, test: FeatureBank) -> tuple[list[Columns], str]:
    """NLL, ECE, reliability on the test bank: as trained, and at the temperature that suits the holdout bank.

    Where no temperature is best, the rows of the second kind are missing, and the reason comes back with
    the rest; else it is empty. Raises RequestError for a bank without logits.
    """
    scores = {name: _log_probabilities(spec, bank) for name, bank in (("holdout", holdout), ("test", test))}
    rows = _calibration(scores["test"], test.labels, 1.0, "")
    try:
        temperature = fit_temperature(scores["holdout"], holdout.labels)
    except UndefinedError as error:
        return rows, str(error)
    rows.append(_columns("temperature", temperature, "ratio"))
    return rows + _calibration(scores["test"], test.labels, temperature, "_scaled"), ""


def likeness_rows(banks: Mapping[Network, FeatureBank]) -> list[Columns]:
    """How alike the predictions of networks and of ensembles are, and how good the ensembles.

    Every pair of networks; then, of the seeds that all objectives have, if two or more, each objective's
    ensemble, every pair of those, and the mixtures of two objectives (both ways to take halves, averaged).
    Raises RequestError for banks without logits or of different examples.
    """
    predictions, labels = _predictions(banks)
    rows = _pairs_of_networks(predictions, labels)
    objectives = list(dict.fromkeys(spec for spec, _ in predictions))
    seeds = sorted(set.intersection(*({s for o, s in predictions if o == spec} for spec in objectives)))
    if len(seeds) >= 2:
        votes = {spec: np.stack([predictions[spec, seed] for seed in seeds]) for spec in objectives}
        rows += _ensembles(votes, labels)
    return rows


def _calibration(scores: Any, labels: np.ndarray, temperature: float, suffix: str) -> list[Columns]:
    seen = CalibrationAccumulator().update_logits(scores, labels, temperature)
    rows = [
        _columns(f"nll{suffix}", seen.negative_log_likelihood(), "nats"),
        _columns(f"ece{suffix}", seen.expected_calibration_error(), "fraction"),
    ]
    for one in seen.reliability():
        layer = f"bin {round(one.upper * BINS)} of {BINS}"
        for metric, value in (
            ("share", one.examples / seen.examples),
            ("confidence", one.confidence),
            ("accuracy", one.accuracy),
        ):
            rows.append(_columns(f"reliability_{metric}{suffix}", value, "fraction", layer=layer))
    return rows


def _log_probabilities(spec: str, bank: FeatureBank) -> Any:
    """The bank's logits as its objective reads them (a sigmoid's are no softmax logits), in float64."""
    if bank.logits is None:
        raise RequestError("calibration needs logits; this bank holds features only")
    reader = objective(spec, num_features=1, num_classes=bank.logits.shape[1])
    return reader.log_probabilities(bank.logits.astype(np.float64))


def _predictions(
    banks: Mapping[Network, FeatureBank],
) -> tuple[dict[Network, np.ndarray], np.ndarray]:
    first, *others = banks.values()
    for network, bank in zip(list(banks)[1:], others, strict=True):
        if not (np.array_equal(bank.ids, first.ids) and np.array_equal(bank.labels, first.labels)):
            raise RequestError(f"'{network[0]}', seed {network[1]}, was measured on other examples")
    found = {}
    for network, bank in banks.items():
        if bank.logits is None:
            raise RequestError(f"'{network[0]}', seed {network[1]}: no predictions without logits")
        found[network] = bank.logits.argmax(1)
    return found, first.labels


def _pairs_of_networks(predictions: Mapping[Network, np.ndarray], labels: np.ndarray) -> list[Columns]:
    found = likeness.pairwise_agreement(predictions.values(), labels)
    rows = []
    for (i, (spec, seed)), (j, (spec_b, seed_b)) in itertools.combinations(enumerate(predictions), 2):
        pair = {"objective": spec, "seed": seed, "objective_b": spec_b, "seed_b": seed_b}
        rows += _shares(found.pair(i, j), pair)
    return rows


def _ensembles(votes: Mapping[str, np.ndarray], labels: np.ndarray) -> list[Columns]:
    models = len(next(iter(votes.values())))
    even = models - models % 2
    chosen = {spec: likeness.ensemble(predictions) for spec, predictions in votes.items()}
    rows = []
    for spec, predictions in votes.items():
        for count in sorted({even, models}):
            value = accuracy(likeness.ensemble(predictions[:count]), labels)
            rows.append(_ensemble(spec, spec, count, value))
    for spec, spec_b in itertools.combinations(votes, 2):
        halves = likeness.half_and_half(votes[spec][:even], votes[spec_b][:even])
        rows.append(_ensemble(spec, spec_b, even, sum(accuracy(one, labels) for one in halves) / 2))
        pair = {"objective": spec, "seed": None, "objective_b": spec_b, "layer": str(models)}
        rows += _shares(likeness.agreement(chosen[spec], chosen[spec_b], labels), pair)
    return rows


def _ensemble(spec: str, spec_b: str, models: int, value: float) -> Columns:
    pair = {"objective": spec, "seed": None, "objective_b": spec_b, "layer": str(models)}
    return _columns("ensemble_top1", value, "fraction", **pair)


def _shares(found: Any, pair: Columns) -> list[Columns]:
    """A row for each share that exists."""
    values = {name: getattr(found, name) for name in SHARES}
    return [
        _columns(f"agreement_{name}", value, "fraction", **pair)
        for name, value in values.items()
        if value is not None
    ]


def _columns(metric: str, value: float, unit: str, **columns: Any) -> Columns:
    return {"metric": metric, "value": value, "unit": unit, "split": "test", **columns}
