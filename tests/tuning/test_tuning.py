"""The search for hyperparameters: what it asks for, what it finds, what it refuses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.evaluation.pictures import split_folders
from tests.inprocess import InProcess
from tests.oracles.tuning import mean_and_error, one_axis_search
from tests.tuning.planted import (
    outcome,
    planted_runner,
    run_source,
    three_seeds,
    tune_planted,
    value_in,
)

from penultimate.engine.observer import Summary
from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS
from penultimate.records.table import Row
from penultimate.study import load_study
from penultimate.study.blocks import Runs, Search, runs_by_recipe
from penultimate.study.settings import override
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import Axis, axes_of, make_axis, parse_grids
from penultimate.tuning.choice import margin
from penultimate.tuning.chosen import chosen_source
from penultimate.tuning.conduct import Setting, SettingOutcome, conduct, plan_tuning
from penultimate.tuning.run import TuningResult, cells_graph, holdout_curve, record_of, tune
from penultimate.tuning.search import DIVERGED, Found, Point, search
from penultimate.tuning.words import result_lines


def answers(score: float) -> tuple[float, ...]:
    return (score,) if score > DIVERGED else ()


def drive(axes: Sequence[Axis], score: Callable[[Point], float], budget: int, expansions: int) -> Found:
    """Answer a search until it ends; nothing is asked twice, and never more than the budget."""
    rounds = search(axes, budget, expansions)
    wanted = next(rounds)
    asked: set[Point] = set()
    while True:
        assert wanted
        assert not asked & set(wanted)
        asked |= set(wanted)
        assert len(asked) <= budget
        try:
            wanted = rounds.send({point: answers(score(point)) for point in wanted})
        except StopIteration as end:
            found: Found = end.value
            assert set(found.scores) == asked == set(found.phases)
            return found


def beta_axis() -> Axis:
    return axes_of("logit_penalty", Recipe(), {})[0]


def exponent_of(point: Point) -> Fraction:
    """How many times the start's 6e-4 is doubled in a value, to the steps that the search can make."""
    return Fraction(round(32 * math.log2(point[0] / 6e-4)), 32)


peaks = st.floats(-7.3, 7.3).filter(lambda peak: abs(peak * 64 - round(peak * 64)) > 1e-3)


@given(peak=peaks, budget=st.integers(5, 12), expansions=st.integers(0, 4))
def test_a_unimodal_curve_is_searched_as_the_oracle_does(peak: float, budget: int, expansions: int) -> None:
    axis = beta_axis()

    def score(exponent: Fraction) -> float:
        return -abs(float(exponent) - peak)

    found = drive([axis], lambda point: score(exponent_of(point)), budget, expansions)
    best, tried = one_axis_search(score, budget, expansions)
    assert {exponent_of(point) for point in found.scores} == tried
    assert found.chosen is not None
    assert exponent_of(found.chosen) == best
    assert found.scores[found.chosen] == max(found.scores.values())


@given(peak=peaks, expansions=st.integers(0, 6))
def test_within_reach_the_peak_is_found_to_the_last_step(peak: float, expansions: int) -> None:
    assume(abs(peak) < 2 + expansions)
    found = drive([beta_axis()], lambda point: -abs(math.log2(point[0] / 6e-4) - peak), 30, expansions)
    assert found.chosen is not None
    assert abs(math.log2(found.chosen[0] / 6e-4) - peak) <= 0.26


