"""A study beside a kept run: its networks in the tables and figures of networks that were measured before.

A study names the run (`Study.beside`). Of the run only those numbers are taken that can be compared: of the
main arm and architecture, of the seeds and draws that both have, and of the measurements that both made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from penultimate.errors import as_sentence
from penultimate.records.archive import KeptStudy, reference
from penultimate.records.table import Row, Table
from penultimate.report.base import StudyResults
from penultimate.report.measurements import measured_by
from penultimate.report.networks import name_in
from penultimate.report.text import listed, plain

OWN = "own"
"""The entry of a description that lists the specs of the study's own objectives, beside those of the run."""
FREE = ("learning_rate", "evaluate_every", "snapshot_every")
"""Settings of a recipe that may differ: a loss may have its own learning rate, and the others show more."""
TRAINED = "train"
DRAWING = ("matplotlib", "numpy", "penultimate", "pillow", "scipy", "torch")
"""The packages that decide which images are drawn, but for rounding, which depends on the processor."""


def beside_reference(results: StudyResults) -> StudyResults:
    """Return the results of a study with the kept run that it names, or as they are if it names none."""
    name = str(results.description.get("beside", ""))
    return beside(results, reference(name)) if name else results


def beside(own: StudyResults, kept: KeptStudy) -> StudyResults:
    """Return the results of a study and those of a kept run that can be compared with them.

    If none can, the study's own results are returned, and `why_apart` says why.
    """
    why = reason_apart(own, kept)
    name = str(kept.description["name"])
    if why:
        return dataclasses.replace(own, provenance={**own.provenance, "apart": {name: why}})
    specs = {spec for block in _main(own.description) for spec in block["objectives"]}
    pairs = _seeds(own.description) & _seeds(kept.description)
    asked = _texts_asked(own.description)
    grids = [
        {**block, "backbones": block["backbones"][:1], "seeds": seeds, "measure": measured}
        for block in _main(kept.description, _backbone(own.description))
        if (seeds := [seed for seed in block["seeds"] if (seed, _draw(block, seed)) in pairs])
        and (measured := [text for text in _measured(kept.description, block) if text in asked])
    ]
    theirs = [spec for block in grids for spec in block["objectives"]]
    rows = [row for row in kept.table if _is_shown(row, {*theirs} - specs, pairs, asked, own.description)]
    entries = {entry["spec"]: entry for entry in kept.description["objectives"] if entry["spec"] in theirs}
    entries |= {entry["spec"]: entry for entry in _named_apart(own.description["objectives"], entries)}
    facts = {key: kept.description[key] for key in ("num_features", "layers") if key in kept.description}
    searches = [
        *_as_list(kept.description.get("tuning")),
        *(one for one in _as_list(own.description.get("tuning")) if one["study"] == own.name),
    ]
    description = {
        **facts,
        **own.description,
        "networks": [*grids, *own.description["networks"]],
        "objectives": [*entries.values()],
        "tuning": searches,
        "limited": bool(own.description.get("limited")) or bool(kept.description.get("limited")),
        OWN: sorted(specs),
    }
    steps = frozenset(own.description.get("steps") or (str(row.step) for row in own.table))

    def arrays(step: str, metric: str) -> Mapping[str, Any]:
        if step in steps and own.arrays is not None:
            return own.arrays(step, metric)
        return kept.arrays(step, metric)

    told = {key: kept.provenance.get(key) for key in ("command", "measured", "commit", "processor")}
    told["rounding"] = rounding_words(own.provenance, kept.provenance)
    record = {**own.provenance, "beside": {name: {**told, "rows_sha256": kept.digest}}}
    return dataclasses.replace(
        own, description=description, table=Table([*rows, *own.table]), provenance=record, arrays=arrays
    )


def held_of_all(
    description: Mapping[str, Any], seeds: Sequence[int]
) -> tuple[tuple[str, ...], frozenset[tuple[int, int]]]:
    """Return what a kept run measured of its first objective for each of these seeds, and its known seeds.

    The seeds come with their draws.
    """
    grids = _main(description)
    of_first = [block for block in grids if grids[0]["objectives"][0] in block["objectives"]]
    held: dict[str, set[int]] = {}
    for block in of_first:
        if block["backbones"] == grids[0]["backbones"]:
            for text in _measured(description, block):
                held.setdefault(text, set()).update(block["seeds"])
    wanted = {*seeds} & {seed for seed, _ in _seeds(description)}
    return tuple(text for text, of in held.items() if wanted <= of), frozenset(_seeds(description))


def why_apart(results: StudyResults) -> str:
    """Return the sentence on why a study does not stand beside the kept run that it names, or ""."""
    apart = results.provenance.get("apart", {}) if results.description.get("beside") else {}
    return "".join(
        as_sentence(f"Not shown beside `{plain(name)}`: {plain(why)}") for name, why in apart.items()
    )


