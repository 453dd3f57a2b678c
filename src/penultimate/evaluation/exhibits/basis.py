"""The basis of a ranking: the data, the networks, their preprocessing of images, and the methods."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.evaluation.grouped import grouping_notes, leaks
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece
from penultimate.report.text import fixed, listed, plain


def _basis(measurements: Measurements) -> Piece:
    """Return tables of the data sets and the networks."""
    tasks = (*measurements.targets, *measurements.several_labels)
    names = dict.fromkeys((*tasks, measurements.source))
    where = measurements.results.description.get("data", {})
    left_out = measurements.results.provenance.get("left_out", {})
    notes = [
        f"Left out of {plain(split)}, because they cannot be read: {plain('; '.join(images))}."
        for split, images in left_out.items()
    ]
    notes += [
        f"{plain(split)}: {plain('; '.join(remarks))}."
        for split, remarks in measurements.results.provenance.get("remarks", {}).items()
    ]
    notes += [
        f"Copies in {plain(name)}: {plain('; '.join(told))}. --copies drop leaves all but one out."
        for name, told in measurements.results.provenance.get("copies", {}).items()
    ]
    notes += [*leaks(measurements), *grouping_notes(measurements)]
    there = measurements.results.provenance.get("images", {})
    rows = []
    for name in names:
        known = card(name)
        sizes = {**known.sizes, **there.get(name, {})}  # without images that are left out
        roles = ["task" if name in tasks else "source"]
        counts = [Cell(f"{sizes[split]:,}" if split in sizes else MISSING) for split in ("train", "test")]
        told = known.note or "splits as the package has them"
        folder = plain(where.get(name, "of the package"))
        cells = (Cell(listed(roles)), Cell(f"{known.classes:,}"), *counts, Cell(told), Cell(folder))
        rows.append(TableRow(known.title, cells))
    columns = tuple(
        Column(key, label)
        for key, label in (
            ("role", "Used as"),
            ("classes", "Classes"),
            ("train", "Training images"),
            ("test", "Test images"),
            ("splits", "Splits"),
            ("folder", "Folder"),
        )
    )
    data = ExhibitTable("basis_data", "The data", "Data set", columns, tuple(rows))
    sources = {
        name: text
        for block in measurements.results.description.get("networks", ())
        for name, text in block.get("given", {}).items()
    }
    classifying = {
        name
        for block in measurements.results.description.get("networks", ())
        if block.get("classifies")
        for name in block.get("given", {})
    }
    of_networks = tuple(
        TableRow(
            each.label,
            (
                Cell(plain(sources.get(each.spec, ""))),
                Cell("the source's classes" if each.spec in classifying else "not used"),
            ),
            each.slug,
        )
        for each in measurements.objectives
    )
    heads = (Column("from", "From"), Column("final", "Final layer"))
    networks = ExhibitTable("basis_networks", "The networks", "Network", heads, of_networks)
    prepared = _prepared(measurements)
    return Piece((data, networks, *([prepared] if prepared else [])), notes=tuple(notes), method=METHOD)


def _prepared(measurements: Measurements) -> ExhibitTable | None:
    """Return a table of the networks' preprocessing of images."""
    known = measurements.results.provenance.get("prepared", {})
    rows = []
    for each in measurements.objectives:
        if each.spec not in known:
            continue
        found = known[each.spec]
        resized = f"both sides {found['resize']}" if found["squash"] else f"shorter side {found['resize']}"
        numbers = [
            ", ".join(fixed(value, 3) for value in found["statistics"][name]) for name in ("mean", "std")
        ]
        cells = (resized, f"{found['crop']} x {found['crop']}", plain(found["interpolation"]), *numbers)
        rows.append(
            TableRow(each.label, tuple(Cell(text) for text in (*cells, plain(found["from"]))), each.slug)
        )
    columns = tuple(
        Column(key, label)
        for key, label in (
            ("resized", "Resized to, pixels"),
            ("crop", "Crop in the middle"),
            ("interpolation", "Interpolation"),
            ("mean", "Mean"),
            ("std", "Deviation"),
            ("from", "As in"),
        )
    )
    title = "How each network is shown its images"
    return ExhibitTable("basis_prepared", title, "Network", columns, tuple(rows)) if rows else None


METHOD = (
    "Preprocessing: an image is turned upright, resized and cropped in the middle as each network's own"
    " weights say, and normalised as they expect. An image that cannot be read is left out for all networks.",
    "Linear probe: logistic regression on the frozen features, its strength chosen among 45 on a fifth of the"
    " training images, then fitted to all of them; every optimum is certified. Nearest neighbours: cosine"
    " distance, the number chosen by leaving one out.",
    "Intervals: of a share of the test images exact (Clopper and Pearson); of a mean over classes or tasks by"
    " the variances of its parts, with two more right and two more wrong answers (Agresti and Caffo; Price"
    " and Bonett). They hold for few images too. They cover other test images of the same kind, but not other"
    " training images or other weights.",
    "Places, marks and comparisons: paired tests on the same test images, corrected for all pairs of a column"
    " (Holm). They can tell networks apart whose intervals overlap.",
    "Class separation, sparsity, ranks and CKA are of test images alone.",
)

BASIS = Exhibit(
    name="basis",
    title="What the ranking rests on",
    caption="The images, classes and splits, the networks, and how they were measured.",
    parts=(Bespoke(_basis),),
    place=19,
    measured_by=EVALUATE,
    summary="The data, the networks and the methods behind a ranking",
    short="What it rests on",
)
