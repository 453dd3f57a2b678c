"""What is recorded of the machine that a result was computed on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penultimate.engine.machine import machine

EPYC = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n"


@pytest.mark.parametrize(
    ("told", "name"),
    [
        (EPYC + "\n" + EPYC.replace("17", "18"), "AMD EPYC, family 25, model 17"),
        ("processor\t: 0\nmodel name\t: ARMv8\n", "ARMv8"),
        ("processor\t: 0\nBogoMIPS\t: 50.00\n", "aarch64"),
        (None, "aarch64"),
    ],
)
def test_processors_of_one_name_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str | None, name: str
) -> None:
    file = tmp_path / "cpuinfo"
    if told is not None:
        file.write_text(told)
    monkeypatch.setattr("penultimate.engine.machine.CPUINFO", file)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert machine.__wrapped__()["processor"] == f"{name} ({os.cpu_count()} cores)"
