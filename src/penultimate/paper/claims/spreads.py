"""Claims about the spread of objectives in one quantity, as a share of their spread in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penultimate.data.catalog import shifted
from penultimate.objectives.presets import PRESETS
from penultimate.paper.claims.aspects import ELSEWHERE, MEASURED_BY, NAMES, Aspect
from penultimate.paper.claims.criteria import CRITERIA, FURTHER, Criteria, FurtherCriteria
from penultimate.paper.claims.effects import BySeed, Effect, Verdict, common_seeds, decide
from penultimate.paper.claims.evidence import Assessment, Evidence, not_judged, paper, unmeasured
from penultimate.paper.claims.rules import Narrower
from penultimate.paper.claims.wording import not_enough_runs, range_text, runs_each, too_few
from penultimate.report.text import counted, fixed, p_value

if TYPE_CHECKING:
    import numpy as np

PLACES: dict[Aspect, tuple[str, str]] = {
    "fine_tuned": ("fine-tuned", "task"),
    "robust": ("on shifted test sets", "shifted test set"),
    "linear": ("with linear classifiers", "task"),
}
"""Words for where the objectives are spread, and for what the means are taken over."""


@dataclass(frozen=True)
class Ratio:
    """The spreads in x and in y, and their ratio as an effect.

    The effect is how far the ratio is below `far`.
    """

    of_x: float
    of_y: float
    effect: Effect

    @property
    def value(self) -> float:
        return self.of_x / self.of_y


def spread_ratio(
    x: np.ndarray,
    y: np.ndarray,
    same_tasks: bool,
    criteria: Criteria = CRITERIA,
    further: FurtherCriteria = FURTHER,
) -> Ratio | None:
    """Return the spread of x [k n t] over that of y [k n u]: k objectives, n seeds, t or u tasks.

        v = sum_{s != r} w_s w_r C_sr / sum_{s != r} w_s w_r,    spread = sqrt(max(v, 0))

    C_sr is the covariance, over objectives, of their means over tasks in seed s and in seed r; w_s is how
    often a seed is drawn (once, for the estimate). The noise of a run enters no product of two seeds, and
    what a seed adds to all objectives enters no covariance. Resamples of a single seed are left out. The
    result is deterministic, and None if y has no spread beyond chance.

    Owen, 2007.
    """
    import numpy as np

    def variance(values: np.ndarray, seeds: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Return v [b] of resamples, given how often each draws a seed [b n] and a task [b t]."""
        centred = values - values.mean(0)
        means = np.einsum("bt,knt->bnk", tasks / tasks.sum(1, keepdims=True), centred)
        pairs = seeds[:, :, None] * seeds[:, None, :] * (1 - np.eye(seeds.shape[1]))
        products = np.einsum("bnk,bmk,bnm->b", means, means, pairs, optimize=True)
        found: np.ndarray = products / pairs.sum((1, 2)) / (len(values) - 1)
        return found

    n, t, u = x.shape[1], x.shape[2], y.shape[2]
    once = [np.ones((1, size)) for size in (n, t, u)]
    of_x, of_y = (
        float(np.sqrt(np.maximum(variance(values, once[0], tasks), 0))[0])
        for values, tasks in ((x, once[1]), (y, once[2]))
    )
    if of_y <= 1e-9 * float(np.abs(y).max()):
        return None
    random, count = np.random.default_rng(0), int(further.resamples.value)
    seeds, in_x, in_y = (
        random.multinomial(size, np.full(size, 1 / size), size=count).astype(float) for size in (n, t, u)
    )
    several = (seeds > 0).sum(1) > 1
    seeds, in_x, in_y = seeds[several], in_x[several], (in_x if same_tasks else in_y)[several]
    squares = [np.maximum(variance(*drawn), 0) for drawn in ((x, seeds, in_x), (y, seeds, in_y))]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sqrt(squares[0] / squares[1])
    ratios = np.nan_to_num(ratios, nan=np.inf, posinf=np.inf)
    tail = criteria.one_sided * further.tail.value
    low, high = (float(end) for end in np.quantile(ratios, [tail, 1 - tail], method="inverted_cdf"))
    least, ratio = further.far.value, of_x / of_y
    above, below = (
        min(1.0, (1 + int(beyond.sum())) / (1 + len(ratios)) / further.tail.value)
        for beyond in (ratios >= least, ratios <= least)
    )
    return Ratio(of_x, of_y, Effect(least - ratio, least - high, least - low, 0.0, above, below))


