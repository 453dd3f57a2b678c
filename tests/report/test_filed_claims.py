"""The fourth set of rules as a table of (claim, rows, verdict), and the rules on the paper's own numbers."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator

import pytest

from penultimate.paper.claims.aspects import SHARED
from penultimate.paper.claims.effects import Effect, Verdict, decide, needed_units
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.filed import EVERY_CLAIM, FILED_CLAIMS, FILED_RULES, filed_spoken
from penultimate.paper.claims.rules import FILED
from penultimate.paper.claims.verdicts import Judged, judge
from penultimate.records.table import Row
from penultimate.report import StudyResults, exhibit
from penultimate.report.measurements import admit
from tests.report.planted import NINE, as_in_the_paper, planted
from tests.report.test_further_claims import (
    LAYERS,
    SEEDS,
    TASKS,
    accuracies,
    augmented,
    fine_tuned,
    row,
    spec,
    study,
)

Made = Callable[[], StudyResults]


def wobble(place: int, seed: int) -> float:
    """Chance of a twentieth of a point, which differs between objectives and between seeds."""
    return 0.05 * ((7 * place + 5 * seed) % 11 - 5) / 5


def of_each(
    metric: str, value: Callable[[int], float], backbone: str = "glyphnet", **facts: object
) -> Iterator[Row]:
    """Rows of the nine objectives and five seeds, in per cent."""
    for (place, name), seed in itertools.product(enumerate(NINE), SEEDS):
        made = row(name, seed, metric, (value(place) + wobble(place, seed)) / 100, **facts)
        yield dataclasses.replace(made, backbone=backbone)


def transfer(
    value: Callable[[int], float], backbone: str = "glyphnet", epoch: int | None = None
) -> Iterator[Row]:
    """Rows of linear transfer to each of eight tasks."""
    for one in accuracies("linear", TASKS, lambda place, seed, _: value(place) + wobble(place, seed)):
        yield dataclasses.replace(one, backbone=backbone, epoch=epoch)


def separation(value: Callable[[int], float], backbone: str = "glyphnet") -> Iterator[Row]:
    return of_each(
        "class_separation", lambda place: 100 * value(place), backbone, split="train", unit="ratio"
    )


def ranks(sign: int, backbone: str = "glyphnet") -> StudyResults:
    """Accuracy, separation and transfer, of which transfer falls (sign -1) or rises with the other two."""
    rows = (
        *transfer(lambda place: 80 + sign * place, backbone),
        *of_each("top1", lambda place: 70 + place, backbone),
        *separation(lambda place: 0.3 + 0.03 * place, backbone),
    )
    first = of_each("top1", lambda place: 70.0) if backbone != "glyphnet" else ()
    return study([*first, *rows])


def accurate(*below: str) -> StudyResults:
    """Every alternative a point above softmax, but for those below it."""
    values = [0.0 if name == "softmax" else -1.0 if name in below else 1.0 for name in NINE]
    return study(list(of_each("top1", lambda place: 70 + values[place])))


def active(shares: Callable[[int], float]) -> StudyResults:
    """The share of activations that are on, in the penultimate layer and a layer before it, which has all."""
    before = of_each("nonzero_share", lambda place: 99.0, layer="block1")
    return study([*before, *of_each("nonzero_share", shares, layer="penultimate")])


def through_training(ahead: int) -> StudyResults:
    """Four snapshots; softmax is a point ahead in so many of them, and a point behind in the others."""
    rows: list[Row] = []
    for at, epoch in enumerate((4, 8, 12, 16)):
        lead = 1 if at < ahead else -1
        rows += transfer(lambda place, lead=lead, epoch=epoch: 60 + epoch - lead * (place > 0), epoch=epoch)
    return study(rows)


def changed(first: float, last: float) -> StudyResults:
    """CKA of the layers of softmax before and after fine-tuning, on each task."""
    values = (first, 0.8, 0.7, last)
    return study(
        [
            row(
                "softmax",
                seed,
                "fine_tuned_cka",
                value + wobble(at, seed) / 100,
                target=task,
                **FINE_TUNED,
                layer=name,
            )
            for seed, task, (at, (name, value)) in itertools.product(
                SEEDS, TASKS, enumerate(zip(LAYERS, values, strict=True))
            )
        ]
    )


FINE_TUNED = {"setting": "head=fresh", "unit": "ratio"}


def ensembles(gain: float) -> StudyResults:
    """Ensembles of one objective, and of two that are above the better of these by a gain."""
    rows = list(of_each("top1", lambda place: 70.0))
    for (at, a), (to, b) in itertools.combinations_with_replacement(enumerate(NINE), 2):
        value = 75 + max(at, to) / 10 + (gain if at != to else 0) + wobble(at, to) / 5
        facts = {"objective_b": spec(b), "setting": "models=4"}
        rows.append(
            dataclasses.replace(row(a, 0, "ensemble_top1", value / 100, **facts), seed=None, draw=None)
        )
    return study(rows)


def labels(ahead: int) -> StudyResults:
    """Five labels; softmax is a point ahead for so many of them, and behind for the others."""
    rows: list[Row] = []
    for at in range(5):
        lead = 1 if at < ahead else -1
        facts = {"target": "findings", "setting": f"label=L{at}, uncertain=zeros"}
        rows += of_each("multilabel_auc", lambda place, lead=lead: 80 - lead * (place > 0), **facts)
    return study(rows, (*TASKS, "findings"))


def on_pets(gain: float) -> StudyResults:
    """Label smoothing separates a little further than softmax, and gains on the task of shared classes."""
    rows = accuracies(
        "linear",
        TASKS,
        lambda place, seed, _: 80 + (gain if place == 1 else -1.0) * (place > 0) + wobble(place, seed),
    )
    return study([*rows, *separation(lambda place: 0.3 + 0.02 * place)])


def benchmarks(best: tuple[int, int, int]) -> StudyResults:
    """Three benchmarks, each with another objective, or the same, two points above all others."""
    rows: list[Row] = []
    for one, (backbone, arm) in zip(best, (("glyphnet", None), *SMALL), strict=True):
        rows += of_each("top1", lambda place, one=one: 70 + 2 * (place == one), backbone, arm=arm)
    return study(rows)


SMALL = (("glyphmobile", "cosine decay"), ("glyphwide", "cosine decay"))
TABLE: tuple[tuple[str, str, Made, Verdict], ...] = (
    ("thesis", "the more accurate transfer worse", lambda: ranks(-1), "holds"),
    ("thesis", "the more accurate transfer better", lambda: ranks(1), "does not hold"),
    ("least_accurate", "all are above softmax", accurate, "holds"),
    ("least_accurate", "one is below", lambda: accurate("dropout"), "does not hold"),
    ("second_thesis", "worse", lambda: ranks(-1, "glyphplain"), "holds"),
    ("second_thesis", "better", lambda: ranks(1, "glyphplain"), "does not hold"),
    ("second_best", "worse", lambda: ranks(-1, "glyphplain"), "holds"),
    ("second_best", "better", lambda: ranks(1, "glyphplain"), "does not hold"),
    ("second_separation", "worse", lambda: ranks(-1, "glyphplain"), "holds"),
    ("second_separation", "better", lambda: ranks(1, "glyphplain"), "does not hold"),
    ("least_sparse", "fewer with each place", lambda: active(lambda place: 90 - 10 * place), "holds"),
    ("least_sparse", "more with each place", lambda: active(lambda place: 10 + 10 * place), "does not hold"),
    ("sparse", "the last three are at 20 %", lambda: active(lambda place: 20 + 50 * (place < 6)), "holds"),
    ("sparse", "the last is at 30 %", lambda: active(lambda place: 20 + 10 * (place == 8)), "does not hold"),
    ("augmentation_adds", "two points more", lambda: study(augmented(2.0, 0.0)), "holds"),
    ("augmentation_adds", "two points less", lambda: study(augmented(-2.0, 0.0)), "does not hold"),
    ("best_throughout", "at three of four", lambda: through_training(3), "holds"),
    ("best_throughout", "at two of four", lambda: through_training(2), "does not hold"),
    ("later_layers_change", "the last ones", lambda: changed(0.9, 0.4), "holds"),
    ("later_layers_change", "the first ones", lambda: changed(0.4, 0.9), "does not hold"),
    ("ensembles", "no gain", lambda: ensembles(0.0), "holds"),
    ("ensembles", "a point more", lambda: ensembles(1.0), "does not hold"),
    ("several_labels", "four of five", lambda: labels(4), "holds"),
    ("several_labels", "three of five", lambda: labels(3), "does not hold"),
    ("slightly_more", "a point more", lambda: on_pets(1.0), "holds"),
    ("slightly_more", "a point less", lambda: on_pets(-1.0), "does not hold"),
    ("no_single_best", "another on each", lambda: benchmarks((1, 2, 3)), "holds"),
    ("no_single_best", "one on all", lambda: benchmarks((4, 4, 4)), "does not hold"),
    ("fine_tuned_alike", "none apart", lambda: study(fine_tuned([0.0] * 9, 0.2)), "holds"),
)


def judged(results: StudyResults) -> dict[str, Judged]:
    return {one.claim.key: one for one in judge(gather(admit(results)))}


@pytest.mark.long
@pytest.mark.parametrize(
    ("key", "rows", "verdict"), [pytest.param(a, c, d, id=f"{a}: {b}") for a, b, c, d in TABLE]
)
def test_a_rule_finds_what_the_rows_hold(key: str, rows: Made, verdict: Verdict) -> None:
    ours = judged(rows())[key].ours
    assert (ours.verdict, ours.judged) == (verdict, True), ours


def test_every_claim_of_the_set_is_in_the_table_both_ways() -> None:
    for claim in FILED_CLAIMS:
        assert {verdict for key, _, _, verdict in TABLE if key == claim.key} == {"holds", "does not hold"}


def test_the_set_is_dated_and_told() -> None:
    assert FILED_RULES == f"{FILED}, fourth set" == "2026-11-26, fourth set"
    assert f"of {FILED_RULES}" in filed_spoken()[0]
    assert (
        len({claim.key for claim in EVERY_CLAIM})
        == len({claim.says for claim in EVERY_CLAIM})
        == len(EVERY_CLAIM)
    )


# What the rules say of the paper's own numbers.


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """The verdict of each rule on the paper's numbers; empty for a claim without a printed number."""
    found = judged(study([]))
    return {key: one.printed.verdict if one.printed else "" for key, one in found.items()}


