"""A tiny study of networks that were trained here and networks that were not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.inprocess import InProcess

import penultimate as pu
from penultimate.study import Given, Runs, Study
from penultimate.training.recipe import Recipe

BACKBONE = "glyphnet(features=16, width=4)"
STRANGER = "timm:test_resnet(pretrained=False, seed=1)"
NEEDING_A_FINAL_LAYER = ("accuracy", "hardness", "agreement", "calibration")
MEASURE = (*NEEDING_A_FINAL_LAYER, "class_separation", "layers", "similarity", "dynamics", "linear", "knn")
RUNS = Runs(
    ("softmax",),
    Recipe(epochs=2, batch_size=32, learning_rate=0.3, snapshot_every=1),
    (BACKBONE,),
    seeds=(0, 1),
    draws=0,
)
TRAINED = Study(
    "trained", "", "", "glyphs_smoke", ("digits_smoke",), (RUNS,), ("class_separation",), limited=True
)


def first_network(out: Path) -> Path:
    """The folder of the network with seed 0."""
    (folder,) = (out / "steps").glob("train.softmax-s0.*")
    return folder


def with_given(out: Path) -> Study:
    """The study, with a stranger of timm, and with its own first network given again in two ways."""
    folder = f"folder:{first_network(out)}"
    given = Given({"stranger": STRANGER, "earlier": folder}), Given({"classifier": folder}, classifies=True)
    return replace(TRAINED, name="given", networks=(*given, RUNS), measure=MEASURE)


def run_with_given(out: Path) -> None:
    """Train, then run the study with the networks given."""
    pu.run(TRAINED, out, engine=InProcess())
    summary = pu.run(with_given(out), out, engine=InProcess())
    assert summary.complete
    assert not summary.diverged
