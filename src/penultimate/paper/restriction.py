"""What the paper's own relation would show at class separations as close together as a study's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Literal, TypeAlias

from penultimate.paper.claims.effects import BySeed, common_seeds
from penultimate.paper.claims.evidence import StudyEvidence, gather
from penultimate.paper.claims.quoted import QuotedEvidence
from penultimate.report.base import Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.spec import Piece
from penultimate.report.text import counted, fixed, in_words, signed
from penultimate.statistics import Restricted, mean, restricted_correlation, spearman

Probe: TypeAlias = Literal["linear", "knn"]
PROBES: tuple[tuple[Probe, str], ...] = (("linear", "linear"), ("knn", "kNN"))
FAR = "squared_error"
"""The objective that lies far from the others in the paper, without which its line is drawn a second time."""
RARE = 0.025
"""The share of simulated studies beyond which an observed rho is called unexplained, on either side."""


@dataclass(frozen=True)
class Narrowed:
    """A study's rank correlation beside those that the paper's line and scatter would show at its R².

    `span` and `in_paper` are the narrowest ranges of R² that hold all objectives but one, here and in the
    paper. `whole` is by the line through all of the paper's objectives, `near` without squared error.
    """

    objectives: int
    rho: float
    span: float
    in_paper: float
    whole: Restricted
    near: Restricted

    @property
    def is_narrow(self) -> bool:
        """Whether all objectives but one lie in less than half of the paper's range."""
        return self.span < self.in_paper / 2

    @property
    def within(self) -> str:
        """Words for the range, such as "eight of nine lie within .06 of R²"."""
        return (
            f"{in_words(self.objectives - 1)} of {in_words(self.objectives)} lie within {_short(self.span)}"
            f" of R² of each other (in the paper within {_short(self.in_paper)})"
        )

    @property
    def aside(self) -> str:
        """Words in brackets for a narrow range, to stand behind the number of objectives; or none."""
        close = f"{in_words(self.objectives - 1)} of them within {_short(self.span)} of R² of each other"
        return f" ({close})" if self.is_narrow else ""


def _short(span: float) -> str:
    """Return a range of R² without its leading zero.

    >>> _short(0.058)
    '.06'
    """
    return fixed(span, 2).removeprefix("0")


def narrowed(measurements: Measurements, probe: Probe = "linear") -> Narrowed | None:
    """Return what the paper's objectives would show at the class separations of a study's main arm.

    Noise is that of the study's means, as a share of the spread of its objectives, since points on other
    tasks are other points. Return None of a limited study, with fewer than four objectives that share two
    seeds, or if all are alike in either number.
    """
    evidence = gather(measurements)
    x, y = _shared(evidence, probe)
    if measurements.limited or len(x) < 4 or len(common_seeds(x)) < 2:
        return None
    separation, transfer = ([mean(runs.values()) for runs in of] for of in (x, y))
    rho = spearman(separation, transfer, exact=False).rho
    if not -1 <= rho <= 1:
        return None
    paper = QuotedEvidence()
    at, height = paper.values("separation"), paper.values(probe)
    share = _noise(y) / stdev(transfer)

    def shown(names: Sequence[str]) -> Restricted | None:
        theirs = tuple(at[name][None] for name in names), tuple(height[name][None] for name in names)
        return _simulated(theirs, tuple(separation), rho, share * stdev(theirs[1]))

    whole, near = shown([*at]), shown([name for name in at if name != FAR])
    if whole is None or near is None:
        return None
    in_paper = _span([runs[None] for runs in at.values()])
    return Narrowed(len(x), rho, _span(separation), in_paper, whole, near)


@functools.lru_cache(maxsize=32)
def _simulated(
    theirs: tuple[tuple[float, ...], tuple[float, ...]], x: tuple[float, ...], rho: float, noise: float
) -> Restricted | None:
    return restricted_correlation(theirs, x, rho, noise)


def _shared(evidence: StudyEvidence, probe: Probe) -> tuple[list[BySeed], list[BySeed]]:
    """Return class separation and transfer of every objective, over the seeds that all have in both."""
    x, y = evidence.values("separation"), evidence.values(probe)
    both = [spec for spec in x if spec in y]
    if not both:
        return [], []
    seeds = common_seeds([of[spec] for spec in both for of in (x, y)])
    kept: list[list[BySeed]] = [[{seed: of[spec][seed] for seed in seeds} for spec in both] for of in (x, y)]
    return kept[0], kept[1]


