"""Watch a step's user code for the files that it reads, and find changes in these files since a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penultimate import registry
from penultimate.errors import RequestError
from penultimate.graph import Step
from penultimate.origin import Origin, Seen, called
from penultimate.plugins import loaded, origin_of, origins
from penultimate.store import Store


def _origin(plugin: str) -> Origin:
    """Return the origin of the plug-in with the name "kind:name"."""
    return origin_of(registry.entry(*plugin.split(":")))


@contextlib.contextmanager
def watched(step: Step, store: Store) -> Iterator[None]:
    """Record in the store the files that plug-ins read during the block, in which a step runs.

    A data set's files are not recorded, because they show in its images. Raises RequestError if files have
    changed since the identity of the step, or of the networks that it runs, was computed.
    """
    known = origins()
    if not known:
        yield
        return
    metas = [store.meta(parent) for parent in step.parents if parent not in step.absent]
    said: dict[str, str] = {**step.config.get("plugins", {})}
    for meta in metas:
        said |= {} if meta is None else meta.content["config"].get("plugins", {})
    seen = Seen(store.root)
    usual = [_origin(plugin) for plugin in said]
    with called(known, usual, seen) if step.name != "data" else contextlib.nullcontext():
        yield
    for plugin, digest in said.items():
        if (origin := _origin(plugin)).identity(seen) != digest:
            kind, _, name = plugin.partition(":")
            files = ", ".join(f"'{file}'" for file in origin.called(seen))
            raise RequestError(
                f"what the {kind} '{name}' reads when it is called ({files}) was changed since the study"
                " began; start it again"
            )


def read_by(steps: Iterable[Step], seen: Seen) -> dict[str, dict[str, str]]:
    """Return the current digests of the files that the steps' plug-ins read, by "kind:name".

    The store records which of these files the plug-ins wrote themselves while loading.
    """
    for plugin in loaded():
        for name in plugin.wrote:
            seen.note(plugin.origin.text, name, None)
    used = dict.fromkeys(plugin for step in steps for plugin in step.config.get("plugins", ()))
    return {plugin: files for plugin in used if (files := _origin(plugin).files(seen))}


def changes(before: Any, now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the files of plug-ins whose content differs from `before`."""
    earlier: Mapping[str, Mapping[str, str]] = before or {}
    changed = (
        name
        for plugin, files in now.items()
        for name, digest in files.items()
        if earlier.get(plugin, {}).get(name, digest) != digest
    )
    return list(dict.fromkeys(changed))
