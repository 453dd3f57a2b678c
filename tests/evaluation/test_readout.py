"""The layer to read of networks of one's own: what the page says of it, and when."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.evaluation.test_boards import given
from tests.records.stores import described, finished

from penultimate.cli import _parser
from penultimate.evaluation.exhibits.readout import Readout, _sentence
from penultimate.evaluation.request import Request
from penultimate.report import exhibit, read_study
from penultimate.report.base import StudyResults
from penultimate.report.networks import StudyObjective
from penultimate.report.page.page import render_report
from penultimate.statistics.paired import AccuracyInterval

EXAMPLES = 300
LABELS = np.arange(EXAMPLES) % 3


def answered(right: int, first: int = 0) -> np.ndarray:
    """Predictions of which that many are right, from the first on."""
    places = (np.arange(EXAMPLES) - first) % EXAMPLES
    return np.where(places < right, LABELS, (LABELS + 1) % 3)


CASES = {  # layer, right there, right at the penultimate features
    "gains": ("layer2", answered(240), answered(200)),
    "level": ("layer3", answered(200, 2), answered(200)),
    "loses": ("layer1", answered(150), answered(200)),
    "stays": ("penultimate", answered(220), answered(220)),
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    root = tmp_path_factory.mktemp("readout")
    study = given(root, [*CASES], measure=["probed", "readout"])
    steps = []
    for name, (layer, chosen, last) in CASES.items():
        columns = {"objective": name, "source": "digits_smoke", "target": "digits_smoke"}
        arrays = {"ids": np.arange(EXAMPLES), "labels": LABELS, "chosen": chosen, "last": last}
        rows = [
            {"metric": "readout_top1", "value": float((chosen == LABELS).mean()), "layer": layer},
            {"metric": "readout_predictions", "value": EXAMPLES, "unit": "points"},
        ]
        step = f"readout.{name}-digits_smoke.0"
        steps.append(finished(study.store, step, columns, rows, arrays={"readout_predictions": arrays}))
    kept = ("source", "targets", "measure", "title", "question", "networks", "objectives")
    settings = {key: study.description[key] for key in kept}
    described(study.store, "mine", [*study.description["steps"], *steps], **settings)
    return read_study(root)


def test_each_network_has_its_layer_its_gain_and_the_paired_test(measured: StudyResults) -> None:
    built = exhibit("readout", measured)
    (table,) = built.tables
    rows = {row.label: [cell.text for cell in row.cells] for row in table.rows}
    assert {name: cells[:2] for name, cells in rows.items()} == {
        "gains": ["layer2", "80.0"],
        "level": ["layer3", "66.7"],
        "loses": ["layer1", "50.0"],
        "stays": ["last", "73.3"],
    }
    assert rows["stays"][2:] == ["–", "–"]
    assert rows["gains"][2].startswith("+13.3 (+9.")
    bold = {row.label: row.cells[2].best for row in table.rows}
    assert bold == {"gains": True, "level": False, "loses": True, "stays": False}
    level = next(row for row in table.rows if row.label == "level")
    both = [answered(200, 2) == LABELS, answered(200) == LABELS]
    ahead = int((both[0] & ~both[1]).sum())
    literal = binomtest(ahead, int((both[0] ^ both[1]).sum())).pvalue
    assert level.cells[3].value == pytest.approx(literal)  # Holm leaves the largest as it is


def test_a_sentence_says_which_layer_to_read_and_which_not(measured: StudyResults) -> None:
    said = exhibit("readout", measured).finding
    assert said.startswith("For three of four combinations of network and task, validation chooses an")
    assert "better there on test images, beyond chance, for gains on Digits" in said
    assert " from layer2, +13.3 (+9." in said
    assert "worse there on test images, beyond chance, for loses on Digits" in said
    assert "level" not in said
    page = render_report(measured)[""].decode()
    assert "Which layer to read, and what it gains" in page


def test_of_one_network_on_one_task_the_sentence_names_both() -> None:
    network = StudyObjective("net", "net", "net")
    for layer, said in (("layer2", "an earlier layer than the"), ("Penultimate", "the")):
        one = Readout(network, (layer,), (), AccuracyInterval(0.0, -0.1, 0.1))
        told = _sentence({"birds": [one]}, {"birds": "Birds"})
        assert f"for net on Birds, validation chooses {said} penultimate features" in told
        assert told.endswith("; it does not differ on test images beyond chance.") == one.is_earlier


def test_it_is_measured_where_it_is_asked_for() -> None:
    networks, data = {"a": "timm:resnet18"}, {"digits": ""}
    assert "readout" in Request(networks, data, layers=True).study().measure
    assert "readout" not in Request(networks, data).study().measure
    assert (
        _parser().parse_args(["evaluate", "--model", "timm:resnet18", "--data", "digits", "--layers"]).layers
    )
