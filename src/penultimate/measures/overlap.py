"""How much the classes of a target overlap with the source's, by name and by the network's predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penultimate.measures.declaration import ClassNames, Logits, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register


@register.measurement(
    version=1,
    per="target",
    needs=(Logits("train"), Logits("test"), ClassNames()),
    yields=(
        Yield("assignment_accuracy", "fraction", called="accuracy as assigned"),
        Yield("assignment_copies", "count"),
        Yield("semantic_overlap", "count"),
    ),
    seconds=0.05,
    paper="Kornblith et al., 2021, appendix F",
)
def overlap(inputs: Inputs) -> Iterator[Number]:
    """Accuracy when source classes are assigned to the target's on training images; shared class names."""
    from penultimate.data.readers.counterparts import imagenet_counterparts
    from penultimate.metrics.source_classes import class_assignment, semantic_overlap

    assignment = None
    for split in ("train", "test"):
        bank = inputs.features(split)
        predictions = bank.predictions
        assignment = assignment or class_assignment(predictions, bank.labels)
        yield Number("assignment_accuracy", assignment.score(predictions, bank.labels), "fraction", split)
    assert assignment is not None
    yield Number("assignment_copies", assignment.copies, "count", "train")
    names, source = inputs.class_names(inputs.target), inputs.class_names(inputs.source)
    told = as_they_are_there(inputs.counterparts, names, imagenet_counterparts(inputs.target))
    yield Number("semantic_overlap", semantic_overlap(names, source, told), "count", "train")


def as_they_are_there(
    counterparts: Mapping[str, Sequence[str]], names: Sequence[str], published: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    """Return counterparts under the names that a copy of a data set has for its classes.

    Copies differ in hyphens and apostrophes, and a part of a published data set may lack some of its classes.

    >>> as_they_are_there({"Red-breasted Merganser": ["n02006656"], "Dunlin": []}, ["Red breasted Merganser"],
    ...                   {"Dunlin": []})
    {'Red breasted Merganser': ['n02006656']}
    """
    there = {_letters(name): name for name in names}
    found = {there.get(_letters(name), name): told for name, told in counterparts.items()}
    return {name: told for name, told in found.items() if name in names or name not in published}


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold() or name
