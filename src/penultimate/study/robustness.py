"""The steps of robustness: images made once for all networks of a draw, and what each network does with them.

corrupted   some test images of the source under every corruption at every severity
hard        images that a small network outside the study gets wrong
robustness  a network's errors on the first, its accuracies on the second and on the other shifted sets
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.errors import PenultimateError
from penultimate.metrics import UndefinedError
from penultimate.study.context import Context, Outcome
from penultimate.table import Row

if TYPE_CHECKING:
    import numpy as np

    from penultimate.data.images import ImageSet
    from penultimate.training.network import Network

LABELS = "labels.npy"
HARD = "hard"
"""The split of the images that the network outside the study gets wrong."""
SMALLEST = 8
"""Pixels of the shorter side from which on corruptions are defined."""


def corrupted(context: Context) -> Outcome:
    """The first test images of each class under each corruption, as NAME.npy [severities n h w 3].

    Labels [n] are in labels.npy. Random numbers derive from the draw and the images' ids. There are none of
    images that are not in colour.
    """
    import numpy as np

    from penultimate.data.corruptions import BENCHMARK, SEVERITIES, corrupt
    from penultimate.data.images import load_images

    test = load_images(context.parents["data"], "test")
    height, width, channels = test.images.shape[1:]
    if channels != 3 or min(height, width) < SMALLEST:
        raise UndefinedError(
            f"corruptions are defined for colour images of {SMALLEST} pixels or more, and these have"
            f" {channels} channels and {height} x {width} pixels"
        )
    chosen = test.subset(_first_of_each_class(test.labels, context.config["per_class"]))
    pixels = np.ascontiguousarray(chosen.images)
    np.save(context.folder / LABELS, chosen.labels)
    for name in BENCHMARK:
        versions = [
            corrupt(pixels, name, severity, context.config["draw"], chosen.ids) for severity in SEVERITIES
        ]
        np.save(context.folder / f"{name}.npy", np.stack(versions))
    return Outcome([], facts={"images": len(chosen)})


def hard(context: Context) -> Outcome:
    """A small network is trained briefly on the source; of fresh images those stay that it gets wrong."""
    from penultimate.data.images import load_images, save_images
    from penultimate.training import Recipe, load_network, train

    source, pool = context.parents.values()
    config = context.config
    result = train(
        config["objective"],
        config["backbone"],
        load_images(source, "train"),
        load_images(source, "holdout"),
        Recipe(**config["recipe"]),
        config["seed"],
        context.folder,
    )
    if result.status != "done":
        raise PenultimateError(f"the network that chooses hard images diverged: {result.reason}")
    candidates = load_images(pool, "test")
    wrong = _predictions(load_network(context.folder), candidates) != candidates.labels
    if not wrong.any():
        raise UndefinedError("the network that chooses hard images gets every candidate right")
    save_images(context.folder, HARD, candidates.subset(wrong))
    return Outcome([], facts={"candidates": len(candidates), "hard": int(wrong.sum())})


def robustness(context: Context) -> Outcome:
    """Errors by corruption and severity (column layer: "fog 3"), top-1 accuracy on each shifted set.

    Hard images are answered with the classes that they show, as ImageNet-A is. A set that could not be made
    leaves no row, and is named.
    """
    from penultimate.data.images import load_images, read_manifest
    from penultimate.training import load_network

    trained, made, *others = context.parents.values()
    network = load_network(trained)
    rows, missing = [], []
    if (made / LABELS).exists():
        rows += _corruption_errors(context, network, made)
    else:
        missing.append("corrupted images")
    for folder, target in zip(others, context.config["shifted"], strict=True):
        if not (folder / "manifest.json").exists():
            missing.append(target)
            continue
        split = HARD if HARD in read_manifest(folder)["splits"] else "test"
        value = _accuracy(network, load_images(folder, split))
        rows.append(context.row("top1", value, "fraction", target=target, split="test"))
    return Outcome(rows, facts={"undefined": f"no {', no '.join(missing)}"} if missing else {})


def _corruption_errors(context: Context, network: Network, made: Path) -> list[Row]:
    import numpy as np

    from penultimate.data.corruptions import BENCHMARK, SEVERITIES
    from penultimate.data.images import ImageSet

    labels = np.load(made / LABELS)
    names = network.class_names
    rows = []
    for name in BENCHMARK:
        images = np.load(made / f"{name}.npy", mmap_mode="c")
        every = ImageSet(
            images.reshape(-1, *images.shape[2:]),
            np.tile(labels, len(SEVERITIES)),
            np.arange(len(SEVERITIES) * len(labels)),
            names,
        )
        wrong = (_predictions(network, every) != every.labels).reshape(len(SEVERITIES), -1)
        for severity, share in zip(SEVERITIES, wrong.mean(1), strict=True):
            about: dict[str, Any] = {"split": "test", "layer": f"{name} {severity}"}
            rows.append(context.row("corruption_error", float(share), "fraction", **about))
    return rows


def _logits(network: Network, images: ImageSet) -> np.ndarray:
    from penultimate.extraction import extract

    logits = extract(network, images).logits
    assert logits is not None
    return logits


def _predictions(network: Network, images: ImageSet) -> np.ndarray:
    found: np.ndarray = _logits(network, images).argmax(1)
    return found


def _accuracy(network: Network, images: ImageSet) -> float:
    import numpy as np

    from penultimate.metrics.accuracy import subset_accuracy

    return subset_accuracy(_logits(network, images), images.labels, np.unique(images.labels))


def _first_of_each_class(labels: np.ndarray, count: int) -> np.ndarray:
    """The positions of the first `count` images of each class, in the order in which they stand."""
    import numpy as np

    firsts = [np.flatnonzero(labels == label)[:count] for label in np.unique(labels)]
    return np.sort(np.concatenate(firsts))
