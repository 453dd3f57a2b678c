"""Checks of single values: every kind of number is taken or refused, in the same words."""

from __future__ import annotations

import numpy as np
import pytest

import penultimate as pu
from penultimate.checks import is_number, is_whole, one_of, real_number, whole_number
from penultimate.errors import RequestError


@pytest.mark.parametrize("value", [True, np.True_, 2.0, "2", None, float("nan"), 2**63, 10**400, 0, -1])
def test_what_is_no_whole_number_in_its_range_is_refused_with_what_came(value: object) -> None:
    with pytest.raises(RequestError, match=r"k must be a whole number of at least 1; got "):
        whole_number(value, "k", 1)


@pytest.mark.parametrize("value", [True, np.True_, "1", None, float("nan"), float("inf"), 10**400, 0])
def test_what_is_no_number_in_its_interval_is_refused_with_what_came(value: object) -> None:
    with pytest.raises(RequestError, match=r"rate must be a number in \(0, inf\); got "):
        real_number(value, "rate", above=0)


def test_numbers_of_arrays_are_taken_as_pythons_own() -> None:
    assert [whole_number(value, "k", 1) for value in (3, np.int8(3))] == [3, 3]
    assert [real_number(value, "r", 0) for value in (1, np.float16(0.5), 0.25)] == [1.0, 0.5, 0.25]
    assert (is_whole(3), is_whole(np.int8(3)), is_number(10**400), is_number(0.5)) == (
        True,
        False,
        False,
        True,
    )


def test_an_unknown_word_is_told_with_the_nearest() -> None:
    with pytest.raises(RequestError, match="Did you mean 'cosine'"):
        one_of("cosin", "distance", ("cosine", "euclidean"))


def test_arguments_in_the_other_order_are_told() -> None:
    features, labels = np.zeros((6, 2), np.float32), np.arange(6) % 2
    for wrong, said in (
        (lambda: pu.LinearProbe().fit(labels, features), "X comes before y"),
        (lambda: pu.LinearProbe().fit(features, labels[:-1]), "6 examples, but y has 5 labels"),
        (
            lambda: pu.class_separation(labels, features),
            r"features must be \[examples, dimensions\]; got shape",
        ),
        (lambda: pu.exhibit("runs", "table1"), r"pu.exhibit\('table1', 'runs'\)"),
        (lambda: pu.evaluate({"digits": "digits"}, {"net": "timm:resnet18"}), "'timm:resnet18' is a network"),
        (lambda: pu.evaluate({"digits": "digits"}, {"glyphs": ""}), "'digits' is a data set"),
    ):
        with pytest.raises(RequestError, match=said):
            wrong()
