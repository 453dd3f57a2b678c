"""Confusions: the commonest mistakes first, counted by hand, each with pictures of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.measures.steps import Parents, measured

from penultimate.data.images import ImageSet, save_images
from penultimate.measures.confusions import SIDE

NAMES = ("ant", "bee", "cat")
LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2])
IDS = np.arange(12) + 50


def confused(root: Path, predicted: np.ndarray, **settings: int) -> dict[str, np.ndarray]:
    """What is left; image i is of one colour, 20 i, and lies in another order than the predictions."""
    pixels = np.broadcast_to(20 * np.arange(12, dtype=np.uint8)[:, None, None, None], (12, 8, 8, 3))
    save_images(root / "data", "test", ImageSet(pixels[::-1].copy(), LABELS[::-1], IDS[::-1], NAMES))
    (root / "probed").mkdir()
    np.savez(root / "probed" / "probe_predictions.npz", ids=IDS, labels=LABELS, linear=predicted, knn=LABELS)
    parents = Parents(root, target="tasks").images("test", root / "data").made("probed", root / "probed")
    (row,) = measured("confusions", parents, settings).rows
    assert (row.metric, row.split) == ("confusions", "test")
    with np.load(root / "out" / "confusions.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def test_the_commonest_mistakes_come_first_each_with_its_pictures(tmp_path: Path) -> None:
    predicted = np.array([0, 1, 1, 2, 1, 0, 2, 2, 2, 2, 2, 0])
    found = confused(tmp_path, predicted, pairs=3, pictures=1)
    assert found["truth"].tolist() == ["ant", "ant", "bee"]
    assert found["predicted"].tolist() == ["bee", "cat", "ant"]
    assert (found["counts"].tolist(), found["of"].tolist()) == ([2, 1, 1], [4, 4, 3])
    assert found["pictured"].tolist() == [0, 1, 2]
    assert found["thumbnails"].shape == (3, SIDE, SIDE, 3)
    for picture, place in zip(found["thumbnails"], (1, 3, 5), strict=True):
        assert np.unique(picture).tolist() == [20 * place]
    assert found["classes"].tolist() == ["ant", "bee", "cat"]
    assert (found["class_errors"].tolist(), found["class_sizes"].tolist()) == ([3, 2, 1], [4, 3, 5])


@pytest.mark.parametrize("pictures", [0, 4])
def test_a_probe_that_is_never_wrong_confuses_nothing(tmp_path: Path, pictures: int) -> None:
    found = confused(tmp_path, LABELS, pictures=pictures)
    assert {name: len(array) for name, array in found.items()} == dict.fromkeys(found, 0)
