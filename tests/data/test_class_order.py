"""The order of classes: as trainers sort names, as files say it, and as a listing is renumbered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.data.published import put
from tests.data.test_folders import lay

from penultimate.data.readers.class_order import (
    called,
    in_class_order,
    in_usual_order,
    read_class_order,
    shown,
)
from penultimate.data.readers.opening import open_dataset
from penultimate.errors import DamagedFileError, RequestError

NAMES = ["class_10", "class_9", "Zebra", "apple", "01", "10", "9", "ÉLAN", "eland", "v1.10", "v1.9", "a2b10"]


def test_usual_orders_are_those_of_the_trainers() -> None:
    misc = pytest.importorskip("timm.utils.misc")
    assert list(in_usual_order(NAMES, "text")) == sorted(NAMES)
    assert list(in_usual_order(NAMES, "natural")) == sorted(sorted(NAMES), key=misc.natural_key)
    assert in_usual_order(["Zoo", "apple", "Élan", "fox"], "dictionary") == ("apple", "Élan", "fox", "Zoo")
    assert in_usual_order(["²", "1"], "natural") == ("1", "²")
    with pytest.raises(RequestError, match=r"unknown order of classes 'txt'. Did you mean 'text'"):
        in_usual_order(NAMES, "txt")


def test_an_order_is_called_by_the_most_usual_name() -> None:
    for names, name in (
        (["a", "b"], "text"),
        (["1", "10", "2"], "text"),
        (["1", "2", "10"], "natural"),
        (["apple", "Zoo"], "natural"),
        (["b", "a"], ""),
    ):
        assert called(names) == name
    assert shown([str(number) for number in range(20)]).endswith("10, 11, ... (20 classes)")


@pytest.mark.parametrize(
    "said",
    [
        ["b", "a", "c"],
        ("b", "a", "c"),
        {"a": 1, "b": 0, "c": 2},
        {"a": "1", "b": "0", "c": "2"},
        {0: "b", 1: "a", 2: "c"},
        {"0": "b", "2": "c", "1": "a"},
        {"0": ["b", "bee"], "1": ["a", "ant"], "2": ["c", "cow"]},
        {"class_to_idx": {"a": 1, "b": 0, "c": 2}, "epoch": 3},
        {"id2label": {"0": "b", "1": "a", "2": "c"}, "label2id": {"a": 1}},
        {"names": ["b", "a", "c"]},
        {"idx_to_class": {"00": "b", "01": "a", "02": "c"}},
    ],
)
def test_an_order_is_said_in_every_usual_form(said: Any, tmp_path: Path) -> None:
    assert read_class_order(said) == ("b", "a", "c")
    put(tmp_path / "order.json", json.dumps(said))
    assert read_class_order(tmp_path / "order.json") == ("b", "a", "c")
    assert read_class_order(str(tmp_path / "order.json")) == ("b", "a", "c")


def test_names_that_are_numbers_are_names_and_not_places(tmp_path: Path) -> None:
    put(tmp_path / "names.txt", "1\n10\n2\n")
    for said in ({"1": 0, "10": 1, "2": 2}, {"0": "1", "1": "10", "2": "2"}, tmp_path / "names.txt"):
        assert read_class_order(said) == ("1", "10", "2")
    assert read_class_order({"2": 0, "0": 1, "1": 2}) == ("2", "0", "1")
    assert read_class_order({"0": "2", "1": "0", "2": "1"}) == ("2", "0", "1")
    for names in (("-1", "-10", "0"), ("01", "1", "002"), ("CAT", "Cat", "cat")):
        for said in (
            list(names),
            {n: k for k, n in enumerate(names)},
            {str(k): n for k, n in enumerate(names)},
        ):
            put(tmp_path / "order.json", json.dumps(said))
            assert read_class_order(tmp_path / "order.json") == names
    assert read_class_order("natural") == "natural"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"a": 1, "b": 2}, "does not number its 2 classes from 0 to 1"),
        ({"a": 0, "b": 0}, "does not number its 2 classes"),
        ({"a": True, "b": False}, "does not number its 2 classes"),
        (["a", "b", "a"], r"names 1 class \('a'\) more than once"),
        ([0, 1], "holds no order of classes"),
        ([[]], "holds no order of classes"),
    ],
)
def test_what_is_no_order_is_said(said: Any, message: str, tmp_path: Path) -> None:
    put(tmp_path / "order.json", json.dumps(said))
    for form in (said, tmp_path / "order.json"):
        with pytest.raises(RequestError, match=message):
            read_class_order(form)


def test_files_that_hold_no_order(tmp_path: Path) -> None:
    put(tmp_path / "order.json", "{")
    with pytest.raises(DamagedFileError, match=r"order.json' is no JSON"):
        read_class_order(tmp_path / "order.json")
    with pytest.raises(RequestError, match="natural, dictionary or a JSON file of names; there is no"):
        read_class_order("alphabetical")


def test_a_listing_is_renumbered_and_every_image_keeps_its_class(tmp_path: Path) -> None:
    lay(tmp_path, "1", "10", "2")
    listing = open_dataset(str(tmp_path)).splits["train"]
    before = [listing.class_names[label] for label in listing.labels]
    for order, names in (("natural", ("1", "2", "10")), (("2", "none", "1", "10"), ("2", "none", "1", "10"))):
        other = in_class_order("x", listing, order)
        assert other.class_names == names
        assert [other.class_names[label] for label in other.labels] == before
        assert np.array_equal(other.ids, listing.ids)
    with pytest.raises(RequestError, match=r"lacks 1 class \('2'\) of 'x', which has 3 classes"):
        in_class_order("x", listing, ("1", "10"))
    with pytest.raises(RequestError, match=r"lacks 1 class \('ant'\) of .* Did you mean 'Ant'\?"):
        in_class_order("x", replace(listing, class_names=("ant", "bee", "cow")), ("Ant", "bee", "cow"))
