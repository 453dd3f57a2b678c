"""Rules on networks in pairs, with objectives left out in turn: likeness of layers, and mixed ensembles."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence

from penultimate.paper.arms import ONE_DRAW
from penultimate.paper.claims.aspects import QUANTITIES
from penultimate.paper.claims.effects import BySeed
from penultimate.paper.claims.evidence import Evidence, StudyEvidence
from penultimate.paper.claims.rules import LastLayers, NoMixture
from penultimate.paper.claims.trials import EffectUnit, Trial, Trials, one, refused, too_few, unit
from penultimate.report.measurements import Measurements
from penultimate.report.shapes.depth import in_order
from penultimate.report.shapes.pairs import Pairs, pairs_of
from penultimate.report.text import counted, in_words, listed

CKA = EffectUnit("{}", 3)


def last_layers(evidence: Evidence, _: LastLayers) -> Trials:
    """Return how much more alike networks of one objective are than of two, in the first and last layers."""
    study = isinstance(evidence, StudyEvidence) and evidence.measurements.or_in_arm(ONE_DRAW)
    layers = likeness_by_layer(study) if study else {}
    objectives = sorted(
        {a.objective for pairs in layers.values() for a, b in pairs if a.objective == b.objective}
    )
    if len(layers) < 3 or not objectives:
        return evidence.lacking("likeness")
    third, enough = len(layers) // 3, int(evidence.criteria.least_objectives.value)
    first, last = [*layers.values()][:third], [*layers.values()][-third:]
    extent = counted(len(objectives), "objective")
    if len(objectives) < enough:
        few = too_few(len(objectives), enough, "objective")
        return refused(f"{extent}, {counted(len(layers), 'layer')}", few)

    def gap_in(of_layers: Sequence[Pairs]) -> Callable[[Sequence[str]], float]:
        def gap(among: Sequence[str]) -> float:
            each_layer = [_likeness(pairs, among) for pairs in of_layers]
            return math.fsum(same - apart for same, apart in each_layer) / len(of_layers)

        return gap

    of_last, of_first = (jackknife(gap_in(of_layers), objectives) for of_layers in (last, first))
    others = math.fsum(_likeness(pairs, objectives)[1] for pairs in last) / third
    margin, far = evidence.criteria.least_gain.value * (1 - others), evidence.further.far.value
    runs, names = len(objectives), [listed([*layers][part]) for part in (slice(third), slice(-third, None))]
    shown, found = (Trial(evidence.effect((of,), (1,), margin), CKA, runs=runs) for of in (of_first, of_last))
    trials = (
        dataclasses.replace(found, name=names[1], over=""),
        Trial(
            evidence.effect((of_last, of_first), (far, -1)),
            CKA,
            names[0],
            runs=runs,
            over="",
            least=f"a difference below {far:g} of that in the last layers",
        ),
    )
    alike = in_words(sum(gap_in([*_of_objective(last, each)])(objectives) > 0 for each in objectives), "none")
    remark = f" In the last layers CKA is higher within than between for {alike} of {extent}."
    lead = f"CKA within less between objectives {shown.text} in {names[0]}, {found.text} in {names[1]}"
    return Trials({"": trials}, lead=lead, extent=extent, numbers=False, remark=remark)


def likeness_by_layer(measurements: Measurements) -> dict[str, Pairs]:
    """Return the CKA of each layer between any two networks of different seeds, from the first layer on."""
    rows = measurements.rows(QUANTITIES["likeness"].metric)
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
    sides: dict[bool, list[float]] = {True: [], False: []}
    for (a, b), value in pairs.items():
        if a.objective in objectives and b.objective in objectives:
            sides[a.objective == b.objective].append(value)
    same, apart = (
        math.fsum(sides[side]) / len(sides[side]) if sides[side] else math.nan for side in (True, False)
    )
    return same, apart


def _of_objective(layers: Sequence[Pairs], one_of: str) -> list[Pairs]:
    """Return the pairs in which an objective has a network."""
    return [
        {(a, b): value for (a, b), value in pairs.items() if one_of in (a.objective, b.objective)}
        for pairs in layers
    ]


def jackknife(gap: Callable[[Sequence[str]], float], objectives: Sequence[str]) -> BySeed:
    """Return the pseudo-values n m - (n - 1) m' of the objectives, as `difference` takes the runs of seeds.

    Here m is the gap among all objectives, and m' leaves one of them out.
    """
    n, whole = len(objectives), gap(objectives)
    return {
        place: n * whole - (n - 1) * gap([other for other in objectives if other != left])
        for place, left in enumerate(objectives)
    }


def no_mixture(evidence: Evidence, _: NoMixture) -> Trials:
    """Return what ensembles of two objectives gain over the better of the ensembles of one, in the mean."""
    study = isinstance(evidence, StudyEvidence) and evidence.measurements.or_in_arm(ONE_DRAW)
    pairs = pairs_of(study, QUANTITIES["ensembles"]) if study else {}
    of_pairs = {(a.objective, b.objective): 100 * value for (a, b), value in pairs.items()}
    objectives = [spec for spec in dict.fromkeys(a for a, _ in of_pairs) if (spec, spec) in of_pairs]
    mixed = {(a, b): value for (a, b), value in of_pairs.items() if a != b and {a, b} <= {*objectives}}
    softmax = evidence.alternatives("accuracy")[0]
    if not mixed or not softmax:
        return evidence.lacking("ensembles")
    enough = int(evidence.criteria.least_objectives.value)
    extent = f"mean of {counted(len(mixed), 'mixture')} of {counted(len(objectives), 'objective')}"
    if len(objectives) < enough:
        return refused(extent, too_few(len(objectives), enough, "objective"))

    def gain(among: Sequence[str]) -> float:
        gains = [
            value - max(of_pairs[a, a], of_pairs[b, b])
            for (a, b), value in mixed.items()
            if {a, b} <= {*among}
        ]
        return math.fsum(gains) / len(gains)

    effect = evidence.effect((jackknife(gain, objectives),), (1,), evidence.least("accuracy", softmax))
    return one(Trial(effect, unit("accuracy"), denied=True, runs=len(objectives), over=""), extent)
