"""One page of several finished studies: each exhibit is of one of them, or of what they have in common.

Studies of the paper's size share their networks, and each measures something else of them. The order in which
they are named decides wherever two of them hold different numbers of one thing.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penultimate.data.catalog import card, remember
from penultimate.data.readers.entries import ENTRIES
from penultimate.errors import RequestError
from penultimate.networks.key import NetworkKey
from penultimate.objectives.presets import resolve
from penultimate.records.provenance import networks_made, provenance
from penultimate.records.reading import StudyFolder, out_option, study_folder
from penultimate.records.table import Row, Table
from penultimate.report.base import MISSING, Built, ExhibitTable, Figure, StudyResults
from penultimate.report.measurements import Measurements, admit
from penultimate.report.spec import Exhibit, assemble
from penultimate.report.text import listed

NUMBER = ("step", "value", "unit", "status")
"""The columns of a row that do not say what its number is of."""
QUANTITY = tuple(item.name for item in dataclasses.fields(Row) if item.name not in NUMBER)


def read_studies(path: Path | str, names: Sequence[str]) -> StudyResults:
    """Return the results of several finished studies of a store, joined where their networks are the same.

    Raises RequestError for a study that is named twice, is not finished or has no results, and for studies of
    different images.
    """
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"study '{name}' is named twice; name it once")
    folders = [study_folder(path, name) for name in names]
    for folder in folders:
        _expect_finished(folder)
    parts = [
        StudyResults(
            folder.described(), folder.table(), folder.contact_sheet(), provenance(folder), folder.arrays
        )
        for folder in folders
    ]
    for part in parts:
        if not len(part.table):
            raise RequestError(f"study '{part.name}' has no results: none of its steps left a number")
    return joined(parts, [networks_made(folder) for folder in folders])


def _expect_finished(folder: StudyFolder) -> None:
    counts = folder.counts().values()
    done, total = (sum(pair[side] for pair in counts) for side in (0, 1))
    if folder.is_search:
        raise RequestError(f"'{folder.name}' is a search for hyperparameters, which a page of studies lacks")
    if done < total:
        raise RequestError(
            f"study '{folder.name}' is not finished ({done:,} of {total:,} steps are done), and a page of"
            f" several is of finished ones; finish it, or leave it out:"
            f" {folder.description['command']}{out_option(folder.store.root)}"
        )


def _expect_common_images(parts: Sequence[StudyResults]) -> None:
    """Raise RequestError for studies whose networks were trained on images of different origin.

    ImageNet with a holdout and without are the same images, as their entries say.
    """
    for part in parts:
        for kept in part.description.get("cards", ()):
            remember(kept)
    cards = [card(str(part.description["source"])) for part in parts]
    first = cards[0]
    for part, of in zip(parts, cards, strict=True):
        published = of.name in ENTRIES and first.name in ENTRIES
        if of.name != first.name and not (published and of.citation == first.citation):
            raise RequestError(
                f"the networks of '{part.name}' were trained on {of.title}, those of '{parts[0].name}' on"
                f" {first.title}; one page is of one of them"
            )


def joined(parts: Sequence[StudyResults], networks: Sequence[Mapping[NetworkKey, str]]) -> StudyResults:
    """Return the results of several studies as one; `networks` are the steps that made the networks of each.

    A study joins the rows of those before it if it was pretrained on the same images, and if its networks of
    the same names are the same networks. Of two numbers of one quantity, the first counts.

    Raises RequestError for studies of different images.
    """
    _expect_common_images(parts)
    made: dict[NetworkKey, str] = {}
    together: list[StudyResults] = []
    apart: dict[str, str] = {}
    for part, of_part in zip(parts, networks, strict=True):
        if part.description["source"] != parts[0].description["source"]:
            apart[part.name] = f"pretrained on {card(str(part.description['source'])).title}"
        elif any(made.get(key, step) != step for key, step in of_part.items()):
            apart[part.name] = "other networks under the names of earlier ones"
        else:
            made |= of_part
            together.append(part)
    names = _names_of_objectives(parts)
    renamed = tuple(_with_names(part, names) for part in parts)
    own = [part for part in renamed if part.name not in apart]
    rows: dict[tuple[Any, ...], Row] = {}
    for part in own:
        for row in part.table:
            rows.setdefault(tuple(getattr(row, name) for name in QUANTITY), row)
    return StudyResults(
        _description(own, [part.name for part in parts]),
        Table(rows.values()),
        next((part.sheet for part in parts if part.sheet), None),
        {**_merged([part.provenance for part in own]), **_record(parts, apart)},
        _arrays_of(parts),
        parts=renamed,
    )


def _arrays_of(parts: Sequence[StudyResults]) -> Callable[[str, str], Mapping[str, Any]]:
    """Return a function that reads the arrays of a step from the study that has it."""

    def arrays(step: str, metric: str) -> Mapping[str, Any]:
        owner = next(part for part in parts if step in part.description["steps"])
        assert owner.arrays is not None
        return owner.arrays(step, metric)

    return arrays


def _names_of_objectives(parts: Iterable[StudyResults]) -> dict[str, dict[str, str]]:
    """Return one short name and label for each objective of several studies, by its spec.

    A short name that an earlier study gave to another objective is replaced by the spec.
    """
    names: dict[str, dict[str, str]] = {}
    taken: set[str] = set()
    for entry in (dict(entry) for part in parts for entry in part.description["objectives"]):
        if entry["spec"] not in names:
            if entry["slug"] in taken:
                entry |= {"slug": entry["spec"], "label": _detailed_label(entry["spec"], entry["label"])}
            taken.add(entry["slug"])
            names[entry["spec"]] = entry
    return names


def _detailed_label(spec: str, label: str) -> str:
    try:
        return resolve(spec).detailed_label
    except RequestError:  # of a plug-in that is not loaded
        return label


def _with_names(part: StudyResults, names: Mapping[str, Mapping[str, str]]) -> StudyResults:
    objectives = [names[entry["spec"]] for entry in part.description["objectives"]]
    return dataclasses.replace(part, description={**part.description, "objectives": objectives})


def _description(own: Sequence[StudyResults], names: Sequence[str]) -> dict[str, Any]:
    """Return the description of the joined studies: all their grids, with what each measures."""
    first = own[0].description
    grids: dict[str, dict[str, Any]] = {}
    for description in (part.description for part in own):
        for block in description["networks"]:
            measured = block.get("measure")
            measured = description["measure"] if measured is None else measured
            alike = str({key: block[key] for key in sorted(block) if key != "measure"})
            known = grids.setdefault(alike, {**block, "measure": []})
            known["measure"] = list(dict.fromkeys([*known["measure"], *measured]))
    lists = {
        key: list(dict.fromkeys(value for part in own for value in part.description.get(key, ())))
        for key in ("targets", "measure", "tuned_by", "steps")
    }
    objectives = {entry["spec"]: entry for part in own for entry in part.description["objectives"]}
    cards = {kept["name"]: kept for part in own for kept in part.description.get("cards", ())}
    return {
        **_merged([part.description for part in own]),
        **lists,
        "name": listed([*names]),
        "title": f"{len(names)} studies on one page: {listed([*names])}",
        "question": first.get("question", ""),
        "networks": list(grids.values()),
        "objectives": list(objectives.values()),
        "cards": list(cards.values()),
        "limited": any(part.description.get("limited") for part in own),
        "command": f"penultimate report {' '.join(map(shlex.quote, names))}",
    }


def _record(parts: Sequence[StudyResults], apart: Mapping[str, str]) -> dict[str, Any]:
    """Return where the numbers of each study come from, and which studies are not joined with the others."""
    kept = ("command", "measured", "commit", "seconds")
    studies = {
        part.name: {key: part.provenance[key] for key in kept if key in part.provenance} for part in parts
    }
    command = f"penultimate report {' '.join(shlex.quote(part.name) for part in parts)}"
    return {"command": command, "seconds": {}, "studies": studies, "apart": dict(apart)}


def _merged(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries of several records; mappings and lists are joined, of others the first counts."""
    merged: dict[str, Any] = {}
    for record in records:
        for key, value in record.items():
            known = merged.setdefault(key, value)
            if known is not value and isinstance(known, Mapping) and isinstance(value, Mapping):
                merged[key] = {**value, **known}
            elif known != value and isinstance(known, list) and isinstance(value, list):
                merged[key] = [*known, *(each for each in value if each not in known)]
    return merged


