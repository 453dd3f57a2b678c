"""The nodes of a Ray cluster: their free resources, and which are refused and why.

A node is examined before it gets a step, by a function that is sent as a whole because the package may be
missing there. It is refused if its Python, its numerical packages, this package's source or the store differ
from those of the run.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penultimate.engine.observer import Observer
from penultimate.errors import RequestError
from penultimate.graph import Resources
from penultimate.store import Store

PACKAGES = ("penultimate", "torch", "numpy", "scipy", "scikit-learn", "matplotlib", "pillow")
SOURCE, STORE = "the source of penultimate", "the store"
PATIENCE = 120.0
"""The seconds that steps wait for a suitable node while there is none."""

HEAD_PATIENCE = 20.0
"""The seconds within which a restarted head must answer again."""


def examination() -> Callable[[tuple[str, ...], str], dict[str, str]]:
    """Return a function that reports the software where it is called, without importing this package."""

    def examine(packages: tuple[str, ...], mark: str) -> dict[str, str]:
        import hashlib
        import importlib.util
        import platform
        from importlib import metadata
        from pathlib import Path

        facts = {"Python": platform.python_version()}
        for name in packages:
            try:
                facts[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                facts[name] = "none"
        spec = importlib.util.find_spec("penultimate")
        if spec is None or not spec.submodule_search_locations:
            facts["penultimate"] = "none"
        else:
            root, digest = Path(next(iter(spec.submodule_search_locations))), hashlib.sha256()
            for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".json")):
                digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
            facts["the source of penultimate"] = digest.hexdigest()[:12]
        try:
            facts["the store"] = Path(mark).read_text("utf-8")
        except OSError:
            facts["the store"] = "none"
        return facts

    return examine


def differences(there: dict[str, str], here: dict[str, str], root: Path) -> str:
    """Return the differences that exclude a node, or an empty string.

    >>> differences({"Python": "3.12", "penultimate": "none"}, {"Python": "3.11", "penultimate": "1"}, Path())
    'Python is 3.12 there and 3.11 here; penultimate is not installed there'
    """
    found = []
    for name, ours in here.items():
        theirs = there.get(name)
        if theirs == ours or (name == SOURCE and there["penultimate"] != here["penultimate"]):
            continue
        if name == STORE:
            found.append(
                f"'{root}' is not this store there; all nodes need the same folder in the same place"
            )
        elif name == SOURCE:
            found.append("the source of penultimate there is not the one here, although its version is")
        elif theirs == "none":
            found.append(f"{name} is not installed there")
        else:
            found.append(f"{name} is {theirs} there and {ours} here")
    return "; ".join(found)


@dataclass
class Node:
    """A node that may be given steps, with its total and its used resources."""

    id: str
    name: str
    cores: float
    gpus: float
    taken: list[Resources] = field(default_factory=list)

    def has(self, needs: Resources) -> bool:
        return needs.cores <= self.cores and needs.gpus <= self.gpus

    def has_left(self, needs: Resources) -> bool:
        cores = needs.cores + sum(each.cores for each in self.taken)
        gpus = needs.gpus + sum(each.gpus for each in self.taken)
        return cores <= self.cores and gpus <= self.gpus + 1e-6


class Nodes:
    """The nodes of a cluster, as they come and go.

    address   the address of the head; "" if this machine is the only node
    """

    def __init__(self, ray: Any, observer: Observer, store: Store, address: str = "") -> None:
        self.ray, self.observer, self.root, self.address = ray, observer, store.root, address
        self.mark = _mark(store.root) if address else None
        self.here = examination()(PACKAGES, str(self.mark)) if self.mark else {}
        self.fit: dict[str, Node] = {}
        self.refused: dict[str, str] = {}
        self._gone: set[str] = set()
        self._examined: dict[Any, Node] = {}
        self._seen: list[Node] = []
        self._changed = self._answered = time.monotonic()

    def look(self) -> None:
        """Update the nodes that have joined or left.

        Raises RequestError if the head is gone; Ray itself would try for a minute and then end the process.
        """
        if self.address and _is_refused(self.address):
            if time.monotonic() - self._answered > HEAD_PATIENCE:
                raise RequestError(
                    f"the head of the cluster, {self.address}, is gone; what was done is kept, and the same"
                    " command continues on a new cluster or, without --on, on this machine"
                )
            return
        self._answered = time.monotonic()
        alive = {facts["NodeID"]: facts for facts in self.ray.nodes() if facts["Alive"]}
        for node_id in [node_id for node_id in self.fit if node_id not in alive]:
            self.lose(self.fit[node_id])
        known = {*self.fit, *self.refused, *self._gone, *(node.id for node in self._examined.values())}
        for node_id in alive.keys() - known:
            facts, has = alive[node_id], alive[node_id]["Resources"]
            name = f"{facts['NodeManagerHostname']} ({facts['NodeManagerAddress']})"
            node = Node(node_id, name, has.get("CPU", 0.0), has.get("GPU", 0.0))
            if node.cores < 1:
                self._gone.add(node_id)
            elif self.mark is None:
                self._welcome(node)
            else:
                examine = self.ray.remote(num_cpus=0, max_retries=0)(examination())
                self._examined[self.at(examine, node).remote(PACKAGES, str(self.mark))] = node
        if self._examined:
            for answer in self.ray.wait([*self._examined], num_returns=len(self._examined), timeout=0)[0]:
                self._hear(answer, self._examined.pop(answer))

    def at(self, remote: Any, node: Node, **options: Any) -> Any:
        """Return a remote function that runs on this node and no other."""
        affinity = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
        return remote.options(scheduling_strategy=affinity, **options)

    def _hear(self, answer: Any, node: Node) -> None:
        try:
            why = differences(self.ray.get(answer), self.here, self.root)
        except self.ray.exceptions.RayError as error:
            self._gone.add(node.id)
            self.observer.noticed(
                f"node {node.name} gets no steps: it did not answer ({type(error).__name__})"
            )
            return
        if why:
            self.refused[node.id] = f"node {node.name} gets no steps: {why}"
            self.observer.noticed(self.refused[node.id])
        else:
            self._welcome(node)

    def _welcome(self, node: Node) -> None:
        self.fit[node.id] = node
        self._seen.append(node)
        self._changed = time.monotonic()

    def lose(self, node: Node) -> None:
        """Drop a node that is gone, so that it gets no more steps."""
        if self.fit.pop(node.id, None) is not None:
            self._gone.add(node.id)
            self._changed = time.monotonic()
            self.observer.noticed(f"node {node.name} is gone")

    def room_for(self, needs: Resources) -> Node | None:
        """Return the node with the most free cores among those with room for a step now."""
        free = [node for node in self.fit.values() if node.has_left(needs)]
        return max(free, key=lambda node: node.cores - sum(each.threads for each in node.taken), default=None)

    def lacks(self, needs: Resources) -> str:
        """Return why a step would wait forever, or an empty string if it might not.

        Raises RequestError if there is no node for any step.
        """
        if any(node.has(needs) for node in self.fit.values()) or self._examined:
            return ""
        is_over = time.monotonic() - self._changed > PATIENCE
        if not self.fit and (is_over or (self.refused and not self._seen)):
            why = "; ".join(self.refused.values()) or "there is none with a core"
            raise RequestError(f"no node of the cluster can be given steps: {why}")
        if not is_over and self.mark is not None:
            return ""
        cores, gpus = (max(getattr(node, name) for node in self._seen) for name in ("cores", "gpus"))
        return (
            f"it needs {_amount(needs.cores, needs.gpus)}, and no node has that (the most:"
            f" {_amount(cores, gpus)})"
        )


def _mark(root: Path) -> Path:
    """Return a file of random text, by which a node shows that it sees this store; it is made if needed."""
    path = root / "locks" / ".shared"
    with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
        file.write(secrets.token_hex(16))
    return path


def _is_refused(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return True
    except OSError:  # a network error, which Ray itself handles
        return False
    return False


def _amount(cores: float, gpus: float) -> str:
    """
    >>> _amount(1, 0), _amount(8, 0.5)
    ('1 core', '8 cores and 0.5 of a GPU')
    """
    text = f"{cores:g} core" + "s" * (cores != 1)
    if gpus:
        text += f" and {gpus:g} " + ("of a GPU" if gpus < 1 else "GPU" + "s" * (gpus != 1))
    return text
