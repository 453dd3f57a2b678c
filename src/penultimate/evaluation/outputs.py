"""For which classes the outputs of networks that classify were taken, and what came of it, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penultimate.report.base import StudyResults
from penultimate.report.progress import whose


def order_of_classes(description: Mapping[str, Any]) -> str:
    """Return the order in which the source's classes were taken; "" where no network classifies its own."""
    from penultimate.data.readers.class_order import USUAL, called, shown  # late: it loads NumPy

    names = description.get("source_classes", ())
    source = description.get("source", "")
    if not names:
        return ""
    usual = called(names)
    if "class_order" in description.get("reading", {}).get(source, {}):
        how = "as was said"
    else:
        how = f"sorted {USUAL[usual]}" if usual else "as the data set has them"
    return (
        f"The networks' outputs were taken for the classes of {source} {how}: {shown(names)}."
        " --class-order says another order."
    )


def not_given(results: StudyResults) -> list[str]:
    """Return why networks have no accuracy as classifiers, though they were measured as such."""
    measured = {row.step for row in results.table.where(metric="top1")}
    told = []
    for step, reason in results.provenance.get("undefined", {}).items():
        if step.partition(".")[0] == "classifier" and step not in measured:
            told.append(f"As a classifier, {whose(results.provenance, step)} has no number: {reason}.")
    return told
