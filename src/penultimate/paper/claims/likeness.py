"""The layers in which objectives differ, judged by how alike networks of one and of two objectives are."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from penultimate.paper.arms import ONE_DRAW
from penultimate.paper.claims.aspects import NAMES, QUANTITIES
from penultimate.paper.claims.criteria import Criteria, FurtherCriteria
from penultimate.paper.claims.effects import BySeed, Effect, Verdict, all_of, difference, each
from penultimate.paper.claims.evidence import Assessment, Evidence, not_judged, unmeasured
from penultimate.paper.claims.wording import range_text, too_few
from penultimate.report.measurements import Measurements
from penultimate.report.shapes.depth import in_order
from penultimate.report.shapes.pairs import Pairs, pairs_of
from penultimate.report.text import counted, fixed, in_words, listed, signed


def last_layers(evidence: Evidence, criteria: Criteria, further: FurtherCriteria) -> Assessment:
    """Judge whether objectives differ in the last third of layers, and far less (a quarter) in the first."""
    layers = likeness_by_layer(evidence.measurements.or_in_arm(ONE_DRAW))
    objectives = sorted(
        {a.objective for pairs in layers.values() for a, b in pairs if a.objective == b.objective}
    )
    if len(layers) < 3 or not objectives:
        return unmeasured(NAMES["likeness"])
    third = len(layers) // 3
    in_order = [*layers.values()]
    ends = {"first": in_order[:third], "last": in_order[-third:]}
    names = {"first": [*layers][:third], "last": [*layers][-third:]}
    enough = int(criteria.least_objectives.value)
    if len(objectives) < enough:
        extent = f"{counted(len(objectives), 'objective')}, {counted(len(layers), 'layer')}"
        return not_judged(extent, too_few(len(objectives), enough, "objective"))
    gaps = {end: _pseudo_values(layers_there, objectives) for end, layers_there in ends.items()}
    others = math.fsum(_likeness(pairs, objectives)[1] for pairs in ends["last"]) / third
    margin = criteria.least_gain.value * (1 - others)
    last, first = (_numbered(gaps[end]) for end in ("last", "first"))
    found = {
        "last": difference([last], [1], margin, criteria),
        "first": difference([last, first], [further.far.value, -1], 0.0, criteria),
    }
    shown = difference([first], [1], 0.0, criteria)
    effects = {name: effect for name, effect in found.items() if effect is not None}
    if len(effects) < len(found) or shown is None:
        return not_judged(MISSING_SPREAD, MISSING_SPREAD)
    ours = (
        f"CKA within less between objectives {_text(shown)} in {listed(names['first'])},"
        f" {_text(effects['last'])} in {listed(names['last'])}, {counted(len(objectives), 'objective')}"
    )
    verdicts = each(effects, (), criteria)
    quarter = fixed(further.far.value, 2)
    of_last: dict[Verdict, str] = {
        "holds": "They differ in the last layers beyond chance",
        "does not hold": f"a difference of {fixed(margin, 3)} or more in the last layers is excluded",
        "undecided": "in the last layers a difference of objectives at large is neither shown nor excluded",
    }
    of_first: dict[Verdict, str] = {
        "holds": f"in the first, {quarter} of that or more is excluded",
        "does not hold": f"in the first they differ by more than {quarter} of that, beyond chance",
        "undecided": f"in the first, {quarter} of that is neither reached nor excluded",
    }
    why = f"{of_last[verdicts['last']]}; {of_first[verdicts['first']]}."
    if verdicts["last"] == "undecided":
        alike = in_words(_more_alike(ends["last"], objectives), "none")
        why += (
            f" In the last layers CKA is higher within than between for {alike} of"
            f" {counted(len(objectives), 'objective')}."
        )
    return Assessment(ours, all_of(verdicts.values()), f"{why[0].upper()}{why[1:]}")


MISSING_SPREAD = "No spread at all between objectives"


def likeness_by_layer(measurements: Measurements) -> dict[str, Pairs]:
    """Return the CKA of each layer between any two networks of different seeds, from the first layer on."""
    metric = QUANTITIES["likeness"].metric
    rows = measurements.rows(metric)
    names = in_order({str(row.layer) for row in rows if row.layer and row.layer == row.layer_b}, measurements)
    by_layer = {name: pairs_of(measurements, QUANTITIES["likeness"], name) for name in names}
    of_seeds = {
        name: {
            (a, b): value
            for (a, b), value in pairs.items()
            if None not in (a.seed, b.seed) and a.seed != b.seed
        }
        for name, pairs in by_layer.items()
    }
    return {name: pairs for name, pairs in of_seeds.items() if pairs}


def _likeness(pairs: Pairs, objectives: Collection[str]) -> tuple[float, float]:
    """Return the mean CKA of two networks of one objective, and of two of different ones."""
    sides: Mapping[bool, list[float]] = {True: [], False: []}
    for (a, b), value in pairs.items():
        if a.objective in objectives and b.objective in objectives:
            sides[a.objective == b.objective].append(value)
    same, apart = (
        math.fsum(sides[side]) / len(sides[side]) if sides[side] else math.nan for side in (True, False)
    )
    return same, apart


def _pseudo_values(layers: list[Pairs], objectives: list[str]) -> list[float]:
    """Return the jackknife's pseudo-values n m - (n - 1) m' of the objectives.

    Here m is the mean likeness within objectives less that between them, and m' leaves the objective out.
    """

    def gap(among: list[str]) -> float:
        each_layer = [_likeness(pairs, among) for pairs in layers]
        return math.fsum(same - apart for same, apart in each_layer) / len(layers)

    n, whole = len(objectives), gap(objectives)
    return [n * whole - (n - 1) * gap([other for other in objectives if other != one]) for one in objectives]


def _more_alike(layers: list[Pairs], objectives: list[str]) -> int:
    """Return the number of objectives whose networks resemble each other more than those of others."""

    def gap(one: str) -> float:
        of_one = (
            {(a, b): value for (a, b), value in pairs.items() if one in (a.objective, b.objective)}
            for pairs in layers
        )
        return math.fsum(same - apart for same, apart in (_likeness(pairs, objectives) for pairs in of_one))

    return sum(gap(one) > 0 for one in objectives)


def _numbered(values: list[float]) -> BySeed:
    """Return values as `difference` takes them; here objectives are left out in turn, in place of seeds."""
    return dict(enumerate(values))


def _text(effect: Effect) -> str:
    return f"{signed(effect.estimate, 3)} ({range_text(effect.low, effect.high, 3)})"
