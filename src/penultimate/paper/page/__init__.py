"""The page of a study beside Kornblith et al. (2021): the answer, the claims and the paper's sections."""

from __future__ import annotations

from pathlib import Path

from penultimate.paper.page.answers import answer
from penultimate.paper.page.regime import regime_table
from penultimate.results.page import Page, Section
from penultimate.results.rows import Run

HERE = Path(__file__).parent
TRANSFER, INSIDE = "Does it transfer?", "What is inside?"
PREDICTS, CHOSEN = "What does it predict?", "How was it chosen?"
"""The parts of the page, named by their questions."""
SECTIONS = {
    "claims": ("The claims", "Which of the paper's claims hold here?", ""),
    "3.1": (
        "Accuracy and transfer",
        "Do better classifiers give features that transfer better?",
        TRANSFER,
    ),
    "3.4": ("Class separation and transfer", "Does separation cost transfer?", TRANSFER),
    "B": ("A second architecture", "Does another architecture say the same?", TRANSFER),
    "D": ("More on transfer", "Does transfer look the same task by task, and in training?", TRANSFER),
    "F": ("Class overlap", "How far are the tasks' classes those of pretraining?", TRANSFER),
    "": ("Beyond the paper", "What else was measured?", TRANSFER),
    "3.2": ("Layer by layer", "In which layers do objectives differ?", INSIDE),
    "3.3": ("Class separation", "How far does each objective pull the classes apart?", INSIDE),
    "E": ("More on class separation", "Does another measure, or another recipe, say the same?", INSIDE),
    "C.1": ("Learning curves", "Do objectives that fit worse do better on new images?", PREDICTS),
    "C.2": ("Robustness and calibration", "How do the networks bear other images?", PREDICTS),
    "C.3": ("Similarity of predictions", "Do networks of one objective err alike?", PREDICTS),
    "C.4": ("Combinations of objectives", "Do objectives that help alone help more together?", PREDICTS),
    "C.5": ("Augmentation and long training", "Do objectives still differ under both?", PREDICTS),
    "A": ("Training and tuning", "What was trained on what, and how was it chosen?", CHOSEN),
}
"""The sections of the page in order, by the paper's numbers; "" is a section that the paper does not have.

The exhibits of the paper's appendices, and those beyond the paper, are folded.
"""


def _before(run: Run) -> str:
    asked = (HERE / "asked.html").read_text(encoding="utf-8")
    return (
        '<section id="regime"><h2>The question, and how this study differs from the paper</h2>'
        f"<details><summary>What was asked</summary>{asked}</details>"
        f"<details><summary>Ours and the paper’s, setting by setting</summary>{regime_table(run)}</details>"
        "</section>"
    )


PAGE = Page(
    "usual",
    answer,
    {key: Section(*words, folded=not key or key[0].isupper()) for key, words in SECTIONS.items()},
    glossary=lambda run: (HERE / "glossary.html").read_text(encoding="utf-8"),
    before=_before,
    source=(
        "Published values: S. Kornblith, T. Chen, H. Lee, M. Norouzi, “Why Do Better Loss Functions Lead to"
        " Less Transferable Features?”, NeurIPS 2021, as printed."
    ),
)
