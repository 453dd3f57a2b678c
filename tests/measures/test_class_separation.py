"""Class separation of whole banks, and of fewer images in the course of training: of both kinds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.measures.steps import Parents, measured, value
from tests.measures.worlds import network, world

from penultimate.data.images import load_images
from penultimate.features.bank import FeatureBank
from penultimate.features.extraction import extract
from penultimate.measures.class_separation import UNBIASED
from penultimate.metrics.separation import class_separation
from penultimate.networks.trained import CARD, load_network

PAPER = "class_separation"


def bank(seed: int, labels: list[int]) -> FeatureBank:
    features = np.random.default_rng(seed).normal(size=(len(labels), 5)).astype(np.float32)
    return FeatureBank(features, np.array(labels), None, np.arange(len(labels)))


def test_rows_are_of_both_kinds_for_both_splits(tmp_path: Path) -> None:
    banks = {"train": bank(0, [0, 1, 2] * 6), "test": bank(1, [0, 1, 2] * 2)}
    parents = Parents(tmp_path)
    for split, of_split in banks.items():
        parents.bank(split, of_split)
    rows = measured("class_separation", parents).rows
    assert len(rows) == 8
    for split, of_split in banks.items():
        paper, unbiased = (value(rows, metric, split=split) for metric in (PAPER, UNBIASED))
        assert paper == class_separation(of_split.features, of_split.labels)
        assert unbiased == class_separation(of_split.features, of_split.labels, unbiased=True)
        assert unbiased < paper


def test_a_class_of_one_image_leaves_out_the_unbiased_alone(tmp_path: Path) -> None:
    parents = Parents(tmp_path).bank("train", bank(0, [0, 0, 1, 1])).bank("test", bank(1, [0, 0, 1]))
    outcome = measured("class_separation", parents)
    assert {row.split for row in outcome.rows if row.metric == UNBIASED} == {"train"}
    assert sum(row.split == "test" for row in outcome.rows) == 3
    said = outcome.facts["undefined"]
    assert said.startswith(f"{UNBIASED} (test): ")
    assert "class 1 has one" in said


@pytest.mark.parametrize("unbiased", [False, True])
def test_in_the_course_of_training_it_is_measured_where_it_is_asked_for(
    tmp_path: Path, unbiased: bool
) -> None:
    images, folder = world(tmp_path), network(tmp_path, "softmax")
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps({**card, "epoch": 3}))
    parents, banks = Parents(tmp_path).network(folder), {}
    for split in ("train", "test"):
        banks[split] = extract(load_network(folder), load_images(images, split))
        parents.images(split, images).bank(split, banks[split])
    rows = measured("dynamics", parents, {"unbiased": True} if unbiased else {}).rows
    assert {row.metric for row in rows} == {"top1", "top5", PAPER, *([UNBIASED] if unbiased else [])}
    for split, of_split in banks.items():
        for metric, kind in ((PAPER, False), (UNBIASED, True))[: 1 + unbiased]:
            expected = class_separation(of_split.features, of_split.labels, unbiased=kind)
            assert value(rows, metric, split=split, epoch=3) == pytest.approx(expected, rel=1e-12)
