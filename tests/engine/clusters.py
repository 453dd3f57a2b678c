"""Ray clusters of this machine, for the time of a test: nodes that are started, and killed as they stand."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penultimate.engine.ray import OBJECT_STORE, _users

SRC = Path(__file__).parents[2] / "src"


def free_port() -> int:
    """A port below those that Ray gives its workers."""
    for port in range(7000, 9900):
        with contextlib.suppress(OSError), socket.create_server(("", port)):
            return port
    raise OSError("no port is free")


@dataclass
class Cluster:
    """Nodes of one core each; `environment` is that of a process which joins."""

    port: int = field(default_factory=free_port)
    folders: list[Path] = field(default_factory=list)
    token: str = field(default_factory=lambda: secrets.token_hex(32))

    @property
    def address(self) -> str:
        return f"{socket.gethostbyname(socket.gethostname())}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token, "RAY_USAGE_STATS_ENABLED": "0"}

    def add(self, python: str = sys.executable, path: str = str(SRC)) -> Path:
        """Start a node, with the folder of its own that comes back; the first is the head."""
        where = [f"--address={self.address}"] if self.folders else ["--head", f"--port={self.port}"]
        folder = Path(tempfile.mkdtemp(prefix="pu-", dir="/tmp"))
        self.folders.append(folder)
        own = ["--num-cpus=1", f"--object-store-memory={OBJECT_STORE}", f"--temp-dir={folder}"]
        answer = subprocess.run(
            [python, "-m", "ray.scripts.scripts", "start", *where, *own],
            env={**os.environ, **self.environment, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return folder

    def kill(self, folder: Path, but: int = 0) -> None:
        """End a node at once with all that it runs, but for the process that has joined it."""
        for process in _users(str(folder)) - {but}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster that is gone in the end, to the last process."""
    made = Cluster()
    try:
        made.add()
        yield made
    finally:
        for folder in made.folders:
            guard = [sys.executable, "-m", "penultimate.engine.ray", str(folder)]
            subprocess.run(guard, stdin=subprocess.DEVNULL, timeout=60, check=True)