@given(st.data())
@settings(max_examples=40)
def test_the_best_is_the_best_of_what_was_tried_within_the_budget(data: st.DataObject) -> None:
    objective = data.draw(st.sampled_from(sorted(set(PRESETS) - {"softmax", "sigmoid"})))
    grids = {"recipe.learning_rate": (0.5, 1.0)} if data.draw(st.booleans()) else {}
    axes = axes_of(objective, Recipe(), grids)
    budget = 1 + sum(len(axis.grid) - 1 for axis in axes) + data.draw(st.integers(0, 5))
    values = st.sampled_from([DIVERGED, 0.0, 0.125, 0.25, 0.5])
    planted: dict[Point, float] = {}
    found = drive(
        axes,
        lambda point: planted.setdefault(point, data.draw(values)),
        budget,
        data.draw(st.integers(0, 3)),
    )
    alive = {point: score for point, score in found.scores.items() if score > DIVERGED}
    if not alive:
        assert found.chosen is None
        assert found.edges == ()
        return
    assert found.chosen is not None
    assert alive[found.chosen] == max(alive.values())
    assert len(found.scores) == budget
    for point in found.scores:
        for axis, value in zip(axes, point, strict=True):
            assert axis.parameter.checked(value, axis.owner) == value
    for edge in found.edges:
        tried = [point[edge.axis] for point in found.scores]
        assert found.chosen[edge.axis] == (max(tried) if edge.side == "largest" else min(tried))


@pytest.mark.parametrize(
    ("objective", "rises", "budget", "expansions", "reason"),
    [
        ("logit_penalty", True, 9, 2, "expansions"),
        ("logit_penalty", False, 6, 2, "budget"),
        ("logit_penalty", True, 9, 0, "expansions"),
        ("label_smoothing(alpha=0.3)", True, 9, 2, "range"),
        ("dropout", False, 9, 2, "range"),
    ],
)
def test_a_best_value_on_the_edge_is_said_with_its_reason(
    objective: str, rises: bool, budget: int, expansions: int, reason: str
) -> None:
    axes = axes_of(objective, Recipe(), {})
    found = drive(axes, lambda point: point[0] if rises else -point[0], budget, expansions)
    (edge,) = found.edges
    assert (edge.side, edge.reason) == ("largest" if rises else "smallest", reason)
    tuned = tune_planted(objective, lambda values: values[0] if rises else -values[0], budget, expansions)
    (remark,) = [remark for remark in tuned.remarks if "that was tried" in remark]
    assert edge.side in remark
    assert tuned.best is not None
    assert repr(tuned.best.values[0]) in remark


def test_edges_of_every_axis_go_before_refinement() -> None:
    axes = axes_of("squared_error", Recipe(), {})
    found = drive(axes, math.prod, 10, 2)
    assert found.chosen == (36, 240, 40)
    assert list(found.phases.values()).count("expansion") == 3
    assert {edge.reason for edge in found.edges} == {"budget"}


def test_an_edge_that_is_the_middle_of_ties_says_that_the_best_lies_further_in() -> None:
    """No expansion was tried there, though budget and expansions were left: the search went elsewhere."""
    tied = {(0.1, 4.0), (0.1, 8.0), (0.1, 16.0), (0.2, 8.0)}
    noise = itertools.cycle([(0.01, 0, 0), (0, 0.01, 0), (0, 0, 0.01)])
    rounds = search(two_axes(), 20, 2, refine=False, product=True)
    rows = {
        point: seeds_of(0.5 + 0.001 * (point in tied) + 0.0001 * (point == (0.2, 8.0)), own)
        for point, own in zip(next(rounds), noise, strict=False)
    }
    rows |= {point: tuple(value - 0.4 for value in row) for point, row in rows.items() if point not in tied}
    with pytest.raises(StopIteration) as end:
        rounds.send(rows)
    found: Found = end.value.value
    assert (found.highest, found.chosen, len(found.scores)) == ((0.2, 8.0), (0.1, 8.0), 9)
    (edge,) = found.edges
    assert (edge.axis, edge.side, edge.reason) == (0, "smallest", "inside")


def test_an_inner_best_is_no_edge() -> None:
    assert drive([beta_axis()], lambda point: -abs(point[0] - 7e-4), 9, 2).edges == ()


def test_of_equals_the_middle_one_is_taken() -> None:
    found = drive([beta_axis()], lambda point: 0.5, 5, 0)
    assert found.chosen == found.highest == (6e-4,)
    plateau = drive([beta_axis()], lambda point: float(point[0] < 1e-3), 5, 0)
    assert (plateau.chosen, plateau.highest) == ((3e-4,), (6e-4,))


