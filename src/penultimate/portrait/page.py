"""The page of a portrait: where the objective stands, what it does inside, and all exhibits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penultimate import registry
from penultimate.portrait.exhibits.follows import followed_by, follows_words
from penultimate.portrait.exhibits.inside import resembles_words, unusual_words
from penultimate.portrait.exhibits.place import TOP1, standing
from penultimate.portrait.exhibits.search import diverged_everywhere, loss_panel, own_search
from penultimate.portrait.traits import subject_of, traits
from penultimate.report.base import Built, Panel
from penultimate.report.beside import why_apart
from penultimate.report.measurements import Measurements
from penultimate.report.networks import USUAL_PAGE, StudyObjective
from penultimate.report.page.form import Drawn, Explained, Headline
from penultimate.report.page.study import StudyPage
from penultimate.report.spec import Exhibit, Remarks
from penultimate.report.text import counted, listed
from penultimate.statistics.summary import mean

NAME = "portrait"
OWN_ORDER = (
    "portrait_place",
    "portrait_strengths",
    "portrait_inside",
    "portrait_follows",
    "portrait_search",
)


def headline(measurements: Measurements) -> Headline:
    """Return what a portrait comes to, in one sentence, and the sentences after it."""
    subject = subject_of(measurements)
    if subject is None:
        return Headline("This is the portrait of no objective.")
    lost = [run for run in measurements.diverged if run.objective == subject.label]
    runs = len(measurements.results.table.where(objective=subject.spec, status="done").column("seed") or ())
    if diverged_everywhere(measurements):
        search = own_search(measurements)
        cells = len(search[1].cells) if search else 0
        rest = (
            "There is nothing else to show but its curves until then"
            if loss_panel(measurements, subject)
            else "That was within the first epoch, so that there is not even a curve"
        )
        return Headline(
            f"{subject.label} diverged under each of {counted(cells, 'value')} that the search tried: its"
            f" loss was no longer a number. {rest}; a lower learning rate may help, as in"
            " `--grid recipe.learning_rate=0.05,0.1,0.2`."
        )
    if lost and not runs:
        return Headline(
            f"{subject.label} diverged in {counted(len(lost), 'run')}: its loss was no longer a number."
        )
    said = standing(measurements, subject)
    if measurements.limited or not said:
        return Headline(said or f"{subject.label} was trained; nothing to compare it with was measured.")
    found, asked = traits(measurements, subject.spec), followed_by(measurements)
    details = [
        _hardly_trained(measurements, subject),
        unusual_words(found) if found else "",
        resembles_words(measurements, found) if found else "",
        follows_words(asked) if asked else "",
    ]
    return Headline(said, tuple(filter(None, details)))


def _hardly_trained(measurements: Measurements, subject: StudyObjective) -> str:
    """Return a warning if the objective is less than half as accurate as each of the others, or ""."""
    accuracy = measurements.values(TOP1)
    own = accuracy.get(subject.spec)
    others = {spec: mean(runs.values()) for spec, runs in accuracy.items() if spec != subject.spec and runs}
    if not own or not others or 2 * mean(own.values()) >= min(others.values()):
        return ""
    return (
        "It is less than half as accurate as the least accurate of the others, so that this page may say more"
        " of a recipe that does not suit it than of the objective. Another learning rate, or a search that"
        " begins at other values, may help, as in `--grid recipe.learning_rate=0.3,0.6,1.2`."
    )


@dataclass(frozen=True)
class PortraitPage:
    """The page of a portrait: its own exhibits first, then those of the page of the studies it stands beside.

    `inner` names that page, whose marks, glossary and exhibits it has.
    """

    template: Path
    inner_name: str = USUAL_PAGE
    curves: bool = True
    rivals: tuple[str, ...] = ()
    at_full_size: Mapping[str, str] = field(default_factory=dict)

    @property
    def inner(self) -> StudyPage:
        page: StudyPage = registry.entry("page", self.inner_name).resolve()
        return page

    @property
    def explained(self) -> Mapping[str, Explained]:
        return self.inner.explained

    @property
    def remarks(self) -> Remarks:
        return self.inner.remarks

    def draws(self, exhibit: Exhibit) -> bool:
        """Return whether the page contains an exhibit: its own ones, and those of the inner page."""
        return exhibit.page in (NAME, self.inner_name) and exhibit.name != "claims"

    def shows(self, built: Built) -> bool:
        """Return whether an exhibit shows any number that was measured here."""
        return built.is_measured

    def answer(self, measurements: Measurements) -> str:
        """Return the sentence that a terminal prints after a run."""
        told = headline(measurements)
        return " ".join((told.answer, *told.details))

    def context(self, drawn: Drawn) -> Mapping[str, Any]:
        """Return the variables of its template besides those of every page."""
        measurements, made, figures, drawings = drawn
        own = {built.name: built for exhibit, built in made if exhibit.page == NAME and built.wanted}
        others = [(exhibit, built) for exhibit, built in made if exhibit.page != NAME and built.is_measured]
        shown = self.inner.context(Drawn(measurements, others, figures, drawings))
        leading = [
            panel
            for built in own.values()
            for figure in built.figures
            for panel in figure.panels
            if panel.name in ("portrait-accuracy", "portrait-separation")
        ]
        stands = measurements.results.provenance.get("beside", {})
        rounding = " ".join(filter(None, (str(run.get("rounding", "")) for run in stands.values())))
        beside = listed([f"`{name}`" for name in measurements.results.provenance.get("beside", {})])
        asked = (
            f"The other objectives are those of the kept run {beside}: networks of the same recipe, seeds and"
            f" images, which were trained and measured before, and not again. {rounding}".rstrip()
            if measurements.results.provenance.get("beside")
            else why_apart(measurements.results)
        )
        return {
            **shown,
            "headline": headline(measurements),
            "tally": None,
            "leading": leading,
            "portrait": [_below(own[name], leading) for name in OWN_ORDER if _is_shown(own.get(name))],
            "asked": asked,
            "joins": "",
        }


def _is_shown(built: Built | None) -> bool:
    return built is not None and built.is_measured


def _below(built: Built, leading: list[Panel]) -> Built:
    """Return an exhibit without the figures that lead the page."""
    figures = tuple(one for one in built.figures if not {*one.panels} <= {*leading})
    return dataclasses.replace(built, figures=figures)


PAGE = PortraitPage(Path(__file__).with_name("page.html"))
