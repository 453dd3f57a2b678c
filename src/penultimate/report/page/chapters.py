"""The page's sections: what each is called, what it asks, and the exhibits that stand in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penultimate.report.base import Built

CLAIMS = "claims"
"""The exhibit, and the section of its own, that stands before the paper's."""
PARTS = {
    "": {CLAIMS: ("The claims", "Which of the paper’s claims hold here?")},
    "Does it transfer?": {
        "3.1": ("Accuracy and transfer", "Does a better classifier give features that transfer better?"),
        "3.4": ("Class separation and transfer", "Does separation cost transfer?"),
        "B": ("A second architecture", "Does another architecture say the same?"),
        "D": (
            "More on transfer",
            "Does transfer look the same task by task, during training and after fine-tuning?",
        ),
        "F": ("Class overlap", "How far are the tasks’ classes those of pretraining?"),
        "": ("Beyond the paper", "What else was measured?"),
    },
    "What is inside?": {
        "3.2": ("Layer by layer", "In which layers do objectives differ?"),
        "3.3": ("Class separation", "How far does each objective pull the classes apart?"),
        "E": (
            "More on class separation",
            "Does another measure of separation, or another recipe, say the same?",
        ),
    },
    "What does it predict?": {
        "C.1": (
            "Training accuracy and learning curves",
            "Do objectives that fit worse do better on new images?",
        ),
        "C.2": (
            "Robustness and calibration",
            "How do the networks bear other images, and can their probabilities be believed?",
        ),
        "C.3": ("Similarity of predictions", "Do networks of one objective err alike?"),
        "C.4": ("Combinations of objectives", "Do objectives that help alone help more together?"),
        "C.5": (
            "Augmentation and long training",
            "Do objectives still differ under stronger augmentation and longer training?",
        ),
    },
    "How was it chosen?": {
        "A": ("Training and tuning", "What was trained on what, and how was it chosen?"),
    },
}
"""The page's parts by what they ask, and in each the paper's sections, with a title and what each asks.

A section that stands nowhere here is called by its number, and is with what goes beyond the paper.
"""
SECTIONS = {number: (part, *words) for part, sections in PARTS.items() for number, words in sections.items()}


@dataclass(frozen=True)
class Chapter:
    """The exhibits of a section of the paper, in its order; "" is what the paper does not have."""

    section: str
    exhibits: tuple[Built, ...]

    @property
    def part(self) -> str:
        """What the part of the page asks in which it stands; "" of the claims, which stand before them."""
        return SECTIONS.get(self.section, SECTIONS[""])[0]

    @property
    def title(self) -> str:
        """What the page calls it."""
        return SECTIONS.get(self.section, ("", f"Section {self.section}"))[1]

    @property
    def question(self) -> str:
        """What it asks; "" of a section that has no name here."""
        return SECTIONS[self.section][2] if self.section in SECTIONS else ""

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