def _span(values: Sequence[float]) -> float:
    """Return the narrowest range that holds all values but one."""
    ascending = sorted(values)
    return min(ascending[-2] - ascending[0], ascending[-1] - ascending[1])


def _noise(runs: Sequence[BySeed]) -> float:
    """Return the standard error of an objective's mean, without what a seed adds to all objectives."""
    seeds = common_seeds(runs)
    table = [[of[seed] for seed in seeds] for of in runs]
    centre = mean(value for row in table for value in row)
    columns = [mean(row[place] for row in table) for place in range(len(seeds))]
    squares = sum(
        (value - mean(row) - columns[place] + centre) ** 2 for row in table for place, value in enumerate(row)
    )
    return float((squares / ((len(table) - 1) * (len(seeds) - 1) * len(seeds))) ** 0.5)


def restricted_words(found: Narrowed) -> str:
    """Return what the paper's own line would show at a study's R², as the end of a sentence."""
    at = found.whole
    is_above = found.rho >= at.median
    beyond, share = ("higher", at.as_high) if is_above else ("lower", at.as_low)
    return (
        f"the paper's own line and scatter would show a median ρ of {fixed(at.median, 2)} at such R², one"
        f" beyond chance in {_share(at.beyond_chance)} of studies, and {signed(found.rho, 2)} or {beyond} in"
        f" {_share(share)}"
    )


def restricted_sentence(found: Narrowed, word: str = "linear") -> str:
    """Return the range of R², the simulated correlations, and what they explain, as two sentences."""
    within = f"{found.within[0].upper()}{found.within[1:]}"
    return f"{within}; with {word} transfer {restricted_words(found)}. {_comes_to(found)}"


def _comes_to(found: Narrowed) -> str:
    if found.whole.as_high < RARE:
        return (
            "A narrow range of R² explains a relation too weak to tell from chance, but by itself not a ρ as"
            f" high as {signed(found.rho, 2)}."
        )
    if found.whole.as_low < RARE:
        return f"A ρ of {signed(found.rho, 2)} is stronger than the paper's line explains."
    return f"So the paper's relation and a ρ of {signed(found.rho, 2)} here do not contradict each other."


def _share(share: float) -> str:
    """Return a share of studies in words.

    >>> _share(0.21), _share(0.0014), _share(0.0)
    ('21 %', '0.1 %', 'fewer than 0.1 %')
    """
    if share < 0.0005:
        return "fewer than 0.1 %"
    return f"{fixed(100 * share, 1 if share < 0.02 else 0)} %"


def restriction_table(measurements: Measurements) -> Piece:
    """Return the table of simulated correlations by either probe, and a sentence for each."""
    of_probes = [(word, narrowed(measurements, probe)) for probe, word in PROBES]
    found = [(word, one) for word, one in of_probes if one is not None]
    if not found:
        return Piece()
    count = counted(found[0][1].objectives, "objective")
    table = ExhibitTable(
        "figure5_restricted",
        f"The paper's line at the R² of the {count} here, simulated",
        "Transfer, and the line",
        (
            Column("rho", "ρ here"),
            Column("median", "Median ρ", "Of simulated studies"),
            Column("range", "95 % of studies", "Of simulated studies"),
            Column("beyond_chance", "p < .05, %", "Of simulated studies"),
            Column("as_high", "ρ as high as here, %", "Of simulated studies"),
        ),
        tuple(
            TableRow(f"{word}, through {what}", _cells(one, at))
            for word, one in found
            for what, at in (
                ("the paper's nine", one.whole),
                ("its eight without squared error", one.near),
            )
        ),
        notes=(
            "A simulated study has the R² measured here. Its transfer lies on the line of least squares"
            " through the paper's printed means, with their scatter about it and with the noise of the means"
            " here, as a share of the spread of objectives. 20,000 studies a row.",
        ),
    )
    return Piece(
        (table,), notes=tuple(restricted_sentence(one, word) for word, one in found if one.is_narrow)
    )


def _cells(found: Narrowed, at: Restricted) -> tuple[Cell, ...]:
    return (
        Cell(signed(found.rho, 2), found.rho),
        Cell(fixed(at.median, 2), at.median),
        Cell(f"{fixed(at.low, 2)} to {fixed(at.high, 2)}"),
        Cell(fixed(100 * at.beyond_chance, 1), 100 * at.beyond_chance),
        Cell(fixed(100 * at.as_high, 2), 100 * at.as_high),
    )
