"""Networks come in as they did when `architectures.json` was recorded: same features, logits, layers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import tests.golden.architectures as golden

RECORDED = json.loads(golden.GOLDEN.read_text())


def test_every_architecture_is_recorded() -> None:
    assert [*RECORDED] == [*golden.ALL]


@pytest.mark.parametrize("source", golden.QUICK)
def test_what_comes_out_of(source: str) -> None:
    expect_recorded(source)


@pytest.mark.long
@pytest.mark.parametrize("source", golden.LONG)
def test_so_for_the_larger_architectures(source: str) -> None:
    expect_recorded(source)


@pytest.mark.parametrize("source", golden.TRANSFORMERS)
def test_so_for_tiny_networks_of_transformers(source: str) -> None:
    pytest.importorskip("transformers")
    expect_recorded(source)


def expect_recorded(source: str) -> None:
    found, recorded = golden.outcome(source), RECORDED[source]
    for name in ("refused", "side", "layers"):
        assert found.get(name) == recorded.get(name), name
    for name in ("features", "logits"):
        expect_alike(found.get(name), recorded.get(name))


def expect_alike(found: dict[str, Any] | None, recorded: dict[str, Any] | None) -> None:
    """Compare two summaries of features or logits.

    Another processor or number of threads adds in another order. A few values then round to another fourth
    digit, and the digest differs; so the values that are stored are compared, within two units of that digit.
    """
    if found is None or recorded is None:
        assert found == recorded
        return
    assert found["width"] == recorded["width"]
    if found["digest"] == recorded["digest"]:
        return
    for name, relative, absolute in (
        ("root mean square", 2e-4, 0.0),
        ("means", 0.0, 2e-4),
        ("some", 0.0, 2e-4),
    ):
        np.testing.assert_allclose(found[name], recorded[name], relative, absolute, err_msg=name)
