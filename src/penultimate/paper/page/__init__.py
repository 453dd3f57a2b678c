"""The page of a study beside Kornblith et al. (2021): the answer, the claims and the paper's sections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penultimate.paper.claims.followed import followed
from penultimate.paper.exhibits.better import LEADING as LEADING_BETTER
from penultimate.paper.exhibits.doses import LEADING as LEADING_DOSES
from penultimate.paper.page.full_size import COMMANDS
from penultimate.paper.page.glossary import OBJECTIVES, TERMS
from penultimate.paper.page.regime import compare, summary
from penultimate.paper.page.statements import headline, tally
from penultimate.paper.panels import SEPARATION, SEPARATION_IN_PAPER
from penultimate.paper.remarks import OF_DRAWS, OF_ONE_DRAW, remarks
from penultimate.report.measurements import Measurements
from penultimate.report.networks import USUAL_PAGE
from penultimate.report.page.study import CLAIMS, Section, StudyPage

TRANSFER, INSIDE, PREDICTS, CHOSEN = (
    "Does it transfer?",
    "What is inside?",
    "What does it predict?",
    "How was it chosen?",
)
"""The parts of the page, named by their questions."""
SECTIONS = {
    CLAIMS: Section("", "The claims", "Which of the paper's claims hold here?"),
    "3.1": Section(
        TRANSFER, "Accuracy and transfer", "Does a better classifier give features that transfer better?"
    ),
    "3.4": Section(TRANSFER, "Class separation and transfer", "Does separation cost transfer?"),
    "B": Section(TRANSFER, "A second architecture", "Does another architecture say the same?"),
    "D": Section(
        TRANSFER,
        "More on transfer",
        "Does transfer look the same task by task, during training and after fine-tuning?",
    ),
    "F": Section(TRANSFER, "Class overlap", "How far are the tasks' classes those of pretraining?"),
    "": Section(TRANSFER, "Beyond the paper", "What else was measured?"),
    "3.2": Section(INSIDE, "Layer by layer", "In which layers do objectives differ?"),
    "3.3": Section(INSIDE, "Class separation", "How far does each objective pull the classes apart?"),
    "E": Section(
        INSIDE,
        "More on class separation",
        "Does another measure of separation, or another recipe, say the same?",
    ),
    "C.1": Section(
        PREDICTS,
        "Training accuracy and learning curves",
        "Do objectives that fit worse do better on new images?",
    ),
    "C.2": Section(
        PREDICTS,
        "Robustness and calibration",
        "How do the networks bear other images, and can their probabilities be believed?",
    ),
    "C.3": Section(PREDICTS, "Similarity of predictions", "Do networks of one objective err alike?"),
    "C.4": Section(
        PREDICTS, "Combinations of objectives", "Do objectives that help alone help more together?"
    ),
    "C.5": Section(
        PREDICTS,
        "Augmentation and long training",
        "Do objectives still differ under stronger augmentation and longer training?",
    ),
    "A": Section(CHOSEN, "Training and tuning", "What was trained on what, and how was it chosen?"),
}
"""The sections of the page in order, by the paper's numbers; "" is a section that the paper does not have."""


def _beside_the_paper(measurements: Measurements) -> Mapping[str, Any]:
    return {"differences": compare(measurements), "regime_summary": summary(measurements)}


PAGE = StudyPage(
    USUAL_PAGE,
    SECTIONS,
    headline,
    OBJECTIVES,
    tuple(TERMS.items()),
    Path(__file__).with_name("paper.html"),
    _beside_the_paper,
    tally,
    remarks=remarks,
    rivals=(OF_DRAWS, OF_ONE_DRAW),
    leading=(LEADING_DOSES, LEADING_BETTER, (SEPARATION.name, SEPARATION_IN_PAPER.name)),
    at_full_size=COMMANDS,
    follows=followed,
)
