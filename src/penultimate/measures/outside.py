"""Images of none of the classes: how well a network's scores tell them from the source's test images."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Features, Made, Pixels, Yield
from penultimate.measures.inputs import Fact, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from penultimate.features.bank import FeatureBank

SCORES: Mapping[str, str] = {
    "msp": "maximum softmax probability",
    "mahalanobis": "Mahalanobis distance",
    "knn": "distance from the k-th neighbour",
}
"""The scores; the first needs a final layer for the source's classes."""
STAGE, KEPT = "outside_scores", "scores.npz"
"""The stage that scores the source's test images once for all outside sets, and the file that it leaves."""
DIGITS = 12
"""The number of digits by which a copy is named."""
NAMED = 3
"""The number of copies that a remark names."""
AREA = (
    "How well a score tells images of the source from images of other data: of one of each, how often the"
    " first has the higher score; 50 % by chance, 100 % at best"
)
PASSED = "The share of images of other data that score as high as 95 % of the source's test images do"


@register.measurement(
    version=2,
    per="network",
    needs=(Features("train"), Features("test")),
    yields=(),
    ranges={"k": Interval(1, closed="left")},
    stage=True,
    seconds=3.0,
    paper="Lee et al., 2018; Sun et al., 2022",
)
def outside_scores(inputs: Inputs, *, k: int = 50) -> Iterator[Fact]:
    """Scores of the source's test images, and what scores other images in the same way."""
    import numpy as np

    from penultimate.metrics.outside import Mahalanobis

    train, test = inputs.features("train"), inputs.features("test")
    made: dict[str, Any] = {}
    try:
        fitted = Mahalanobis(train.features, train.labels)
        made = {"whitening": fitted.whitening, "places": fitted.places}
    except UndefinedError as error:
        yield Fact("mahalanobis", str(error))
    for name in SCORES:
        with contextlib.suppress(UndefinedError):  # the measurement says why
            made[name] = _scored(name, train, test, k, made)
    np.savez(inputs.folder / KEPT, **made)


@register.measurement(
    version=2,
    per="outside",
    needs=(
        Made(STAGE),
        Features("train", of_source=True),
        Features("test"),
        Pixels("test"),
        Pixels("train", of_source=True),
        Pixels("test", of_source=True),
    ),
    yields=(
        Yield("outside_auroc", "fraction", better="high", words=f"{AREA}.", called="AUROC"),
        Yield("outside_auroc_low", "fraction", words="The lower end of the 95 % interval of the AUROC."),
        Yield("outside_auroc_high", "fraction", words="The upper end of the 95 % interval of the AUROC."),
        Yield("outside_fpr95", "fraction", better="low", words=f"{PASSED}.", called="FPR at 95 % TPR"),
        Yield("outside_fpr95_low", "fraction", words="The lower end of the 95 % interval of that share."),
        Yield("outside_fpr95_high", "fraction", words="The upper end of the 95 % interval of that share."),
        Yield(
            "outside_rank",
            "count",
            words="The number of directions in which features vary within classes, which the Mahalanobis"
            " distance takes.",
        ),
        Yield(
            "outside_copies",
            "count",
            words="The number of images that are left out because the source has the same ones.",
        ),
    ),
    ranges={"k": Interval(1, closed="left")},
    seconds=1.0,
    paper="Hendrycks and Gimpel, 2017; Lee et al., 2018; Sun et al., 2022",
)
def outside(inputs: Inputs, *, k: int = 50) -> Iterator[Number | Fact | Undefined]:
    """AUROC and FPR at 95 % TPR by which three scores tell a data set's test images from the source's.

    Inside images are the positives. The scores are the maximum softmax probability; minus the Mahalanobis
    distance from the class means of the training images, with one covariance for all classes; and minus the
    distance from the `k`-th nearest training image, features scaled to length 1 (the furthest, if there are
    fewer). Intervals are over images: DeLong's for the area, and for the rate Clopper and Pearson's, averaged
    over bootstrap samples of the threshold. Outside images that the source holds too, byte for byte, are left
    out.
    """
    import numpy as np

    from penultimate.metrics.auc import auc_interval
    from penultimate.metrics.outside import false_positive_rate

    train, bank = inputs.features("train", inputs.source), inputs.features("test", inputs.target)
    copies = _copies(inputs)
    kept = np.ones(len(bank), np.bool_)
    kept[list(copies)] = False
    yield Number("outside_copies", float(len(copies)), "count", "test")
    if copies:
        named = ", ".join(list(copies.values())[:NAMED]) + (", ..." if len(copies) > NAMED else "")
        told = f"{len(copies):,} of {len(bank):,} images are in '{inputs.source}' too, and left out: {named}"
        if not kept.any():
            raise UndefinedError(f"{told}; none remains")
        yield Fact("copies_of_source", list(copies.values()))
        yield Undefined(told)
    made = inputs.made(STAGE)
    assert made is not None  # because the stage is not optional
    with np.load(made / KEPT) as archive:
        own = {name: archive[name] for name in archive.files}
    if "places" in own:
        width, rank = own["whitening"].shape
        yield Number("outside_rank", float(rank), "count", "train")
        if rank < width:
            yield Fact("singular", f"{rank} of {width} directions vary within classes")
    reasons: dict[str, list[str]] = {}
    for name in SCORES:
        try:
            other = _scored(name, train, bank, k, own)[kept]
            both = np.concatenate([own[name], other])
            area = auc_interval(both, np.arange(len(both)) < len(own[name]))
        except UndefinedError as error:
            reasons.setdefault(str(error), []).append(SCORES[name])
            continue
        passed = false_positive_rate(own[name], other)
        for metric, found in (("outside_auroc", area), ("outside_fpr95", passed)):
            setting = {"score": name}
            yield Number(metric, found.value, "fraction", "test", setting=setting)
            yield Number(f"{metric}_low", found.low, "fraction", "test", setting=setting)
            yield Number(f"{metric}_high", found.high, "fraction", "test", setting=setting)
    for why, names in reasons.items():
        yield Undefined(f"{', '.join(names)}: {why}")


