"""Figure E.4: class separation over training, on the training and on the test images."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Exhibit, Figure, Panel, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.evolution import Path, Run, lines, path_panel, paths
from penultimate.report.exhibits.measurements import Measurements, admit_compared

SPLITS = {"train": "Training images", "test": "Test images"}
PUBLISHED = (
    "The paper's figure is not tabulated (a network an objective, every 8 epochs). It says: the differences"
    " are there early and their order changes little; softmax's separation of the training images peaks at"
    " epoch 32 and then falls, while every other objective's is highest at the end."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    found = {split: paths(measurements, "class_separation", split) for split in SPLITS}
    panels = tuple(_panel(measurements, split, own) for split, own in found.items() if own)
    drawn = max(found.values(), key=len)
    figure = Figure(
        "figureE4",
        "Class separation over training",
        "Lines of class separation over the epochs of training, on training and on test images.",
        panels,
        legend=True,
    )
    return Exhibit(
        "figureE4",
        "When do the classes come apart?",
        "Class separation R² of the penultimate features, of the averaged weights that were kept during"
        " training, on 5,120 images of each split (or all there are). "
        f"{lines(drawn)}",
        figures=(figure,) if panels else (),
        notes=(
            *(() if panels else (not_measured("Class separation over training"),)),
            PUBLISHED,
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )


def _panel(measurements: Measurements, split: str, found: dict[Run, Path]) -> Panel:
    title = f"{SPLITS[split]} of {card(measurements.source).title}"
    return path_panel(
        measurements,
        found,
        f"figureE4-{split}",
        (title, "Epoch", "Class separation R²"),
        unit="",
        decimals=3,
        early=0.0,
    )