def narrower(evidence: Evidence, rule: Narrower, criteria: Criteria, further: FurtherCriteria) -> Assessment:
    """Judge whether the spread of the objectives in x is far below that in y."""
    import numpy as np

    of_x, of_y = _by_task(evidence, rule.x), _by_task(evidence, rule.y)
    for aspect, tasks in ((rule.x, of_x), (rule.y, of_y)):
        if not tasks:
            return unmeasured(NAMES[aspect], ELSEWHERE.get(rule.x, f"penultimate run {MEASURED_BY}"))
    parts = [*of_x.values(), *of_y.values()]
    shared = {
        spec: [seed for seed in runs if all(seed in part.get(spec, {}) for part in parts)]
        for spec, runs in parts[0].items()
    }
    shared = {spec: seeds for spec, seeds in shared.items() if seeds}
    usable = [spec for spec, seeds in shared.items() if len(seeds) >= criteria.least_runs.value]
    enough = int(criteria.least_objectives.value)
    extent = f"{counted(len(shared), 'objective')}, {counted(len(of_x), PLACES[rule.x][1])}"
    if len(shared) < enough:
        return not_judged(extent, too_few(len(shared), enough, "objective"))
    seeds = common_seeds(dict.fromkeys(shared[spec], 0.0) for spec in usable) if usable else []
    if len(usable) < enough or len(seeds) < criteria.least_runs.value:
        counts = [len(seeds)] if len(usable) >= enough else [len(of) for of in shared.values()]
        return not_judged(extent, not_enough_runs(counts, criteria))
    for aspect, tasks in ((rule.x, of_x), (rule.y, of_y)):
        needed = int((further.least_sets if aspect == "robust" else further.least_tasks).value)
        if len(tasks) < needed:
            return not_judged(extent, too_few(len(tasks), needed, PLACES[aspect][1]))
    x, y = (
        np.array([[[runs[spec][seed] for runs in tasks.values()] for seed in seeds] for spec in usable])
        for tasks in (of_x, of_y)
    )
    found = spread_ratio(x, y, same_tasks=[*of_x] == [*of_y], criteria=criteria, further=further)
    if found is None:
        where = PLACES[rule.y][0]
        return not_judged(extent, f"No spread beyond chance {where}, of which to take a share.")
    effect, least = found.effect, fixed(further.far.value, 2)
    interval = range_text(further.far.value - effect.high, further.far.value - effect.low, 2)
    ours = (
        f"{_spreads_text(rule, found.of_x, found.of_y)} ({interval}, 99 %),"
        f" {counted(len(usable), 'objective')}, {counted(len(of_x), PLACES[rule.x][1])},"
        f" {runs_each([len(seeds)])}"
    )
    verdict = decide(effect, criteria)
    reasons: dict[Verdict, str] = {
        "holds": f"Excluded: a ratio of {least} or more ({p_value(effect.p)}).",
        "does not hold": f"Excluded: a ratio below {least} ({p_value(min(1, 2 * effect.p_against))}).",
        "undecided": f"Both are possible: a ratio below {least}, and one above it.",
    }
    return Assessment(ours, verdict, reasons[verdict])


def _by_task(evidence: Evidence, aspect: Aspect) -> dict[str, Mapping[str, BySeed]]:
    """Return the runs of every objective by task, or by shifted test set, if there are any."""
    of_study = evidence.measurements
    tasks: Sequence[str] = tuple(shifted(of_study.source)) if aspect == "robust" else of_study.targets
    by_task = {task: evidence.on_task(task).values(aspect) for task in tasks}
    return {task: runs for task, runs in by_task.items() if runs}


def _spreads_text(rule: Narrower, of_x: float, of_y: float) -> str:
    return (
        f"Spread {fixed(of_x, 2)} points {PLACES[rule.x][0]}, {fixed(of_y, 2)} {PLACES[rule.y][0]}: ratio"
        f" {fixed(of_x / of_y, 2)}"
    )


def narrower_in_paper(rule: Narrower) -> str:
    """Return the ratio of spreads of the paper's printed means, also without the objective lowest in y."""
    from statistics import stdev

    x, y = paper(rule.x), paper(rule.y)
    farthest = min(y, key=lambda name: y[name])
    rest = [name for name in y if name != farthest]
    without = fixed(stdev(x[name] for name in rest) / stdev(y[name] for name in rest), 2)
    said = _spreads_text(rule, stdev(x.values()), stdev(y.values()))
    return f"{said} (without {PRESETS[farthest].label} {without}), {counted(len(y), 'objective')}"
