"""What a ranking rests on (the data, the networks, the methods), and what each network confuses."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.warnings import grouping_notes, missing_numbers, tasks_of
from penultimate.results.exhibit import Gallery, Part, Pictures
from penultimate.results.rows import Run, arrays_of
from penultimate.results.table import MISSING, Column, table_of_rows
from penultimate.results.text import as_name, fixed, percent, plain, shortened

DATA = {"role": "Used as", "classes": "Classes", "train": "Training images", "test": "Test images"}
DATA |= {"splits": "Splits", "folder": "Folder"}
NETWORKS = {"from": "From", "final": "Final layer"}
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
CONFUSED = (
    *("counts", "of", "truth", "predicted", "thumbnails", "pictured"),
    *("classes", "class_errors", "class_sizes"),
)
LONGEST, PAIRS, WORST = 40, 3, 10
"""The most characters of a class's name, pairs with pictures, and classes of a table."""


@shows("basis", "What the ranking rests on", section="basis")
def basis(run: Run) -> Iterator[Part]:
    """The images, classes and splits, the networks, and how they were measured. An image is turned upright,
    resized, cropped in the middle and normalised as each network's own weights say; one that cannot be read
    is left out for all networks."""
    record, blocks = run.provenance, run.description.get("networks", ())
    rows = []
    for name in dict.fromkeys((*tasks_of(run), run.source)):
        known = card(name)
        sizes = {**known.sizes, **record.get("images", {}).get(name, {})}  # without images that are left out
        counts = [f"{sizes[split]:,}" if split in sizes else MISSING for split in ("train", "test")]
        where = run.description.get("data", {}).get(name, "of the package")
        role, note = (
            ("task" if name in tasks_of(run) else "source"),
            known.note or "splits as the package has them",
        )
        rows.append((known.title, [role, f"{known.classes:,}", *counts, plain(note), plain(where)]))
    yield table_of_rows("basis_data", "The data", _columns(DATA), rows, corner="Data set")
    sources = {name: text for block in blocks for name, text in block.get("given", {}).items()}
    classify = {name for block in blocks if block.get("classifies") for name in block.get("given", {})}
    networks, prepared = [], []
    for each in run.objectives():
        final = "the source's classes" if each.spec in classify else "not used"
        networks.append((each.label, [plain(sources.get(each.spec, "")), final]))
        if found := record.get("prepared", {}).get(each.spec):
            side = "both sides" if found["squash"] else "shorter side"
            mean, std = (
                ", ".join(fixed(value, 3) for value in found["statistics"][key]) for key in ("mean", "std")
            )
            crop = f"{found['crop']} x {found['crop']}"
            cells = [
                f"{side} {found['resize']}",
                crop,
                plain(found["interpolation"]),
                mean,
                std,
                plain(found["from"]),
            ]
            prepared.append((each.label, cells))
    yield table_of_rows("basis_networks", "The networks", _columns(NETWORKS), networks, corner="Network")
    title = "How each network is shown its images"
    yield table_of_rows("basis_prepared", title, _columns(PREPARED), prepared, corner="Network")
    for key, words in {
        "left_out": "Left out of {}, because they cannot be read",
        "remarks": "{}",
        "copies": "Copies in {}",
    }.items():
        for name, remarks in record.get(key, {}).items():
            end = " --copies drop leaves all but one out." if key == "copies" else ""
            yield f"{words.format(plain(name))}: {plain('; '.join(remarks))}.{end}"
    yield from (*grouping_notes(run), *missing_numbers(run, of_tasks=False), *METHODS)


def _columns(heads: Mapping[str, str]) -> list[Column]:
    return [Column(key, label) for key, label in heads.items()]


@shows("confusions", "What each network confuses", section="confusions")
def confusions(run: Run) -> Iterator[Part]:
    """The classes that the linear probe on each network's features confuses most often, with test images
    that it gets wrong: what they show, and what they were taken for."""
    labels = run.labels()
    for task in run.targets:
        rates: dict[str, dict[str, float]] = {}
        columns, right = [], []
        for slug, _, held in arrays_of(run, "confusions", CONFUSED, target=task):
            if not len(held["counts"]):
                right.append(labels[slug])
                continue
            yield Gallery(f"{labels[slug]} on {card(task).title}", slug, tuple(_pictures(held)))
            columns.append(Column(slug, labels[slug], "Wrong, %", digits=0))
            shares = 100 * held["class_errors"] / held["class_sizes"]
            for name, share in zip(held["classes"].tolist(), shares.tolist(), strict=True):
                rates.setdefault(name, {})[slug] = share
        worst = sorted(rates, key=lambda name: -max(rates[name].values()))[:WORST]
        rows = [(_name(name), [rates[name].get(column.key, "fewer") for column in columns]) for name in worst]
        title = f"{card(task).title}: the classes that are got wrong most"
        yield table_of_rows(as_name("confusions", task), title, columns, rows, corner="Class")
        if right:
            yield f"On {card(task).title} no test image is got wrong by {', '.join(right)}."


def _pictures(held: Mapping[str, Any]) -> Iterator[Pictures]:
    """Yield the pairs of classes that are confused most, each with its pictures."""
    for number, (truth, predicted) in enumerate(
        zip(held["truth"].tolist(), held["predicted"].tolist(), strict=True)
    ):
        if number < PAIRS:
            count, of = int(held["counts"][number]), int(held["of"][number])
            images = tuple(map(_png, held["thumbnails"][held["pictured"] == number]))
            detail = f"{count} of {of}, {percent(count / of, 0)} %"
            yield Pictures(f"{_name(truth)} taken for {_name(predicted)}", detail, images)


def _name(text: str) -> str:
    return shortened(plain(text) or "(no name)", LONGEST)


def _png(pixels: Any) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).quantize(96).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
