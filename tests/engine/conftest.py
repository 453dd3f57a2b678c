"""Shared by the tests of engines: a plug-in of chores, loaded as a user loads one, and a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.engine.chores import PLUGIN
from tests.golden.portable import PORTABLE
from tests.plugged import plugged


@pytest.fixture(scope="module")
def chores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The measurement `chore`."""
    file = tmp_path_factory.mktemp("plugin") / "chores.py"
    file.write_text(PLUGIN)
    with plugged(file):
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster of two nodes of one core each, the second of which is its `worker`.

    Its nodes, and commands that are started meanwhile, round as the finished smoke study does.
    """
    from ray.cluster_utils import Cluster

    memory = {"object_store_memory": 80 * 2**20}
    head = {"num_cpus": 1, "include_dashboard": False, **memory}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PORTABLE.items():
            patch.setenv(name, value)
        made = Cluster(initialize_head=True, head_node_args=head)
        made.worker = made.add_node(num_cpus=1, **memory)
        yield made
        made.shutdown()
