"""Studies: what they are, how they unfold into steps, how they are run and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penultimate.study.choosing import load_study
    from penultimate.study.reading import results
    from penultimate.study.running import plan, run
    from penultimate.study.spec import Study

_LOCATIONS = {
    "Study": "spec",
    "load_study": "choosing",
    "plan": "running",
    "run": "running",
    "results": "reading",
}

__all__ = ["Study", "load_study", "plan", "results", "run"]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _LOCATIONS:
        return getattr(importlib.import_module(f"penultimate.study.{_LOCATIONS[name]}"), name)
    raise AttributeError(f"module 'penultimate.study' has no attribute '{name}'")