def _scored(
    name: str, train: FeatureBank, bank: FeatureBank, k: int, made: Mapping[str, npt.NDArray[Any]]
) -> npt.NDArray[np.float64]:
    """Return the scores of the images of a bank, higher for those that look inside."""
    if name == "msp":
        from penultimate.metrics.confidence import log_max_probability

        if bank.logits is None:
            raise UndefinedError("the network has no final layer for the source's classes")
        return log_max_probability(bank.logits)
    if name == "mahalanobis":
        from penultimate.metrics.outside import nearest_squared

        if "places" not in made:
            raise UndefinedError("the features of each class are constant on the training images")
        return -nearest_squared(bank.features, made["whitening"], made["places"])
    from penultimate.probes.kth import KthNeighbour

    return -KthNeighbour(train.features, min(k, len(train))).distances(bank.features)


def _copies(inputs: Inputs) -> dict[int, str]:
    """Return the rows of outside images that the source holds too, each with the beginning of its digest."""
    own = inputs.image_folder("test", inputs.target)
    theirs = {split: inputs.image_folder(split, inputs.source) for split in ("train", "test")}
    from penultimate.data.disk.listed import LISTING

    on_disk = {(folder / LISTING).is_file() for folder in (own, *theirs.values())}
    if on_disk == {True}:
        return _equal_files(own, theirs)
    if on_disk == {True, False}:  # files and drawn images have no bytes in common
        return {}
    known = {digest for split, folder in theirs.items() for digest in _digests(folder, split)}
    return {row: digest[:DIGITS] for row, digest in enumerate(_digests(own, "test")) if digest in known}


def _equal_files(own: Path, theirs: Mapping[str, Path]) -> dict[int, str]:
    from penultimate.data.disk.listed import ListedSplits
    from penultimate.data.readers.copies import exact_copies

    listing = ListedSplits.of(own).listing("test")
    # `exact_copies` knows splits by these names, and puts those of the first one first.
    others = {"validation": "test", "train": "train"}
    splits = {name: ListedSplits.of(theirs[split]).listing(split) for name, split in others.items()}
    found = exact_copies({"test": listing, **splits})
    rows = sorted(
        row
        for group in found.groups
        if {split for split, _ in group} != {"test"}
        for split, row in group
        if split == "test"
    )
    return {row: f"{listing.digest_of(row).hex()[:DIGITS]} ('{listing.name(row)}')" for row in rows}


def _digests(folder: Path, split: str) -> list[str]:
    """Return the sha256 of the pixels of each image that the package drew."""
    import hashlib

    from penultimate.data.images import load_images

    return [hashlib.sha256(image.tobytes()).hexdigest() for image in load_images(folder, split).images]
