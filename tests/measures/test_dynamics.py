"""Training followed through its snapshots: their rows meet those of the finished network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.measures.steps import Parents, measured
from tests.measures.worlds import network as made_network
from tests.measures.worlds import world as made_world

from penultimate.data.images import load_images
from penultimate.features.bank import FeatureBank
from penultimate.features.extraction import extract
from penultimate.metrics.accuracy import top_k
from penultimate.metrics.separation import class_separation
from penultimate.networks.trained import CARD, load_network, snapshot, snapshots
from penultimate.probes.linear import LinearProbe
from penultimate.records.reading import study_folder

SOFTMAX = "softmax"


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("metric", ["top1", "top5", "class_separation"])
def test_the_last_epochs_rows_are_the_finished_networks(
    finished_smoke: Path, metric: str, split: str
) -> None:
    table = study_folder(finished_smoke / "runs").table().where(metric=metric, split=split, layer=None)
    table = table.where(target="glyphs_smoke", arm=None)
    for objective in {*table.column("objective")}:
        rows = table.where(objective=objective)
        (final,), (last,) = rows.where(epoch=None), rows.where(epoch=3)
        assert last.value == final.value


@pytest.mark.parametrize("epoch", [1, 2])
def test_an_earlier_epochs_rows_are_those_of_its_snapshot(finished_smoke: Path, epoch: int) -> None:
    folder = study_folder(finished_smoke / "runs")
    (trained,) = (finished_smoke / "runs/steps").glob("train.softmax-*")
    (world,) = (finished_smoke / "runs/steps").glob("data.*-glyphs_smoke.*")
    network = load_network(snapshots(trained)[epoch])
    bank: FeatureBank = extract(network, load_images(world, "train"))
    rows = folder.table().where(objective=SOFTMAX, epoch=epoch, split="train")
    assert rows.where(metric="top1").values() == [top_k(bank.logits, bank.labels, 1)]
    separation = class_separation(bank.features, bank.labels)
    assert rows.where(metric="class_separation").values() == pytest.approx([separation], rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(("every", "epochs"), [(1, [1, 2, 3]), (2, [2, 3])])
def test_transfer_is_probed_at_every_snapshot_and_at_the_end(
    tmp_path: Path, every: int, epochs: list[int]
) -> None:
    images, last = made_world(tmp_path), made_network(tmp_path, SOFTMAX)
    card = json.loads((last / CARD).read_text())
    (last / CARD).write_text(json.dumps({**card, "epoch": 3}))
    for epoch in (1, 2):
        shutil.copytree(made_network(tmp_path, SOFTMAX, seed=epoch), snapshot(last, epoch))
    parents = Parents(tmp_path, target="tasks").network(last).images("train", images).images("test", images)
    rows = measured("transfer_dynamics", parents, {"every": every}, accuracy="top1").rows
    assert [row.epoch for row in rows] == epochs
    for row in rows:
        network = load_network(last if row.epoch == 3 else snapshots(last)[row.epoch or 0])
        train, test = (extract(network, load_images(images, split)) for split in ("train", "test"))
        probe = LinearProbe().fit(train.features, train.labels)
        assert row.value == probe.score(test.features, test.labels)
