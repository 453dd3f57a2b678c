"""The page of a study as data: its sections, its headline, and the words that it explains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from penultimate import registry, specs
from penultimate.errors import RequestError
from penultimate.objectives.presets import COMPONENT_KINDS
from penultimate.report.base import Built
from penultimate.report.later import todays
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.page.form import Drawn, Explained, Followed, Headline, of_all_arms
from penultimate.report.spec import Exhibit, Remarks, say_nothing
from penultimate.report.text import counted, listed


class Section(NamedTuple):
    """A section of a page: its part ("" stands before all), its title, and its question."""

    part: str
    title: str
    question: str


@dataclass(frozen=True)
class Tally:
    """The number of claims with each verdict: (verdict, count, in words); `claims` says whose they are."""

    claims: str
    verdicts: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Chapter:
    """The exhibits of a section of the paper, in its order, under their heading on the page."""

    section: str
    named: Section
    exhibits: tuple[Built, ...]

    @property
    def place(self) -> str:
        """The place in the paper, or an empty string if the paper does not have it.

        >>> [Chapter(number, Section("", "", ""), ()).place for number in ("3.1", "C.2", "claims")]
        ['The paper, section 3.1', 'The paper, appendix C.2', '']
        """
        kind = "section" if self.is_of_the_body else "appendix"
        return f"The paper, {kind} {self.section}" if self.section and self.section != CLAIMS else ""

    @property
    def is_of_the_body(self) -> bool:
        """Whether it is one of the paper's numbered sections, which are printed."""
        return self.section[:1].isdigit()

    @property
    def anchor(self) -> str:
        """The id that the contents lead to."""
        return f"section-{self.section.lower().replace('.', '-') or 'beyond'}"


CLAIMS = "claims"
"""The exhibit of judged claims, and its separate section, which stands before the paper's."""
Extra: TypeAlias = Callable[[Measurements], Mapping[str, Any]]