def seeds_of(score: float, noise: Sequence[float]) -> tuple[float, ...]:
    """Three seeds whose mean is the score; the noise is the cell's own, a draw is shared by all cells."""
    own = [value - math.fsum(noise) / 3 for value in noise]
    return tuple(score + draw + mine for draw, mine in zip((0.03, -0.01, -0.02), own, strict=True))


def test_cells_that_the_seeds_cannot_tell_apart_are_tied_and_the_middle_one_is_chosen() -> None:
    scores = {1.5e-4: 0.800, 3e-4: 0.8010, 6e-4: 0.8011, 1.2e-3: 0.8012, 2.4e-3: 0.70}
    noise = {1.5e-4: (0.004, 0, 0), 3e-4: (0, 0.004, 0), 6e-4: (0, 0, 0.004), 1.2e-3: (0, 0, 0)}
    rounds = search([beta_axis()], 5, 0, refine=False)
    wanted = next(rounds)
    assert sorted(point[0] for point in wanted) == pytest.approx(sorted(scores))
    values = {point: min(scores, key=lambda value, at=point[0]: abs(value - at)) for point in wanted}
    sent = {point: seeds_of(scores[at], noise.get(at, (0.2, 0, 0))) for point, at in values.items()}
    with pytest.raises(StopIteration) as end:
        rounds.send(sent)
    found: Found = end.value.value
    rows = [sent[point] for point, at in values.items() if at != 2.4e-3]  # 10 points below: not near the best
    table = np.array(rows)
    residuals = table - table.mean(1, keepdims=True) - table.mean(0) + table.mean()
    assert found.margin == pytest.approx(math.sqrt(2 * (residuals**2).sum() / (3 * 2) / 3))
    assert 0.0012 < found.margin < 0.003
    assert values[found.highest] == 1.2e-3
    assert (
        values[found.chosen] == 6e-4
    )  # of four, the two in the middle are 3e-4 and 6e-4: the better of them


def test_without_refinement_the_rest_of_the_budget_is_not_spent() -> None:
    rounds = search([beta_axis()], 9, 0, refine=False)
    wanted = next(rounds)
    with pytest.raises(StopIteration):
        rounds.send({point: (-abs(math.log(point[0] / 6e-4)),) for point in wanted})


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=6))
def test_the_margin_does_not_see_what_all_cells_share(rows: list[list[float]]) -> None:
    shifted = [[value + draw for value, draw in zip(row, (0.25, -0.5, 0.125), strict=True)] for row in rows]
    assert margin(shifted) == pytest.approx(margin(rows), abs=1e-7)


def test_means_that_differ_by_rounding_only_are_equal() -> None:
    equal = {6e-4: (0.3, 0.0, 0.0), 1.2e-3: (0.1, 0.2, 0.0)}
    assert math.fsum(equal[6e-4]) < math.fsum(equal[1.2e-3])

    def runner(asked: Sequence[Setting]) -> dict[Setting, SettingOutcome]:
        return {one: outcome(equal.get(value_in(one), (0.0, 0.0, 0.0))) for one in asked}

    plan = plan_tuning(three_seeds(), ["logit_penalty(beta=6e-4)"], {"beta": (6e-4, 1.2e-3)}, 2)
    (tuned,) = conduct(plan, runner)
    assert tuned.best is not None
    assert tuned.best.values == (6e-4,)


@pytest.mark.parametrize(
    ("objective", "grid"),
    [
        ("label_smoothing", (0.025, 0.05, 0.1, 0.2, 0.4)),
        ("label_smoothing(alpha=0.4)", (0.1, 0.2, 0.4, 0.8)),
        ("dropout(keep=0.9)", (0.6, 0.8, 0.9, 0.95, 0.975)),
        ("logit_norm", (0.01, 0.02, 0.04, 0.08, 0.16)),
        ("label_smoothing(alpha=0)", (0,)),
    ],
)
def test_default_grids_are_geometric_around_the_start(objective: str, grid: tuple[float, ...]) -> None:
    (axis,) = axes_of(objective, Recipe(), {})
    assert axis.grid == grid


