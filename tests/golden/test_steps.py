"""No step of four studies has another id, or other parents, than when they were frozen."""

from __future__ import annotations

import json

import pytest
from tests.golden.steps import FILE, STUDIES, changes, kinds


@pytest.mark.parametrize("name", STUDIES)
def test_every_step_has_the_id_and_the_parents_that_it_had(name: str) -> None:
    assert changes(json.loads(FILE.read_text())[name], kinds(name)) == []


def test_what_changed_is_said_of_each_kind_of_step() -> None:
    before = kinds("smoke")
    after = {kind: dict(value) for kind, value in before.items() if kind != "knn"}
    after["train"]["ids"] = after["train"]["ids"][:-1] + "?"
    after["data"]["ids"] = " ".join(reversed(after["data"]["ids"].split()))
    after["layers"]["parents"] = ""
    assert changes(before, after) == [
        "data: the same 8 steps in another order",
        "knn: no longer there",
        "layers: the same steps have other parents",
        "train: 5 steps became 5 (ids gone: 1, new: 1)",
    ]