def of_several(results: StudyResults) -> str:
    """Return what the page of several studies says of them; an empty string for one study."""
    if not results.parts:
        return ""
    said = (
        f"This page shows {len(results.parts)} studies: {_quoted(part.name for part in results.parts)}. Each"
        " exhibit says whose numbers it shows: those of the first study that lacks nothing of it, in this"
        " order."
    )
    apart = [f"`{name}` ({why})" for name, why in results.provenance["apart"].items()]
    if apart:
        said += f" Their numbers are not joined with those of other studies: {listed(apart)}."
    return said


def members(results: StudyResults, allow_limited: bool = False) -> tuple[Measurements, ...]:
    """Return the measurements of results, and of each of the studies that they join."""
    return tuple(admit(each, allow_limited) for each in (results, *results.parts))


def build(exhibit: Exhibit, results: StudyResults, allow_limited: bool = False) -> Built:
    """Return the exhibit of a study, or of several.

    Raises RequestError for a limited study unless `allow_limited`, and for an exhibit of the paper if the
    study trained none of its networks.
    """
    of = members(results, allow_limited)
    exhibit.expect_shown(of[0].networks)
    return assemble_of(exhibit, of)


def assemble_of(exhibit: Exhibit, of: Sequence[Measurements]) -> Built:
    """Return an exhibit of `members`: of the first study that lacks nothing of it, else of the fullest.

    The joined studies count after each single one. The caption says whose numbers they are, and which other
    studies have other numbers.
    """
    union, *parts = of
    if not parts or not exhibit.quantities:
        return assemble(exhibit, union)
    built = [assemble(exhibit, part) for part in parts]
    names = [part.results.name for part in parts]
    chosen = next((place for place, one in enumerate(built) if is_whole(one)), None)
    if chosen is None:
        both = assemble(exhibit, union)
        best = max(built, key=fullness)
        if is_whole(both) or fullness(both) > fullness(best):
            sources = _studies_shown(exhibit, union, parts)
            return _captioned(both, f"The numbers are those of {_quoted(sources)}." if sources else "")
        chosen = built.index(best)
    one = built[chosen]
    if not one.is_measured:
        return one
    other = [
        name
        for name, another in zip(names, built, strict=True)
        if another.is_measured and (another.tables, another.figures) != (one.tables, one.figures)
    ]
    which = (
        "first of those that lack nothing of it" if is_whole(one) else "the fullest, or the first of these"
    )
    verb = "has" if len(other) == 1 else "have"
    conflict = f" {_quoted(other)} {verb} other numbers; shown is the study named {which}." if other else ""
    return _captioned(one, f"The numbers are those of {_quoted([names[chosen]])}.{conflict}")