@given(
    name=st.sampled_from(["label_smoothing", "dropout", "logit_norm", "final_layer_l2"]),
    place=st.floats(0.02, 0.98),
    rungs=st.integers(2, 7),
)
def test_between_and_beyond_keep_order_range_and_ratio(name: str, place: float, rungs: int) -> None:
    parameter = PRESETS[name].hyperparameters[0]
    start = float(f"{place:.3g}")
    axis = make_axis(parameter.name, parameter, name, start, rungs)
    distance = (lambda value: 1 - value) if name == "dropout" else (lambda value: value)
    for low, high in zip(axis.grid, axis.grid[1:], strict=False):
        assert distance(high) / distance(low) == pytest.approx(0.5 if name == "dropout" else 2, rel=0.02)
        middle = axis.between(low, high)
        assert middle is not None
        assert low < middle < high
        assert distance(middle) ** 2 == pytest.approx(distance(low) * distance(high), rel=0.02)
    if len(axis.grid) > 1:
        further = axis.beyond(axis.grid[-1], axis.grid[-2])
        assert further is None or (further > axis.grid[-1] and further in parameter.interval)
        further = axis.beyond(axis.grid[0], axis.grid[1])
        assert further is None or (further < axis.grid[0] and further in parameter.interval)


def test_a_grid_with_zero_is_spaced_evenly() -> None:
    (axis,) = axes_of("label_smoothing", Recipe(), {"alpha": (0.2, 0, 0.1)})
    assert axis.grid == (0, 0.1, 0.2)
    assert axis.between(0, 0.1) == 0.05
    assert axis.beyond(0.2, 0.1) == 0.3
    assert axis.beyond(0, 0.1) is None


# -- several objectives, planted accuracies ----------------------------------------------------------------


def test_every_objective_with_something_to_choose_takes_the_same_budget() -> None:
    plan = plan_tuning(three_seeds())
    sizes = {one.slug: len(one.cells) for one in conduct(plan, planted_runner)}
    assert list(sizes) == list(three_seeds().slugs().values())
    assert sizes.pop("softmax") == sizes.pop("sigmoid") == 1
    assert set(sizes.values()) == {plan.budget} == {9}
    with_rate = plan_tuning(three_seeds(), grids={"recipe.learning_rate": (0.5, 1.0, 2.0)}, budget=12)
    assert {len(one.cells) for one in conduct(with_rate, planted_runner)} == {12}


def test_objectives_do_not_disturb_each_other() -> None:
    together = {one.slug: one for one in conduct(plan_tuning(three_seeds()), planted_runner)}
    for slug in ("cosine_softmax", "dropout"):
        assert conduct(plan_tuning(three_seeds(), [slug]), planted_runner) == (together[slug],)


def test_cells_hold_mean_and_standard_error_over_seeds() -> None:
    for one in conduct(plan_tuning(three_seeds()), planted_runner):
        for cell in one.cells:
            mean, error = mean_and_error([run.accuracy for run in cell.runs if run.accuracy is not None])
            assert cell.mean == pytest.approx(mean)
            assert cell.standard_error == pytest.approx(error)
        assert one.best is not None
        assert one.best.mean == max(cell.mean for cell in one.cells)
        assert one.at_start is not None
        assert one.at_start.objective in three_seeds().objectives


def test_a_diverged_seed_makes_a_cell_the_worst_and_is_named() -> None:
    def runner(asked: Sequence[Setting]) -> dict[Setting, SettingOutcome]:
        high = {one: value_in(one) > 0.15 for one in asked}
        return {one: outcome([0.9, None, 0.9] if high[one] else [0.1, 0.1, 0.1]) for one in asked}

    (tuned,) = conduct(plan_tuning(three_seeds(), ["label_smoothing"]), runner)
    assert tuned.best is not None
    assert tuned.best.values[0] < 0.15
    said = " ".join(tuned.remarks)
    assert "diverged: label_smoothing(alpha=0.4), seed 1 (the loss was no number)" in said
    assert "seed 0" not in said