def test_the_papers_shares_of_classes_are_those_of_its_table() -> None:
    assert {task: SHARED[task] for task in ("cifar10", "cifar100", "pets", "cars")} == {
        "cifar10": 9 / 10,
        "cifar100": 61 / 100,
        "pets": 25 / 37,
        "cars": 0,
    }
    assert SHARED["newfaces"] == 1


def test_by_its_own_shares_the_papers_slope_fails_the_rule_on_shared_classes() -> None:
    one = judged(study([]))["separation_shared"]
    assert one.printed is not None
    assert one.printed.verdict == "does not hold"
    assert one.paper.startswith("+0.08")
    assert "+0.100 of ρ or more" in one.printed.reason


def test_the_papers_numbers_pass_fail_or_are_too_few_for_its_own_claims(printed: dict[str, str]) -> None:
    expected = {
        "accuracy_sigmoid": "holds",
        "accuracy_squared_error": "undecided",  # 0.2 points, printed with standard errors
        "calibration": "undecided",  # eight objectives cannot show that two quantities are unrelated
        "most_linear": "holds",
        "softmax_best": "holds",
        "separation_linear": "holds",
        "temperature_transfer": "holds",
        "fine_tuned_alike": "does not hold",
        "fine_tuning_erases": "holds",
        "augmentation": "holds",
        "combinations": "holds",
        "robustness": "holds",
        "thesis": "undecided",
        "second_separation": "holds",
        "second_best": "holds",
        "several_labels": "holds",
        "slightly_more": "holds",
        "mistakes": "",
        "softmax_peaks": "",
        "best_throughout": "",
    }
    assert {key: printed[key] for key in expected} == expected


