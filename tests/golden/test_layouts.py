"""Images come in as they did when `layouts.json` was recorded: same images, classes, labels, splits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.golden.layouts import GOLDEN, LAYOUTS, record

RECORDED = json.loads(GOLDEN.read_text("utf-8"))


def test_every_layout_is_recorded() -> None:
    assert [*RECORDED] == [*LAYOUTS]


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_read_from(name: str, tmp_path: Path) -> None:
    assert record(name, tmp_path) == RECORDED[name]