def _captioned(built: Built, sentence: str) -> Built:
    return dataclasses.replace(built, caption=f"{built.caption} {sentence}".strip())


def _quoted(names: Iterable[str]) -> str:
    return listed([f"`{name}`" for name in names])


def _studies_shown(exhibit: Exhibit, union: Measurements, parts: Sequence[Measurements]) -> list[str]:
    """Return the studies that hold the numbers which an exhibit shows of the joined ones."""
    rows = (row for row in union.results.table if exhibit.shows(row, union.backbone))
    steps = dict.fromkeys(row.step for row in rows)
    owners = (
        next((part.results.name for part in parts if step in part.results.description["steps"]), "")
        for step in steps
    )
    return [name for name in dict.fromkeys(owners) if name]


def is_whole(built: Built) -> bool:
    """Return whether an exhibit lacks nothing: no gap, and a number in every column and panel of ours."""
    tables, figures = _ours(built)
    columns = [
        [row.cells[place] for row in table.rows]
        for table in tables
        if table.rows
        for place in range(len(table.columns))
    ]
    filled = all(any(cell.text not in ("", MISSING) or cell.detail for cell in cells) for cells in columns)
    return (
        built.is_measured and not built.missing and filled and all(all(_marks(figure)) for figure in figures)
    )


def fullness(built: Built) -> int:
    """Return how many cells and marks of ours an exhibit shows."""
    tables, figures = _ours(built)
    cells = (cell for table in tables for row in table.rows for cell in row.cells)
    return sum(cell.text not in ("", MISSING) for cell in cells) + sum(map(sum, map(_marks, figures)))


def _ours(built: Built) -> tuple[list[ExhibitTable], list[Figure]]:
    figures = [
        dataclasses.replace(figure, panels=tuple(panel for panel in figure.panels if panel.source == "ours"))
        for figure in built.figures
    ]
    return [table for table in built.tables if table.source == "ours"], figures


def _marks(figure: Figure) -> list[int]:
    """Return how many numbers each panel of a figure draws."""
    return [
        len(panel.points)
        + len(panel.curves)
        + (sum(value is not None for row in panel.raster.values for value in row) if panel.raster else 0)
        for panel in figure.panels
    ]
