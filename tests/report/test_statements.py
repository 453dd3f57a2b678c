"""The headline says what the numbers say, whichever way they point."""

from __future__ import annotations

import dataclasses
import math

import pytest

from penultimate.measures.class_separation import UNBIASED
from penultimate.paper.page.glossary import OBJECTIVES
from penultimate.paper.page.regime import compare, summary
from penultimate.paper.page.statements import headline
from penultimate.records.table import Table
from penultimate.report import read_reference
from penultimate.report.base import StudyResults
from penultimate.report.drawing.palette import PRESET_MARKS
from penultimate.report.measurements import admit
from penultimate.report.page.curves import training_curves
from tests.report.planted import NINE, as_in_the_paper, planted, swept
from tests.report.synthetic import MEASURED, study


def with_separation(order: list[int], results: StudyResults) -> StudyResults:
    """The study with R² replaced: rank `order[i]` for the objective that transfers i-th best."""
    best_first = sorted(MEASURED, key=lambda text: -MEASURED[text][3])
    transfer = {}
    rows = []
    for row in results.table:
        if row.metric.startswith("linear") and row.objective:
            transfer.setdefault(row.objective, []).append(row.value)
    ranked = sorted(transfer, key=lambda spec: -sum(transfer[spec]))
    assert len(ranked) == len(best_first)
    for row in results.table:
        if row.metric == "class_separation" and row.split == "train" and row.objective:
            row = dataclasses.replace(row, value=0.3 + 0.02 * order[ranked.index(row.objective)])
        rows.append(row)
    return dataclasses.replace(results, table=Table(rows))


@pytest.mark.parametrize(
    ("order", "answer", "beside"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], "transfer worse (Spearman’s ρ = −", "this study agrees"),
        ([8, 7, 6, 5, 4, 3, 2, 1, 0], "transfer better", "disagrees: the relation is reversed"),
        ([4, 3, 5, 2, 6, 1, 7, 0, 8], "not beyond chance", "neither confirms nor refutes"),
    ],
)
def test_the_answer_follows_the_sign_and_the_significance(order: list[int], answer: str, beside: str) -> None:
    told = headline(admit(with_separation(order, study((0, 1, 2)))))
    assert answer in told.answer
    assert beside in told.details[0]
    assert "n = 9" in told.answer
    assert any(fact.source == "published" and fact.value == "−0.93" for fact in told.facts)


def test_what_the_claims_leave_undecided_is_not_called_agreement() -> None:
    """One seed shows the perfect order, p < 0.0001: too few runs for a verdict, so for a headline too."""
    told = headline(admit(with_separation(list(range(9)), study())))
    assert "tend to transfer worse, which the rules of the claims leave undecided" in told.answer
    assert "is undecided, so it neither confirms nor refutes" in told.details[0]


def test_rho_is_that_of_perfect_order() -> None:
    worse = headline(admit(with_separation(list(range(9)), study((0, 1, 2)))))
    assert "ρ = −1.00" in worse.answer
    assert worse.facts[0].value == "−1.00"


def test_without_the_numbers_nothing_is_claimed() -> None:
    told = headline(admit(study(separation=False)))
    assert "cannot say yet" in told.answer
    assert "penultimate run" in told.answer
    assert told.facts[0].source == "published"
    two = headline(admit(study(objectives=("softmax", "sigmoid"))))
    assert "cannot say yet" in two.answer


def test_the_place_of_softmax_is_told() -> None:
    told = headline(admit(study((0, 1, 2))))
    of_softmax = next(sentence for sentence in told.details if "softmax" in sentence)
    assert "fifth of nine on the classes" in of_softmax
    assert "second of nine in transfer" in of_softmax


def test_the_regime_is_told_beside_the_papers() -> None:
    results = study((0, 1, 2))
    told = {difference.what: (difference.ours, difference.paper) for difference in compare(admit(results))}
    assert told["Classes K / penultimate features M"] == ("128 / 256 = 0.50", "1000 / 2048 = 0.49")
    assert told["Epochs"] == ("20", "146 to 196, chosen per objective")
    assert told["Runs per objective"] == ("3", "8")
    assert told["Softmax class separation R²"][1] == "0.349"
    assert told["Softmax accuracy, training images"][1] == "93.61 %"
    assert told["Softmax accuracy, test images"][1] == "77.0 %"
    assert "11,264" in told["Pretraining data"][0]
    assert "three runs per objective" in summary(admit(results))