def reason_apart(own: StudyResults, kept: KeptStudy) -> str:
    """Return why no number of a kept run can be compared with those of a study, or ""."""
    name = str(kept.description["name"])
    if own.description["source"] != kept.description["source"]:
        return (
            f"its networks were trained on {own.description['source']}, those of {name} on"
            f" {kept.description['source']}"
        )
    ours, theirs = _main(own.description), _main(kept.description, _backbone(own.description))
    if not ours or not theirs:
        return f"{name} has no networks of the architecture {_backbone(own.description) or 'of this study'}"
    for setting, value in theirs[0]["recipe"].items():
        found = ours[0]["recipe"].get(setting)
        if setting not in FREE and _plain(found) != _plain(value):
            return f"its networks were trained with {setting} = {found}, those of {name} with {value}"
    if not _seeds(own.description) & _seeds(kept.description):
        seeds = listed([str(seed) for seed, _ in sorted(_seeds(kept.description))])
        return f"none of its seeds, each with its draw of the data, is one of {name}'s ({seeds})"
    data = _drawn_otherwise(own.provenance, kept.provenance)
    if data and not _differs_by_rounding(own.provenance, kept.provenance):
        return (
            f"the images of {data} are not those of {name}; other versions of the libraries that draw"
            " them, or of this package, make other images"
        )
    return ""


def rounding_words(own: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    """Return a sentence if the images of two runs, by their provenance, differ by rounding alone, or ""."""
    if not _drawn_otherwise(own, kept) or not _differs_by_rounding(own, kept):
        return ""
    return (
        f"Their images were drawn on another kind of processor ({plain(kept['processor'])}), where rounding"
        " changes a few values in a million by one grey level."
    )


def _drawn_otherwise(own: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    """Return the first data set whose images are not, bit for bit, the same in two runs, or ""."""
    known = kept.get("data", {})
    return next((of for of, digest in own.get("data", {}).items() if known.get(of, digest) != digest), "")


def _differs_by_rounding(own: Mapping[str, Any], kept: Mapping[str, Any]) -> bool:
    """Return whether only the kind of processor can have made images differ: all versions are the same."""
    ours, theirs = ({name: run.get("packages", {}).get(name) for name in DRAWING} for run in (own, kept))
    processors = [str(run.get("processor", "")).partition(" (")[0] for run in (own, kept)]
    return ours == theirs and None not in ours.values() and processors[0] != processors[1]


def _is_shown(
    row: Row,
    specs: set[str],
    pairs: set[tuple[int, int]],
    asked: frozenset[str],
    description: Mapping[str, Any],
) -> bool:
    if row.arm or row.objective not in specs or row.backbone not in (None, _backbone(description)):
        return False
    if row.objective_b is not None or row.seed is None or row.draw is None:
        return False
    return (row.seed, row.draw) in pairs and measured_by(row) in {TRAINED, *map(name_in, asked)}


def _main(description: Mapping[str, Any], backbone: str = "") -> list[dict[str, Any]]:
    """Return the trained grids of the main arm, or those of one architecture among them."""
    return [
        {**block, "backbones": [backbone or block["backbones"][0]]}
        for block in description["networks"]
        if "recipe" in block and not block["arm"] and (not backbone or backbone in block["backbones"])
    ]


def _backbone(description: Mapping[str, Any]) -> str:
    return next((block["backbones"][0] for block in _main(description)), "")


def _draw(block: Mapping[str, Any], seed: int) -> int:
    return seed if block["draws"] == "seed" else int(block["draws"])


def _seeds(description: Mapping[str, Any]) -> set[tuple[int, int]]:
    """Return the seeds of the main grid with the draws that they see."""
    return {(seed, _draw(block, seed)) for block in _main(description)[:1] for seed in block["seeds"]}


def _measured(description: Mapping[str, Any], block: Mapping[str, Any]) -> list[str]:
    return list(description["measure"] if block["measure"] is None else block["measure"])


def _texts_asked(description: Mapping[str, Any]) -> frozenset[str]:
    """Return what a study measures of its main networks, as canonical specs."""
    return frozenset(text for block in _main(description) for text in _measured(description, block))


def _named_apart(
    ours: Sequence[Mapping[str, str]], theirs: Mapping[str, Mapping[str, str]]
) -> list[Mapping[str, str]]:
    """Return the study's own objectives; one whose short name the run has already is called by its spec."""
    taken = {entry["slug"]: spec for spec, entry in theirs.items()}
    return [
        entry
        if taken.get(entry["slug"], entry["spec"]) == entry["spec"]
        else {**entry, "slug": entry["spec"]}
        for entry in ours
    ]


def _as_list(held: Any) -> list[Any]:
    return [held] if isinstance(held, Mapping) else list(held or ())


def _plain(value: Any) -> Any:
    """Return a setting as JSON has it, so that tuples and lists of equal values are equal."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
