"""The interface of a page: a client registers a page under a name, and a study names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from penultimate import registry
from penultimate.report.base import Built, Figure, Source
from penultimate.report.drawing.figures import Drawing
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.spec import Exhibit, Remarks


@dataclass(frozen=True)
class Explained:
    """The sentence that explains an objective or a term to a newcomer; `equation` is MathML."""

    sentence: str
    equation: str = ""


@dataclass(frozen=True)
class Followed:
    """One statement of a paper, asked of a single objective: the evidence, the verdict and the reason."""

    says: str
    where: str
    evidence: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class Tile:
    """A number in large type, and its meaning."""

    value: str
    unit: str
    meaning: str
    source: Source = "ours"


@dataclass(frozen=True)
class Headline:
    """The answer: one sentence, the sentences after it, and the numbers that they rest on.

    `points` are results that stand right under the answer: each a sentence, and what it rests on. `decides`
    says that it is a verdict by a rule of the study's own, so that no other verdicts are counted.
    """

    answer: str
    details: tuple[str, ...] = ()
    facts: tuple[Tile, ...] = ()
    decides: bool = False
    points: tuple[tuple[str, str], ...] = ()


class Drawn(NamedTuple):
    """The contents made for a page: each exhibit with its result, figures, and drawings by name."""

    measurements: Measurements
    made: list[tuple[Exhibit, Built]]
    figures: list[Figure]
    drawings: Mapping[str, Drawing]


class Page(Protocol):
    """The page of a kind of study.

    template   a Jinja template that extends `frame.html`, or `study.html`
    explained  the objectives that it explains and whose marks are the same on every page
    curves     whether it draws the training curves
    remarks    adds remarks to each exhibit
    rivals     remarks that exclude each other: if the first is said once, the others stand with each exhibit
    at_full_size  {exhibit, or what it lacks: the command that measures it on published images}
    """

    @property
    def template(self) -> Path: ...
    @property
    def explained(self) -> Mapping[str, Explained]: ...
    @property
    def curves(self) -> bool: ...
    @property
    def remarks(self) -> Remarks: ...
    @property
    def rivals(self) -> tuple[str, ...]: ...
    @property
    def at_full_size(self) -> Mapping[str, str]: ...
    def draws(self, exhibit: Exhibit) -> bool:
        """Return whether the page contains an exhibit at all."""

    def shows(self, built: Built) -> bool:
        """Return whether the page shows an exhibit as built from a study."""

    def answer(self, measurements: Measurements) -> str:
        """Return the sentence that a terminal prints after a run, or an empty string."""

    def context(self, drawn: Drawn) -> Mapping[str, Any]:
        """Return the variables of its template besides those of every page."""


def page_of(measurements: Measurements) -> Page:
    """Return the page that a study names, or the usual one of its kind."""
    page: Page = registry.entry("page", measurements.networks.page).resolve()
    return page


def of_all_arms(measurements: Measurements) -> tuple[StudyObjective, ...]:
    """Return a study's objectives, those of the main arm first; one of several arms once."""
    by_spec: dict[str, StudyObjective] = {}
    for arm in measurements.arms:
        for objective in measurements.in_arm(arm).objectives:
            by_spec.setdefault(objective.spec, objective)
    return tuple(by_spec.values())
