"""The progress of a study, the command that continues it, and the reasons of undefined measurements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.text import counted, plain


def unfinished(measurements: Measurements) -> str:
    """Return the progress of an unfinished study, such as "98 of 187 steps", or an empty string."""
    provenance = measurements.results.provenance
    counts = {
        "networks": [provenance.get("networks", (0, 0))],  # of a study that was joined of parts
        "steps": provenance.get("steps", {}).values(),
    }
    for what, pairs in counts.items():
        done, total = (sum(pair[side] for pair in pairs) for side in (0, 1))
        if done < total:
            return f"{done:,} of {total:,} {what}"
    lacking = len(provenance.get("lacking", ()))
    return f"{counted(lacking, 'measurement')} not done" if lacking else ""


def way_on(measurements: Measurements, quantities: Collection[Quantity]) -> str:
    """Return the study's own command if it will still yield any of the quantities, or an empty string."""
    if not {quantity.arm for quantity in quantities} <= {*measurements.arms}:
        return ""
    provenance = measurements.results.provenance
    left = [kind for kind, (done, total) in provenance.get("steps", {}).items() if done < total]
    is_coming = any(quantity.is_yielded_by(kind) for quantity in quantities for kind in left)
    return str(provenance["command"]) if is_coming else ""


def undefined(measurements: Measurements, quantities: Collection[Quantity]) -> str:
    """Return why the quantities have no value; empty if one has a value or is not measured yet."""
    results = measurements.results
    reasons = {
        plain(why).rstrip("."): None
        for step, why in results.provenance.get("undefined", {}).items()
        if any(quantity.is_yielded_by(step.partition(".")[0]) for quantity in quantities)
    }
    has_any = bool(reasons) and any(one.covers(row) for row in results.table for one in quantities)
    return "" if has_any else "; ".join(reasons)


def needs_training(measurements: Measurements, quantities: Collection[Quantity]) -> bool:
    """Return whether only the training of networks yields the quantities, and these exist already."""
    arms = {quantity.arm for quantity in quantities}
    grids = [block for arm in arms for block in measurements.networks.grids(arm)]
    exist = bool(grids) and all("checkpoints" in block for block in grids)
    return exist and all(quantity.over == "epochs" for quantity in quantities)


def whose(provenance: Mapping[str, Any], step: str) -> str:
    """Return the names of the network and the task of a step that failed or has no value."""
    known = {**provenance.get("undefined_of", {}), **provenance.get("failed", {})}.get(step, {})
    names = [known[name] for name in ("network", "target") if known.get(name)]
    return " on ".join(map(plain, names)) or step.partition(".")[2].rpartition(".")[0]
