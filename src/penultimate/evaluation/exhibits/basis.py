"""The basis of a ranking: the data, the networks, their preprocessing of images, and the methods."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.warnings import grouping_notes, missing_numbers, tasks_of
from penultimate.results.exhibit import Part
from penultimate.results.rows import Run
from penultimate.results.table import MISSING, Column, table_of_cells
from penultimate.results.text import fixed, plain

DATA = {"role": "Used as", "classes": "Classes", "train": "Training images", "test": "Test images"}
DATA |= {"splits": "Splits", "folder": "Folder"}
PREPARED = {"resized": "Resized to, pixels", "crop": "Crop in the middle", "interpolation": "Interpolation"}
PREPARED |= {"mean": "Mean", "std": "Deviation", "from": "As in"}
METHODS = (
    "Linear probe: logistic regression on the frozen features, its strength chosen among 45 on a fifth of the"
    " training images, then fitted to all of them; every optimum is certified. Nearest neighbours: cosine"
    " distance, the number chosen by leaving one out.",
    "Intervals are over other test images of the same kind, not over other training images or other weights:"
    " Clopper and Pearson's for a share of the images; Agresti and Caffo's (Price and Bonett's) for a"
    " mean over classes or tasks.",
    "Class separation, sparsity, ranks and CKA are of test images alone.",
)


@shows("basis", "What the ranking rests on", section="basis")
def basis(run: Run) -> Iterator[Part]:
    """The images, classes and splits, the networks, and how they were measured. An image is turned upright,
    resized, cropped in the middle and normalised as each network's own weights say; one that cannot be read
    is left out for all networks."""
    told, blocks = run.provenance, run.description.get("networks", ())
    rows = []
    for name in dict.fromkeys((*tasks_of(run), run.source)):
        known = card(name)
        sizes = {**known.sizes, **told.get("images", {}).get(name, {})}  # without images that are left out
        counts = [f"{sizes[split]:,}" if split in sizes else MISSING for split in ("train", "test")]
        where = plain(run.description.get("data", {}).get(name, "of the package"))
        role, note = (
            "task" if name in tasks_of(run) else "source",
            known.note or "splits as the package has them",
        )
        rows.append((known.title, [role, f"{known.classes:,}", *counts, plain(note), where]))
    yield table_of_cells("basis_data", "The data", _columns(DATA), rows, corner="Data set")
    sources = {name: text for block in blocks for name, text in block.get("given", {}).items()}
    classify = {name for block in blocks if block.get("classifies") for name in block.get("given", {})}
    of_networks, prepared = [], []
    for each in run.objectives():
        final = "the source's classes" if each.spec in classify else "not used"
        of_networks.append((each.label, [plain(sources.get(each.spec, "")), final]))
        if found := told.get("prepared", {}).get(each.spec):
            side = "both sides" if found["squash"] else "shorter side"
            numbers = [[fixed(value, 3) for value in found["statistics"][name]] for name in ("mean", "std")]
            crop = f"{found['crop']} x {found['crop']}"
            cells = [
                f"{side} {found['resize']}",
                crop,
                plain(found["interpolation"]),
                *map(", ".join, numbers),
            ]
            prepared.append((each.label, [*cells, plain(found["from"])]))
    heads = _columns({"from": "From", "final": "Final layer"})
    yield table_of_cells("basis_networks", "The networks", heads, of_networks, corner="Network")
    title = "How each network is shown its images"
    yield table_of_cells("basis_prepared", title, _columns(PREPARED), prepared, corner="Network")
    for split, images in told.get("left_out", {}).items():
        yield f"Left out of {plain(split)}, because they cannot be read: {plain('; '.join(images))}."
    for split, remarks in told.get("remarks", {}).items():
        yield f"{plain(split)}: {plain('; '.join(remarks))}."
    for name, copies in told.get("copies", {}).items():
        yield f"Copies in {plain(name)}: {plain('; '.join(copies))}. --copies drop leaves all but one out."
    yield from (*grouping_notes(run), *missing_numbers(run, of_tasks=False), *METHODS)


def _columns(heads: dict[str, str]) -> list[Column]:
    return [Column(key, label) for key, label in heads.items()]
