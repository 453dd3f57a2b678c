"""Several kept studies as one: the parts of a study that were run apart, or on several machines."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from penultimate.errors import RequestError
from penultimate.files import given_path
from penultimate.networks.key import NetworkKey, grid
from penultimate.records.archive import (
    DIGITS,
    KeptStudy,
    kind_of,
    network_of,
    quantity_of,
    read_kept,
    write_kept,
)
from penultimate.records.table import Row
from penultimate.training.recipe import Recipe

Parts: TypeAlias = Mapping[str, KeptStudy]
Asked: TypeAlias = Iterable[tuple[str, Mapping[str, Any]]]
SHARED = ("source", "limited")
"""The entries of a description that all parts have in common with the whole."""
FROM_PARTS = ("num_features", "layers", "tuning")
"""The entries that are known only after a run."""


def join(
    parts: Sequence[Path | str],
    whole: Mapping[str, Any],
    keys: Collection[NetworkKey],
    asked: Asked,
    to: Path | str,
    partial: bool = False,
) -> Path:
    """Write the kept parts of a study as the kept study; `whole` describes it, `keys` are its networks.

    `asked` are its measurements: the kind, and the columns that its rows have in common. If the whole is
    `partial`, parts may lack networks and measurements, and what is shown of it says that it is unfinished.

    Raises RequestError for a part of another source or other images, for a network that was made or measured
    under other settings than the whole's or that the whole does not have, for networks and measurements that
    no part has, and for a number of which two parts have two values.
    """
    to, study = given_path(to, "--to"), str(whole["name"])
    kept = {str(part): read_kept(part) for part in parts}
    if to.resolve() in {Path(part).resolve() for part in kept}:
        raise RequestError(
            f"'{to}' is one of the parts, which are kept as they are; give --to another folder"
        )
    images: dict[str, tuple[str, str]] = {}
    for name, part in kept.items():
        _expect_part(name, part, whole)
        for data, digest in part.provenance.get("data", {}).items():
            first, owner = images.setdefault(data, (digest, name))
            if first != digest:
                raise RequestError(f"the images of {data} are not the same in '{owner}' and '{name}'")
    rows = _rows(kept)
    trained = [key for key in keys if not key.is_given]
    missing = _missing(rows, kept, study, trained)
    lacking = _lacking(kept, whole, asked)
    absent = [f"'{key}'" for key in missing] or [*lacking]
    if absent and not partial:
        of_several = f" (the first of {len(absent)} lacking)" if len(absent) > 1 else ""
        raise RequestError(
            f"no part holds {absent[0]}{of_several}, so this is not the whole of {study};"
            " --partial joins the parts that there are"
        )
    descriptions = [part.description for part in reversed(kept.values())]
    known = {entry: held[entry] for held in descriptions for entry in FROM_PARTS if entry in held}
    options = ["--to", str(to), *(["--partial"] if partial else [])]
    command = shlex.join(["penultimate", "join", study, *kept, *options])
    unfinished = {*missing, *lacking.values()}
    provenance = {
        **_joined([part.provenance for part in kept.values()], [row for row, _ in rows]),
        "networks": [sum(key not in unfinished for key in trained), len(trained)],
        "lacking": list(lacking),
        "command": command,
    }
    return write_kept(to, rows, {**whole, "command": command, **known}, provenance)


def _expect_part(name: str, part: KeptStudy, whole: Mapping[str, Any]) -> None:
    """Raise RequestError for a part of another source, or with networks that were made otherwise."""
    ours, study = _settings(whole), whole["name"]
    for entry in SHARED:
        there, here = part.description.get(entry), whole.get(entry)
        if there != here:
            raise RequestError(
                f"'{name}' is no part of {study}: its {entry} is {there!r}, that of {study} {here!r}"
            )
    for key, theirs in _settings(part.description).items():
        for setting in sorted(theirs.keys() & ours.get(key, {}).keys()):
            if theirs[setting] != ours[key][setting]:
                raise RequestError(
                    f"'{name}' is no part of {study}: {setting} of '{key}' is {theirs[setting]} in it, and"
                    f" in {study} {ours[key][setting]}"
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
            recipe = dataclasses.asdict(Recipe.of_record(block["recipe"])) if "recipe" in block else {}
            names = ("objectives", "backbones", "seeds", "draws", "arm")
            how = dict(_flat("recipe", recipe))
            made = {key: how for key in grid(*(block[name] for name in names))}  # noqa: C420
        for key, settings_of in made.items():
            settings.setdefault(key, {}).update({**settings_of, **measured})
    return settings


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _flat(f"{name}.{part}", inner)
    else:
        yield name, value


def _rows(kept: Parts) -> list[tuple[Row, KeptStudy]]:
    """Return the rows of all parts, each with its part; a row that several parts hold once."""
    first: dict[tuple[Any, ...], tuple[Row, str]] = {}
    for name, part in kept.items():
        for row in part.table:
            known, owner = first.setdefault((network_of(row), *quantity_of(row)), (row, name))
            same = known.value == row.value or (math.isnan(known.value) and math.isnan(row.value))
            if not same and owner != name:
                raise RequestError(
                    f"'{owner}' and '{name}' both hold {row.metric} of '{network_of(row)}', with two values:"
                    f" {known.value:.{DIGITS}g} and {row.value:.{DIGITS}g}; what compares networks can be"
                    " measured in one part only"
                )
    return [(row, kept[name]) for row, name in first.values()]


def _missing(
    rows: Sequence[tuple[Row, KeptStudy]], kept: Parts, whole: str, trained: Sequence[NetworkKey]
) -> list[NetworkKey]:
    """Return the networks of the whole that no part has; raises RequestError for one that the whole lacks."""
    owners: dict[NetworkKey, KeptStudy] = {}
    for row, part in rows:
        if row.objective and row.objective_b is None and row.seed is not None:
            owners.setdefault(network_of(row), part)
    for key, part in owners.items():
        if key not in trained:
            name = next(name for name, each in kept.items() if each is part)
            raise RequestError(f"'{name}' holds '{key}', which {whole} does not have; it is of another study")
    diverged = _diverged(kept)
    return [key for key in trained if key not in owners and key not in diverged]


def _diverged(kept: Parts) -> set[NetworkKey]:
    of_parts = (part.provenance.get("diverged_networks", {}).values() for part in kept.values())
    return {NetworkKey(**network) for steps in of_parts for networks in steps for network in networks}


def _lacking(kept: Parts, whole: Mapping[str, Any], asked: Asked) -> dict[str, NetworkKey]:
    """Return the measurements that no part holds, in words, each with its network.

    A part holds what it asks for, except what it says that it lacks. A measurement of several networks
    together is held only by a part that asks for it of all of them.
    """
    ours, diverged = _settings(whole), _diverged(kept)
    main = next((block["backbones"][0] for block in whole["networks"] if "backbones" in block), "")
    held = [(_settings(part.description), part) for part in kept.values()]
    lacking: dict[str, NetworkKey] = {}
    groups: dict[tuple[str, NetworkKey], list[NetworkKey]] = {}
    for kind, columns in asked:
        target = columns.get("target")
        shared = {name: columns[name] for name in vars(NetworkKey("")) if columns.get(name) is not None}
        shared |= {"arm": columns["arm"] or ""} if "arm" in columns else {}
        group = NetworkKey(**{"objective": "", **shared})
        if (kind, group) not in groups:
            groups[kind, group] = [
                key
                for key, settings in ours.items()
                if kind in settings
                and shared.items() <= {**vars(key), "backbone": key.backbone or main}.items()
            ]
        networks = groups[kind, group]
        words = kind + (f" of '{group}'" if str(group) else "") + (f" on {target}" if target else "")
        if not diverged.issuperset(networks) and not any(
            target in (part.description["source"], *part.description["targets"], None)
            and words not in part.provenance.get("lacking", ())
            and all(kind in settings.get(key, ()) for key in networks)
            for settings, part in held
        ):
            lacking[words] = group
    return lacking


def _joined(provenances: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> dict[str, Any]:
    """Return the provenance of all rows: facts are united, seconds and steps added up.

    What failed in one part and was measured in another is no failure.
    """
    joined: dict[str, Any] = functools.reduce(_united, provenances, {})
    measured = {(kind_of(row), row.objective, row.target) for row in rows}
    steps, seconds = dict[str, list[int]](), Counter[str]()
    for each in provenances:
        seconds.update(each.get("seconds", {}))
        for kind, counts in each["steps"].items():
            steps[kind] = list(map(sum, zip(steps.get(kind, (0, 0)), counts, strict=True)))
    failed = {
        step: facts
        for step, facts in joined.get("failed", {}).items()
        if (step.partition(".")[0], facts.get("network"), facts.get("target")) not in measured
    }
    last = max(str(each.get("measured", "")) for each in provenances)
    return {**joined, "failed": failed, "seconds": dict(seconds), "steps": steps, "measured": last}


def _united(here: Any, there: Any) -> Any:
    """Return two parts' facts as one: tables and lists united, texts that differ one after the other."""
    if isinstance(here, Mapping):
        both = {name: _united(here[name], there[name]) for name in here if name in there}
        return {**here, **there, **both}
    if isinstance(here, list):
        return [*here, *(each for each in there if each not in here)]
    if isinstance(here, str):
        return here if there in here else f"{here}, {there}"
    return here or there if isinstance(here, bool) else here
