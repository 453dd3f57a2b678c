"""Steps: units of work, each identified by its function, its settings and its parents."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penultimate.files import LONGEST_FILE_NAME, canonical_json
from penultimate.networks.key import NetworkKey

NOW, NEXT, LATER = 1, 2, 3
"""Priorities: the first measures of a new network come first, then further networks, then everything else."""


@dataclass(frozen=True)
class Resources:
    """The part of a machine that a step uses; it is recorded with the result and is not part of the identity.

    threads   of each of its processes
    gpus      a share of one, or how many, a process on each
    on        the GPUs that an engine has given it
    """

    threads: int = 1
    gpus: float = 0.0
    on: tuple[str, ...] = ()

    @property
    def processes(self) -> int:
        """The number of processes that share the work: one for each GPU."""
        return max(1, round(self.gpus))

    @property
    def cores(self) -> int:
        """The number of cores of all processes together."""
        return self.threads * self.processes


@dataclass(frozen=True)
class Supply:
    """Something that one of the parents gives to a step.

    kind      "features" and "images" (`name`: the split), "network", "made" (`name`: the stage)
    of        the data set
    network   whose features or which network; of a stage, the network that it was done for, if one
    settings  of a stage that is repeated for several values
    """

    kind: str
    parent: str
    name: str = ""
    of: str = ""
    network: NetworkKey | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """Unit of work; its id is made from its name, version, `identity` and parents.

    config    every setting, as the step's function is given it
    identity  those of them that differ from their defaults
    columns   what the step's rows have in common: the network's, the data's
    supplies  what the parents are to it, in the order in which it asked

    A step that `gathers` runs without the parents that a diverged run left out; the engine lists these as
    `absent`.
    """

    name: str
    version: int
    config: dict[str, Any]
    identity: dict[str, Any]
    parents: tuple[str, ...] = ()
    supplies: tuple[Supply, ...] = ()
    columns: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    priority: int = LATER
    gathers: bool = False
    resources: Resources = Resources()
    absent: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """A readable name and the first 16 digits of the identity's sha256: the step's folder."""
        identity = {
            "step": self.name,
            "version": self.version,
            "config": self.identity,
            "parents": sorted(self.parents),
        }
        digest = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
        room = LONGEST_FILE_NAME - len(f"{self.name}..{digest[:16]}".encode())
        return f"{self.name}.{self.label[:room]}.{digest[:16]}"

    def placed(self, gpus: tuple[str, ...]) -> Step:
        """Return the same step on the GPUs that an engine has assigned to it."""
        return dataclasses.replace(self, resources=dataclasses.replace(self.resources, on=gpus))
