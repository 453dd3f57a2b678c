"""Kills, races and full disks at random moments, in such numbers that a window of a millisecond is hit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engine.campaign import PHASES

pytestmark = pytest.mark.long

KILLS, EACH = 200, 20
PROCESSES, STEPS = 16, 1000
MOMENTS = 60
DAMAGES = 1100


def figures_of(campaign: str, folder: Path, *numbers: int, of: str = "campaign") -> dict[str, Any]:
    """What a campaign came to; it is a process of its own, for it forks."""
    command = [sys.executable, "-m", f"tests.engine.{of}", campaign, str(folder), *map(str, numbers)]
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root / "src"), str(root)])
    answer = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    figures: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    print(campaign, figures)
    return figures


def test_kills_in_every_phase_lose_and_change_nothing(tmp_path: Path) -> None:
    figures = figures_of("kills", tmp_path, KILLS, 0)
    assert figures["kills"] >= KILLS
    assert all(figures["phases"][phase] >= EACH for phase in PHASES)
    assert min(figures["victims"].values()) >= EACH
    assert (figures["lost"], figures["changed"]) == (0, 0)


def test_a_step_that_processes_race_for_is_computed_once(tmp_path: Path) -> None:
    figures = figures_of("race", tmp_path, PROCESSES, STEPS)
    assert figures["codes"] == [0] * PROCESSES
    assert (figures["computed"], figures["computed twice"], figures["right"]) == (STEPS, 0, STEPS)
    assert figures["computed by"] > 1


@pytest.mark.usefixtures("small_disk")  # to be left out where none can be had
def test_a_disk_full_at_any_moment_loses_and_changes_nothing(tmp_path: Path) -> None:
    figures = figures_of("disk", tmp_path / "campaign", MOMENTS, 0)
    assert figures["moments"] >= MOMENTS
    assert (figures["lost"], figures["changed"], figures["not said"]) == (0, 0, 0)


def test_kills_of_copies_extractions_leases_and_evaluations_change_nothing(tmp_path: Path) -> None:
    figures = figures_of("kills", tmp_path, KILLS, 0, of="interrupted")
    assert figures["kills"] >= KILLS
    assert figures["lost or changed"] == []


def test_damage_to_copies_banks_leases_and_evaluations_is_named_or_healed(tmp_path: Path) -> None:
    figures = figures_of("damages", tmp_path, DAMAGES, 0, of="interrupted")
    assert figures["damaged"] >= DAMAGES
    assert figures["silent"] == []
