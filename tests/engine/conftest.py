"""Shared by the tests of engines: a plug-in of chores, loaded as a user loads one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.engine.chores import PLUGIN
from tests.plugged import plugged


@pytest.fixture(scope="module")
def chores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The measurement `chore`."""
    file = tmp_path_factory.mktemp("plugin") / "chores.py"
    file.write_text(PLUGIN)
    with plugged(file):
        yield
