"""Transfer from few labels: two closed-form probes on one to twenty images a class, and on shares of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, accuracies
from penultimate.measures.inputs import Fact, Inputs, Number
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.features.bank import FeatureBank

PROBES = ("ridge", "centroid")
"""Ridge regression on the classes, its penalty chosen by leaving one image out; the nearest class mean."""
CALLED = "transfer from few labels"


@register.measurement(
    version=1,
    per="target",
    needs=(Features("train"), Features("test")),
    yields=tuple(each for probe in PROBES for each in accuracies(f"few_{probe}", CALLED)),
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
) -> Iterator[Number | Fact]:
    """Test accuracy of two closed-form probes that learn from few images a class, over episodes.

    Episodes depend on the target, its labels and the seed alone, so that networks are compared on the same
    ones. A class that has fewer images than are asked for gives all of them; a size that would take all
    images of every class is measured as 100 percent alone.
    """
    import numpy as np

    from penultimate.probes.episodes import digest_of, episode_order, sizes_of

    train, test = inputs.features("train"), inputs.features("test")
    classes, codes = np.unique(train.labels, return_inverse=True)
    if len(classes) < 2 or bool((train.features == train.features[0]).all()):
        raise UndefinedError("probes of few labels need two classes or more, and features that differ")
    counts = np.bincount(codes)
    sizes, notes = sizes_of(shots, percent, counts)
    yield Fact("notes", notes)
    if not sizes:
        raise UndefinedError(
            f"every size takes all {len(codes)} training images, and 100 percent is not asked for"
        )
    orders = [episode_order(codes, inputs.target, seed, each, train.ids) for each in range(episodes)]
    yield Fact("episodes", digest_of(orders, train.labels))
    for size in sizes:
        given = size.of(counts)
        needed = orders[:1] if given.sum() == len(codes) else orders
        masks = [each < given[codes] for each in needed]
        for probe, scores in _scores(train.features, test, codes, classes, masks, inputs.accuracy):
            metric = f"few_{probe}_{inputs.accuracy}"
            yield Number(metric, float(np.mean(scores)), "fraction", "test", setting=size.setting)


def _scores(
    features: np.ndarray,
    test: FeatureBank,
    codes: np.ndarray,
    classes: np.ndarray,
    learnt_from: Sequence[np.ndarray],
    accuracy: str,
) -> Iterator[tuple[str, list[float]]]:
    """Yield each probe, and its accuracy on the test images after learning from each mask."""
    import numpy as np

    from penultimate.metrics.inputs import BLOCK_ELEMENTS
    from penultimate.probes.closed_form import nearest_centroid, ridge
    from penultimate.probes.estimator import accuracy_of

    rows = max(1, BLOCK_ELEMENTS["cpu"] // test.features.shape[1])
    for probe, fit in zip(PROBES, (ridge, nearest_centroid), strict=True):
        rules = [fit(features[mask], codes[mask], len(classes)) for mask in learnt_from]
        predicted = np.empty((len(rules), len(test)), np.int64)
        for start in range(0, len(test), rows):
            block = np.asarray(test.features[start : start + rows], np.float64)
            for place, rule in enumerate(rules):
                predicted[place, start : start + rows] = classes[rule.predict(block)]
        yield probe, [accuracy_of(accuracy)(each, test.labels) for each in predicted]
