"""`penultimate status --verify` names every damaged step, changes nothing, and a run heals it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penultimate.cli import main
from tests.records.stores import SOFTMAX, described, finished, prepared

STEP = "accuracy.softmax-s0.0123456789abcdef"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = prepared(tmp_path / "runs")
    (store.begin(STEP) / "bank.npz").write_bytes(bytes(100_000))
    described(store, "mine", [finished(store, STEP, SOFTMAX, [{"metric": "top1", "value": 0.5}])])
    return store.root


def test_a_store_as_it_was_written_is_called_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--verify", "--out", str(root)]) == 0
    assert "Every file of 1 finished step is as it was written." in capsys.readouterr().out


@pytest.mark.parametrize("name", ["bank.npz", "rows.jsonl", "meta.json"])
def test_a_flipped_bit_is_named(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "steps" / STEP / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert main(["status", "--verify", "--out", str(root)]) == 1
    said = capsys.readouterr().out
    assert f"damaged: step {STEP}: {name} is not what was written" in said
    assert "1 step damaged: penultimate run STUDY --verify computes them again." in said
    assert path.read_bytes() == content
