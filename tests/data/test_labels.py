"""Labels in whatever form: classes in their order, no label at all, or refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penultimate.data.readers.labels import read_labels
from penultimate.errors import RequestError

NAN = float("nan")


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize(
    ("values", "names", "labels"),
    [
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        ([" b", "a ", "b"], ("a", "b"), [1, 0, 1]),
        ([2, 10, 2], ("2", "10"), [0, 1, 0]),
        ([2.0, 10.0, NAN], ("2", "10"), [0, 1, -1]),
        ([True, False, True], ("False", "True"), [1, 0, 1]),
        ([b"b", b"a", b"b"], ("a", "b"), [1, 0, 1]),
        ([["b"], ["a"], []], ("a", "b"), [1, 0, -1]),
        (["['b']", '["a"]', "[]"], ("a", "b"), [1, 0, -1]),
        (["a", "nan", ""], ("a",), [0, -1, -1]),
        (["a", "None", "NA"], ("a",), [0, -1, -1]),
        (["a", "none", "Nan Chang"], ("Nan Chang", "a", "none"), [1, 2, 0]),
        ([0, 1, -1], ("0", "1"), [0, 1, -1]),
        ([0, 1, -100], ("0", "1"), [0, 1, -1]),
        (["0", "1", "-1"], ("0", "1"), [0, 1, -1]),
        ([-1, 1, -1], ("-1", "1"), [0, 1, 0]),
        (np.array([3, -1, 5]), ("3", "5"), [0, -1, 1]),
        (np.array([b"cat", b"ant"]), ("ant", "cat"), [1, 0]),
        (np.array([1.0, NAN, 0.0]), ("0", "1"), [1, -1, 0]),
        (["(other)", "{x}", "a[1]"], ("(other)", "a[1]", "{x}"), [0, 2, 1]),
        ([], (), []),
    ],
)
def test_values_are_classes_or_no_label(
    values: Any, names: tuple[str, ...], labels: list[int], typed: bool
) -> None:
    columns = {"train": values} if len(values) else {"train": ["x"], "test": values}
    found = read_labels("here", columns, typed=typed)
    if len(values):
        assert found.names == names
        assert found.of["train"].tolist() == labels
        lacking = labels.count(-1)
        assert any(f"{lacking} of {len(labels)} train images" in note for note in found.notes) == bool(
            lacking
        )
    else:
        assert found.of["test"].tolist() == []


def test_numbers_are_in_the_order_of_numbers_unless_they_are_text() -> None:
    for values, typed, names in (
        ([10, 9, 2], True, ("2", "9", "10")),
        (["10", "9", "2"], False, ("2", "9", "10")),
        (["10", "9", "2"], True, ("10", "2", "9")),
        (["1.0", "2", "10.0"], False, ("1", "2", "10")),
        (["007", "10", "2"], False, ("2", "007", "10")),
        (["10", "9", "b"], False, ("10", "9", "b")),
    ):
        assert read_labels("here", {"": values}, typed=typed).names == names


@pytest.mark.parametrize(
    ("values", "names", "labels"),
    [
        ([0, 1, 2, -1], "xyz", [0, 1, 2, -1]),
        (["z", "x", None], "xyz", [2, 0, -1]),
        ([[2], [0], []], "xyz", [2, 0, -1]),
    ],
)
def test_class_names_that_the_data_have_are_kept_in_their_order(
    values: list[Any], names: str, labels: list[int]
) -> None:
    found = read_labels("here", {"train": values}, [*names])
    assert found.names == (*names,)
    assert found.of["train"].tolist() == labels


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    "value", [[0, 1], ("a", "b"), {"a", "b"}, np.array([0, 1]), ["a", "b", "c"], [["a"], ["b"]]]
)
def test_several_labels_are_refused_as_values_and_as_text(value: Any, text: bool) -> None:
    given = str(value) if text else value
    with pytest.raises(RequestError, match=r"'here': a train image has several labels, .*one class for each"):
        read_labels("here", {"train": ["a", given]}, typed=not text)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": "a"}, r"has the label {'name': 'a'}, a dict, which names no class"),
        ("{'name': 'a'}", "a dict, which names no class"),
        (0.5, "0.5, a float, which names no class"),
        (b"\xff", "a bytes, which names no class"),
        (object, "a type, which names no class"),
    ],
)
def test_what_names_no_class_is_refused(value: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_labels("here", {"": ["a", value]})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["0.5", "1", "2.25"], "are numbers that were measured, and no classes"),
        ([-2, 0, 1], "label -2; classes are numbered from 0"),
        ([None, NAN, -1, ""], "no image has a label"),
        ([None, -1], "no image has a label"),
    ],
)
def test_columns_that_hold_no_classes_are_refused(values: list[Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_labels("here", {"": values}, typed=False)


@pytest.mark.parametrize(
    ("texts", "plural"),
    [
        (["cat", "cat,odd", "dog", "dog,odd"], False),
        (["cat", "cat|dog", "dog"], False),
        (["wet;cold", "wet", "hot"], False),
        (["cat, odd", "dog, odd"], True),
        (["cat odd", "dog odd", "dog"], True),
        (["haze primary", "clear primary water"], True),
    ],
)
def test_labels_that_hold_several_are_refused(texts: list[str], plural: bool) -> None:
    with pytest.raises(RequestError, match=r"hold several, with '.' between them"):
        read_labels("here", {"": texts}, typed=False, plural=plural)


@pytest.mark.parametrize(
    ("texts", "is_said"),
    [
        (["ant, red", "bee"], False),
        (["golden retriever", "labrador retriever", "cat"], False),
        (["Washington, DC", "Paris, FR"], False),
        (["Portland, OR", "Salem, OR", "Paris"], True),
        (["red,car", "red,bus", "blue,car"], True),
        (["animal|cat", "animal|dog", "plant|oak"], True),
    ],
)
def test_names_of_several_words_are_classes_which_is_said_where_parts_recur(
    texts: list[str], is_said: bool
) -> None:
    found = read_labels("here", {"": texts}, typed=False)
    assert found.names == tuple(sorted(texts))
    assert any("though their parts recur" in note for note in found.notes) == is_said
