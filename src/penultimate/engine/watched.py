"""A step's user code, watched for the files that it reads; and what has changed in these since a run."""

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
    """Return where a plug-in comes from that is called "kind:name"."""
    return origin_of(registry.entry(*plugin.split(":")))


@contextlib.contextmanager
def watched(step: Step, store: Store) -> Iterator[None]:
    """Have the store see what plug-ins read in the block, in which a step is done.

    What a data set reads shows in its images. Raises RequestError where files hold something else than the
    step's identity says, or that of the networks that it runs, for they were changed meanwhile.
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
    """Return the digests of the files that the plug-ins of steps read, as they are now, by "kind:name".

    The store learns which files the plug-ins wrote themselves when they were loaded.
    """
    for plugin in loaded():
        for name in plugin.wrote:
            seen.note(plugin.origin.text, name, None)
    used = dict.fromkeys(plugin for step in steps for plugin in step.config.get("plugins", ()))
    return {plugin: files for plugin in used if (files := _origin(plugin).files(seen))}


def changes(before: Any, now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the files that plug-ins read with another content than `before`."""
    earlier: Mapping[str, Mapping[str, str]] = before or {}
    changed = (
        name
        for plugin, files in now.items()
        for name, digest in files.items()
        if earlier.get(plugin, {}).get(name, digest) != digest
    )
    return list(dict.fromkeys(changed))
