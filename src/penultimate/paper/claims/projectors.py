"""The rules on hidden layers that are thrown away: do they take the loss's specialisation with them?

A projector is hidden layers between the penultimate features and the head; they are dropped after training.
Features are read before it, at the same place with it and without. The rules were written on 2026-11-27,
before any network of the arm `behind a projector` was trained. The objectives are fixed, not sampled: five
are enough where seeds and tasks are resampled, and all five are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penultimate.objectives.presets import resolve
from penultimate.paper.arms import BEHIND_A_PROJECTOR
from penultimate.paper.claims.effects import Effect
from penultimate.paper.claims.evidence import BASELINE, LINEAR, Evidence, Quantity, least
from penultimate.paper.claims.margins import LEAST_TASKS
from penultimate.paper.claims.spreads import by_task, of_resamples, spreads
from penultimate.paper.claims.trials import Trial, Trials, Unit, alone, refused, too_few
from penultimate.results.text import counted, fixed, listed

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.paper.claims.rules import Rule

OBJECTIVES = (
    "softmax",
    "label_smoothing(alpha=0.2)",
    "logit_norm(temperature=0.057)",
    "cosine_softmax(scale=1, temperature=0.05)",
    "squared_error(kappa=9, scale=1.28, target=3.75)",
)
"""The objectives that are compared, at the strengths that the holdout of the searches chose."""
DEPTHS = (0, 1, 2)
"""The numbers of hidden layers that are thrown away."""
ARMS = ("", "projector", BEHIND_A_PROJECTOR)
"""The arms whose networks are compared: the main one, softmax with a projector, and the others with one."""


def behind(objective: str, depth: int) -> str:
    """Return the canonical spec of an objective behind a projector of this depth.

    >>> behind("label_smoothing(alpha=0.2)", 1), behind("softmax", 0)
    ('label_smoothing(alpha=0.2) + projector(depth=1, width=512)', 'softmax')
    """
    return resolve(f"{objective} + projector(depth={depth})" if depth else objective).canonical


def by_depth(of: Evidence, quantity: Quantity, task: str = "") -> dict[int, pd.DataFrame]:
    """Return a quantity at every depth [seed, objective without layers], of those that have any."""
    measured: dict[str, pd.Series] = {}
    for arm in ARMS:
        frame = of.at(arm).frame(quantity, task)
        specs = {each.slug: each.spec for each in of.study.objectives(arm)}
        measured = {**{specs[slug]: frame[slug].dropna() for slug in frame}, **measured}
    import pandas as pd

    wanted = {depth: {spec: behind(spec, depth) for spec in OBJECTIVES} for depth in DEPTHS}
    return {
        depth: pd.DataFrame({spec: measured[own] for spec, own in of_depth.items() if own in measured})
        for depth, of_depth in wanted.items()
    }


def projected(test: str, quantity: Quantity = LINEAR) -> Rule:
    """Make a rule on two layers thrown away: "gain" in transfer, less "spread", or no "loss" of accuracy."""

    def rule(of: Evidence) -> Trials | None:
        if of.run is None or BEHIND_A_PROJECTOR not in of.run.arms:
            return None
        found = by_depth(of, quantity)
        if found[0].empty or all(found[depth].empty for depth in DEPTHS[1:]):
            return None
        absent = [
            f"{resolve(spec).label} at depth {depth}"
            for depth in (DEPTHS[0], DEPTHS[-1])
            for spec in OBJECTIVES
            if spec not in found[depth]
        ]
        if absent:
            return refused(_levels(found), f"Not measured, or diverged: {listed(absent)}.")
        if test == "spread":
            return _spread(of, quantity, found)
        return _mean(of, quantity, found, is_loss=test == "loss")

    return rule


def _mean(of: Evidence, quantity: Quantity, found: Mapping[int, pd.DataFrame], is_loss: bool) -> Trials:
    """Return the mean gain from no layer to two, or the loss from softmax with none to all with two."""
    plain, deep = found[DEPTHS[0]], found[DEPTHS[-1]]
    sides = (plain[[BASELINE]], deep) if is_loss else (deep, plain)
    groups = [side[spec].dropna() for side in sides for spec in side]
    weights = [1 / sides[0].shape[1]] * sides[0].shape[1] + [-1 / sides[1].shape[1]] * sides[1].shape[1]
    effect, runs = of.effect(groups, weights, least(quantity, plain[BASELINE]))
    lead = f"Softmax with no layer thrown away {fixed(plain[BASELINE].mean(), 2)} %; " if is_loss else ""
    trial = Trial(effect, quantity.unit, denied=is_loss, sign=-1 if is_loss else 1, runs=runs)
    return alone(trial, lead=f"{lead}{_levels(found)}")


def _levels(found: Mapping[int, pd.DataFrame]) -> str:
    """Return the mean over all objectives at each depth."""
    whole = {depth: of.dropna().mean(axis=1) for depth, of in found.items() if of.shape[1] == len(OBJECTIVES)}
    return listed([f"{fixed(of.mean(), 2)} % at depth {depth}" for depth, of in whole.items()])


def _spread(of: Evidence, quantity: Quantity, found: Mapping[int, pd.DataFrame]) -> Trials:
    """Return the fall of the objectives' spread in transfer from no layer thrown away to two."""
    import numpy as np

    ends = DEPTHS[-1], DEPTHS[0]
    tasks = [by_depth(of, quantity, task) for task in of.tasks(quantity)]
    extent = f"{counted(len(OBJECTIVES), 'objective')}, {counted(len(tasks), 'task')}"
    if len(tasks) < LEAST_TASKS:
        return refused(extent, too_few(len(tasks), LEAST_TASKS, "task"))
    whole = [each[depth].dropna().index for each in (found, *tasks) for depth in ends]
    seeds: Sequence[int] = sorted(set.intersection(*map(set, whole)))
    if not of.is_enough(len(seeds)):
        return refused(extent, f"Seeds that all objectives have at both depths: {len(seeds)}, too few.")
    deep, plain = (by_task([task[depth] for task in tasks], OBJECTIVES, seeds) for depth in ends)
    apart = spreads(deep, plain, True)
    margin = least(quantity, found[DEPTHS[0]][BASELINE])
    falls = np.sqrt(apart.drawn_y) - np.sqrt(apart.drawn_x)
    low, high, counts, none = of_resamples(falls, margin, 0.0)
    effect = Effect(apart.of_y - apart.of_x, low, high, margin, p_for=none, p_against=counts)
    unit = Unit("{} points of spread in transfer")
    lead = f"Spread {fixed(apart.of_y, 2)} points with no layer thrown away, {fixed(apart.of_x, 2)} with two"
    return alone(Trial(effect, unit, sign=-1, runs=len(seeds)), lead)
