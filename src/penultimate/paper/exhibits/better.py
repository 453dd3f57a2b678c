"""The search for an objective that is better than softmax in both accuracy and transfer."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.aspects import NAMES, QUANTITIES, Aspect
from penultimate.paper.claims.both import (
    BOTH_CLAIMS,
    SEARCHED,
    STUDY,
    CandidateGains,
    both_spoken,
    candidates,
    gain,
    is_pair,
    other_of,
)
from penultimate.paper.claims.criteria import CRITERIA
from penultimate.paper.claims.trials import range_text, unit
from penultimate.paper.exhibits.verdict_table import verdict_table
from penultimate.records.archive import references
from penultimate.report import read_reference
from penultimate.report.base import (
    MISSING,
    Cell,
    Column,
    Curve,
    ExhibitTable,
    Figure,
    Missing,
    Panel,
    Point,
    TableRow,
)
from penultimate.report.measurements import Measurements, admit
from penultimate.report.progress import way_on
from penultimate.report.shapes.cells import run_cell
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed, signed

if TYPE_CHECKING:
    from penultimate.paper.claims.effects import Verdict
    from penultimate.paper.claims.trials import Trial

ROWS: tuple[tuple[Aspect, str, int], ...] = (
    ("accuracy", "Test accuracy, %", 2),
    ("linear", "Linear transfer, %", 2),
    ("knn", "kNN transfer, %", 2),
    ("separation", "Class separation R²", 3),
)
PAIR: tuple[Aspect, ...] = ("accuracy", "linear")
LEADING = ("better-gains",)
"""The panel that stands under the answer of the study."""
SAID: dict[Verdict, str] = {
    "holds": "{} is better than softmax in both: {}.",
    "does not hold": "{} is not better than softmax in both: {}.",
    "undecided": "Whether {} is better than softmax in both is open: {}.",
}
MARGIN = 0.08
"""The room around the marks of the figure, as a share of what they span."""


def answer_of_pair(measurements: Measurements) -> tuple[str, bool]:
    """Return whether the other objective is better than softmax in both, and whether the rule decides it."""
    from penultimate.paper.claims.evidence import gather
    from penultimate.paper.claims.verdicts import judge

    evidence, label = gather(measurements), other_of(measurements).label
    of_linear = judge(evidence, BOTH_CLAIMS[:1])[0].ours
    trials = {aspect: gain(evidence, aspect) for aspect in PAIR}
    gains = " and ".join(_size(trial, aspect) for aspect, trial in trials.items() if trial)
    if of_linear.judged:
        return SAID[of_linear.verdict].format(label, gains), True
    lacking = [NAMES[aspect] for aspect, trial in trials.items() if trial is None]
    absent = (
        f"{listed(lacking)} {'is' if len(lacking) == 1 else 'are'} not measured of both." if lacking else ""
    )
    said = [
        f"This study cannot say yet whether {label} is better than softmax in both.",
        f"{absent[0].upper()}{absent[1:]}" if absent else of_linear.reason,
        *([f"So far: {gains}."] if gains else []),
        *_way_on(measurements, bool(lacking)),
    ]
    return " ".join(said), False


def _size(trial: Trial, aspect: Aspect) -> str:
    """Return the size of a gain with its interval, which names what it is of."""
    return dataclasses.replace(trial, name="", unit=unit(aspect)).text


def _way_on(measurements: Measurements, lacks: bool) -> list[str]:
    command = way_on(measurements, [QUANTITIES[aspect] for aspect in PAIR])
    if command:
        return [f"To go on: `{command}`."]
    least = int(CRITERIA.least_runs.value)
    if lacks or measurements.limited or len(measurements.seeds) >= least:
        return []
    return [f"The same command with `--seeds 0-{least - 1}` trains {in_words(least)} of each."]


@functools.cache
def kept_candidates() -> tuple[tuple[CandidateGains, ...], tuple[str, ...]]:
    """Return the candidates of the kept searches, by score, and the searches that are not kept."""
    kept = [name for name in SEARCHED if name in references()]
    found = candidates(admit(read_reference(name)) for name in kept)
    return tuple(found), tuple(name for name in SEARCHED if name not in kept)


def chosen_told(measurements: Measurements) -> tuple[str, ...]:
    """Return sentences on how the study's objective was chosen, and on what is not kept of that."""
    found, absent = kept_candidates()
    other, told = other_of(measurements), []
    own = next((one for one in found if one.spec == other.spec), None)
    if absent:
        named = listed(list(absent))
        told.append(f"The candidates of {named} are not shown: no such run comes with the package.")
    elif found[0].spec != other.spec:
        told.append(f"The candidate with the highest score is {_label(found[0])}, and not {other.label}.")
    elif own is not None:
        told.append(
            f"{other.label} was chosen among {counted(len(found), 'candidate')} by the other half of the"
            f" tasks, where it gained {signed(own.accuracy, 2)} points of test accuracy and"
            f" {signed(own.transfer, 2)} points of linear transfer in {counted(len(own.gains), 'seed')}."
        )
    if found and found[0].score <= 0:
        told.append(f"No candidate {'shown ' if absent else ''}gained in both, by its means.")
    return tuple(told)


