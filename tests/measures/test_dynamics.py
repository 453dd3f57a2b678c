"""Training followed through its snapshots: their rows meet those of the finished network."""

from __future__ import annotations

from pathlib import Path

import pytest

from penultimate.data.images import load_images
from penultimate.features.bank import FeatureBank
from penultimate.features.extraction import extract
from penultimate.metrics.accuracy import top_k
from penultimate.metrics.separation import class_separation
from penultimate.networks.trained import load_network, snapshots
from penultimate.records.reading import study_folder
from penultimate.report import exhibit

SOFTMAX = "softmax"


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("metric", ["top1", "top5", "class_separation"])
def test_the_last_epochs_rows_are_the_finished_networks(
    finished_smoke: Path, metric: str, split: str
) -> None:
    table = study_folder(finished_smoke / "runs").table().where(metric=metric, split=split, layer=None)
    for rows in table.where(target="glyphs_smoke", arm=None).by("objective").values():
        final = rows.where(epoch=None).only().value
        assert rows.where(epoch=3).only().value == final


@pytest.mark.parametrize("epoch", [1, 2])
def test_an_earlier_epochs_rows_are_those_of_its_snapshot(finished_smoke: Path, epoch: int) -> None:
    folder = study_folder(finished_smoke / "runs")
    (trained,) = (finished_smoke / "runs/steps").glob("train.softmax-*")
    (world,) = (finished_smoke / "runs/steps").glob("data.*-glyphs_smoke.*")
    network = load_network(snapshots(trained)[epoch])
    bank: FeatureBank = extract(network, load_images(world, "train"))
    rows = folder.table().where(objective=SOFTMAX, epoch=epoch, split="train")
    assert rows.where(metric="top1").only().value == top_k(bank.logits, bank.labels, 1)
    separation = class_separation(bank.features, bank.labels)
    assert rows.where(metric="class_separation").only().value == pytest.approx(separation, rel=1e-12)


def test_the_figures_draw_a_line_for_each_network(finished_smoke: Path) -> None:
    for name, panels in (("figureE4", 2), ("figureC2", 1)):
        (figure,) = exhibit(name, finished_smoke / "runs", allow_limited=True).figures
        assert len(figure.panels) == panels
        assert [len(panel.curves) for panel in figure.panels] == [3] * panels
        assert {len(curve.points) for panel in figure.panels for curve in panel.curves} == {3}
    along, *_ = exhibit("figureC3", finished_smoke / "runs", allow_limited=True).figures[0].panels
    assert len(along.curves) == 3
