"""Errors on corrupted images, and accuracy on shifted test sets.

corrupted             makes some test images of the source under every corruption at every severity
hard                  chooses images that a small network outside the study gets wrong
robustness            measures a network's errors on these and its accuracy on other shifted images
published_robustness  the same on the published sets with ImageNet's classes: -V2, -A, -R, -Sketch, and -C
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.errors import PenultimateError
from penultimate.measures.accuracy import TOP1
from penultimate.measures.declaration import Head, Layers, Made, Pixels, Shifted, Yield
from penultimate.measures.inputs import Fact, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.data.images import Images
    from penultimate.networks.protocol import Network

LABELS = "labels.npy"
HARD = "hard"
"""The name of the split of images that the network outside the study gets wrong."""
SMALLEST = 8
"""The smallest shorter side, in pixels, for which corruptions are defined."""
OUTSIDE_OBJECTIVE, OUTSIDE_BACKBONE = "softmax", "glyphnet(width=8, features=128)"
OUTSIDE_RECIPE = {"epochs": 4, "learning_rate": 0.4, "warmup": 0.1, "augmentation": {"shift": 0}}
"""The network that chooses hard images, which is small and trained briefly."""
CORRUPTION_ERROR = Yield("corruption_error", "fraction", called="corruption error")
PUBLISHED = ("v2", "a", "r", "sketch")
OF_SOME_CLASSES = ("a", "r")
CORRUPTED = "c"


@register.measurement(
    version=1,
    per="draw",
    needs=(Pixels("test"),),
    yields=(),
    ranges={"per_class": Interval(1, closed="left")},
    stage=True,
    seconds=2.0,
)
def corrupted(inputs: Inputs, *, per_class: int = 2) -> Iterator[Fact]:
    """The first test images of each class under each corruption, as NAME.npy [severities n h w 3].

    Labels [n] are in labels.npy. Random numbers derive from the draw and the ids of the images. Corruptions
    are not made for images without colour, nor for images on disk, whose size differs between networks.
    """
    import numpy as np

    from penultimate.data.corruptions import BENCHMARK, SEVERITIES, corrupt

    test = inputs.images("test")
    chosen = test.subset(_first_of_each_class(test.labels, per_class))
    pixels = np.concatenate([batch.numpy() for batch, _ in chosen.batches(len(chosen))])
    height, width, channels = pixels.shape[1:]
    if channels != 3 or min(height, width) < SMALLEST:
        raise UndefinedError(
            f"corruptions are defined for colour images of {SMALLEST} pixels or more, and these have"
            f" {channels} channels and {height} x {width} pixels"
        )
    np.save(inputs.folder / LABELS, chosen.labels)
    for name in BENCHMARK:
        versions = [corrupt(pixels, name, severity, inputs.draw, chosen.ids) for severity in SEVERITIES]
        np.save(inputs.folder / f"{name}.npy", np.stack(versions))
    yield Fact("images", len(chosen))


@register.measurement(
    version=2,
    per="draw",
    needs=(Pixels("train"), Pixels("holdout"), Shifted("a")),
    yields=(),
    stage=True,
    seconds=17.0,
)
def hard(inputs: Inputs) -> Iterator[Fact]:
    """The fresh images that a small network, trained briefly on the source, gets wrong."""
    from penultimate.data.images import load_images, save_images
    from penultimate.features.extraction import predicted
    from penultimate.networks.trained import load_network
    from penultimate.training import Recipe, train

    pools = inputs.shifted()
    if not pools:
        raise UndefinedError(f"'{inputs.source}' has no images to choose hard ones from")
    result = train(
        OUTSIDE_OBJECTIVE,
        OUTSIDE_BACKBONE,
        inputs.images("train"),
        inputs.images("holdout"),
        Recipe(**OUTSIDE_RECIPE),
        0,
        inputs.folder,
    )
    if result.status != "done":
        raise PenultimateError(f"the network that chooses hard images diverged: {result.reason}")
    candidates = load_images(next(iter(pools.values())), "test")
    wrong = predicted(load_network(inputs.folder), candidates) != candidates.labels
    if not wrong.any():
        raise UndefinedError("the network that chooses hard images gets every candidate right")
    save_images(inputs.folder, HARD, candidates.subset(wrong))
    yield Fact("candidates", len(candidates))
    yield Fact("hard", int(wrong.sum()))


@register.measurement(
    version=1,
    per="network",
    needs=(
        Layers(),
        Head(),
        Made("corrupted", optional=True),
        Made("hard", optional=True),
        *(Shifted(name) for name in PUBLISHED),
    ),
    yields=(CORRUPTION_ERROR, TOP1),
    ranges={"per_class": Interval(1, closed="left")},
    seconds=2.0,
    paper="Kornblith et al., 2021, table C.2",
)
def robustness(inputs: Inputs, *, per_class: int = 2) -> Iterator[Number | Undefined]:
    """Errors by corruption and severity, and top-1 accuracy on each shifted set.

    On each set, predictions are made among the classes that occur in it, as for ImageNet-A. Sets that could
    not be made are named.
    """
    import numpy as np

    from penultimate.data.catalog import shifted
    from penultimate.data.images import load_images
    from penultimate.features.extraction import predicted
    from penultimate.metrics.accuracy import accuracy

    network = inputs.network
    missing = []
    images = inputs.made("corrupted")
    if images is not None and (images / LABELS).exists():
        yield from _corruption_errors(network, images)
    else:
        missing.append("corrupted images")
    hard_set = shifted(inputs.source).get("a")
    for name, folder in inputs.shifted().items():
        if name == hard_set:
            made = inputs.made("hard")
            if made is None or not (made / "manifest.json").exists():
                missing.append(name)
                continue
            chosen: Images = load_images(made, HARD)
        else:
            chosen = inputs.shown_in(folder, "test")
        answers = predicted(network, chosen, among=np.unique(chosen.labels))
        yield Number("top1", accuracy(answers, chosen.labels), "fraction", "test", target=name)
    if missing:
        yield Undefined(f"no {', no '.join(missing)}")


@register.measurement(
    version=1,
    per="network",
    needs=(Layers(), Head(), *(Shifted(name) for name in (*PUBLISHED, CORRUPTED))),
    yields=(CORRUPTION_ERROR, TOP1),
    paper="Kornblith et al., 2021, table C.2",
)
def published_robustness(inputs: Inputs) -> Iterator[Number | Undefined]:
    """Top-1 accuracy on each available set (among 200 classes on -A and -R), and errors on -C.

    The images of -C, published at 224 x 224 pixels, are shown whole. Only a batch of images is in memory,
    however large a set is. Missing sets are named.
    """
    import numpy as np

    from penultimate.data.corruptions import BENCHMARK, SEVERITIES
    from penultimate.data.disk.listed import LISTING, ListedSplits
    from penultimate.data.images import load_images
    from penultimate.features.extraction import predicted
    from penultimate.metrics.accuracy import accuracy

    network, there = inputs.network, inputs.shifted()
    names = {name: f"{inputs.source}_{name}" for name in (*PUBLISHED, CORRUPTED)}
    missing = [name for name in names.values() if name not in there]
    if len(missing) == len(names):
        raise UndefinedError(f"none of {', '.join(missing)} is there")

    def top1_on(shift: str) -> Callable[[str], float]:
        """Return the function that measures the accuracy on a split of a set; the files are listed once."""
        folder = there[names[shift]]
        listed = ListedSplits.of(folder) if (folder / LISTING).is_file() else None

        def top1(split: str) -> float:
            images: Images = (
                listed.images(split, network.preparation, inputs.workers)
                if listed
                else load_images(folder, split)
            )
            among = np.unique(images.labels) if shift in OF_SOME_CLASSES else None
            return accuracy(predicted(network, images, among=among), images.labels)

        return top1

    for shift in PUBLISHED:
        if names[shift] in there:
            yield Number("top1", top1_on(shift)("test"), "fraction", "test", target=names[shift])
    if names[CORRUPTED] in there:
        top1 = top1_on(CORRUPTED)
        for corruption, severity in itertools.product(BENCHMARK, SEVERITIES):
            yield _corruption_error(corruption, severity, 1 - top1(f"{corruption}/{severity}"))
    if missing:
        yield Undefined(f"no {', no '.join(missing)}")


def _corruption_errors(network: Network, folder: Path) -> Iterator[Number]:
    import numpy as np

    from penultimate.data.corruptions import BENCHMARK, SEVERITIES
    from penultimate.data.images import ImageSet
    from penultimate.features.extraction import predicted

    labels = np.load(folder / LABELS)
    for name in BENCHMARK:
        versions = np.load(folder / f"{name}.npy", mmap_mode="c")
        every = ImageSet(
            versions.reshape(-1, *versions.shape[2:]),
            np.tile(labels, len(SEVERITIES)),
            np.arange(len(SEVERITIES) * len(labels)),
            network.class_names,
        )
        wrong = (predicted(network, every) != every.labels).reshape(len(SEVERITIES), -1)
        for severity, share in zip(SEVERITIES, wrong.mean(1), strict=True):
            yield _corruption_error(name, severity, float(share))


def _corruption_error(corruption: str, severity: int, error: float) -> Number:
    setting: dict[str, str | int] = {"corruption": corruption, "severity": severity}
    return Number("corruption_error", error, "fraction", "test", setting=setting)


def _first_of_each_class(labels: np.ndarray, count: int) -> np.ndarray:
    """Return the ascending indices of the first `count` images of each class."""
    import numpy as np

    firsts = [np.flatnonzero(labels == label)[:count] for label in np.unique(labels)]
    return np.sort(np.concatenate(firsts))