def _label(one: CandidateGains) -> str:
    return resolve(one.spec).detailed_label


def _mark(one: CandidateGains) -> str:
    composition = resolve(one.spec)
    return composition.preset or composition.canonical


def is_of_the_search(measurements: Measurements) -> bool:
    """Return whether a study tries the chosen objective, whatever its seeds."""
    results = measurements.results
    return is_pair(measurements) and STUDY in (results.name, results.description.get("changed_from"))


def _better(measurements: Measurements) -> Piece:
    if not is_of_the_search(measurements):
        return Piece(wanted=False)
    from penultimate.paper.claims.evidence import gather
    from penultimate.paper.claims.verdicts import judge

    evidence, (found, _) = gather(measurements), kept_candidates()
    trials = {aspect: gain(evidence, aspect) for aspect, _, _ in ROWS}
    lacks = tuple(
        Missing(
            f"{NAMES[aspect][0].upper()}{NAMES[aspect][1:]}, of both objectives", f"penultimate run {STUDY}"
        )
        for aspect in PAIR
        if trials[aspect] is None
    )
    if lacks:
        return Piece(missing=lacks)
    judged = [one for one in judge(evidence, BOTH_CLAIMS) if one.ours.missing is None]
    verdicts = verdict_table("better", "The claims that an objective is better in both", judged)
    return Piece(
        (
            *_candidates_table(found, other_of(measurements).spec),
            _confirmed_table(measurements, trials),
            verdicts,
        ),
        (_figure(measurements, found, trials),),
        notes=(f"{OURS}: {answer_of_pair(measurements)[0]}", *chosen_told(measurements)),
        method=both_spoken(),
    )


def _candidates_table(found: Sequence[CandidateGains], chosen: str) -> tuple[ExhibitTable, ...]:
    """Return the candidates with their gains, or no table if none is kept."""
    rows = tuple(
        TableRow(
            f"{place}. {_label(one)}",
            (
                *(Cell(signed(value, 2), value) for value in (one.accuracy, one.transfer, one.score)),
                Cell(str(len(one.gains)), len(one.gains)),
                Cell(one.study),
                Cell("chosen" if one.spec == chosen else MISSING),
            ),
            _mark(one),
        )
        for place, one in enumerate(found, 1)
    )
    columns = (
        Column("accuracy", "Test accuracy", "Gain on softmax, points"),
        Column("transfer", "Linear transfer", "Gain on softmax, points"),
        Column("score", "Score: the smaller gain", unit="points"),
        Column("seeds", "Seeds"),
        Column("study", "Study"),
        Column("choice", "Choice"),
    )
    title = "The candidates, by score, on the tasks that the choice sees"
    table = ExhibitTable("better_candidates", title, "Candidate", columns, rows)
    return (table,) if rows else ()


def _confirmed_table(measurements: Measurements, trials: dict[Aspect, Trial | None]) -> ExhibitTable:
    """Return both objectives' means on the tasks that the choice did not see, with the gain on softmax."""
    from penultimate.paper.claims.evidence import BASELINE, gather

    evidence, other = gather(measurements), other_of(measurements)
    rows = []
    for aspect, label, digits in ROWS:
        runs, trial = evidence.values(aspect), trials[aspect]
        means = (run_cell(runs.get(spec), digits, shows_error=True) for spec in (BASELINE, other.spec))
        size, least = Cell(MISSING), Cell(MISSING)
        if trial:
            effect = trial.effect
            between = f" ({range_text(effect.low, effect.high, digits)})" if trial.is_tested else ""
            size = Cell(f"{signed(effect.estimate, digits)}{between}", effect.estimate)
            if aspect != "separation":
                least = Cell(fixed(effect.margin, digits), effect.margin)
        rows.append(TableRow(label, (*means, size, least)))
    return ExhibitTable(
        "better_confirmed",
        "The chosen objective beside softmax, on the tasks that the choice did not see",
        "Measure",
        (
            Column("softmax", "Softmax"),
            Column("other", other.label),
            Column("gain", "Gain, with its 95 % interval"),
            Column("least", "Counts from"),
        ),
        tuple(rows),
    )


