"""A study beside a kept run: its networks in the tables and figures of networks that were measured before.

A study names the run (`Study.beside`). Of the run only those numbers are taken that can be compared: of the
main arm and architecture, of the seeds and draws that both have, and of the measurements that both made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate.errors import as_sentence
from penultimate.results.text import listed, plain

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.records.archive import KeptStudy

Run: TypeAlias = Any
"""A `rows.Run`, which is not imported from there: reading one imports this file."""
OWN = "own"
"""The entry of a description that lists the specs of the study's own objectives, beside those of the run."""
FREE = ("learning_rate", "evaluate_every", "snapshot_every")
"""Settings of a recipe that may differ: a loss may have its own learning rate, and the others show more."""
DRAWING = ("matplotlib", "numpy", "penultimate", "pillow", "scipy", "torch")
"""The packages that decide which images are drawn, but for rounding, which depends on the processor."""


def beside_reference(run: Run) -> Run:
    """Return a study with the kept run that it names, or as it is if it names none."""
    from penultimate.records.archive import reference

    name = str(run.description.get("beside", ""))
    return beside(run, reference(name)) if name else run


def beside(own: Run, kept: KeptStudy) -> Run:
    """Return a study with the networks of a kept run that can be compared with its own.

    If none can, the study is returned, and `why_apart` says why.
    """
    import pandas as pd

    why, name = reason_apart(own, kept), str(kept.description["name"])
    if why:
        return replace(own, provenance={**own.provenance, "apart": {name: why}})
    specs = {spec for block in _main(own.description) for spec in block["objectives"]}
    pairs = _seeds(own.description) & _seeds(kept.description)
    asked = {text for block in _main(own.description) for text in _measured(own.description, block)}
    grids = [
        {**block, "seeds": seeds, "measure": measured}
        for block in _main(kept.description, _backbone(own.description))
        if (seeds := [seed for seed in block["seeds"] if (seed, _draw(block, seed)) in pairs])
        and (measured := [text for text in _measured(kept.description, block) if text in asked])
    ]
    theirs = [spec for block in grids for spec in block["objectives"]]
    rows = _shown(kept.table.frame(), {*theirs} - specs, pairs, asked, _backbone(own.description))
    entries = {entry["spec"]: entry for entry in kept.description["objectives"] if entry["spec"] in theirs}
    slugs = {entry["slug"]: spec for spec, entry in entries.items()}
    for entry in own.description["objectives"]:
        is_taken = slugs.get(entry["slug"], entry["spec"]) != entry["spec"]
        entries[entry["spec"]] = {**entry, "slug": entry["spec"]} if is_taken else entry
    searches = [_as_list(each.description.get("tuning")) for each in (kept, own)]
    description = {
        **{key: kept.description[key] for key in ("num_features", "layers") if key in kept.description},
        **own.description,
        "networks": [*grids, *own.description["networks"]],
        "objectives": [*entries.values()],
        "tuning": [*searches[0], *(one for one in searches[1] if one["study"] == own.name)],
        "limited": bool(own.description.get("limited")) or bool(kept.description.get("limited")),
        OWN: sorted(specs),
    }
    steps = frozenset(own.description.get("steps") or own.frame["step"].dropna().astype(str))

    def arrays(step: str, metric: str) -> Mapping[str, Any]:
        return own.arrays(step, metric) if step in steps and own.arrays else kept.arrays(step, metric)

    told = {key: kept.provenance.get(key) for key in ("command", "measured", "commit", "processor")}
    told |= {"rounding": rounding_words(own.provenance, kept.provenance), "rows_sha256": kept.digest}
    return replace(
        own,
        frame=pd.concat([rows, own.frame], ignore_index=True),
        description=description,
        provenance={**own.provenance, "beside": {name: told}},
        arrays=arrays,
    )


