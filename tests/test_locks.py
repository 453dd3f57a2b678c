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
from penultimate.engine.run import exclusively
from penultimate.errors import RequestError
from penultimate.locks import (
    FREE,
    BusyError,
    Lease,
    LostLeaseError,
    flock_holder,
    flocked,
    is_shared,
    lease_holder,
    leased,
)
from penultimate.store import Store
from penultimate.variables import LEASE_SECONDS


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


def say(folder: Path, mark: bytes = b"", **changes: object) -> None:
    """The holder's own words are changed, as if another had written them."""
    path = folder / str(locks._last(folder))
    content = path.read_bytes()
    facts = {**json.loads(content[len(FREE) :]), **changes}
    facts.pop("sha256")
    whole = json.dumps({**facts, "sha256": locks._digest(facts)}).encode()
    path.write_bytes((mark.rjust(len(FREE)) if mark else content[: len(FREE)]) + whole)


def say_another_machine(folder: Path) -> None:
    """The holder is on a machine of which nothing is seen from here."""
    say(folder, machine="far away")


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
    assert locks._claim(tmp_path, 2, True, 1.2) is None
    assert [path.name for path in tmp_path.iterdir()] == ["3"]


def test_a_process_that_has_the_number_of_a_dead_holder_is_not_it(tmp_path: Path) -> None:
    with leased(tmp_path) as lease:
        say(tmp_path, b"7", began="1")
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
    lease = locks._claim(folder, locks._last(folder) + 1, True, 1.2)
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


# -- damaged locks and leases -------------------------------------------------------------------------------

