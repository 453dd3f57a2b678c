"""Producers and consumers agree: what exhibits name is what measurements yield and what studies ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penultimate import registry
from penultimate.data.catalog import SHIFTS, DatasetCard, card
from penultimate.engine.plan import plan
from penultimate.evaluation.request import Request
from penultimate.measures import Shifted, measurement, names
from penultimate.measures.declaration import Measurement, Yield
from penultimate.report import StudyResults, read_study
from penultimate.report.measurements import admit
from penultimate.report.networks import name_in
from penultimate.report.quantity import Quantity
from penultimate.report.spec import Exhibit, all_exhibits, assemble
from penultimate.study import load_study
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from tests.report.planted import as_in_the_paper, planted
from tests.report.reading import glyphs
from tests.report.synthetic import study

IN_THE_PAPER = {
    "3.1": ["table1", "table2", "figure1"],
    "3.2": ["figure2", "figure3"],
    "3.3": ["table3", "figure4"],
    "3.4": ["figure5", "table4", "figure6", "iclr_figure5"],
    "A.1": ["tableA1", "iclr_tableA2"],
    "A.2": ["tableA2"],
    "B": ["tableB1", "iclr_table1", "figureB1"],
    "C.1": ["tableC1", "figureC1", "figureC2", "figureC3"],
    "C.2": ["tableC2", "tableC3"],
    "C.3": ["figureC4", "figureC5", "figureC6", "figureC7"],
    "C.4": ["tableC4"],
    "C.5": ["tableC5", "tableC6"],
    "D.1": ["figureD1"],
    "D.2": ["figureD2"],
    "D.3": ["tableD1"],
    "D.4": ["figureD3"],
    "E.2": ["tableE1", "tableE2", "figureE1", "figureE2", "figureE3"],
    "E.3": ["tableE3"],
    "E.4": ["figureE4"],
    "F": ["tableF1"],
}
"""Where the paper has what this package regenerates, read off the paper; its ICLR version's beside it."""
OF_CERTAINTY = ["outside", "selective", "probe_calibration"]
BEYOND = [
    "better",
    "doses",
    "plugins",
    "projectors",
    "claims",
    "depth",
    *OF_CERTAINTY,
    "few_labels",
]
OF_FULL = {"tableB1", "tableC4", "tableC5", "tableC6", "figureD2", "tableE3"}
"""What takes more than the reference run has; `test_miniature` has it of `full` in small."""
OF_TRAINING = {"top1": "fraction", "mean_loss": "loss"}
"""What the training itself records after an epoch, and in which unit."""


def exhibit_of(name: str) -> Exhibit:
    made = registry.entry("exhibit", name).resolve()
    assert isinstance(made, Exhibit)
    return made


def study_of(name: str) -> Study:
    found = registry.entry("study", exhibit_of(name).study).resolve()
    assert isinstance(found, Study)
    return found


def metrics(
    quantity: Quantity,
    targets: tuple[str, ...] = ("newfaces", "digits"),
    card_of: Callable[[str], DatasetCard] = card,
) -> set[str]:
    """The metrics of a quantity's rows: the official accuracy of each target in its place."""
    return {quantity.metric.replace("{accuracy}", card_of(target).accuracy) for target in targets}


def yielding(metric: str) -> list[tuple[Measurement, Yield]]:
    """The measurements that yield a metric."""
    known = [measurement(name) for name in names()]
    return [(found, one) for found in known for one in found.yields or () if one.metric == metric]


EXHIBITS = [exhibit.name for exhibit in all_exhibits()]
OF_EVALUATIONS = [one.name for one in all_exhibits() if one.study in ("evaluate", "portrait")]
"""What commands show of networks or an objective of your own, which no study of this package measures."""
CASES = [
    pytest.param(name, quantity, id=f"{name}-{quantity.metric}-{quantity.split}-{quantity.arm or 'main'}")
    for name in EXHIBITS
    for quantity in exhibit_of(name).quantities
]


def test_exhibits_stand_in_the_order_of_the_paper_and_of_its_sections() -> None:
    in_order = [name for members in IN_THE_PAPER.values() for name in members]
    listed = [*in_order, *BEYOND, *(name for name in OF_EVALUATIONS if not name.startswith("portrait"))]
    assert [name for name in EXHIBITS if name in listed] == listed
    for section, members in IN_THE_PAPER.items():
        assert {exhibit_of(name).section for name in members} == {section}
    assert {exhibit_of(name).section for name in {*EXHIBITS} - {*in_order}} == {""}


