"""What a study asks for today that a kept run of it does not hold, because it was measured before."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from penultimate import registry
from penultimate.data.catalog import card
from penultimate.networks.key import NetworkKey, grid
from penultimate.report.base import Missing, StudyResults
from penultimate.report.networks import StudyNetworks, name_in
from penultimate.report.quantity import Quantity
from penultimate.report.text import listed, plain


def todays(name: str) -> Mapping[str, Any]:
    """Return the description of the registered study of this name; an empty one where there is none."""
    from penultimate.study import load_study

    return load_study(name).describe() if name in registry.names("study") else {}


def told(results: StudyResults) -> str:
    """Return a sentence that says what today's study has besides; "" where it has no more."""
    more = _more(results.description, results.today)
    return f"{_when(results)}, before {_study(results)} had {listed(more)}." if more else ""


def with_reason(
    gap: Missing, results: StudyResults, needed: Iterable[tuple[Quantity, tuple[str, ...]]]
) -> Missing:
    """Return a gap with its reason, where the study asks only today for any of the quantities that it needs.

    Each quantity comes with the arms whose networks it may be of.
    """
    fresh = _asked(results.today) - _asked(results.description)
    if not any(arm in arms and one.is_yielded_by(kind) for one, arms in needed for arm, kind in fresh):
        return gap
    when = _when(results)
    why = f"{when[0].lower()}{when[1:]}, before {_study(results)} asked for it;"
    return dataclasses.replace(gap, why=why).run_by(_study(results))


def _when(results: StudyResults) -> str:
    day = results.provenance.get("measured", "")
    return f"This run was measured{f' on {plain(day)}' if day else ''}"


def _study(results: StudyResults) -> str:
    return plain(results.description.get("name", ""))


def _asked(description: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return what a study asks for, each measurement with an arm of which it is asked."""
    of_all = description.get("measure", ())
    return {
        (str(block.get("arm", "")), name_in(text))
        for block in description.get("networks", ())
        for text in ("train", *(of_all if block.get("measure") is None else block["measure"]))
    }


def _more(pinned: Mapping[str, Any], today: Mapping[str, Any]) -> list[str]:
    """Return what only today's study has: objectives, data sets, arms, architectures, measurements, seeds."""
    if not today:
        return []
    then, now = StudyNetworks(pinned), StudyNetworks(today)
    specs = {entry["spec"] for entry in pinned.get("objectives", ())}
    more = {
        "objective": [plain(one["label"]) for one in today["objectives"] if one["spec"] not in specs],
        "data set": [plain(card(name).title) for name in today["targets"] if name not in pinned["targets"]],
        "arm": [plain(arm) for arm in now.arms if arm not in then.arms],
        "architecture": [plain(name) for name in now.backbones if name not in then.backbones],
        "measurement": sorted({kind for _, kind in _asked(today)} - {kind for _, kind in _asked(pinned)}),
    }
    said = [
        f"the {what}{'s' if len(names) > 1 else ''} {listed(names)}" for what, names in more.items() if names
    ]
    if not said and _networks(today) - _networks(pinned):
        return ["further networks"]
    return said


def _networks(description: Mapping[str, Any]) -> set[NetworkKey]:
    """Return the networks that a study trains."""
    blocks = [block for block in description["networks"] if "objectives" in block]
    names = ("objectives", "backbones", "seeds", "draws", "arm")
    return {key for block in blocks for key in grid(*(block[name] for name in names))}
