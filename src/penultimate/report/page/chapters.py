"""The page's sections: what each is called, what it asks, and the exhibits that stand in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from penultimate.report.base import Built

CLAIMS = "claims"
"""The exhibit, and the section of its own, that stands before the paper's."""
TRANSFER, INSIDE, PREDICTS, CHOSEN = (
    "Does it transfer?",
    "What is inside?",
    "What does it predict?",
    "How was it chosen?",
)
"""The parts of the page, by what they ask."""


class Section(NamedTuple):
    """In which part of the page a section of the paper stands ("": before all), its title, what it asks."""

    part: str
    title: str
    question: str


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
"""The page's sections in its order, by the paper's numbers; "" is what the paper does not have."""


@dataclass(frozen=True)
class Chapter:
    """The exhibits of a section of the paper, in its order; "" is what the paper does not have."""

    section: str
    exhibits: tuple[Built, ...]

    @property
    def named(self) -> Section:
        """What the page calls it; one without a name goes beyond the paper, and is called by its number."""
        return SECTIONS.get(self.section, Section(SECTIONS[""].part, f"Section {self.section}", ""))

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
    """Exhibits, each behind its section, under the headings of the page, in the order of its parts."""
    grouped: dict[str, list[Built]] = {}
    for section, built in exhibits:
        heading = next((name for name in SECTIONS if name and section.startswith(name)), section)
        grouped.setdefault(heading, []).append(built)
    found = [Chapter(section, tuple(of_section)) for section, of_section in grouped.items()]
    order = list(SECTIONS)
    return tuple(sorted(found, key=lambda one: order.index(one.section if one.section in order else "")))
