"""The page's sections: what each is called, what it asks, and the exhibits that stand in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penultimate.report.base import Built

CLAIMS = "claims"
"""The exhibit, and the section of its own, that stands before the paper's."""
SECTIONS = {
    CLAIMS: "The claims",
    "3.1": "Accuracy and transfer",
    "3.2": "Layer by layer",
    "3.3": "Class separation",
    "3.4": "Class separation and transfer",
    "A": "Training and tuning",
    "B": "A second architecture",
    "C.1": "Training accuracy and learning curves",
    "C.2": "Robustness and calibration",
    "C.3": "Similarity of predictions",
    "C.4": "Combinations of objectives",
    "C.5": "Augmentation and long training",
    "D": "More on transfer",
    "E": "More on class separation",
    "F": "Class overlap",
    "": "Beyond the paper",
}
"""What the page calls the paper's sections; one that has no name here is called by its number."""
QUESTIONS = {
    CLAIMS: "Which of the paper's claims hold here?",
    "3.1": "Does a better classifier give features that transfer better?",
    "3.2": "In which layers do objectives differ?",
    "3.3": "How far does each objective pull the classes apart?",
    "3.4": "Does separation cost transfer?",
    "A": "What was trained on what, and how was it chosen?",
    "B": "Does another architecture say the same?",
    "C.1": "Do objectives that fit worse do better on new images?",
    "C.2": "How do the networks bear other images, and can their probabilities be believed?",
    "C.3": "Do networks of one objective err alike?",
    "C.4": "Do objectives that help alone help more together?",
    "C.5": "Do objectives still differ under stronger augmentation and longer training?",
    "D": "Does transfer look the same task by task, during training and after fine-tuning?",
    "E": "Does another measure of separation, or another recipe, say the same?",
    "F": "How far are the tasks' classes those of pretraining?",
    "": "What else was measured?",
}
"""What each section asks."""


@dataclass(frozen=True)
class Chapter:
    """The exhibits of a section of the paper, in its order; "" is what the paper does not have."""

    section: str
    exhibits: tuple[Built, ...]

    @property
    def title(self) -> str:
        """What the page calls it."""
        return SECTIONS.get(self.section, f"Section {self.section}")

    @property
    def question(self) -> str:
        """What it asks; "" of a section that has no name here."""
        return QUESTIONS.get(self.section, "")

    @property
    def place(self) -> str:
        """Where it stands in the paper.

        >>> Chapter("3.1", ()).place, Chapter("C.2", ()).place, Chapter("claims", ()).place
        ('The paper, section 3.1', 'The paper, appendix C.2', '')
        """
        kind = "section" if self.is_of_the_body else "appendix"
        return f"The paper, {kind} {self.section}" if self.section not in ("", CLAIMS) else ""

    @property
    def is_of_the_body(self) -> bool:
        """Whether it is of the paper's numbered sections, which are printed."""
        return self.section[:1].isdigit()

    @property
    def anchor(self) -> str:
        """The id that the contents lead to."""
        return f"section-{self.section.lower().replace('.', '-') or 'beyond'}"


def chapters(exhibits: Iterable[tuple[str, Built]]) -> tuple[Chapter, ...]:
    """Exhibits, each behind its section, under the headings of the page."""
    grouped: dict[str, list[Built]] = {}
    for section, built in exhibits:
        heading = next((name for name in SECTIONS if name and section.startswith(name)), section)
        grouped.setdefault(heading, []).append(built)
    return tuple(Chapter(section, tuple(of_section)) for section, of_section in grouped.items())