def test_where_every_cell_diverged_nothing_is_chosen() -> None:
    def runner(asked: Sequence[Setting]) -> dict[Setting, SettingOutcome]:
        dead = {one: "dropout" in one[0] for one in asked}
        return {one: outcome([None if dead[one] else 0.5] * 3) for one in asked}

    plan = plan_tuning(three_seeds(), ["dropout", "sigmoid"])
    dropout, sigmoid = conduct(plan, runner)
    assert (dropout.chosen, sigmoid.chosen) == (None, 0)
    assert len(dropout.cells) == 5
    assert any("every cell diverged" in remark for remark in dropout.remarks)
    source = chosen_source(record_of(plan, (dropout, sigmoid)))
    assert "dropout: every cell diverged" in source
    assert "dropout(" not in "".join(run_source(source))


@pytest.mark.parametrize(("accuracy", "says"), [(0.0085, True), (0.5, False)])
def test_a_search_at_chance_says_so(accuracy: float, says: bool) -> None:
    """Among 128 classes 0.8 % is guessing; and of two cells at chance one is the better."""

    def runner(asked: Sequence[Setting]) -> dict[Setting, SettingOutcome]:
        return {one: outcome([accuracy, accuracy - 0.001, accuracy]) for one in asked}

    plan = plan_tuning(three_seeds(), ["dropout", "sigmoid"])
    for tuned in conduct(plan, runner):
        said = " ".join(tuned.remarks)
        assert ("no cell is better than guessing (0.8 % of 128 classes" in said) is says
        assert ("guessing" in chosen_source(record_of(plan, (tuned,)))) is says


@pytest.mark.parametrize(("out", "option"), [("runs", ""), ("/tmp/my runs", " --out '/tmp/my runs'")])
def test_what_is_to_be_typed_next_names_the_folder_of_results(out: str, option: str) -> None:
    plan = plan_tuning(three_seeds(), ["sigmoid"])
    tuning = record_of(plan, conduct(plan, planted_runner))
    result = TuningResult(tuning, Summary(), Path(out) / "studies" / tuning.name, ("sigmoid",), ())
    lines, _ = result_lines(result)
    assert lines[-1] == f"Every cell: penultimate show tableA1 --study tune-nine{option}"


def on_disk(root: Path) -> Study:
    """A study of images of your own, with a task and what its classes are called."""
    split_folders(root / "pictures", ("ape", "bee", "cat"), 20, 4)
    split_folders(root / "others", ("x", "y"), 6, 3)
    return Study(
        "mine",
        "Mine",
        "Which?",
        "pictures",
        ("others",),
        (Runs(("softmax",), Recipe(epochs=1, size=24, resize=28), ("glyphnet(width=4, features=16)",)),),
        counterparts={"others": {"x": ("ape",)}},
        data={name: str(root / name) for name in ("pictures", "others")},
    )


def test_a_study_on_images_of_ones_own_is_tuned(tmp_path: Path) -> None:
    plan = plan_tuning(on_disk(tmp_path))
    (tuned,) = conduct(plan, lambda asked: {one: outcome([0.4]) for one in asked})
    assert "no cell is better than guessing (33.3 % of 3 classes" in " ".join(tuned.remarks)
    graph, owner = cells_graph(plan.study, [("softmax", ())])
    assert {step.id for step in graph.steps.values()} <= set(unfold(plan.study).steps)
    assert [step.name for step in owner.values()] == ["train"]


def test_data_without_a_holdout_are_not_tuned_on() -> None:
    with pytest.raises(RequestError, match=r"'cifar10' cannot be tuned on: it has no split holdout \(it has"):
        plan_tuning(load_study("cifar10_allcnnc"))


def test_data_of_which_it_is_not_said_where_they_lie_are_asked_for(tmp_path: Path) -> None:
    study = override(load_study("imagenet_resnet50"), ["source=imagenet_tuning", "gpus=0", "seeds=0"])
    with pytest.raises(RequestError, match="--data imagenet_tuning=FOLDER"):
        tune(plan_tuning(study, ["sigmoid"]), tmp_path / "runs", engine=InProcess())
    assert not (tmp_path / "runs").exists()


def test_an_objective_with_a_failed_training_is_left_to_be_continued() -> None:
    def runner(asked: Sequence[Setting]) -> dict[Setting, SettingOutcome]:
        return {one: outcome([0.5] * 3) for one in asked if "label_smoothing" not in one[0]}

    done = conduct(plan_tuning(three_seeds(), ["label_smoothing", "sigmoid"]), runner)
    assert [one.slug for one in done] == ["sigmoid"]