def _shown(
    rows: pd.DataFrame, specs: set[str], pairs: set[tuple[int, int]], asked: set[str], backbone: str
) -> pd.DataFrame:
    """Return the rows of some objectives' networks by the measurements that were asked for."""
    kinds = {"train", *(text.partition("(")[0] for text in asked)}
    where = rows["arm"].isna() & rows["objective"].isin(specs) & rows["objective_b"].isna()
    where &= rows["backbone"].isna() | (rows["backbone"] == backbone)
    where &= rows["step"].astype(object).str.partition(".")[0].isin(kinds)
    rows = rows[where & rows["seed"].notna() & rows["draw"].notna()]
    return rows[[pair in pairs for pair in zip(rows["seed"], rows["draw"], strict=True)]]


def held_of_all(
    description: Mapping[str, Any], seeds: Sequence[int]
) -> tuple[tuple[str, ...], frozenset[tuple[int, int]]]:
    """Return what a kept run measured of its first objective for each of these seeds, and its known seeds.

    The seeds come with their draws.
    """
    grids = _main(description)
    held: dict[str, set[int]] = {}
    for block in grids:
        if grids[0]["objectives"][0] in block["objectives"] and block["backbones"] == grids[0]["backbones"]:
            for text in _measured(description, block):
                held.setdefault(text, set()).update(block["seeds"])
    wanted = {*seeds} & {seed for seed, _ in _seeds(description)}
    return tuple(text for text, of in held.items() if wanted <= of), frozenset(_seeds(description))


def why_apart(run: Run) -> str:
    """Return the sentence on why a study does not stand beside the kept run that it names, or ""."""
    apart = run.provenance.get("apart", {}) if run.description.get("beside") else {}
    told = (f"Not shown beside `{plain(name)}`: {plain(why)}" for name, why in apart.items())
    return "".join(map(as_sentence, told))


def reason_apart(own: Run, kept: KeptStudy) -> str:
    """Return why no number of a kept run can be compared with those of a study, or ""."""
    name, backbone = str(kept.description["name"]), _backbone(own.description)
    sources = own.description["source"], kept.description["source"]
    if sources[0] != sources[1]:
        return f"its networks were trained on {sources[0]}, those of {name} on {sources[1]}"
    ours, theirs = _main(own.description), _main(kept.description, backbone)
    if not ours or not theirs:
        return f"{name} has no networks of the architecture {backbone or 'of this study'}"
    for setting, value in theirs[0]["recipe"].items():
        found = ours[0]["recipe"].get(setting)
        if setting not in FREE and json.dumps(found, sort_keys=True) != json.dumps(value, sort_keys=True):
            return f"its networks were trained with {setting} = {found}, those of {name} with {value}"
    if not _seeds(own.description) & _seeds(kept.description):
        seeds = listed([str(seed) for seed, _ in sorted(_seeds(kept.description))])
        return f"none of its seeds, each with its draw of the data, is one of {name}'s ({seeds})"
    data = _drawn_otherwise(own.provenance, kept.provenance)
    if data and not _differs_by_rounding(own.provenance, kept.provenance):
        return f"the images of {data} are not those of {name}: other versions of libraries drew them"
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


def _main(description: Mapping[str, Any], backbone: str = "") -> list[dict[str, Any]]:
    """Return the trained grids of the main arm, or those of one architecture among them."""
    return [
        {**block, "backbones": [backbone or block["backbones"][0]]}
        for block in description["networks"]
        if "recipe" in block and not block["arm"] and (not backbone or backbone in block["backbones"])
    ]


def _backbone(description: Mapping[str, Any]) -> str:
    return next((str(block["backbones"][0]) for block in _main(description)), "")


def _draw(block: Mapping[str, Any], seed: int) -> int:
    return seed if block["draws"] == "seed" else int(block["draws"])


def _seeds(description: Mapping[str, Any]) -> set[tuple[int, int]]:
    """Return the seeds of the main grid with the draws that they see."""
    return {(seed, _draw(block, seed)) for block in _main(description)[:1] for seed in block["seeds"]}


def _measured(description: Mapping[str, Any], block: Mapping[str, Any]) -> list[str]:
    return list(description["measure"] if block["measure"] is None else block["measure"])


def _as_list(held: Any) -> list[Any]:
    return [held] if isinstance(held, Mapping) else list(held or ())
