"""Every array within the probes is of the shape that its annotation says: a process that checks all calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import tests.typechecker
from jaxtyping import TypeCheckError, install_import_hook
install_import_hook("penultimate.probes", "tests.typechecker.check")
import numpy as np
from penultimate.probes.linear import LinearProbe
from penultimate.probes.logistic import residuals
from penultimate.probes.multilabel import MultiLabelProbe

random, some = np.random.default_rng(0), np.logspace(-2, 2, 5)
classes = np.arange(60) % 3
labels = np.stack([classes == 0, classes == 1], 1).astype(np.int64)
for kind in (np.float32, np.float64):
    features = (random.normal(size=(60, 5)) + 2 * np.eye(5)[classes]).astype(kind)
    print(LinearProbe(lambdas=some).fit(features, classes).score(features, classes))
    print(MultiLabelProbe(lambdas=some).fit(features, labels).lambda_.shape)
try:
    residuals(np.zeros((3, 4)), np.zeros(5, np.int64))
except TypeCheckError:
    print("checked")
"""


@pytest.mark.long
def test_within_probes_of_either_precision_arrays_have_the_shapes_that_are_annotated() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    command = [sys.executable, "-c", PROGRAM]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert answer.returncode == 0, answer.stderr
    *scores, last = answer.stdout.splitlines()
    assert (len(scores), scores[1::2], last) == (4, ["(2,)"] * 2, "checked")
    assert all(float(score) > 0.8 for score in scores[::2])
