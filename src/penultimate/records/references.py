"""The kept runs that come with registered papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penultimate import registry
from penultimate.files import read_sealed

KEPT, SCHEMA = "kept.json", 3
"""The file with the description and provenance of a kept study, and the number of its format."""


def references() -> dict[str, Path]:
    """Return the folders of the reference runs that come with registered papers, by study."""
    roots: list[Path] = [registry.entry("reference", name).resolve() for name in registry.names("reference")]
    return {path.parent.name: path.parent for root in roots for path in sorted(root.glob(f"*/{KEPT}"))}


def reference_card(study: str) -> dict[str, Any]:
    """Return the description and provenance of a reference run, without its rows."""
    return read_sealed(references()[study] / KEPT, SCHEMA)