def test_one_cell_is_a_grid_with_nothing_to_choose() -> None:
    plan = plan_tuning(three_seeds(), ["dropout", "softmax"], {"keep": (0.8,)})
    for one in conduct(plan, planted_runner):
        assert len(one.cells) == 1
        assert any("nothing to choose" in remark for remark in one.remarks)


# -- what is asked for ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "grids", "budget", "answer"),
    [
        (["cosine_sofmax"], [], None, "Did you mean 'cosine_softmax'"),
        (["dropout", "dropout(keep=0.5)"], [], None, "named twice"),
        (["all", "dropout"], [], None, "'all' stands alone"),
        (["dropout"], ["keep=0.5,1.5"], None, r"keep must be a number in \(0, 1\]"),
        (["dropout"], ["keep=0.5,0.5"], None, "0.5 twice"),
        (["dropout"], ["keep=0.5,high"], None, "'high' is not a number"),
        (["dropout"], ["keep="], None, "--grid wants name=value"),
        (["dropout"], ["kep=0.5"], None, "Did you mean 'keep'"),
        (["dropout"], ["keep=0.5", "keep=0.6"], None, "given twice"),
        (["dropout"], ["recipe.learning_rat=0.5"], None, "Did you mean 'learning_rate'"),
        (["dropout"], ["recipe.schedule=1"], None, "These can: learning_rate"),
        (["dropout"], ["recipe.learning_rate=0,1"], None, r"learning_rate must be a number in \(0, inf\)"),
        (["dropout"], ["recipe.epochs=2.5"], None, "epochs must be an integer"),
        (["dropout"], [], 4, r"grid of dropout, which has 5 cells \(keep from .*\); give --budget 7"),
        (["dropout"], [], 0, "--budget is a whole number, 1 or more"),
    ],
)
def test_a_wrong_request_is_refused_with_its_reason(
    names: list[str], grids: list[str], budget: int | None, answer: str
) -> None:
    with pytest.raises(RequestError, match=answer):
        plan_tuning(load_study("nine"), names, parse_grids(grids), budget)


def test_searches_start_from_the_studys_values_and_take_the_first_of_a_sweep() -> None:
    sweep = load_study("glyphs")
    starts = {one.slug: one.start for one in plan_tuning(sweep).candidates}
    assert list(starts.values()) == list(sweep.objectives[:9])
    (bare,) = plan_tuning(sweep, ["squared_error"]).candidates
    (own,) = plan_tuning(sweep, ["squared_error(kappa=3)"]).candidates
    assert bare.start == starts["squared_error"]
    assert own.start == "squared_error(kappa=3, scale=10, target=60)"


def test_the_search_that_a_study_plans_is_made_unless_grids_are_given() -> None:
    search = load_study("matched_search")
    planned = plan_tuning(search, ["dropout"])
    assert (planned.candidates[0].axes[0].grid, planned.budget) == ((0.4, 0.7, 0.85, 0.925, 0.9625), 7)
    assert plan_tuning(search, ["dropout"], budget=6).budget == 6
    given = plan_tuning(search, ["dropout"], {"keep": (0.5, 0.6)})
    assert (given.candidates[0].axes[0].grid, given.budget) == ((0.5, 0.6), 9)
    wrong = replace(search, search=Search({"temperatur": (0.1,)}))
    with pytest.raises(RequestError, match="Did you mean 'temperature'"):
        plan_tuning(wrong)


def test_an_objective_is_tuned_from_the_recipe_of_its_own_grid() -> None:
    smoke = load_study("smoke")
    changes = {"sigmoid": {"learning_rate": 0.7}}
    grids = runs_by_recipe(("softmax", "sigmoid"), smoke.main.recipe, changes, backbones=smoke.main.backbones)
    study = replace(smoke, networks=grids)
    softmax, sigmoid = plan_tuning(study).candidates
    assert softmax.setting(()) == ("softmax", ())
    assert sigmoid.setting(()) == ("sigmoid", (("learning_rate", 0.7),))
    graph, _ = cells_graph(study, [softmax.setting(()), sigmoid.setting(())])
    assert set(graph.steps) < set(unfold(study).steps)
    assert sum(step.name == "train" for step in graph.steps.values()) == 2