def _figure(
    measurements: Measurements, found: Sequence[CandidateGains], trials: dict[Aspect, Trial | None]
) -> Figure:
    """Return gains in test accuracy against gains in linear transfer, with softmax where the lines cross."""
    other = other_of(measurements)
    places = {one.spec: str(place) for place, one in enumerate(found, 1)}
    points = [
        Point(*gains, _mark(one), places[one.spec], f"{_label(one)}, seed {seed}", faint=True)
        for one in found
        for seed, gains in one.gains.items()
    ]
    points += [
        Point(one.accuracy, one.transfer, _mark(one), places[one.spec], f"{_label(one)} ({one.study})")
        for one in found
    ]
    across, up = (trial for aspect in PAIR if (trial := trials[aspect]) is not None)
    x, y = across.effect, up.effect
    name = f"{places.get(other.spec, 'chosen,')} on the other tasks"
    points.append(
        Point(
            x.estimate,
            y.estimate,
            other.slug,
            name,
            f"{other.label}: {_size(across, PAIR[0])}, {_size(up, PAIR[1])}",
        )
    )
    lines = []
    if across.is_tested and up.is_tested:
        lines = [
            Curve(((x.low, y.estimate), (x.high, y.estimate)), other.slug, f"{other.label}, 95 %"),
            Curve(((x.estimate, y.low), (x.estimate, y.high)), other.slug, f"{other.label}, 95 %"),
        ]
    ends = [point for line in lines for point in line.points]
    x_limits = _limits([*(point.x for point in points), *(place for place, _ in ends)])
    y_limits = _limits([*(point.y for point in points), *(place for _, place in ends)])
    zero = (
        Curve(((0.0, y_limits[0]), (0.0, y_limits[1])), "softmax", "as accurate as softmax", True, True),
        Curve(((x_limits[0], 0.0), (x_limits[1], 0.0)), "softmax", "transfers as softmax does", True, True),
    )
    panel = Panel(
        LEADING[0],
        "Gains on softmax: accuracy and transfer",
        "Gain in test accuracy, points",
        "Gain in linear transfer, points",
        tuple(points),
        (*zero, *lines),
        x_limits=x_limits,
        y_limits=y_limits,
        size=(640, 420),
        finding="numbers as in the table; upper right: better in both; faint: single seeds; lines: 95 %"
        " intervals",
    )
    return Figure(
        "better",
        "Gains on softmax in accuracy and in transfer",
        "The gain of each candidate on softmax in linear transfer against its gain in test accuracy, by the"
        " tasks that the choice sees, numbered as in the table; and the gain of the chosen one with its"
        " intervals, by the tasks that the choice did not see.",
        (panel,),
    )


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis that holds these values and zero, with room beside them.

    >>> _limits([0.5, 2.0])
    (-0.16, 2.16)
    """
    low, high = min(0.0, *values), max(0.0, *values)
    room = MARGIN * ((high - low) or 1.0)
    return low - room, high + room


BETTER = Exhibit(
    name="better",
    title="Better than softmax in both? Twelve candidates, and the chosen one on other tasks",
    caption="Candidates are compared with softmax by test accuracy and by linear transfer to four of eight"
    " tasks. The one whose smaller gain is the largest is chosen. It is trained again with seeds of its own"
    " and tried on the other four tasks, which the choice did not see. Gains are differences to softmax"
    " within seeds.",
    parts=(Bespoke(_better, tuple(QUANTITIES[aspect] for aspect, _, _ in ROWS)),),
    place=1,
    measured_by=STUDY,
    of_given=False,
    summary="Gains on softmax in both accuracy and transfer: candidates, and the chosen one on other tasks",
    short="Better in both",
)