def test_the_page_says_of_every_claim_whether_the_papers_numbers_satisfy_its_rule(
    printed: dict[str, str],
) -> None:
    table = exhibit("claims", planted(as_in_the_paper(), alike=(60.0, 50.0))).tables[0]
    place = [column.key for column in table.columns].index("printed")
    shown = {row_.label: row_.cells[place].text for row_ in table.rows}
    assert len(shown) > 30
    for claim in EVERY_CLAIM:
        if claim.says in shown:
            assert shown[claim.says] == (printed[claim.key] or "the paper prints no number for it")


# What a rule cannot say with the data at hand, and what would decide it.


def test_a_rule_that_can_only_refute_says_so_beside_its_verdict() -> None:
    ours = judged(
        planted(
            {
                name: {"accuracy": 70.0 + place % 4, "ece": 0.05 + 0.01 * (place % 3)}
                for place, name in enumerate(NINE)
            }
        )
    )
    assert "can refute the claim, not show it" in ours["calibration"].ours.reason
    wide = judged(study(fine_tuned([0.0] * 9, 6.0)))["fine_tuned_alike"].ours
    assert "can refute the claim, not show it" in wide.reason
    narrow = judged(study(fine_tuned([0.0] * 9, 0.2)))["fine_tuned_alike"].ours
    assert "can refute" not in narrow.reason


