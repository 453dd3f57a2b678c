"""How much the classes of a target overlap with the source's, by name and by the network's predictions."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import ClassNames, Logits, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register


@register.measurement(
    version=1,
    per="target",
    needs=(Logits("train"), Logits("test"), ClassNames()),
    yields=(
        Yield(
            "assignment_accuracy",
            "fraction",
            better="high",
            words="The accuracy on a task of the pretraining classes that stand for its own.",
            called="accuracy as assigned",
        ),
        Yield(
            "assignment_copies",
            "count",
            words="How many of a task's classes are stood for by a pretraining class that stands for"
            " another as well.",
        ),
        Yield(
            "semantic_overlap",
            "count",
            words="How many of a task's classes are among those of pretraining, by name.",
        ),
    ),
    seconds=0.05,
    paper="Kornblith et al., 2021, appendix F",
)
def overlap(inputs: Inputs) -> Iterator[Number]:
    """Accuracy when source classes are assigned to the target's on training images; shared class names."""
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
    yield Number("semantic_overlap", semantic_overlap(names, source, inputs.counterparts), "count", "train")
