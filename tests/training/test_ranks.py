"""Processes that share a training against one that does it alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from penultimate.backbones import build
from penultimate.errors import RequestError
from penultimate.objectives.objective import objective
from penultimate.training import Recipe
from penultimate.training.checkpoints import Checkpoints
from penultimate.training.ghost import by_ghost_batches
from penultimate.training.ranks import Ranks
from tests.training.shared import KILLED_AT, RECIPE, shared, trained

ALIKE = (
    "plain",
    "augmented",
    "dropout",
    "mixed",
    "parts",
    "own decay",
    "projected",
    "first steps",
    "fixed",
    "best",
)
"""Cases in which the weights are the same but for rounding."""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    for told in shared(folder, *ALIKE, "diverges"):
        assert told.returncode == 0, told.stderr
        assert "diverges|diverged|" in told.stdout
    return folder


def expect_alike(ours: Path, theirs: Path, within: float = 2e-6) -> None:
    networks = sorted(path.relative_to(theirs) for path in theirs.rglob("network.safetensors"))
    assert networks
    for network in networks:
        found, expected = load_file(ours / network), load_file(theirs / network)
        for name, value in expected.items():
            assert torch.allclose(found[name].double(), value.double(), rtol=within, atol=within), name


@pytest.mark.long
@pytest.mark.parametrize("case", ALIKE)
def test_two_processes_come_to_the_weights_of_one(pairs: Path, tmp_path: Path, case: str) -> None:
    alone = trained(case, tmp_path)
    assert alone.status == "done"
    expect_alike(pairs / case, tmp_path)
    assert (pairs / case / "network.json").read_text() == (tmp_path / "network.json").read_text()


@pytest.mark.long
@pytest.mark.parametrize("goes_on", [1, *(pytest.param(count, marks=pytest.mark.long) for count in (2, 4))])
def test_one_is_killed_and_any_number_goes_on(tmp_path: Path, goes_on: int) -> None:
    whole = tmp_path / "whole"
    trained("killed", whole)
    first, second = shared(tmp_path, "killed")
    assert (first.returncode, second.returncode) == (1, -9)
    state = Checkpoints(tmp_path / "killed").load()
    assert state is not None
    assert KILLED_AT - 1 <= state["step"] <= KILLED_AT
    if goes_on == 1:
        trained("killed", tmp_path / "killed")
    else:
        (tmp_path / "meeting-killed").unlink()
        (tmp_path / "killed").rename(tmp_path / "again")
        assert all(told.returncode == 0 for told in shared(tmp_path, "again", count=goes_on))
        (tmp_path / "again").rename(tmp_path / "killed")
    expect_alike(tmp_path / "killed", whole)


def test_what_is_normalised_over_the_whole_batch_is_not_shared() -> None:
    ranks, body = Ranks(), build("glyphnet")
    ranks.expect_shareable(body)
    ranks.count = 2
    with pytest.raises(RequestError, match=r"give recipe\.ghost_batch"):
        ranks.expect_shareable(body)
    by_ghost_batches(body, 8)
    ranks.expect_shareable(body)


def test_what_compares_examples_is_not_shared() -> None:
    ranks = Ranks()
    koleo, plain = objective("koleo + sigmoid", 8, 4), objective("center_loss + projector", 8, 4)
    ranks.expect_examples_alone(koleo)
    ranks.count = 2
    ranks.expect_examples_alone(plain)
    with pytest.raises(RequestError, match="compares the examples of a batch, which 2 processes share"):
        ranks.expect_examples_alone(koleo)
    with pytest.raises(RequestError, match=r"layer 'projector\.1' is normalised over the whole batch"):
        ranks.expect_shareable(plain)
    by_ghost_batches(plain, 8)
    ranks.expect_shareable(plain)


def test_ghost_batches_of_every_part_are_whole() -> None:
    RECIPE.expect_shared_by(4)
    Recipe(batch_size=64, at_once=24).expect_shared_by(8)
    for recipe, processes in ((RECIPE, 3), (RECIPE, 8), (Recipe(batch_size=64, at_once=24), 16)):
        with pytest.raises(RequestError, match="cannot share"):
            recipe.expect_shared_by(processes)
