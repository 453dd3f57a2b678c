"""The baselines of each task, which need no network, beside the networks."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.evaluation.baselines import TITLES, beside_baselines, shortfalls
from penultimate.measures.baselines import MOST, NAMES
from penultimate.report.base import Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece
from penultimate.report.text import percent as in_percent
from penultimate.statistics.paired import Answers, intervals

ACCURACIES = (Quantity("baseline_{accuracy}", target=TARGETS, optional=True),)
METHOD = (
    "Baselines: linear probes of four strengths, chosen on a fifth of the training images, on standardised"
    " features: the colours of 8 x 8 cells; mean, deviation and histogram of the colours; 32 random filters,"
    f" rectified and pooled over quarters. Of a split at most {MOST:,} images are used, the same for all, and"
    " the networks are compared with them on the same test images. They are not ranked.",
)


def _baselines(measurements: Measurements) -> Piece:
    """Return the accuracies of the baselines, of guessing, and of the weakest and the best network."""
    made = {target: beside_baselines(measurements, target) for target in measurements.targets}
    told = {target: found for target, found in made.items() if found is not None}
    if not told:
        return Piece(wanted=False)
    columns = tuple(
        Column(f"{target}_percent", card(target).title, "Linear probe, %", "%") for target in told
    )
    answers = [of_all for _, of_all in told.values()]
    rows = [
        TableRow(title, tuple(_cell(of_all, row) for of_all in answers))
        for row, title in enumerate(TITLES.values())
    ]
    chance = [of_all.chance() for of_all in answers]
    rows.insert(0, TableRow("Always one class", tuple(Cell(in_percent(each), 100 * each) for each in chance)))
    for title, choose in (("The weakest network", min), ("The best network", max)):
        cells = []
        for networks, of_all in told.values():
            values = of_all.accuracies()[len(NAMES) :].tolist()
            place = values.index(choose(values))
            cells.append(_cell(of_all, len(NAMES) + place, networks[place].label))
        rows.append(TableRow(title, tuple(cells)))
    below = [
        f"{each.network.label} on {card(each.task).title}: {each.text}." for each in shortfalls(measurements)
    ]
    notes = below or ["No network is worse than a baseline, beyond chance."]
    table = ExhibitTable("baselines", "Test accuracy, with 95 % intervals", "Features", columns, tuple(rows))
    return Piece((table,), notes=tuple(notes), method=METHOD)


def _cell(of_all: Answers, row: int, name: str = "") -> Cell:
    found = intervals([of_all.of([row])])[0]
    text = f"{in_percent(found.value)} [{in_percent(found.low)}, {in_percent(found.high)}]"
    return Cell(text, 100 * found.value, detail=name or "95 % interval over test images")


BASELINES = Exhibit(
    name="baselines",
    title="Baselines without a network",
    caption="Linear probes on features that need no training, on the same test images. A network that"
    " does worse than one of them was probably shown wrongly prepared images, or lost its weights.",
    parts=(Bespoke(_baselines, ACCURACIES),),
    place=12,
    measured_by=EVALUATE,
    summary="Pixels, colours and random convolutions beside networks of your own",
    short="Baselines",
)
