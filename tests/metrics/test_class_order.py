"""Whether outputs are in another order of classes: found where they are, and never by chance."""

from __future__ import annotations

import numpy as np
import pytest

from penultimate.metrics.class_order import better_order

TWELVE = sorted(str(number) for number in range(1, 13))
NATURAL = sorted(TWELVE, key=int)


def predicted(labels: np.ndarray, order: list[str], share: float, seed: int = 0) -> np.ndarray:
    """Predictions of a network whose outputs are in an order, right on a share of the images."""
    random = np.random.default_rng(seed)
    right = np.array([order.index(name) for name in TWELVE])[labels]
    return np.where(random.random(len(labels)) < share, right, random.integers(0, 12, len(labels)))


@pytest.mark.parametrize("share", [1.0, 0.6, 0.3])
@pytest.mark.parametrize("search", [True, False])
def test_a_usual_order_that_fits_better_is_named(share: float, search: bool) -> None:
    labels = np.repeat(np.arange(12), 40)
    usual = {"natural": NATURAL, "backwards": TWELVE[::-1]}
    fit = better_order(predicted(labels, NATURAL, share), labels, TWELVE, usual, search)
    assert fit is not None
    assert fit.order == "natural"
    assert fit.accuracy > 3 * fit.taken
    assert better_order(predicted(labels, TWELVE, share), labels, TWELVE, usual, search) is None


@pytest.mark.parametrize("seed", range(20))
def test_guesses_fit_no_order_better(seed: int) -> None:
    labels = np.repeat(np.arange(12), 5)
    guesses = np.random.default_rng(seed).integers(0, 12, 60)
    assert better_order(guesses, labels, TWELVE, {"natural": NATURAL}) is None
    assert better_order(np.full(60, 3), labels, TWELVE, {"natural": NATURAL}) is None


def test_an_order_that_moves_few_of_many_classes_is_found_by_those() -> None:
    names = [f"c{number:03}" for number in range(100)]
    other = [names[1], names[0], *names[2:]]
    labels = np.repeat(np.arange(100), 10)
    outputs = np.array([other.index(name) for name in names])[labels]
    fit = better_order(outputs, labels, names, {"other": other})
    assert fit is not None
    assert fit.order == "other"
    assert fit.taken == pytest.approx(0.98)


def test_an_order_that_nobody_uses_is_found_on_the_other_half() -> None:
    labels = np.repeat(np.arange(12), 4)
    shuffled = [*np.random.default_rng(3).permutation(TWELVE)]
    outputs = predicted(labels, shuffled, 1.0)
    fit = better_order(outputs, labels, TWELVE, {"natural": NATURAL})
    assert fit is not None
    assert (fit.order, fit.accuracy) == ("", 1.0)
    assert better_order(outputs, labels, TWELVE, {"natural": NATURAL}, search=False) is None


def test_a_weak_network_whose_classes_are_confused_is_in_its_order() -> None:
    """It takes every fourth class for the next one, and knows the others in half of the images."""
    labels = np.repeat(np.arange(12), 30)
    weak = predicted(labels, TWELVE, 0.5, 1)
    confused = np.where(labels % 4 == 0, (labels + 1) % 12, weak)
    assert better_order(confused, labels, TWELVE, {"natural": NATURAL}) is None


def test_few_images_are_no_evidence() -> None:
    labels = np.arange(4)
    swapped = np.array([1, 0, 3, 2])
    assert better_order(swapped, labels, [*"abcd"], {"other": [*"badc"]}) is None
