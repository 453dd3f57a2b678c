"""Several kept studies as one: the parts of a study that were run apart, or on several machines."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penultimate.errors import RequestError
from penultimate.files import given_path
from penultimate.networks.key import NetworkKey, grid
from penultimate.records.archive import DIGITS, KEYS, KeptStudy, network_of, read_kept
from penultimate.records.keeping import write_kept
from penultimate.records.table import Row
from penultimate.training.recipe import Recipe

SHARED = ("source", "limited")
"""What all parts must have in common with the whole."""
FROM_PARTS = ("num_features", "layers", "tuning")
"""What only studies that were run know of their networks."""
TABLES = (
    *("data", "diverged", "undefined", "undefined_of", "classes_not_validated"),
    *("left_out", "remarks", "copies", "images", "prepared", "noted"),
)
"""Tables of the provenance that the whole has of all parts."""
OF_ONE = ("objective", "backbone", "arm", "seed", "draw")
"""The columns that say of which network a measurement is, or what those have in common that it takes."""


def join(
    parts: Sequence[Path | str],
    whole: Mapping[str, Any],
    keys: Collection[NetworkKey],
    asked: Iterable[tuple[str, Mapping[str, Any]]],
    to: Path | str,
    partial: bool = False,
) -> Path:
    """Write the kept parts of a study as the kept study; `whole` describes it, `keys` are its networks.

    `asked` are its measurements: what is measured, and the columns that the rows have in common. If it is
    `partial`, parts may lack networks and measurements; what is shown then says that it is unfinished.

    Raises RequestError for a part of another source or other images, for a network that was made or measured
    under other settings than the whole's, for networks that the whole does not have, for networks and
    measurements that no part has, and for a number that two parts hold with two values: what compares
    networks with each other is measured in one part, of all of them.
    """
    to = given_path(to, "--to")
    if to.resolve() in {given_path(part, "a kept part").resolve() for part in parts}:
        raise RequestError(
            f"'{to}' is one of the parts, which are kept as they are; give --to another folder"
        )
    kept = {str(part): read_kept(part) for part in parts}
    for name, part in kept.items():
        for setting in SHARED:
            if part.description.get(setting) != whole.get(setting):
                raise RequestError(
                    f"'{name}' is no part of {whole['name']}: its {setting} is"
                    f" {part.description.get(setting)!r}, that of {whole['name']} {whole.get(setting)!r}"
                )
        _expect_alike(name, part.description, whole)
    _expect_the_same_images(kept)
    rows = _rows(kept)
    trained = [key for key in keys if not key.is_given]
    missing = _missing(rows, kept, str(whole["name"]), trained)
    lacking = _lacking(kept, whole, asked)
    if (missing or lacking) and not partial:
        absent = [f"'{key}'" for key in missing] or [*lacking]
        of_several = f" (the first of {len(absent)} lacking)" if len(absent) > 1 else ""
        raise RequestError(
            f"no part holds {absent[0]}{of_several}, so this is not the whole of {whole['name']};"
            " --partial joins the parts that there are"
        )
    unfinished = {*missing, *lacking.values()}
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
    far = {
        "networks": [sum(key not in unfinished for key in trained), len(trained)],
        "lacking": list(lacking),
    }
    return write_kept(
        to, rows, description, {**_joined(provenances, (row for row, _ in rows)), **far, "command": command}
    )


def _expect_alike(name: str, part: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    """Raise RequestError, with the setting, for a network that a part made or measured otherwise."""
    ours, theirs = _settings(whole), _settings(part)
    for key in filter(theirs.__contains__, ours):
        for setting in sorted(theirs[key].keys() & ours[key].keys()):
            there, here = theirs[key][setting], ours[key][setting]
            if there != here:
                raise RequestError(
                    f"'{name}' is no part of {whole['name']}: {setting} of '{key}' is {there} in it, and in"
                    f" {whole['name']} {here}"
                )


def _settings(description: Mapping[str, Any]) -> dict[NetworkKey, dict[str, Any]]:
    """Return how a study made and measured each network: {"recipe.epochs": 3, "knn": "knn(k=5)", ...}."""
    settings: dict[NetworkKey, dict[str, Any]] = {}
    for block in json.loads(json.dumps(description["networks"])):
        texts = description.get("measure", ()) if block["measure"] is None else block["measure"]
        measured = {text.partition("(")[0]: text for text in texts}
        if "given" in block:
            made = {NetworkKey(name): {"source": source} for name, source in block["given"].items()}
        else:
            names = ("objectives", "backbones", "seeds", "draws", "arm")
            own = "recipe" in block  # none where networks existed already
            recipe = dict(_flat("recipe", dataclasses.asdict(Recipe(**block["recipe"])) if own else {}))
            made = dict.fromkeys(grid(*(block[name] for name in names)), recipe)
        for key, how in made.items():
            settings.setdefault(key, {}).update({**how, **measured})
    return settings


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _flat(f"{name}.{part}", inner)
    else:
        yield name, value


def _expect_the_same_images(kept: Mapping[str, KeptStudy]) -> None:
    """Raise RequestError for a data set whose images are others in another part."""
    first: dict[str, tuple[str, str]] = {}
    for name, part in kept.items():
        for data, digest in part.provenance.get("data", {}).items():
            known, owner = first.setdefault(data, (digest, name))
            if known != digest:
                raise RequestError(f"the images of {data} are not the same in '{owner}' and '{name}'")


def _lacking(
    kept: Mapping[str, KeptStudy],
    whole: Mapping[str, Any],
    asked: Iterable[tuple[str, Mapping[str, Any]]],
) -> dict[str, NetworkKey]:
    """Return the measurements that no part holds, in words, each with its network.

    A part holds what it asks for, but for what it says that it lacks; a measurement that takes several
    networks together it holds where it asks for it of all of them. Of networks that all diverged there is
    nothing to be measured.
    """
    ours, diverged = _settings(whole), _diverged(kept)
    main = next((block["backbones"][0] for block in whole["networks"] if "backbones" in block), "")
    of_parts = [
        (
            _settings(part.description),
            {part.description["source"], *part.description["targets"]},
            {*part.provenance.get("lacking", ())},
        )
        for part in kept.values()
    ]
    together: dict[tuple[Any, ...], list[NetworkKey]] = {}
    lacking = {}
    for kind, columns in asked:
        target = columns.get("target")
        shared = {name: columns[name] for name in OF_ONE if columns.get(name) is not None}
        if "arm" in columns:
            shared["arm"] = columns["arm"] or ""
        group = (kind, *shared.items())
        if group not in together:
            together[group] = [
                key
                for key, settings in ours.items()
                if kind in settings
                and shared.items() <= {**vars(key), "backbone": key.backbone or main}.items()
            ]
        networks = together[group]
        key = NetworkKey(**{"objective": "", **shared})
        of, on = f" of '{key}'" if str(key) else "", f" on {target}" if target else ""
        said = f"{kind}{of}{on}"
        held = any(
            said not in lacks and target in targets and all(kind in theirs.get(one, ()) for one in networks)
            for theirs, targets, lacks in of_parts
        )
        if not held and not diverged.issuperset(networks):
            lacking[said] = key
    return lacking


def _diverged(kept: Mapping[str, KeptStudy]) -> set[NetworkKey]:
    of_parts = (part.provenance.get("diverged_networks", {}).values() for part in kept.values())
    of_steps = itertools.chain.from_iterable(of_parts)
    return {NetworkKey(**of) for of in itertools.chain.from_iterable(of_steps)}


def _rows(kept: Mapping[str, KeptStudy]) -> list[tuple[Row, KeptStudy]]:
    """Return the rows of all parts, a row that several parts hold once."""
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
                    f" {known.value:.{DIGITS}g} and {row.value:.{DIGITS}g}; what compares networks can be"
                    " measured in one part only"
                )
    return [(row, kept[name]) for row, name in first.values()]


def _missing(
    rows: Sequence[tuple[Row, KeptStudy]],
    kept: Mapping[str, KeptStudy],
    whole: str,
    trained: Sequence[NetworkKey],
) -> list[NetworkKey]:
    """Return the networks of the whole that no part has; raises RequestError for one that the whole lacks."""
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
    diverged = _diverged(kept)
    return [key for key in trained if key not in measured and key not in diverged]


def _each_once(of_parts: Iterable[Mapping[str, list[Any]]]) -> dict[str, list[Any]]:
    """Return the lists of all parts by their names, what several hold once."""
    joined: dict[str, list[Any]] = {}
    for name, values in itertools.chain.from_iterable(part.items() for part in of_parts):
        known = joined.setdefault(name, [])
        known += [value for value in values if value not in known]
    return joined


def _united(name: str, provenances: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: value for each in provenances for key, value in each.get(name, {}).items()}


def _joined(provenances: Sequence[Mapping[str, Any]], rows: Iterable[Row]) -> dict[str, Any]:
    """Return where all rows come from: lists and tables united, seconds and steps added up.

    What failed in one part and was measured in another is no failure.
    """
    first = provenances[0]
    measured = {(str(row.step).partition(".")[0], row.objective, row.target) for row in rows}
    return {
        **first,
        **{
            name: sorted({value for each in provenances for value in each.get(name, ())})
            for name in ("commit", "hosts")
        },
        "dirty": any(each.get("dirty") for each in provenances),
        "measured": max(str(each.get("measured", "")) for each in provenances),
        **{
            name: ", ".join(dict.fromkeys(str(each.get(name, "")) for each in provenances))
            for name in ("processor", "device", "python")
        },
        **{name: united for name in TABLES if (united := _united(name, provenances)) or name in first},
        "failed": {
            step: of
            for step, of in _united("failed", provenances).items()
            if (step.partition(".")[0], of.get("network"), of.get("target")) not in measured
        },
        "diverged_networks": _each_once(each.get("diverged_networks", {}) for each in provenances),
        "seconds": dict(sum((Counter(each.get("seconds", {})) for each in provenances), Counter())),
        "steps": {
            name: [sum(each["steps"].get(name, (0, 0))[side] for each in provenances) for side in (0, 1)]
            for name in dict.fromkeys(name for each in provenances for name in each["steps"])
        },
    }
