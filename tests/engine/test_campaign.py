"""Kills at random moments and flipped bytes: nothing is lost, nothing changes without a word.

The command `penultimate run smoke` and its workers are killed by SIGKILL again and again, and every second
kill of the command damages a checkpoint as well. Each study that comes to its end has the files of an
undisturbed one, byte for byte.

    PENULTIMATE_KILLS=200 pytest -m long -s tests/engine/test_campaign.py      (about seven seconds a kill)
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import penultimate
from tests.engine.processes import alive, descendants, processes_called, wait_for
from tests.golden.portable import PORTABLE

from penultimate.errors import DamagedFileError
from penultimate.records.archive import keep, read_kept
from penultimate.records.reading import study_folder
from penultimate.store import Store
from penultimate.variables import CHECKPOINT_SECONDS

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("PENULTIMATE_KILLS", "6"))
SEED = int(os.environ.get("PENULTIMATE_SEED", "0"))
LONGEST = 10.0
"""The most seconds between two kills, about twice as long as a command takes to begin its first step."""


@dataclass(frozen=True)
class Place:
    """Where the steps of a study are carried out, and what can be killed there.

    options   of the command
    workers   the processes that work for a command of this process id
    """

    options: tuple[str, ...] = ()
    workers: Callable[[int], set[int]] = descendants


@contextlib.contextmanager
def this_machine() -> Iterator[Place]:
    yield Place(("--processes", "2"))


@contextlib.contextmanager
def ray_cluster() -> Iterator[Place]:
    """Two nodes of Ray, each with one core; what can be killed are the processes of their tasks."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **node})
    cluster.add_node(**node)
    try:
        yield Place(("--on", f"ray:{cluster.address}"), lambda _: processes_called("ray::_do"))
    finally:
        cluster.shutdown()


PLACES: dict[str, Callable[[], contextlib.AbstractContextManager[Place]]] = {
    "this machine": this_machine,
    "two nodes of Ray": ray_cluster,
}
"""The places in which the campaign is carried out."""


def files_of(out: Path) -> dict[str, dict[str, Any]]:
    """Return the digests of all files of all finished steps; each file is compared with its digest."""
    store, found = Store(out, thorough=True), {}
    for path in (out / "steps").iterdir():
        meta = store.finished(path.name)
        assert meta is not None
        found[meta.id] = meta.files
    return found


def step_of(path: Path, out: Path) -> str:
    return path.relative_to(out / "steps").parts[0]


def flip(path: Path, chance: random.Random) -> None:
    """Change a byte of a file; its time says nothing of that."""
    content, when = bytearray(path.read_bytes()), path.stat()
    content[chance.randrange(len(content))] ^= chance.randrange(1, 256)
    path.write_bytes(content)
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


@dataclass
class Campaign:
    """Kills of commands that run a study, until there were `kills` of them."""

    place: Place
    kills: int
    chance: random.Random
    log: Path
    done: Counter[str] = field(default_factory=Counter)

    def run(self, out: Path) -> None:
        """Run the study until it is complete, however often that is interrupted."""
        while self._life(out) != 0:
            self.done["lives"] += 1

    def _life(self, out: Path) -> int:
        """Start the command once and kill its workers until it ends or is killed itself; return its code."""
        arguments = ["run", "smoke", "--out", str(out), *self.place.options]
        with self.log.open("ab") as log:
            command = subprocess.Popen(
                [sys.executable, "-m", "penultimate.cli", *arguments], stdout=log, stderr=log
            )
        while self.done["command"] + self.done["worker"] < self.kills:
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.wait(self.chance.uniform(0, LONGEST))
                break
            workers = self.place.workers(command.pid)
            if workers and self.chance.random() < 0.5:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.chance.choice(sorted(workers)), signal.SIGKILL)
                    self.done["worker"] += 1
            else:
                left = descendants(command.pid)
                command.kill()
                command.wait()
                wait_for(lambda: not alive(left), seconds=60)  # noqa: B023  (it is called at once)
                self.done["command"] += 1
                self._damage_checkpoint(out)
        code = command.wait()
        assert code in (0, 1, -signal.SIGKILL), self.log.read_text()
        return code

    def _damage_checkpoint(self, out: Path) -> None:
        found = sorted(path for path in out.glob("partial/*/checkpoint-*") if path.stat().st_size)
        if found and self.chance.random() < 0.5:
            flip(self.chance.choice(found), self.chance)
            self.done["checkpoints damaged"] += 1


