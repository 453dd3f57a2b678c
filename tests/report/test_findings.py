"""What exhibits say came out: sentences made from small tables of runs, whatever these hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from penultimate.objectives.presets import resolve
from penultimate.paper import published
from penultimate.report import read_study, render_exhibit_text
from penultimate.report.base import Built, StudyResults
from penultimate.report.measurements import ByRun, Measurements, admit
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.asked import Asked, already, at_epochs
from penultimate.report.shapes.findings import (
    Change,
    Sentence,
    apart,
    beside_baseline,
    changes,
    correlations,
    either,
    ends,
    goes_with,
)
from penultimate.report.spec import all_exhibits, assemble
from tests.oracles.report import spearman_rho
from tests.report.planted import planted
from tests.report.reading import glyphs
from tests.report.test_contract import BEYOND, OF_EVALUATIONS

SHOWN = Quantity("top1")
FOUR = ("softmax", "sigmoid", "dropout", "squared_error")


def small(specs: tuple[str, ...] = FOUR) -> Measurements:
    """A study of these objectives; its numbers are not read by what is said of `already` known runs."""
    return admit(planted({spec: {"accuracy": 50.0} for spec in specs}, (0,)))


def runs(values: Mapping[str, tuple[float, ...]]) -> ByRun:
    """{objective: its values in per cent, seed by seed}."""
    return {
        resolve(name).canonical: {seed: value / 100 for seed, value in enumerate(of)}
        for name, of in values.items()
    }


def asked(values: Mapping[str, tuple[float, ...]], words: str = "accuracy", **others: object) -> Asked:
    return Asked(words, SHOWN, read=already(runs(values)), **others)  # type: ignore[arg-type]


def said(finding: Sentence, specs: tuple[str, ...] = FOUR) -> str:
    return finding(small(specs)).replace("\N{MINUS SIGN}", "-")


SEVERAL = {
    "softmax": (70.0, 71.0, 72.0),
    "sigmoid": (75.1, 75.9, 77.0),
    "dropout": (65.0, 66.1, 67.0),
    "squared_error": (70.5, 70.0, 72.8),
}


def test_others_are_counted_above_and_below_softmax_with_those_beyond_chance() -> None:
    """Sigmoid is five points above in every seed, dropout five below; squared error differs by noise."""
    sentence = said(beside_baseline(asked(SEVERAL)))
    assert sentence == (
        "Ours: in accuracy two others are above Softmax's 71.0 ± 0.58 % (one beyond chance)"
        " and one below it (beyond chance)."
    )
    turned = {**SEVERAL, "sigmoid": (64.9, 66.1, 67.0)}
    assert "one other is above Softmax's 71.0 ± 0.58 % (none beyond chance) and two below it" in said(
        beside_baseline(asked(turned))
    )


def test_one_run_each_is_a_direction_and_nothing_is_beyond_chance() -> None:
    one = {name: values[:1] for name, values in SEVERAL.items()}
    assert said(beside_baseline(asked(one))) == (
        "Ours: in accuracy two others are above Softmax's 70.0 % and one below it"
        " (one run each: a direction, no more)."
    )
    two = {name: values[: 1 + (name == "softmax")] for name, values in SEVERAL.items()}
    assert said(ends(asked(two))).endswith("(1 to 2 runs each: a direction, no more).")


def test_equal_means_are_level_and_share_a_place() -> None:
    level = {"softmax": (70.0,) * 3, "sigmoid": (70.0,) * 3, "dropout": (60.0,) * 3}
    assert said(beside_baseline(asked(level))) == (
        "Ours: in accuracy one other is below Softmax's 70.0 % and one level with it."
    )
    assert said(ends(asked(level))) == (
        "Ours: accuracy runs from 60.0 % (Dropout) to 70.0 % (Softmax and Sigmoid)."
    )
    same = dict.fromkeys(FOUR, (70.0,) * 3)
    assert (
        said(beside_baseline(asked(same)))
        == "Ours: in accuracy all three others are level with Softmax's 70.0 %."
    )
    assert said(ends(asked(same))) == "Ours: accuracy is 70.0 % for all four objectives."


@pytest.mark.parametrize("shape", [beside_baseline, ends, apart])
def test_one_objective_alone_is_said_to_be_alone_and_none_says_nothing(
    shape: Callable[..., Sentence],
) -> None:
    alone = asked({"softmax": (70.0, 71.0, 72.0)})
    assert said(shape(alone)) == "Ours: accuracy is 71.0 ± 0.58 % (Softmax, alone)."
    assert said(shape(asked({}))) == ""


def test_without_softmax_the_lowest_and_the_highest_are_named() -> None:
    rest = {name: values for name, values in SEVERAL.items() if name != "softmax"}
    assert said(beside_baseline(asked(rest))) == (
        "Ours: accuracy runs from 66.0 ± 0.58 % (Dropout) to 76.0 ± 0.55 % (Sigmoid)."
    )


def test_the_paper_is_counted_by_its_printed_numbers() -> None:
    one = asked(SEVERAL, printed=("neurips_table3_class_separation", "imagenet_top1_percent"))
    printed = {
        row["objective"]: float(row["imagenet_top1_percent"])
        for row in published.printed("neurips_table3_class_separation")
    }
    above = sum(value > printed["softmax"] for value in printed.values())
    assert above == 8
    assert " – in the paper all eight are above it." in said(beside_baseline(one))
    low, high = min(printed.values()), max(printed.values())
    assert f", in the paper from {low:.1f} % (Softmax) to {high:.1f} % (" in said(ends(one))


def test_how_far_objectives_lie_apart_is_of_those_that_have_every_number() -> None:
    """In the second, dropout was not measured: 5 points and 4 are of the others."""
    before = asked(SEVERAL, "the first")
    after = asked(
        {"softmax": (80.0,) * 3, "sigmoid": (84.0,) * 3, "squared_error": (82.0,) * 3}, "the second"
    )
    assert said(apart(before, after)) == (
        "Ours: the highest mean is 5.0 points above the lowest in the first and 4.0 in the second"
        " (of three objectives, standard errors up to 0.86)."
    )


def test_changes_are_within_seeds_and_in_the_mean_of_the_objectives() -> None:
    after = {"softmax": (71.0, 72.0, 74.0), "sigmoid": (75.1, 74.9, 77.0), "dropout": (65.0, 66.1, 67.0)}
    sentence = said(changes(Change("under it accuracy", asked(SEVERAL), asked(after))))
    gains = [sum(of) / 3 for of in ((1, 0, 0), (1, -1, 0), (2, 0, 0))]
    mean = sum(gains) / 3
    assert sentence == (
        f"Ours: under it accuracy changes by +{mean:.1f} ± 0.19 points in the mean of three objectives"
        " (up for one, down for one, unchanged for one)."
    )
    turned = said(changes(Change("under it accuracy", asked(after), asked(SEVERAL))))
    assert "changes by -0.3 ± 0.19 points" in turned
    other_seeds = Asked("accuracy", SHOWN, read=already({resolve("softmax").canonical: {7: 0.5}}))
    assert said(changes(Change("under it accuracy", asked(SEVERAL), other_seeds))) == ""


FIVE = (*FOUR, "logit_norm")
RISING = {name: (60.0 + place,) * 3 for place, name in enumerate(FIVE)}
FALLING = {name: (60.0 - place,) * 3 for place, name in enumerate(FIVE)}
UNRELATED = dict(zip(FIVE, [(value,) * 3 for value in (60.0, 64.0, 61.0, 59.0, 62.0)], strict=True))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (RISING, "the higher the x, the higher the y"),
        (FALLING, "the higher the x, the lower the y"),
        (UNRELATED, "the x and the y show no rank correlation beyond chance"),
    ],
)
def test_a_relation_is_claimed_in_its_direction_or_not_at_all(
    other: Mapping[str, tuple[float, ...]], says: str
) -> None:
    sentence = said(goes_with(asked(RISING, "x"), asked(other, "y")), FIVE)
    rho = spearman_rho([of[0] for of in RISING.values()], [of[0] for of in other.values()])
    assert sentence.startswith(f"Ours: {says} (ρ = {rho:.2f}, p = ".replace("-0.00", "0.00"))
    assert "five objectives" in sentence


def test_what_cannot_be_ranked_is_said() -> None:
    two = {name: RISING[name] for name in FIVE[:2]}
    flat = dict.fromkeys(FIVE, (60.0,) * 3)
    assert said(goes_with(asked(RISING, "x"), asked(two, "y")), FIVE) == (
        "Ours: the x and the y: too few different values of two objectives to rank."
    )
    assert said(goes_with(asked(RISING, "x"), asked(flat, "y")), FIVE).endswith("five objectives to rank.")
    assert said(goes_with(asked(RISING, "x"), asked({}, "y")), FIVE) == ""
    by_task = correlations(asked(RISING, "x"), {"A": asked(flat)}, {}, "task")
    assert said(by_task, FIVE) == (
        "Ours: the rank correlation of x and transfer is undefined: too few different values to rank."
    )


def test_task_by_task_the_lowest_and_the_highest_correlation_are_named() -> None:
    tasks = {"Up": asked(RISING), "Down": asked(FALLING), "Noise": asked(UNRELATED)}
    assert said(correlations(asked(RISING, "x"), tasks, {}, "task"), FIVE) == (
        "Ours: the rank correlation of x and transfer is -1.00 (Down) to 1.00 (Up), by itself beyond chance"
        " on two of three tasks."
    )


def test_the_first_that_says_anything_is_said() -> None:
    assert said(either(ends(asked({})), ends(asked({"softmax": (70.0,)})))).startswith("Ours: accuracy is")
    assert said(either(ends(asked({})))) == ""


def test_a_share_of_the_epochs_is_that_of_the_epochs_that_were_measured() -> None:
    truth = {"softmax": {"accuracy@4": 10.0, "accuracy@8": 20.0, "accuracy@12": 30.0}}
    measurements = admit(planted(truth, (0,), noise=0.0))
    there = Quantity("top1", "test")
    for share, value in ((0.0, 0.1), (0.5, 0.2), (1.0, 0.3)):
        (of_seed,) = at_epochs(share, Quantity("nothing"), there)(measurements).values()
        assert of_seed == {0: pytest.approx(value)}
    assert at_epochs(1.0, Quantity("nothing"))(measurements) == {}


def built(results: StudyResults) -> dict[str, Built]:
    measurements = admit(results, allow_limited=True)
    made = {each.name: assemble(each, measurements) for each in all_exhibits()}
    return {name: one for name, one in made.items() if one.is_measured and name not in OF_EVALUATIONS}


def check_sentences(exhibits: Mapping[str, Built]) -> None:
    for name, one in exhibits.items():
        if name in BEYOND:
            continue
        assert one.finding.startswith("Ours"), f"{name} says nothing"
        assert one.finding.endswith("."), one.finding
        assert ". " not in one.finding, f"{name}: more than a sentence: {one.finding}"
        assert "nan" not in one.finding, one.finding
        assert one.notes.count(one.finding) == 1


@pytest.mark.long
def test_every_measured_exhibit_of_the_reference_run_says_what_came_out() -> None:
    exhibits = built(glyphs())
    assert len([name for name in exhibits if name not in BEYOND]) == 32
    check_sentences(exhibits)
    assert exhibits["table3"].finding != exhibits["tableC1"].finding


def test_every_measured_exhibit_of_a_run_of_one_seed_says_a_direction(finished_smoke: Path) -> None:
    exhibits = built(read_study(finished_smoke / "runs", "smoke"))
    check_sentences(exhibits)
    of_settings = {"tableA1", "iclr_tableA2", "tableA2"}
    of_pairs = {"figureC5"}
    for name in set(exhibits) - of_settings - of_pairs - {*BEYOND}:
        assert "a direction, no more" in exhibits[name].finding, exhibits[name].finding


def test_a_diverged_run_is_in_no_finding() -> None:
    truth = {name: {"accuracy": of[0], "separation": 0.3} for name, of in SEVERAL.items()}
    whole, without = (
        built(planted(truth, (0, 1, 2), without=gone))["table3"] for gone in ((), (("sigmoid", 1),))
    )
    assert "runs each" not in whole.finding
    assert "2 to 3 runs each: a direction, no more" in without.finding


@pytest.mark.long
def test_in_a_terminal_the_finding_stands_before_the_numbers() -> None:
    text = render_exhibit_text(built(glyphs())["figure5"])
    assert text.index("Ours: the higher the class separation") < text.index("Objectives on")
    assert text.count("Ours: the higher") == 1


@pytest.mark.parametrize("name", ["table2", "tableC5"])
def test_an_exhibit_that_shows_nothing_of_the_study_says_nothing_of_it(name: str) -> None:
    one = assemble(next(each for each in all_exhibits() if each.name == name), admit(glyphs()))
    assert not one.is_measured
    assert one.finding == ""
