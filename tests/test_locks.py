"""Locks: flock on one machine, leases where several share a folder; never two holders that can do harm."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penultimate import locks
from penultimate.engine.execute import execute
from penultimate.engine.run import exclusively
from penultimate.errors import RequestError
from penultimate.locks import (
    FREE,
    LEASE_SECONDS,
    BusyError,
    Lease,
    LostLeaseError,
    flocked,
    is_shared,
    lease_holder,
    leased,
)
from penultimate.store import Store
from tests.engine.chores import chore
from tests.plugged import plugged


@pytest.fixture(autouse=True)
def _short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEASE_SECONDS, "1.2")


@contextlib.contextmanager
def elsewhere(code: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, once it has printed a line; it is killed in the end."""
    command = [sys.executable, "-c", f"import time; from pathlib import Path\n{code}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline()
            yield other
        finally:
            other.kill()


def holding(kind: str, path: Path, then: str = "time.sleep(60)") -> str:
    return (
        f"from penultimate.locks import {kind}\n"
        f"with {kind}(Path({str(path)!r})):\n    print('held', flush=True); {then}"
    )


def say_another_machine(folder: Path) -> None:
    """The holder's own words are changed: it is on a machine of which nothing is seen from here."""
    path = folder / str(locks._last(folder))
    content = path.read_bytes()
    facts = {**json.loads(content[len(FREE) :]), "machine": "far away"}
    path.write_bytes(content[: len(FREE)] + json.dumps(facts).encode())


@pytest.mark.parametrize("kind", ["flocked", "leased"])
def test_a_lock_keeps_a_second_process_out_and_ends_with_its_holder(tmp_path: Path, kind: str) -> None:
    path, lock = tmp_path / "lock", getattr(locks, kind)
    with elsewhere(holding(kind, path)) as other:
        with pytest.raises(BusyError, match=str(other.pid)), lock(path):
            pass
        other.kill()
        other.wait()
        began = time.monotonic()
        with lock(path):
            assert time.monotonic() - began < 0.5
    with lock(path):
        pass


def test_of_many_that_race_for_a_lease_one_holds_it_at_a_time(tmp_path: Path) -> None:
    tally, turns = tmp_path / "tally", 8
    tally.write_text("0")

    def work() -> None:
        for _ in range(turns):
            with leased(tmp_path / "lease", wait=True) as lease:
                count = int(tally.read_text())
                time.sleep(0.001)
                tally.write_text(str(count + 1))
                assert lease.is_held()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(tally.read_text()) == 6 * turns
    assert [path.name for path in (tmp_path / "lease").iterdir()] == [str(6 * turns)]


def test_a_lease_of_another_machine_is_over_when_it_stands_still(tmp_path: Path) -> None:
    with elsewhere(holding("leased", tmp_path)) as other:
        say_another_machine(tmp_path)
        with pytest.raises(BusyError), leased(tmp_path):  # it beats
            pass
        assert lease_holder(tmp_path) is not None
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        began = time.monotonic()
        with leased(tmp_path) as lease:
            assert 1.1 < time.monotonic() - began < 5
            assert (lease.number, lease.took_over) == (2, True)
    assert lease_holder(tmp_path) is None


def test_clocks_that_differ_or_are_set_back_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with elsewhere(holding("leased", tmp_path)):
        say_another_machine(tmp_path)
        clock = iter([1e9, 2e9, 0.0, 3e9, 5.0] * 1000)
        monkeypatch.setattr(time, "time", lambda: next(clock))
        os.utime(tmp_path / "1", (0, 0))
        with pytest.raises(BusyError), leased(tmp_path):
            pass


def test_a_waiter_that_slept_itself_takes_nothing_from_a_holder_that_beats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two looks the holder is not seen: they count as one, however long it was."""
    sleep = time.sleep
    with leased(tmp_path) as lease:
        say_another_machine(tmp_path)
        monkeypatch.setattr(time, "sleep", lambda seconds: sleep(0.3))
        with pytest.raises(BusyError), leased(tmp_path):
            pass
        assert lease.is_held()


def test_a_number_that_was_looked_for_long_ago_is_not_taken(tmp_path: Path) -> None:
    for _ in range(3):
        with leased(tmp_path):
            pass
    assert locks._claim(tmp_path, 2, took_over=True) is None
    assert [path.name for path in tmp_path.iterdir()] == ["3"]


def test_a_process_that_has_the_number_of_a_dead_holder_is_not_it(tmp_path: Path) -> None:
    with leased(tmp_path) as lease:
        path = tmp_path / str(lease.number)
        facts = {**json.loads(path.read_bytes()[len(FREE) :]), "began": "1"}
        path.write_bytes(b"7".rjust(len(FREE)) + json.dumps(facts).encode())
        with leased(tmp_path) as other:
            assert other.number == lease.number + 1
            assert not lease.is_held()
    assert locks._last(tmp_path) == other.number


@pytest.mark.parametrize(
    ("kind", "shared"),
    [
        ("nfs4", True),
        ("lustre", True),
        ("fuse.sshfs", True),
        ("cifs", True),
        ("ext4", False),
        ("fuseblk", False),
    ],
)
def test_what_machines_share_is_known_by_its_file_system(kind: str, shared: bool) -> None:
    mounts = f"/dev/vda / xfs rw 0 0\nserver:/x /shared/my\\040files {kind} rw 0 0\n"
    assert is_shared(Path("/shared/my files/runs"), mounts) is shared
    assert not is_shared(Path("/shared/mine"), mounts)


@pytest.mark.parametrize("place", ["/mnt/données", "/mnt/共有", "/mnt/\udce9"])
def test_a_shared_folder_may_have_any_name(place: str) -> None:
    mounts = f"/dev/vda / xfs rw 0 0\nserver:/x {place} nfs4 rw 0 0\n"
    assert is_shared(Path(place) / "runs", mounts)


def shared_store(root: Path) -> Store:
    store = Store(root)
    store.prepare(shared=True)
    return store


def take_away(store: Store, step_id: str) -> Lease:
    """What a process on another machine does that finds the lease of a step over."""
    folder = store.root / "locks" / f"{step_id}.lease"
    lease = locks._claim(folder, locks._last(folder) + 1, took_over=True)
    assert lease is not None
    return lease


def test_a_store_is_marked_once_and_for_all(tmp_path: Path) -> None:
    mark = shared_store(tmp_path).mark.read_text()
    assert shared_store(tmp_path).mark.read_text() == mark
    with Store(tmp_path).lock(tmp_path / "locks/any") as lease:
        assert lease is not None
    plain = Store(tmp_path / "plain")
    plain.prepare()
    with plain.lock(plain.root / "locks/any") as lease:
        assert lease is None


def test_a_holder_from_before_the_mark_is_waited_for(tmp_path: Path) -> None:
    store, path = Store(tmp_path), tmp_path / "locks/any"
    store.prepare()
    with flocked(path):
        shared_store(tmp_path)
        with pytest.raises(BusyError), store.lock(path):
            pass
    with store.lock(path) as lease:
        assert lease is not None


def test_a_slow_holder_of_a_step_loses_it_and_harms_nothing(tmp_path: Path) -> None:
    slow, quick = shared_store(tmp_path), Store(tmp_path)
    (tmp_path / "partial/a.b.1").mkdir()
    (tmp_path / "partial/a.b.1/checkpoint-0").write_bytes(b"from before the mark")
    with pytest.raises(LostLeaseError, match=r"a\.b\.1 was taken over"), slow.step_lock("a.b.1"):  # noqa: PT012
        folder = slow.begin("a.b.1")
        assert (folder / "checkpoint-0").read_bytes() == b"from before the mark"
        with (folder / "array.npz").open("wb") as file:
            file.write(b"slow")
            file.flush()
            quick._leases["a.b.1"] = lease = take_away(slow, "a.b.1")
            quick._take_over("a.b.1", lease)
            mine = quick.begin("a.b.1")
            assert (mine / "checkpoint-0").read_bytes() == b"from before the mark"
            (mine / "array.npz").write_bytes(b"quick")
            file.write(b"and late")
        assert not folder.exists()
        quick.finish("a.b.1", {"step": "a", "status": "done"}, ("checkpoint*",))
        slow.begin("a.b.1")
        (folder / "array.npz").write_bytes(b"slow again")
        slow.finish("a.b.1", {"step": "a", "status": "done"})
    assert (Store(tmp_path).verify("a.b.1") / "array.npz").read_bytes() == b"quick"
    assert sorted(path.name for path in (tmp_path / "partial").iterdir()) == [".writable"]


SLOW = '''
import time
from pathlib import Path
from penultimate import register
from penultimate.measures import Number

@register.measurement(version=1, per="network", needs=(), yields=None)
def chore(inputs, *, number=0, deed=""):
    """Its first holder loses the lease while it works."""
    turns = inputs.folder / "checkpoint-turns"
    with turns.open("a") as file:
        file.write("x")
    if len(turns.read_text()) == 1:
        deadline = time.monotonic() + 30
        while inputs.folder.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    yield Number("turns", len(turns.read_text()) if turns.exists() else 0, "count")
'''


def test_a_step_that_another_process_took_over_is_waited_for_and_found_done(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    store, step = shared_store(tmp_path / "runs"), chore("slow")
    metas = []
    with plugged(tmp_path / "slow.py"):
        first = threading.Thread(target=lambda: metas.append(execute(store, step, lambda news: None)))
        first.start()
        turns = store.root / f"partial/{step.id}@1/checkpoint-turns"
        while not turns.exists() or not turns.read_text():
            time.sleep(0.01)
        other = Store(tmp_path / "runs")
        other._leases[step.id] = lease = take_away(store, step.id)
        other._take_over(step.id, lease)
        time.sleep(0.3)
        assert first.is_alive()
        assert not (store.root / f"partial/{step.id}@1").exists()
        lease.beat(FREE)
        lease.close()
        first.join(timeout=30)
    assert [meta["status"] for meta in metas] == ["done"]
    assert b'"value":2' in (store.verify(step.id) / "rows.jsonl").read_bytes().replace(b": ", b":")


def test_two_runs_of_one_study_are_refused_by_leases_too(tmp_path: Path) -> None:
    store, folder = shared_store(tmp_path), tmp_path / "studies/tiny"
    folder.mkdir()
    assert store.holder(folder / ".lock") is None
    with exclusively(store, folder):
        assert store.holder(folder / ".lock") is not None
        refused = pytest.raises(RequestError, match=f"being run .* by process {os.getpid()}")
        with refused, exclusively(Store(tmp_path), folder):
            pass
    assert store.holder(folder / ".lock") is None
