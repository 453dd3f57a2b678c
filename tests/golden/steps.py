"""The ids of all steps of four studies, frozen: a step that has another id is computed, and trained, again.

`python -m tests.golden.steps` writes `steps.json` from today's code.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from penultimate.graph import Step
from penultimate.study import load_study
from penultimate.study.unfold import unfold

FILE = Path(__file__).with_name("steps.json")
STUDIES = ("smoke", "nine", "evidence", "sweep")

Kinds = dict[str, dict[str, Any]]


def kinds(name: str) -> Kinds:
    """Return, for each kind of step of a study, the number of steps, their ids and digests.

    `ids` holds the last 16 digits of each id in the graph's order, `names` digests the whole ids, and
    `parents` digests each id with its parents.
    """
    found: defaultdict[str, list[Step]] = defaultdict(list)
    for step in unfold(load_study(name)).steps.values():
        found[step.name].append(step)
    return {
        kind: {
            "steps": len(steps),
            "names": _digest([step.id for step in steps]),
            "parents": _digest([f"{step.id} {' '.join(sorted(step.parents))}" for step in steps]),
            "ids": " ".join(step.id[-16:] for step in steps),
        }
        for kind, steps in sorted(found.items())
    }


def changes(before: Kinds, after: Kinds) -> list[str]:
    """Return a line for each kind of step that changed."""
    lines = []
    for kind in sorted({*before, *after}):
        if kind not in after or kind not in before:
            lines.append(f"{kind}: {'no longer there' if kind in before else 'new'}")
            continue
        old, new = before[kind], after[kind]
        was, now = old["ids"].split(), new["ids"].split()
        if {*was} != {*now}:
            gone, come = len({*was} - {*now}), len({*now} - {*was})
            lines.append(f"{kind}: {len(was)} steps became {len(now)} (ids gone: {gone}, new: {come})")
        elif was != now:
            lines.append(f"{kind}: the same {len(now)} steps in another order")
        elif old["names"] != new["names"]:
            lines.append(f"{kind}: the labels in its ids changed")
        elif old["parents"] != new["parents"]:
            lines.append(f"{kind}: the same steps have other parents")
    return lines


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: kinds(name) for name in STUDIES}, indent=1) + "\n")