def test_the_regime_tells_schedule_warm_up_averaging_decay_and_augmentation() -> None:
    def told(**recipe: object) -> dict[str, tuple[str, str]]:
        results = study((0, 1, 2))
        (block,) = results.description["networks"]
        of = {**block, "recipe": {**block["recipe"], **recipe}}
        changed = dataclasses.replace(results, description={**results.description, "networks": [of]})
        rows = {
            difference.what: (difference.ours, difference.paper) for difference in compare(admit(changed))
        }
        return {what.partition(",")[0].partition(" of")[0]: pair for what, pair in rows.items()}

    usual = told(warmup=0.2, final_fraction=0.03, averaging_window=0.15, weight_decay=8e-5)
    assert usual["Learning rate"] == (
        "1 at its peak, exponential to 3 % of it",
        "1.6 at its peak, × 0.975 an epoch, to 3.2 % of it",
    )
    assert usual["Warm-up"] == ("20 % of all steps", "10 epochs: 6.8 %")
    assert usual["Horizon"] == ("15 % of all steps", "21.9 % (momentum 0.9999)")
    share = 0.2 / 2 + 0.8 * (1 - 0.03) / math.log(1 / 0.03)  # the mean learning rate, of a peak of 1
    assert usual["Weight decay"] == (f"8e-05; {8e-5 * 3520 * share / 0.1:.1f}", "8e-05; 17.3")
    assert usual["Augmentation"][0] == "shifts of up to two pixels"
    constant = told(schedule="constant", warmup=0.0, exposure=17.3, averaging_window=0.0)
    assert constant["Learning rate"][0] == "1 at its peak, constant"
    assert constant["Weight decay"][0] == f"{17.3 * 0.1 / (11264 // 64 * 20):.2g}; 17.3"
    assert constant["Horizon"][0] == "no average"
    assert told(head_decay=8e-5)["Weight decay"][0].endswith("; of the final layer 8e-05")
    assert told(averaging_momentum=0.999)["Horizon"][0] == "28.4 % of all steps"
    mirrored = told(augmentation={"shift": 0, "flip": True})
    assert mirrored["Augmentation"][0] == "mirror images"
    assert told(augmentation={"shift": 0, "flip": False})["Augmentation"][0] == "none"
    varied = told(augmentation={"shift": 0, "autoaugment": True, "mixup": 0.2})
    assert varied["Augmentation"][0] == "AutoAugment and Mixup (α = 0.2)"
    assert told(stopping="last")["The epoch that counts"][0].startswith("the last, where the schedule ends")
    assert told(stopping="best")["The epoch that counts"][0].startswith("the best on the holdout")


def test_the_regime_has_the_unbiased_separation_where_it_was_measured() -> None:
    results = study((0, 1, 2))
    rows = [row for row in results.table if row.metric == "class_separation"]
    table = Table([*results.table, *(dataclasses.replace(row, metric=UNBIASED, value=0.25) for row in rows)])
    for one, said in ((results, False), (dataclasses.replace(results, table=table), True)):
        told = {difference.what: difference.ours for difference in compare(admit(one))}
        assert ("(unbiased: 0.250)" in told["Softmax class separation R²"]) == said


def test_networks_that_were_not_trained_here_are_told_as_such() -> None:
    results = study(objectives=())
    given = {"given": {"ours": "timm:resnet18"}, "classifies": False, "measure": None}
    listed = [{"slug": "ours", "label": "ours", "spec": "ours"}]
    description = {**results.description, "networks": [given], "objectives": listed, "num_features": 512}
    measured = admit(dataclasses.replace(results, description=description))
    told = {difference.what: difference.ours for difference in compare(measured)}
    assert told["Architecture"] == "ours (timm:resnet18, not trained here)"
    assert told["Classes K / penultimate features M"] == "128 / 512 = 0.25"
    assert (told["Epochs"], told["Objectives"], told["Warm-up"], told["Augmentation"]) == ("–", "1", "–", "–")
    assert "networks that were not trained here" in summary(measured)


def test_the_regime_counts_the_runs_of_the_nine_and_those_of_a_sweep_apart() -> None:
    def told(results: StudyResults) -> tuple[str, str]:
        rows = {difference.what: difference.ours for difference in compare(admit(results))}
        return rows["Objectives"], rows["Runs per objective"]

    truth, sweep = as_in_the_paper(), dict.fromkeys(swept(), (0, 1, 2))
    assert told(planted(truth, seeds_of=sweep)) == (
        "9, and six further temperatures of cosine softmax",
        "5; 3 at each further temperature",
    )
    nine = {text: own for text, own in truth.items() if text not in sweep}
    assert told(planted(nine, without=[("sigmoid", 0)])) == ("9", "4 to 5")


def test_curves_are_drawn_where_they_were_recorded() -> None:
    figure = training_curves(admit(study((0, 1), epochs=5)))
    assert figure is not None
    assert len(figure.panels) == 9
    own = [curve for curve in figure.panels[0].curves if not curve.faint]
    assert [curve.dashed for curve in own] == [True, False]
    assert [x for x, _ in own[0].points] == [1, 2, 3, 4, 5]
    assert training_curves(admit(study(epochs=0))) is None


@pytest.mark.long
def test_the_grey_curves_of_a_panel_are_those_of_its_own_arm() -> None:
    figure = training_curves(admit(read_reference("evidence")))
    assert figure is not None
    drawn = {panel.title: panel for panel in figure.panels}
    assert len(drawn) == len(figure.panels)
    of_long = [panel for title, panel in drawn.items() if title.endswith(", long")]
    own = {
        curve.points for panel in of_long for curve in panel.curves if not curve.faint and not curve.dashed
    }
    assert len(own) == len(of_long) == 4
    for panel in of_long:
        grey = {curve.points for curve in panel.curves if curve.faint}
        assert grey < own
        assert len(grey) == 3
        assert panel.x_limits == (0, max(x for points in own for x, _ in points))
    first = drawn["Softmax"]
    assert first.x_limits is not None
    assert first.x_limits[1] < of_long[0].x_limits[1]
    assert sum(curve.faint for curve in first.curves) == 8


def test_all_nine_objectives_are_explained_and_marked() -> None:
    assert list(OBJECTIVES) == list(PRESET_MARKS)
    assert set(OBJECTIVES) == set(NINE)
    for explained in OBJECTIVES.values():
        assert explained.sentence.endswith(".")
        assert explained.equation.startswith("<math")
