"""Tasks whose images come in groups, such as patients: their groups, and what the page says of them."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.errors import counted
from penultimate.report.measurements import Measurements
from penultimate.report.text import listed

UNITS = (
    "Whole groups are drawn and tested, because images of one group are not independent: intervals of"
    " accuracies count as many images as would be as certain (Korn and Graubard), tests flip the signs of"
    " whole groups, ranks come from draws of groups (the cluster bootstrap), and areas under ROC curves have"
    " the variance of groups (Obuchowski). Other intervals on this page, and the choice of the probes'"
    " strengths, treat each image as independent."
)


def _tasks(measurements: Measurements) -> tuple[str, ...]:
    return (*measurements.targets, *measurements.several_labels)


def _count(measurements: Measurements, metric: str, split: str, task: str) -> int:
    return next((int(row.value) for row in measurements.rows(metric, split, task)), 0)


def grouping_notes(measurements: Measurements) -> list[str]:
    """Return how the images of each task are grouped, and what that changes."""
    told = [
        f"{card(task).title} in {counted(groups, 'group')} of test images"
        for task in _tasks(measurements)
        if (groups := _count(measurements, "groups", "test", task))
    ]
    return [f"Images come in groups: {listed(told)}. {UNITS}"] if told else []


def leaks(measurements: Measurements) -> list[str]:
    """Return a sentence for each task whose own split has groups in training and in test."""
    said = []
    for task in _tasks(measurements):
        shared = _count(measurements, "crossing_groups", "test", task)
        if not shared:
            continue
        groups = _count(measurements, "groups", "test", task)
        images = _count(measurements, "crossing_images", "test", task)
        said.append(
            f"The split of {card(task).title} parts groups: {shared:,} of {counted(groups, 'group')} of test"
            f" images {'is' if shared == 1 else 'are'} in training too, with {counted(images, 'test image')};"
            " accuracies may be too high for images of new groups."
        )
    return said
