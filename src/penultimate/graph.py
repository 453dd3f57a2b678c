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
"""Priorities: the first measurements of a new network, then further networks, then everything else."""
TO_CROP = "to the crop"
"""A step's `resize`: its images on disk are resized to the crop's size, and not cut out of larger ones."""


@dataclass(frozen=True)
class Resources:
    """Part of a machine that a step uses; it is recorded with the result but is not part of the identity.

    threads   the number of threads of each of its processes
    gpus      a share of one GPU, or the number of GPUs, each with a process of its own
    on        the GPUs that an engine has assigned to it
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
    """Result of a parent that a step reads.

    kind      "features", "images", "network", or "made" for the result of a stage
    parent    the parent's id
    name      the split of features or images, or the name of a stage
    of        the data set
    network   the network that it is, or that the features or the stage belong to, if there is one
    settings  the values for which a stage that is repeated was run
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

    config    every setting, as the step's function receives it
    identity  the settings that differ from their defaults
    columns   the values that all rows of the step share, such as those of the network and the data
    supplies  the results of its parents that it reads, in the order in which it asked for them

    A step that `gathers` runs without those parents that a diverged run left out; the engine lists these as
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
        """Readable name with the first 16 digits of the identity's sha256; it also names the folder."""
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