@dataclass(frozen=True)
class StudyPage:
    """The page of a study that trains networks, in comparison with a paper.

    name       the name under which it is registered, and which studies and exhibits use
    sections   {number in the paper: Section}, in the page's order; "" is for exhibits that the paper lacks
    headline   makes the answer from the measurements
    explained  the objectives in the order of their marks, by slug, with a sentence and an equation each
    terms      the words of the study, each with its sentence and equation
    template   extends `study.html` with the question and the source of the published values
    further    the further variables of that template
    tally      counts the verdicts of the exhibit of claims
    leading    groups of panels, by name; the first with one of the study's own stands under the answer
    remarks    adds remarks to each exhibit
    rivals     remarks that exclude each other: if the first is said once, the others stand with each exhibit
    at_full_size  {exhibit, or what it lacks: the command that measures it on published images}
    follows    asks the paper's statements of one objective, by its spec
    """

    name: str
    sections: Mapping[str, Section]
    headline: Callable[[Measurements], Headline]
    explained: Mapping[str, Explained]
    terms: tuple[tuple[str, Explained], ...]
    template: Path
    further: Extra = field(default=lambda measurements: {})
    tally: Callable[[Built], tuple[Tally, ...]] | None = None
    leading: tuple[tuple[str, ...], ...] = ()
    remarks: Remarks = say_nothing
    rivals: tuple[str, ...] = ()
    curves: bool = True
    at_full_size: Mapping[str, str] = field(default_factory=dict)
    follows: Callable[[Measurements, str], tuple[Followed, ...]] = field(
        default=lambda measurements, spec: ()
    )

    def draws(self, exhibit: Exhibit) -> bool:
        """Return whether the page contains an exhibit at all."""
        return exhibit.page == self.name

    def shows(self, built: Built) -> bool:
        """Return True: the page shows every exhibit, because it also says what was not measured."""
        return True

    def answer(self, measurements: Measurements) -> str:
        """Return the headline's first sentence if it is a verdict by a rule of the study's own."""
        if measurements.limited:
            return ""
        headline = self.headline(measurements)
        return headline.answer if headline.decides else ""

    def context(self, drawn: Drawn) -> Mapping[str, Any]:
        """Return the variables of its template besides those of every page."""
        from markupsafe import Markup

        measurements, made, figures, drawings = drawn
        measured = self.chapters(
            (exhibit, built) for exhibit, built in made if built.wanted and built.is_measured
        )
        exhibits = [built for chapter in measured for built in chapter.exhibits]
        claims = next((built for built in exhibits if built.name == CLAIMS), None)
        headline = self.headline(measurements)
        drawn_panels = [panel for figure in figures for panel in figure.panels]
        groups = [[panel for panel in drawn_panels if panel.name in names] for names in self.leading]
        leading = next((one for one in groups if any(panel.source == "ours" for panel in one)), [])
        return {
            "headline": headline,
            "tally": self.tally(claims) if claims and self.tally and not headline.decides else None,
            "leading": leading,
            "chapters": measured,
            "partly": [built for built in exhibits if built.missing],
            "gaps_left": _gaps_phrase(made, bool(figures and figures[-1].name == "curves")),
            "unmeasured": [built for _, built in made if built.wanted and not built.is_measured],
            "curves": next((figure for figure in figures if figure.name == "curves"), None),
            "lead": lambda name: Markup(drawings[name].styled(f"lead-{name}")),
            "glossary": self._glossary(measurements),
            "joins": self._joining(measurements),
            "terms": [(name, term.sentence, Markup(term.equation)) for name, term in self.terms],
            **self.further(measurements),
        }

    def chapters(self, exhibits: Iterable[tuple[Exhibit, Built]]) -> tuple[Chapter, ...]:
        """Return exhibits under the headings of the page, in the order of its parts."""
        grouped: dict[str, list[Built]] = {}
        for exhibit, built in exhibits:
            section = CLAIMS if exhibit.name == CLAIMS else exhibit.section
            heading = next((name for name in self.sections if name and section.startswith(name)), section)
            grouped.setdefault(heading, []).append(built)
        order = list(self.sections)
        beyond = self.sections.get("", Section("", "More", ""))
        found = [
            Chapter(
                name, self.sections.get(name, Section(beyond.part, f"Section {name}", "")), tuple(of_section)
            )
            for name, of_section in grouped.items()
        ]
        return tuple(sorted(found, key=lambda one: order.index(one.section if one.section in order else "")))

    def _glossary(self, measurements: Measurements) -> list[tuple[str, str, list[StudyObjective]]]:
        """Return a sentence and an equation for each objective, with the strengths that the study has."""
        from markupsafe import Markup

        entries: dict[str, tuple[str, str, list[StudyObjective]]] = {}
        for objective in of_all_arms(measurements):
            explained = self.explained.get(objective.slug)
            sentence = explained.sentence if explained else self._own_description(objective.spec)
            equation = Markup(explained.equation if explained else "")
            named = "+".join(_names(objective.spec)) or objective.spec
            entries.setdefault(named, (sentence, equation, []))[2].append(objective)
        return list(entries.values())

    def _joining(self, measurements: Measurements) -> str:
        """Return a sentence on the objectives that the study it was changed from lacks; "" without any."""
        before = str(measurements.results.description.get("changed_from", ""))
        known = {entry["spec"] for entry in todays(before).get("objectives", ())}
        fresh = [one for one in of_all_arms(measurements) if one.spec not in known] if known else []
        if not fresh:
            return ""
        named = listed([f"{one.label} (`{one.spec}`)" for one in fresh])
        verb = "stands" if len(fresh) == 1 else "stand"
        told = " ".join(self._own_description(one.spec) for one in fresh)
        return f"Beside the objectives of `{before}` {verb} {named}. {told}"

    def _own_description(self, spec: str) -> str:
        """Return the description of a combination or a plug-in in its own words."""
        names = _names(spec)
        said = [self.explained[name].sentence for name in names if name in self.explained]
        for kind in COMPONENT_KINDS:
            said += [registry.entry(kind, name).summary for name in names if name in registry.names(kind)]
        joined = "A combination. " if len(names) > 1 else ""
        return joined + (" ".join(said) or "An objective of this study.")


def _names(spec: str) -> list[str]:
    """Return the names of a sum's terms, without strengths; none if the spec is not a sum."""
    try:
        return [term.name for term in specs.parse_sum(spec)]
    except RequestError:
        return []


def _gaps_phrase(made: Iterable[tuple[Exhibit, Built]], has_curves: bool) -> str:
    """Return a phrase for what the page folds away because it was not measured, or an empty string."""
    wanted = [built for _, built in made if built.wanted]
    none = [built for built in wanted if not built.is_measured]
    some = [built for built in wanted if built.is_measured and built.missing]
    others = counted(len(some), "other") if none else counted(len(some), "exhibit")
    said = [
        *([counted(len(none), "exhibit")] if none else []),
        *([f"parts of {others}"] if some else []),
        *([] if has_curves else ["the training curves"]),
    ]
    return f"{listed(said)[:1].upper()}{listed(said)[1:]}, and what measures them" if said else ""
