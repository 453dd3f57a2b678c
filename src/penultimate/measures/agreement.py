"""How similar the predictions of networks and of their ensembles are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from penultimate.errors import RequestError
from penultimate.measures.declaration import ClassOrder, Logits, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.networks.key import NetworkKey
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.features.bank import FeatureBank
    from penultimate.metrics.agreement import Agreement

SHARES = {
    "same": "equal predictions",
    "both_right_or_wrong": "agreement on what is right",
    "same_when_both_wrong": "equal mistakes",
}
"""The paper's three measures of agreement between predictions."""
AGREEMENTS = tuple(Yield(f"agreement_{share}", "fraction", called=called) for share, called in SHARES.items())


@register.measurement(
    version=1,
    per="study",
    needs=(Logits("test", common=True), ClassOrder()),
    yields=(*AGREEMENTS, Yield("ensemble_top1", "fraction", called="accuracy of ensembles")),
    seconds=0.4,
    paper="Kornblith et al., 2021, figures C.4 to C.7",
)
def agreement(inputs: Inputs) -> Iterator[Number]:
    """How similar the predictions of every two networks are, and of every two objectives' ensembles.

    All networks see the same test images. If all objectives share two or more seeds, the ensembles over these
    seeds are measured: each objective's ensemble, every pair of ensembles, and the mixtures of two objectives
    (averaged over both ways to choose the halves).
    """
    import numpy as np

    predictions, labels = _predictions(inputs.all_features("test"))
    yield from _pairs(predictions, labels)
    objectives = list(dict.fromkeys(key.objective for key in predictions if key.seed is not None))
    by_seed = {(key.objective, key.seed): votes for key, votes in predictions.items() if key.seed is not None}
    of_each = [{seed for name, seed in by_seed if name == objective} for objective in objectives]
    seeds = sorted(set.intersection(*of_each)) if of_each else []
    if len(seeds) >= 2:
        of_all = {
            key.objective: NetworkKey(key.objective, key.backbone) for key in predictions if key.backbone
        }
        stacked = {of_all[name]: np.stack([by_seed[name, seed] for seed in seeds]) for name in objectives}
        yield from _ensembles(stacked, labels)


@register.measurement(
    version=1,
    per="pair",
    needs=(Logits("test", common=True), ClassOrder()),
    yields=AGREEMENTS,
    seconds=0.1,
    paper="Kornblith et al., 2021, figures C.4 and C.5",
)
def pair_agreement(inputs: Inputs) -> Iterator[Number]:
    """How similar two networks' predictions of the source's classes are, on the same test images.

    Pairs are measured one by one, so that a further network costs only its own pairs.
    """
    yield from _pairs(*_predictions(inputs.all_features("test")))


def _predictions(banks: Mapping[NetworkKey, FeatureBank]) -> tuple[dict[NetworkKey, np.ndarray], np.ndarray]:
    import numpy as np

    predictions, labels = {}, np.zeros(0, np.int64)
    first = next(iter(banks.values()), None)
    for key, bank in banks.items():
        assert first is not None
        assert first.ids is not None
        assert bank.ids is not None
        labels = first.labels
        if not (np.array_equal(bank.ids, first.ids) and np.array_equal(bank.labels, labels)):
            raise RequestError(f"'{key}' was measured on other examples than the first network")
        predictions[key] = bank.predictions
    return predictions, labels


def _pairs(predictions: Mapping[NetworkKey, np.ndarray], labels: np.ndarray) -> Iterator[Number]:
    from penultimate.metrics.agreement import pairwise_agreement

    if not predictions:
        return
    found = pairwise_agreement(predictions.values(), labels)
    for (i, key), (j, other) in itertools.combinations(enumerate(predictions), 2):
        yield from _shares(found.pair(i, j), key, other)


def _ensembles(votes: Mapping[NetworkKey, np.ndarray], labels: np.ndarray) -> Iterator[Number]:
    """Yield the accuracy of each objective's ensemble and of the mixtures of two, and how similar they are.

    An ensemble is named by a key without a seed.
    """
    from penultimate.metrics.accuracy import accuracy
    from penultimate.metrics.agreement import agreement as compare
    from penultimate.metrics.agreement import ensemble, half_and_half

    def number(key: NetworkKey, other: NetworkKey, count: int, value: float) -> Number:
        setting = {"models": count}
        return Number("ensemble_top1", value, "fraction", "test", None, setting, network=key, other=other)

    models = len(next(iter(votes.values())))
    even = models - models % 2
    elected = {key: ensemble(predictions) for key, predictions in votes.items()}
    for key, predictions in votes.items():
        for count in sorted({even, models}):
            yield number(key, key, count, accuracy(ensemble(predictions[:count]), labels))
    for key, other in itertools.combinations(votes, 2):
        halves = half_and_half(votes[key][:even], votes[other][:even])
        yield number(key, other, even, sum(accuracy(half, labels) for half in halves) / 2)
        yield from _shares(compare(elected[key], elected[other], labels), key, other, {"models": models})


def _shares(
    found: Agreement, key: NetworkKey, other: NetworkKey, setting: Mapping[str, int] | None = None
) -> Iterator[Number]:
    """Yield a number for each share that is defined."""
    for share in SHARES:
        value, metric = getattr(found, share), f"agreement_{share}"
        if value is not None:
            yield Number(metric, value, "fraction", "test", None, setting or {}, network=key, other=other)