@pytest.mark.parametrize("name", EXHIBITS)
def test_an_exhibit_has_what_listing_and_page_need(name: str) -> None:
    made = exhibit_of(name)
    assert made.name == name
    assert made.parts
    for words in (made.title, made.caption, made.summary):
        assert words == words.strip() != ""
    assert not made.title.endswith(".")
    assert registry.entry("exhibit", name).summary == made.summary
    if name in OF_EVALUATIONS:
        return
    sends_to = study_of(name)
    main = [block for block in sends_to.runs if not block.arm]
    assert len({backbone for block in main for backbone in block.backbones}) > made.of_another


@pytest.mark.parametrize(("name", "quantity"), CASES)
def test_every_quantity_is_yielded_by_a_measurement_in_its_unit(name: str, quantity: Quantity) -> None:
    for metric in metrics(quantity):
        found = yielding(metric)
        units = {one.unit for _, one in found} | ({OF_TRAINING[metric]} if metric in OF_TRAINING else set())
        assert units, f"{name} names {metric}, which no measurement yields"
        if quantity.scale == 100:
            assert units == {"fraction"}
        if quantity.arrays:
            assert any(set(quantity.arrays) <= set(one.arrays) for _, one in found)


@pytest.mark.parametrize(("name", "quantity"), CASES)
def test_the_study_that_an_exhibit_sends_to_measures_what_it_needs(name: str, quantity: Quantity) -> None:
    """What it is whole without, some study of the package measures."""
    if name in OF_EVALUATIONS:
        everything = {"digits": "", "glyphs": "", "findings": ""}, "glyphs", True, True
        two = {"ours": "timm:resnet18", "theirs": "timm:resnet34"}
        request = Request(two, *everything, layers=True)
        asked = {name_in(text) for text in request.study().measure}
        assert any({made.name for made, _ in yielding(metric)} & asked for metric in metrics(quantity))
        return
    sends_to = study_of(name)
    others = [registry.entry("study", other).resolve() for other in registry.names("study")]
    studies = [sends_to, *others] if quantity.optional else [sends_to]
    assert any(_measures(one, quantity, name) for one in studies), (
        f"{sends_to.name} does not measure {quantity}"
    )


def _measures(sends_to: Study, quantity: Quantity, name: str) -> bool:
    """Whether a study asks for a quantity of an exhibit of networks of its arm."""
    arms = exhibit_of(name).arms_of(quantity)
    of_arm = {
        key: asked for key, asked in sends_to.measured().items() if key.arm in arms and not key.is_given
    }
    of_classes = tuple(target for target in sends_to.targets if not sends_to.card(target).has_several_labels)
    targets = of_classes if quantity.target == "targets" else (sends_to.source,)
    for metric in metrics(quantity, targets, sends_to.card):
        wanted = {made.name for made, _ in yielding(metric) if _is_on(made, quantity)}
        asked_for = {one.measurement.name for asked in of_arm.values() for one in asked}
        if not of_arm or not (wanted & asked_for or metric == "mean_loss"):
            return False
    return True


def _is_on(made: Measurement, quantity: Quantity) -> bool:
    """Whether a measurement is made where the quantity is: on targets, on shifted sets, or on the source."""
    if quantity.target in SHIFTS:
        return any(isinstance(need, Shifted) and need.shift == quantity.target for need in made.needs)
    return made.of_targets == (quantity.target == "targets")


@pytest.fixture(scope="module")
def reference() -> StudyResults:
    """Rows that steps wrote."""
    return glyphs()


def test_the_reference_run_has_every_quantity_where_exhibits_look_for_it(reference: StudyResults) -> None:
    """Metric, split, arm and kind of condition, but for optional ones; the losses of training are not kept.

    Of what the studies measure whose rows it has, or as much of: not of what others do.
    """
    there = {(row.metric, row.split, row.arm or "", tuple(row.settings)) for row in reference.table}
    kept = [name for name in EXHIBITS if exhibit_of(name).study in ("nine", "quickstart", "glyphs")]
    for exhibit, quantity in ((name, one) for name in kept for one in exhibit_of(name).quantities):
        setting = tuple(part.partition("=")[0] for part in quantity.setting.split(", ") if part)
        if quantity.optional:
            continue
        for metric in metrics(quantity, tuple(reference.description["targets"])) - {"mean_loss"}:
            place = (metric, quantity.split, quantity.arm, setting)
            assert place in there, f"{exhibit} looks for {place}"


@pytest.mark.long
def test_of_a_whole_study_nothing_is_sent_to_the_study_itself(reference: StudyResults) -> None:
    measurements = admit(reference)
    gaps = [gap for name in EXHIBITS for gap in assemble(exhibit_of(name), measurements).missing]
    asked = {gap.command for gap in gaps if "evaluate" not in gap.command}
    assert asked == {"penultimate run full", "penultimate run evidence", "penultimate run few_labels"}