@pytest.mark.parametrize("where", PLACES)
def test_kills_of_the_command_and_its_workers_lose_and_change_nothing(
    finished_smoke: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    for name, value in {**PORTABLE, CHECKPOINT_SECONDS: "0.05"}.items():
        monkeypatch.setenv(name, value)
    whole, began = files_of(finished_smoke / "runs"), time.monotonic()
    with PLACES[where]() as place:
        campaign = Campaign(place, KILLS, random.Random(SEED), tmp_path / "said.log")
        while campaign.done["command"] + campaign.done["worker"] < KILLS:
            out = tmp_path / f"runs{campaign.done['studies']}"
            campaign.run(out)
            campaign.done["studies"] += 1
            assert files_of(out) == whole
            assert not [*(out / "partial").glob("*/*")]
            shutil.rmtree(out)
    assert "Traceback" not in campaign.log.read_text()
    seconds = time.monotonic() - began
    print(f"\n{where}: {dict(campaign.done)} in {seconds:.0f} s, {seconds / KILLS:.1f} s a kill")


def test_a_flipped_byte_in_every_kind_of_stored_file_is_named_and_healed(smoke: Path) -> None:
    """Of each kind of file that a step leaves, one is damaged, each in a step of its own; and study.json."""
    chance, out = random.Random(SEED), smoke / "runs"
    whole, kinds, damaged = files_of(out), defaultdict[str, list[Path]](list), dict[str, Path]()
    for path in sorted((out / "steps").rglob("*")):
        if path.is_file() and path.stat().st_size:
            kinds[path.name if ".json" in path.name else path.suffix].append(path)
    for paths in sorted(kinds.values(), key=len):
        path = chance.choice([path for path in paths if step_of(path, out) not in damaged])
        damaged[step_of(path, out)] = path
    assert {".npy", ".npz", ".png", ".safetensors", "meta.json", "rows.jsonl", "network.json"} < kinds.keys()
    for path in (*damaged.values(), out / "studies/smoke/study.json"):
        flip(path, chance)

    with pytest.raises(DamagedFileError, match=r"study\.json' is not what was written"):
        study_folder(out)
    told = penultimate("status", "--verify", cwd=smoke)
    healed = penultimate("run", "smoke", "--verify", cwd=smoke, timeout=600)
    assert (told.returncode, healed.returncode) == (2, 0)
    for step, path in damaged.items():
        name = path.relative_to(out / "steps" / step).as_posix()
        assert f"step {step}: {name} is not what was written" in told.stdout
        assert f"{name} is not what was written" in healed.stdout
    assert "study.json' is not what was written" in told.stderr
    assert files_of(out) == whole
    assert penultimate("status", "--verify", cwd=smoke).returncode == 0


@pytest.mark.parametrize("name", ["kept.json", "rows.csv", "arrays.npz"])
def test_a_flipped_byte_of_a_kept_study_is_named_and_written_again(
    finished_smoke: Path, tmp_path: Path, name: str
) -> None:
    study, path = study_folder(finished_smoke / "runs"), tmp_path / "kept" / name
    keep(study, tmp_path / "kept")
    whole = path.read_bytes()
    flip(path, random.Random(SEED))
    with pytest.raises(DamagedFileError, match=name.replace(".", r"\.")):
        read_kept(tmp_path / "kept")
    keep(study, tmp_path / "kept")
    assert path.read_bytes() == whole