def test_an_undecided_rule_says_how_many_seeds_would_decide_it() -> None:
    results = planted({name: {"linear": 80.0 + 0.02 * place} for place, name in enumerate(NINE)}, noise=0.9)
    most = judged(results)["most_linear"].ours
    assert most.verdict == "undecided"
    assert "of 2 tasks bear it out beyond chance" in most.reason
    assert "seeds would decide it." in most.reason


@pytest.mark.parametrize(("estimate", "reach"), [(0.4, 0.6), (0.05, 0.5), (-0.2, 0.9)])
def test_as_many_seeds_as_are_named_decide_and_one_fewer_do_not(estimate: float, reach: float) -> None:
    """The interval shrinks as that of a t test with the same standard deviation does."""
    from scipy.stats import t

    def at(n: int) -> Effect:
        error = reach / t.ppf(0.975, 4) * (5 / n) ** 0.5
        half = t.ppf(0.975, n - 1) * error
        p_for, p_against = t.sf(estimate / error, n - 1), t.cdf((estimate - 0.1) / error, n - 1)
        return Effect(estimate, estimate - half, estimate + half, 0.1, p_for, p_against)

    count = needed_units(at(5), 5, "seed")
    assert count is not None
    assert count > 5
    assert decide(at(5)) == decide(at(count - 1)) == "undecided"
    assert decide(at(count)) != "undecided"


# Grids whose best cells lie on the edge.


@pytest.mark.parametrize(("share", "is_judged"), [(0.05, True), (0.5, False)])
def test_fine_tuning_is_not_judged_while_best_cells_lie_on_the_edge(share: float, is_judged: bool) -> None:
    cells = itertools.product(NINE, TASKS)
    edges = [
        row(name, 0, "fine_tuned_edges", float(at < share * 72), target=task, split="train", **FINE_TUNED)
        for at, (name, task) in enumerate(cells)
    ]
    ours = judged(study([*fine_tuned([0.0] * 9, 0.2), *edges]))["fine_tuned_alike"].ours
    assert (ours.judged, ours.verdict) == (is_judged, "holds" if is_judged else "undecided")
    assert ("36 of 72 best cells lie on the edge" in ours.reason) == (not is_judged)


def test_a_run_that_is_older_than_a_rule_says_so() -> None:
    results = planted(as_in_the_paper(), alike=(60.0, 50.0))
    for day, is_late in (("2026-11-24", True), ("2026-11-27", False)):
        made = exhibit("claims", dataclasses.replace(results, provenance={"measured": day}))
        said = [note for note in made.notes if f"filed on {FILED}, after this run" in note]
        assert bool(said) == is_late
