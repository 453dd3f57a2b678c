"""The handwritten digits: scikit-learn's own, split by the draw, enlarged without distortion."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from penultimate.data.world.digits import digits, enlarge, read_digits


def test_they_are_scikit_learns() -> None:
    images, labels = read_digits()
    theirs = load_digits()
    np.testing.assert_array_equal(images, theirs.images)
    np.testing.assert_array_equal(labels, theirs.target)


def test_a_draw_splits_all_of_them_ten_a_class() -> None:
    splits, (images, labels) = dict(digits(0)), read_digits()
    train, test = splits["train"], splits["test"]
    assert sorted([*train.ids, *test.ids]) == list(range(1797))
    assert set(np.bincount(train.labels)) == {10}
    for part in splits.values():
        np.testing.assert_array_equal(part.labels, labels[part.ids])
        np.testing.assert_array_equal(part.images, enlarge(images[part.ids]))


def test_enlarging_keeps_levels_and_places() -> None:
    flat = np.stack([np.full((8, 8), level, np.uint8) for level in (0, 4, 16)])
    assert [set(image.reshape(-1)) for image in enlarge(flat)] == [{0}, {64}, {255}]
    images, _ = read_digits()
    large = enlarge(images[:50])
    assert (large[..., 0] == large[..., 1]).all()
    assert (large[..., 0] == large[..., 2]).all()
    # Bicubic: the middle of each 3 x 3 block is the old pixel itself.
    np.testing.assert_allclose(large[:, 1::3, 1::3, 0], images[:50] / 16 * 255, atol=0.51)