@pytest.mark.parametrize("results", [study((0, 1)), planted(as_in_the_paper())], ids=["synthetic", "planted"])
def test_made_up_rows_are_like_those_that_steps_write(results: StudyResults, reference: StudyResults) -> None:
    """Metric, split, unit and kind of condition of the tests' own rows are of rows of the reference run."""

    def kinds(one: StudyResults) -> set[tuple[object, ...]]:
        return {
            (row.metric, row.split, row.unit, tuple(row.settings), row.layer is None, row.epoch is None)
            for row in one.table
        }

    made_up = kinds(results)
    assert made_up
    assert made_up - kinds(reference) == set()
    for metric, _, unit, *_ in made_up:
        declared = {one.unit for _, one in yielding(str(metric))} | {OF_TRAINING.get(str(metric))}
        assert unit in declared
    assert all(row.seed is not None and row.draw is not None and row.backbone for row in results.table)


def test_smoke_feeds_every_exhibit_that_one_seed_and_one_architecture_can(finished_smoke: Path) -> None:
    """Rows that steps have just written: nothing is missing but what takes more than smoke has."""
    measurements = admit(read_study(finished_smoke / "runs", "smoke"), allow_limited=True)
    built = {name: assemble(exhibit_of(name), measurements) for name in EXHIBITS}
    lacking = {name for name, made in built.items() if made.missing}
    of_several_seeds = {"figure2", "figureC6", "figureC7", "claims"}
    of_the_sweep = {"figure5", "table4", "iclr_figure5"}
    of_others = {"figure6", "tableA1", "iclr_tableA2", "figureB1", *OF_FULL} - {"figureD2"}
    known = {*of_several_seeds, *of_the_sweep, *of_others}
    assert known <= lacking
    smoke: Study = registry.entry("study", "smoke").resolve()
    for name in lacking - known:  # a new exhibit may show what smoke does not measure
        needed = [quantity for quantity in exhibit_of(name).quantities if not quantity.optional]
        assert not all(_measures(smoke, quantity, name) for quantity in needed), name
    for name in (
        set(EXHIBITS) - lacking - {"plugins", "better", "doses", "projectors", *OF_CERTAINTY, *OF_EVALUATIONS}
    ):
        panels = [panel for figure in built[name].figures for panel in figure.panels]
        assert "ours" in {part.source for part in (*built[name].tables, *panels)}, name
    for row in measurements.results.table:
        declared = {one.unit for _, one in yielding(row.metric)} | {OF_TRAINING.get(row.metric)}
        assert row.unit in declared, row.metric


IN_THE_PAPERS = [name for members in IN_THE_PAPER.values() for name in members]
"""The 42 tables and figures of the paper and of its ICLR version."""


def makers(name: str) -> set[str]:
    """The studies of this package that measure everything that an exhibit is not whole without."""
    made = exhibit_of(name)
    needed = [quantity for quantity in made.quantities if not quantity.optional]
    found = set()
    for other in registry.names("study"):
        one: Study = registry.entry("study", other).resolve()
        main = {backbone for block in one.runs if not block.arm for backbone in block.backbones}
        if len(main) > made.of_another and all(_measures(one, quantity, name) for quantity in needed):
            found.add(other)
    return found


@pytest.mark.long
def test_the_study_of_them_all_makes_42_of_42() -> None:
    assert len(IN_THE_PAPERS) == len({*IN_THE_PAPERS}) == 42
    by_name = {name: makers(name) for name in IN_THE_PAPERS}
    assert {name for name, made_by in by_name.items() if "full" not in made_by} == set()
    for name, made_by in by_name.items():
        assert exhibit_of(name).study in made_by, name


def test_the_study_of_them_all_takes_three_hours_of_two_cores_from_nothing(tmp_path: Path) -> None:
    """By plan: by what its steps took where two cores with AVX-512 train in float32."""
    whole = plan("full", out=tmp_path / "nothing")
    assert whole.unknown == 0
    assert 2.5 * 3600 < whole.seconds_left / 2 <= 3 * 3600


def test_the_study_of_them_all_trains_no_network_again_that_glyphs_has() -> None:
    """Those of its one draw are the main ones here, and its temperatures the same."""
    trained = [
        {step_id.rpartition(".")[2] for step_id, step in graph.steps.items() if step.name == "train"}
        for graph in (unfold(load_study(name)) for name in ("full", "glyphs"))
    ]
    assert len(trained[0] & trained[1]) == 9 * 2 + 8
