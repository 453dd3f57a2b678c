"""Measurements that a study asks for today and that a kept run lacks because it is older."""

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
    """Return the description of the registered study of this name, or an empty one if there is none."""
    from penultimate.study import load_study

    return load_study(name).describe() if name in registry.names("study") else {}


def additions_note(results: StudyResults) -> str:
    """Return a sentence that lists what today's study has in addition, or an empty string."""
    more = _additions(results.description, results.today)
    return f"{_date_phrase(results)}, before {_study(results)} had {listed(more)}." if more else ""


def with_reason(
    gap: Missing, results: StudyResults, needed: Iterable[tuple[Quantity, tuple[str, ...]]]
) -> Missing:
    """Return a gap, with the reason if only today's study asks for any of the quantities that it needs.

    Each quantity comes with the arms whose networks may have it.
    """
    fresh = _measurements_asked(results.today) - _measurements_asked(results.description)
    if not any(arm in arms and one.is_yielded_by(kind) for one, arms in needed for arm, kind in fresh):
        return gap
    when = _date_phrase(results)
    why = f"{when[0].lower()}{when[1:]}, before {_study(results)} asked for it;"
    return dataclasses.replace(gap, why=why).run_by(_study(results))


def _date_phrase(results: StudyResults) -> str:
    day = results.provenance.get("measured", "")
    return f"This run was measured{f' on {plain(day)}' if day else ''}"


def _study(results: StudyResults) -> str:
    return plain(results.description.get("name", ""))


def _measurements_asked(description: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the measurements that a study asks for, each with the arm whose networks it measures."""
    of_all = description.get("measure", ())
    return {
        (str(block.get("arm", "")), name_in(text))
        for block in description.get("networks", ())
        for text in ("train", *(of_all if block.get("measure") is None else block["measure"]))
    }


def _additions(pinned: Mapping[str, Any], today: Mapping[str, Any]) -> list[str]:
    """Return the objectives, data sets, arms, architectures, measurements and seeds that are new today."""
    if not today:
        return []
    then, now = StudyNetworks(pinned), StudyNetworks(today)
    specs = {entry["spec"] for entry in pinned.get("objectives", ())}
    more = {
        "objective": [plain(one["label"]) for one in today["objectives"] if one["spec"] not in specs],
        "data set": [plain(card(name).title) for name in today["targets"] if name not in pinned["targets"]],
        "arm": [plain(arm) for arm in now.arms if arm not in then.arms],
        "architecture": [plain(name) for name in now.backbones if name not in then.backbones],
        "measurement": sorted(
            {kind for _, kind in _measurements_asked(today)}
            - {kind for _, kind in _measurements_asked(pinned)}
        ),
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
