"""Naming the probes costs no tensor library."""

from __future__ import annotations

import subprocess
import sys

from penultimate import registry

HEAVY = ("torch", "torchvision", "numpy", "scipy", "sklearn", "matplotlib")


def test_declaring_the_probes_imports_nothing_heavy():
    code = f"import penultimate.probes, sys; print([m for m in {HEAVY} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_probes_are_found_by_name():
    assert registry.names("probe")[:2] == ["linear", "knn"]
    assert registry.entry("probe", "linear").resolve().__name__ == "LinearProbe"
    assert registry.entry("probe", "knn").resolve().__name__ == "KNNProbe"