def test_a_long_grid_raises_the_budget_of_all() -> None:
    plan = plan_tuning(load_study("nine"), grids={"temperature": tuple(range(1, 13))})
    assert plan.budget == 12 + 2 + 2


# -- the steps --------------------------------------------------------------------------------------------


def test_cells_are_the_training_steps_of_a_study_and_nothing_else() -> None:
    study = load_study("smoke")
    settings_asked: list[Setting] = [
        (study.objectives[0], ()),
        (study.objectives[1], (("learning_rate", 0.1),)),
    ]
    graph, owner = cells_graph(study, settings_asked)
    assert {step.name for step in graph.steps.values()} == {"data", "train"}
    assert {step.config["name"] for step in graph.steps.values() if step.name == "data"} == {study.source}
    same = unfold(study).steps
    slower = unfold(override(study, ["recipe.learning_rate=0.1"])).steps
    assert owner[settings_asked[0], 0].id in same
    assert owner[settings_asked[1], 0].id in slower
    assert owner[settings_asked[1], 0].id not in same
    assert len(graph.steps) == 3


def test_only_the_holdout_is_read() -> None:
    columns = {"metric": "top1", "split": "holdout", "epoch": 2, "value": 0.5}
    others = [{"split": "train"}, {"split": "test"}, {"metric": "mean_loss"}, {"epoch": None}]
    rows = [Row(**{**columns, **other, "value": 0.9}) for other in others]  # type: ignore[arg-type]
    assert holdout_curve([*rows, Row(**columns)]) == {2: 0.5}  # type: ignore[arg-type]


def two_axes() -> tuple[Axis, ...]:
    grids = {"recipe.learning_rate": (0.1, 0.2, 0.4), "recipe.exposure": (4.0, 8.0, 16.0)}
    return axes_of("softmax", Recipe(), grids)


def drive_product(score: Callable[[Point], float], budget: int, expansions: int) -> Found:
    rounds = search(two_axes(), budget, expansions, product=True)
    wanted = next(rounds)
    while True:
        try:
            wanted = rounds.send({point: (score(point),) for point in wanted})
        except StopIteration as end:
            found: Found = end.value
            return found


def test_a_product_finds_what_a_cross_through_the_centre_misses() -> None:
    """A ridge along rate x exposure = constant, as in the paper's grid of learning rate and lambda."""

    def score(point: Point) -> float:
        rate, exposure = point
        return -abs(math.log(rate * exposure / 1.6)) - 0.1 * abs(math.log(rate / 0.1))

    found = drive_product(score, 9, 0)
    assert set(found.scores) == set(itertools.product((0.1, 0.2, 0.4), (4.0, 8.0, 16.0)))
    assert found.highest == (0.1, 16.0)
    cross = drive(two_axes(), score, 5, 0)
    assert cross.scores[cross.highest or ()] < found.scores[(0.1, 16.0)]


def test_a_product_is_expanded_by_whole_lines_and_refined_once_around_the_best() -> None:
    found = drive_product(lambda point: -abs(math.log(point[0] / 0.8)) - abs(math.log(point[1] / 8)), 99, 1)
    assert {point[1] for point in found.scores if point[0] == 0.8} >= {4.0, 8.0, 16.0}
    assert [point for point, phase in found.phases.items() if phase == "expansion"] == [
        (0.8, 4.0),
        (0.8, 8.0),
        (0.8, 16.0),
    ]
    refined = {point for point, phase in found.phases.items() if phase == "refinement"}
    rates, exposures = ({point[place] for point in refined} for place in (0, 1))
    assert len(refined) == len(rates) * len(exposures) - 6 == 3 * 5 - 6  # 0.8 is an edge: one side only
    with_budget = drive_product(lambda point: point[0], 10, 5)
    assert len(with_budget.scores) == 10