DAMAGED = {
    "empty": b"",
    "binary": bytes(range(256)) * 4,
    "cut": b'           0{"pid": 12, "ho',
    "a list": b"           0[1, 2]",
    "a number": b"           012",
    "nested": b"           0" + b"[" * 3000,
    "wrong types": b'           0{"pid": "x", "host": 3, "seconds": "y", "machine": [], "began": {}}',
    "without fields": b'           0{"pid": 7, "host": "alpha"}',
    "endless seconds": b'           0{"pid": 7, "host": "a", "seconds": 1e300, "machine": "b", "began": "1"}',
    "no number of seconds": b'           0{"pid": 7, "host": "a", "seconds": NaN, "machine": "b"}',
    "another schema": b'{"schema": 9, "holder": {"pid": 7}}',
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_lease_is_waited_for_as_a_silent_one_and_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv(LEASE_SECONDS, "0.3")
    (tmp_path / "1").write_bytes(DAMAGED[what])
    assert lease_holder(tmp_path) == {}
    began = time.monotonic()
    with leased(tmp_path) as lease:
        assert (lease.number, lease.took_over) == (2, True)
        assert 0.28 < time.monotonic() - began < 5
    assert lease_holder(tmp_path) is None


@pytest.mark.parametrize("what", [name for name in DAMAGED if name not in ("empty", "cut")])
def test_a_damaged_lease_that_beats_is_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv(LEASE_SECONDS, "0.3")
    with leased(tmp_path) as lease:
        (tmp_path / "1").write_bytes(DAMAGED[what].replace(b"           0", b"      damage", 1))
        with pytest.raises(BusyError, match="of which nothing can be read"), leased(tmp_path):
            pass
        assert lease.is_held()


def test_a_flipped_bit_of_a_lease_does_not_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it says then, of a process that has ended say, its holder beats."""
    monkeypatch.setenv(LEASE_SECONDS, "0.3")
    with leased(tmp_path) as lease:
        whole = (tmp_path / "1").read_bytes()
        for place in range(len(FREE), len(whole), 17):
            with (tmp_path / "1").open("r+b") as file:
                file.seek(place)
                file.write(bytes([whole[place] ^ 1]))
            assert lease_holder(tmp_path) is not None
            with pytest.raises(BusyError), leased(tmp_path):
                pass
            assert lease.is_held()
            with (tmp_path / "1").open("r+b") as file:
                file.seek(place)
                file.write(whole[place : place + 1])


def test_a_lease_whose_file_was_deleted_is_lost_to_the_next_holder(tmp_path: Path) -> None:
    with leased(tmp_path) as lease:
        (tmp_path / "1").unlink()
        assert not lease.is_held()
        with leased(tmp_path) as other:
            assert other.number == 1
            assert other.is_held()
            assert not lease.is_held()


def test_strange_things_among_leases_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEASE_SECONDS, "0.3")
    for name in ("²", "-1", "x", "9" * 40, "01"):
        (tmp_path / name).touch()
    (tmp_path / "3").mkdir()
    (tmp_path / "2").symlink_to(tmp_path / "x")
    with leased(tmp_path) as lease:
        assert lease.number == 4
        assert lease.is_held()


def test_a_lease_from_the_future_is_not_held_for_ever(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(DAMAGED["cut"])
    os.utime(tmp_path / "1", (4e9, 4e9))
    assert lease_holder(tmp_path) is None


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf", "1e300", "soon", "30 s", "1e-9", "0x1e"])
def test_seconds_that_no_lease_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv(LEASE_SECONDS, seconds)
    with pytest.raises(RequestError, match=rf"{LEASE_SECONDS} is a number of seconds"), leased(tmp_path):
        pass
    assert not [*tmp_path.iterdir()]


HUGE = b'{"host": "a", "pid": ' + b"9" * 4000 + b"}"


def test_the_lock_of_a_holder_of_whom_nothing_can_be_read_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with flocked(path):
        for said in (*DAMAGED.values(), b"\xff\xfe", b'{"pid": true, "host": null}', HUGE):
            path.write_bytes(said[12:])
            holder = locks.flock_holder(path)
            assert holder is not None
            assert type(holder.get("pid", 1)) is int
            assert len(locks.said_of(holder)) < 100
            with pytest.raises(BusyError, match="it is held by"), flocked(path):
                pass
    path.write_bytes(bytes(range(256)))
    with flocked(path):
        assert json.loads(path.read_bytes())["pid"] == os.getpid()
    assert locks.flock_holder(path) is None


def test_a_run_is_refused_in_a_sentence_where_nothing_is_known_of_its_holder(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    folder = store.study("tiny")
    with exclusively(store, folder):
        (folder / ".lock").write_bytes(b"[]\xff")
        refused = pytest.raises(RequestError, match=r"being run .* by a process of which nothing can be read")
        with refused, exclusively(Store(tmp_path), folder):
            pass


@pytest.mark.parametrize("kind", ["flocked", "leased"])
def test_what_stands_in_the_place_of_a_lock_is_named_and_kept(tmp_path: Path, kind: str) -> None:
    lock, mine = getattr(locks, kind), tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(mine if kind == "flocked" else tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder" if kind == "flocked" else "file", "link", "dangling", "pipe", "file/below"):
        refused = pytest.raises(RequestError, match=r"cannot be used as a lock .*move it away")
        with refused, lock(tmp_path / name):
            pass
        assert Store(tmp_path).holder(tmp_path / name) is None
    assert mine.read_text() == (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nothing").exists()
    assert not [*(tmp_path / "folder").iterdir()]


def test_a_holder_of_a_step_whose_lease_is_deleted_harms_nothing(tmp_path: Path) -> None:
    first, second = shared_store(tmp_path), Store(tmp_path)
    with pytest.raises(LostLeaseError), first.step_lock("a.b.1"):  # noqa: PT012
        mine = first.begin("a.b.1")
        (tmp_path / "locks/a.b.1.lease/1").unlink()
        above = max(second._numbered("a.b.1"))
        with leased(tmp_path / "locks/a.b.1.lease", above=above) as lease:  # on another machine: no flock
            second._leases["a.b.1"] = lease
            second._take_over("a.b.1", lease)
            other = second.begin("a.b.1")
            assert other != mine
            (other / "x").write_bytes(b"second")
            second.finish("a.b.1", {"step": "a", "status": "done"})
        first.begin("a.b.1")
        first.finish("a.b.1", {"step": "a", "status": "done"})
    assert (Store(tmp_path).verify("a.b.1") / "x").read_bytes() == b"second"


# -- forks ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def fork_in(holder: contextlib.AbstractContextManager[object], leaves: bool = False) -> Iterator[None]:
    """Hold a lock while a process is forked that outlives the hold, or that `leaves` it first."""
    ends, told = os.pipe(), os.pipe()
    with holder:
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                if leaves:
                    holder.__exit__(None, None, None)
                os.write(told[1], b"!")
                os.close(ends[1])
                os.read(ends[0], 1)
            os._exit(0)
        assert os.read(told[0], 1) == b"!"
        if leaves:
            yield
    if not leaves:
        yield
    for each in (*ends, *told):
        os.close(each)
    os.waitpid(pid, 0)


def test_a_fork_of_its_holder_does_not_keep_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with fork_in(flocked(path)):
        assert flock_holder(path) is None
        with flocked(path):
            assert flock_holder(path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_a_fork_that_leaves_a_lock_or_a_lease_does_not_free_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with fork_in(flocked(path), leaves=True), pytest.raises(BusyError), flocked(path):
        pass
    with fork_in(leased(tmp_path / "lease"), leaves=True), pytest.raises(BusyError):  # noqa: SIM117
        with leased(tmp_path / "lease"):
            pass
