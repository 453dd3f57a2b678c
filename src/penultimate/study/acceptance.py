"""Changes of plug-ins that the user knows to be harmless, so that what is done of a study is kept.

A study's description has the digests of its plug-ins as they were when it was last run to its end. `accept`
writes beside it that the present digests count as those, in every later plan and run of the study.
"""

from __future__ import annotations

from penultimate import registry
from penultimate.files import read_sealed, write_sealed
from penultimate.plugins import Accepted, identity
from penultimate.records.reading import STUDY_FILE, read_study
from penultimate.store import SCHEMA, Store
from penultimate.study.graph import Graph

FILE = "accepted.json"


def accepted(store: Store, study: str) -> Accepted:
    """Return the changes of plug-ins that were accepted for a study; raises DamagedFileError."""
    try:
        return dict(read_sealed(store.root / "studies" / study / FILE, SCHEMA)["plugins"])
    except FileNotFoundError:
        return {}


def accept(store: Store, study: str) -> None:
    """Have the plug-ins of a study count as what they were when it was last run."""
    folder = store.root / "studies" / study
    if not (folder / STUDY_FILE).is_file():
        return
    kept = read_study(store, folder).description.get("plugins", {})
    known = {plugin: dict(digests) for plugin, digests in accepted(store, study).items()}
    for plugin, earlier in kept.items():
        kind, _, name = plugin.partition(":")
        if name in registry.names(kind) and (now := identity(kind, name)[plugin]) != earlier:
            known.setdefault(plugin, {})[now] = earlier
    if known:
        write_sealed(folder / FILE, {"plugins": known}, SCHEMA)


def plugins_of(graph: Graph) -> dict[str, str]:
    """Return the digests of the plug-ins of a graph's steps, as they count in the steps' identities."""
    digests: dict[str, str] = {}
    for step in graph.steps.values():
        digests |= step.identity.get("plugins", {})
    return digests
