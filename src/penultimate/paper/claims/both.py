"""The rule of the search for an objective that beats softmax in both pretraining accuracy and transfer.

It was written on 2026-11-27, before any network of the studies `better_search` and `better` was trained.

Choosing. Twelve candidates are compared with softmax within seeds: seven in `better_search` (two seeds), and
five in `sweep` (three seeds), where they were trained already. A candidate's score is the smaller one of its
mean gain in test accuracy and its mean gain in linear transfer, both in points, over the tasks CHOOSING. The
candidate with the highest score is chosen, even if the score is negative.

Confirming. The study `better` trains softmax and the chosen objective again with eight seeds, each with a
draw of the world that no other study uses, and transfers them to the tasks CONFIRMING, which the choice did
not see. The claim holds if the objective gains on softmax in test accuracy and in mean transfer, each by as
much as counts and beyond chance; both have to, so that neither is corrected. It does not hold if a gain that
counts is excluded in one of the two, corrected for two by Holm's method.
"""

from __future__ import annotations

from penultimate.paper.claims.evidence import ACCURACY, BASELINE, Evidence, Quantity, least
from penultimate.paper.claims.rules import Rule
from penultimate.paper.claims.trials import Trial, Trials, Unit
from penultimate.results.rows import Objective, Run

STUDY = "better"
"""The study that measures what these rules judge."""
NEW_CANDIDATES = (
    "projector(depth=1)",
    "projector(depth=2)",
    "projector(depth=3)",
    "projector(depth=1) + label_smoothing(alpha=0.2)",
    "projector(depth=1) + logit_penalty(beta=0.0006)",
    "projector(depth=1) + sigmoid",
    "label_smoothing(alpha=0.2) + logit_penalty(beta=0.0006)",
)
"""The candidates that `better_search` trains, beside softmax."""
KEPT_CANDIDATES = (
    "label_smoothing(alpha=0.2)",
    "logit_penalty(beta=0.0006)",
    "logit_penalty(beta=0.0024)",
    "sigmoid",
    "sigmoid + logit_penalty(beta=0.0003)",
)
"""The candidates that `sweep` holds already."""
CANDIDATES = (*NEW_CANDIDATES, *KEPT_CANDIDATES)
SEARCHED = {"better_search": NEW_CANDIDATES, "sweep": KEPT_CANDIDATES}
"""The studies from whose networks the choice was made, each with its candidates."""
SEEN = {"sweep": (200, 201, 202)}
"""The seeds that the choice saw, of a study that has had more since."""
CHOOSING = ("syllabics", "armenian", "maths", "digits")
"""The tasks that the choice sees: every other one of the world's eight, from the first on."""
CONFIRMING = ("georgian", "cyrillic", "typeface", "newfaces")
"""The tasks that the choice does not see."""


def other_of(run: Run) -> Objective | None:
    """Return the objective of a study that trains softmax and one other, and has nothing else."""
    objectives = run.objectives()
    has_given = any("given" in block for block in run.description.get("networks", ()))
    if len(objectives) != 2 or len(run.arms) > 1 or has_given:
        return None
    others = [each for each in objectives if each.slug != BASELINE]
    return others[0] if len(others) == 1 else None


def gain(of: Evidence, quantity: Quantity) -> Trial | None:
    """Return what the other objective of a pair has more than softmax, or None if either has no value."""
    other = None if of.run is None else other_of(of.run)
    frame = of.frame(quantity)
    if other is None or not {other.slug, BASELINE} <= {*frame}:
        return None
    groups = frame[other.slug].dropna(), frame[BASELINE].dropna()
    effect, runs = of.effect(groups, (1, -1), least(quantity, groups[1]))
    unit = Unit("{}" if quantity.top == 1 else "{} points", quantity.unit.digits)
    return Trial(effect, unit, quantity.name, runs=runs)


def better_in_both(transfer: Quantity) -> Rule:
    """Make the rule that the one objective beside softmax is above it in test accuracy and in transfer."""

    def rule(of: Evidence) -> Trials | None:
        trials = [found for quantity in (ACCURACY, transfer) if (found := gain(of, quantity))]
        if len(trials) < 2 or of.run is None:
            return None
        return Trials({"": trials})

    return rule
