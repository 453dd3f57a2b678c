"""The classes that a network confuses most on a target, with small pictures of its mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Made, Pixels, Yield
from penultimate.measures.inputs import Arrays, Inputs
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.data.images import Images

SIDE = 72
"""The side of a picture in pixels."""
ARRAYS = (
    *("truth", "predicted", "counts", "of"),
    *("pictured", "thumbnails"),
    *("classes", "class_errors", "class_sizes"),
)
"""The arrays: for each pair its two classes, its count, and the number of images of the true class; for each
picture its pair and its pixels; for the classes with the highest error rates their names, errors and
sizes."""


@register.measurement(
    version=1,
    per="target",
    needs=(Made("probed"), Pixels("test")),
    yields=(Yield("confusions", "points", ARRAYS),),
    ranges={"pairs": Interval(1, 50, "both"), "pictures": Interval(0, 20, "both")},
    seconds=0.2,
)
def confusions(inputs: Inputs, *, pairs: int = 6, pictures: int = 4) -> Iterator[Arrays]:
    """The pairs of classes that the linear probe confuses most, and the classes with the most errors.

    For each pair the first few misclassified test images are kept as pictures.
    """
    import numpy as np

    folder = inputs.made("probed")
    file = None if folder is None else folder / "probe_predictions.npz"
    if file is None or not file.is_file():
        return
    with np.load(file, allow_pickle=False) as archive:
        ids, labels, predicted = (archive[name] for name in ("ids", "labels", "linear"))
    images = inputs.pictures("test")
    names = np.array(images.class_names)
    wrong = labels != predicted
    sizes, errors = Counter(labels.tolist()), Counter(labels[wrong].tolist())
    mistaken = Counter(zip(labels[wrong].tolist(), predicted[wrong].tolist(), strict=True))
    worst = sorted(mistaken, key=lambda pair: (-mistaken[pair], pair))[:pairs]
    hard = sorted(errors, key=lambda label: (-errors[label] / sizes[label], label))[:pairs]
    places = [
        (number, place)
        for number, (truth, taken) in enumerate(worst)
        for place in np.flatnonzero((labels == truth) & (predicted == taken))[:pictures].tolist()
    ]
    rows = {int(each): row for row, each in enumerate(images.ids)}
    yield Arrays(
        "confusions",
        {
            "truth": names[[truth for truth, _ in worst]],
            "predicted": names[[taken for _, taken in worst]],
            "counts": np.array([mistaken[pair] for pair in worst], np.int64),
            "of": np.array([sizes[truth] for truth, _ in worst], np.int64),
            "pictured": np.array([number for number, _ in places], np.int64),
            "thumbnails": _thumbnails(images, [rows[int(ids[place])] for _, place in places]),
            "classes": names[hard],
            "class_errors": np.array([errors[label] for label in hard], np.int64),
            "class_sizes": np.array([sizes[label] for label in hard], np.int64),
        },
        "test",
    )


def _thumbnails(images: Images, rows: list[int]) -> np.ndarray:
    """Return small pictures of the images at these indices, uint8 [n side side 3]."""
    import numpy as np
    from PIL import Image

    made = np.zeros((len(rows), SIDE, SIDE, 3), np.uint8)
    if not rows:
        return made
    ((batch, _),) = images.batches(len(rows), np.array(rows))
    for place, pixels in enumerate(batch.numpy()):
        picture = Image.fromarray(pixels if pixels.shape[-1] == 3 else pixels[..., 0]).convert("RGB")
        made[place] = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS))
    return made
