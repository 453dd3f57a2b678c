"""Sentences on the assumed class order of classifying networks' outputs, and on missing accuracies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penultimate.errors import as_sentence
from penultimate.report.base import StudyResults
from penultimate.report.progress import whose


def order_of_classes(description: Mapping[str, Any]) -> str:
    """Return a sentence on the order of the source's classes; empty if no network classifies them."""
    from penultimate.data.readers.class_order import USUAL, called, shown  # late: it loads NumPy

    names = description.get("source_classes", ())
    source = description.get("source", "")
    if not names:
        return ""
    usual = called(names)
    if "class_order" in description.get("reading", {}).get(source, {}):
        how = "as you gave them"
    else:
        how = f"sorted {USUAL[usual]}" if usual else "as the data set has them"
    return (
        f"The networks' outputs were taken for the classes of {source} {how}: {shown(names)}."
        " --class-order gives another order."
    )


def not_given(results: StudyResults) -> list[str]:
    """Return the reasons for which networks have no accuracy as classifiers."""
    measured = {row.step for row in results.table.where(metric="top1")}
    told = []
    for step, reason in results.provenance.get("undefined", {}).items():
        if step.partition(".")[0] == "classifier" and step not in measured:
            whom = whose(results.provenance, step)
            told.append(as_sentence(f"As a classifier, {whom} has no number: {reason}"))
    return told
