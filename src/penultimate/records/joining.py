"""Several kept studies as one: the parts of a study that were run apart, or on several machines."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from penultimate.errors import RequestError
from penultimate.networks.key import NetworkKey
from penultimate.records.archive import KEYS, KeptStudy, network_of, read_kept, write_kept
from penultimate.records.table import Row

SHARED = ("source", "limited")
"""What all parts must have in common with the whole."""
FROM_PARTS = ("num_features", "layers", "tuning")
"""What only studies that were run know of their networks."""


def join(
    parts: Sequence[Path | str],
    whole: Mapping[str, Any],
    keys: Collection[NetworkKey],
    to: Path | str,
    partial: bool = False,
) -> Path:
    """Write the kept parts of a study as the kept study; `whole` describes it, `keys` are its networks.

    If it is `partial`, networks may be in no part; what is shown then says that it is unfinished.

    Raises RequestError for a part of another source, for networks that the whole does not have or that no
    part has, and for a number that two parts hold with two values: what compares networks with each other can
    be in one part only.
    """
    kept = {str(part): read_kept(part) for part in parts}
    for name, part in kept.items():
        for setting in SHARED:
            if part.description.get(setting) != whole.get(setting):
                raise RequestError(
                    f"'{name}' is no part of {whole['name']}: its {setting} is"
                    f" {part.description.get(setting)!r}, that of {whole['name']} {whole.get(setting)!r}"
                )
    rows = _rows(kept)
    trained = [key for key in keys if not key.is_given]
    missing = _missing(rows, kept, str(whole["name"]), trained)
    if missing and not partial:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise RequestError(
            f"no part holds '{missing[0]}'{more}, so this is not the whole of {whole['name']};"
            " --partial joins the parts that there are"
        )
    facts = {
        setting: part.description[setting]
        for part in reversed(kept.values())
        for setting in FROM_PARTS
        if setting in part.description
    }
    typed = ["penultimate", "join", str(whole["name"]), *kept, "--to", str(to)]
    command = shlex.join([*typed, "--partial"] if partial else typed)
    provenances = [part.provenance for part in kept.values()]
    description = {**whole, "command": command, **facts}
    far = {"networks": [len(trained) - len(missing), len(trained)]}
    return write_kept(to, rows, description, {**_joined(provenances), **far, "command": command})


def _rows(kept: Mapping[str, KeptStudy]) -> list[tuple[Row, KeptStudy]]:
    """The rows of all parts, a row that several parts hold once."""
    first: dict[tuple[Any, ...], tuple[Row, str]] = {}
    for name, part in kept.items():
        for row in part.table:
            kind = str(row.step).partition(".")[0]
            place = (network_of(row), kind, *(getattr(row, column) for column in KEYS[1:]))
            known, owner = first.setdefault(place, (row, name))
            same = known.value == row.value or (math.isnan(known.value) and math.isnan(row.value))
            if not same and owner != name:
                raise RequestError(
                    f"'{owner}' and '{name}' both hold {row.metric} of '{network_of(row)}', with two values:"
                    f" {known.value:g} and {row.value:g}; what compares networks can be measured in one part"
                    " only"
                )
    return [(row, kept[name]) for row, name in first.values()]


def _missing(
    rows: Sequence[tuple[Row, KeptStudy]],
    kept: Mapping[str, KeptStudy],
    whole: str,
    trained: Sequence[NetworkKey],
) -> list[NetworkKey]:
    """The networks of the whole that no part has; raises RequestError for one that the whole lacks."""
    of_one = (row for row, _ in rows if row.objective and row.objective_b is None and row.seed is not None)
    measured = {network_of(row) for row in of_one}
    foreign = sorted(str(key) for key in measured - {*trained})
    if foreign:
        names = [
            name for name, part in kept.items() if foreign[0] in {str(network_of(row)) for row in part.table}
        ]
        raise RequestError(
            f"'{names[0]}' holds '{foreign[0]}', which {whole} does not have; it is of another study"
        )
    return [key for key in trained if key not in measured]


def _joined(provenances: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Where all rows come from: lists and tables united, seconds and steps added up."""
    first = provenances[0]
    return {
        **first,
        **{
            name: sorted({value for each in provenances for value in each.get(name, ())})
            for name in ("commit", "hosts")
        },
        "dirty": any(each.get("dirty") for each in provenances),
        "processor": ", ".join(dict.fromkeys(str(each.get("processor", "")) for each in provenances)),
        **{
            name: {key: value for each in provenances for key, value in each.get(name, {}).items()}
            for name in ("data", "diverged", "diverged_networks", "undefined", "classes_not_validated")
        },
        "seconds": dict(sum((Counter(each.get("seconds", {})) for each in provenances), Counter())),
        "steps": {
            name: [sum(each["steps"].get(name, (0, 0))[side] for each in provenances) for side in (0, 1)]
            for name in dict.fromkeys(name for each in provenances for name in each["steps"])
        },
    }
