"""Transfer from few labels: two closed-form probes on one to twenty images a class, and on shares of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.features.bank import FeatureBank

PROBES = {
    "ridge": "ridge regression on the classes, its penalty chosen by leaving one training image out",
    "centroid": "the nearest mean of a class",
}
"""The probes by the word in their metrics, with what they are."""


@register.measurement(
    version=1,
    per="target",
    needs=(Features("train"), Features("test")),
    yields=(
        *(
            Yield(
                f"few_{probe}_{accuracy}",
                "fraction",
                better="high",
                words=f"Transfer from a few training images a class: {told}. The mean over episodes,"
                " which are the same for every network.",
                called="transfer from few labels",
            )
            for probe, told in PROBES.items()
            for accuracy in ("top1", "mean_per_class")
        ),
        Yield(
            "few_labels_curve",
            "points",
            {
                "sizes": "text sizes",
                "images": "whole sizes",
                **dict.fromkeys(("ridge", "centroid"), "share sizes episodes"),
                **dict.fromkeys(("ridge_hits", "centroid_hits"), "share sizes images_tested"),
                "labels": "whole images_tested",
                "digest": "text 1",
            },
            words="The accuracy of each episode, and how many episodes get each test image right.",
        ),
    ),
    ranges={
        "shots": Interval(1, closed="left"),
        "percent": Interval(1, 100, "both"),
        "episodes": Interval(1, 1000, "both"),
        "seed": Interval(0, 2**63, "left"),
    },
    seconds=0.7,
    paper="Galanti, György and Hutter, ICLR 2022",
)
def few_labels(
    inputs: Inputs,
    *,
    shots: tuple[int, ...] = (1, 2, 5, 10, 20),
    percent: tuple[int, ...] = (1, 3, 10, 30, 100),
    episodes: int = 10,
    seed: int = 0,
) -> Iterator[Number | Arrays | Fact]:
    """Test accuracy of two closed-form probes that learn from few images a class, over episodes.

    Episodes depend on the target, its labels and the seed alone, so that networks are compared on the same
    ones. A class that has fewer images than are asked for gives all of them; a size that would take all
    images of every class is measured as 100 percent alone.
    """
    import numpy as np

    from penultimate.probes.episodes import digest_of, episode_order, sizes_of

    train, test = inputs.features("train"), inputs.features("test")
    classes, codes = np.unique(train.labels, return_inverse=True)
    _expect_learnable(train, len(classes))
    counts = np.bincount(codes)
    sizes, notes = sizes_of(shots, percent, counts)
    yield Fact("notes", notes)
    if not sizes:
        raise UndefinedError(
            f"every size takes all {len(codes)} training images, and 100 percent is not asked for"
        )
    orders = [episode_order(codes, inputs.target, seed, each, train.ids) for each in range(episodes)]
    weights = _weights(test.labels, inputs.accuracy)
    accuracies = {probe: np.full((len(sizes), episodes), np.nan, np.float32) for probe in PROBES}
    hits = {probe: np.empty((len(sizes), len(test)), np.float32) for probe in PROBES}
    for place, size in enumerate(sizes):
        given = size.of(counts)
        needed = orders[:1] if given.sum() == len(codes) else orders
        for probe, right in _right(
            train.features, test, codes, classes, [each < given[codes] for each in needed]
        ):
            of_episodes = right @ weights
            accuracies[probe][place, : len(right)] = of_episodes
            hits[probe][place] = right.mean(0)
            value, metric = float(of_episodes.mean()), f"few_{probe}_{inputs.accuracy}"
            yield Number(metric, value, "fraction", "test", setting=size.setting)
    digest = digest_of(orders, train.labels)
    yield Fact("episodes", digest)
    arrays = {
        "sizes": np.array([f"{size.kind}={size.value}" for size in sizes]),
        "images": np.array([int(size.of(counts).sum()) for size in sizes]),
        **accuracies,
        **{f"{probe}_hits": of_probe for probe, of_probe in hits.items()},
        "labels": test.labels,
        "digest": np.array([digest]),
    }
    yield Arrays("few_labels_curve", arrays, "test")


def _right(
    features: np.ndarray,
    test: FeatureBank,
    codes: np.ndarray,
    classes: np.ndarray,
    learnt_from: Sequence[np.ndarray],
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each probe, and whether it gets each test image right after learning from each mask."""
    import numpy as np

    from penultimate.metrics.blocks import ELEMENTS
    from penultimate.probes.closed_form import nearest_centroid, ridge

    rows = max(1, ELEMENTS["cpu"] // test.features.shape[1])
    for probe, fit in {"ridge": ridge, "centroid": nearest_centroid}.items():
        rules = [fit(features[mask], codes[mask], len(classes)) for mask in learnt_from]
        right = np.empty((len(rules), len(test)), bool)
        for start in range(0, len(test), rows):
            block = np.asarray(test.features[start : start + rows], np.float64)
            truth = test.labels[start : start + rows]
            for place, rule in enumerate(rules):
                right[place, start : start + rows] = classes[rule.predict(block)] == truth
        yield probe, right


def _weights(labels: np.ndarray, accuracy: str) -> np.ndarray:
    """Return the weight of each test image [n] in an accuracy: equal, or equal for each class."""
    import numpy as np

    if accuracy != "mean_per_class":
        return np.full(len(labels), 1 / len(labels))
    present, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray(1 / (len(present) * counts[codes]))


def _expect_learnable(train: FeatureBank, classes: int) -> None:
    """Raise UndefinedError for a single class, and for features that are the same for all images."""
    if classes < 2:
        raise UndefinedError("probes of few labels need two classes or more; the training images are of one")
    if bool((train.features == train.features[0]).all()):
        raise UndefinedError("all training images have the same features, which tell no class from another")
