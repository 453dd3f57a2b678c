"""Campaigns: kills at random moments, and the phase in which each fell; races; a full disk at random moments.

For the kills, one process imports everything and forks: a run is a fork of it, the local engine's workers are
forks of the run, so that a life costs milliseconds in place of seconds. Nothing else is stood in for: the
command, engine, schedule, sockets, retries, the loop of the worker and the steps are the real ones, and say
here in which phase they are. Kills while workers import are of real interpreters.

    python -m tests.engine.campaign kills FOLDER KILLS SEED
    python -m tests.engine.campaign race FOLDER PROCESSES STEPS
    python -m tests.engine.campaign disk FOLDER MOMENTS SEED

The last line printed is JSON: how often what happened, and what was lost or changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import mmap
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import penultimate.cli as cli
import penultimate.report as report
from penultimate.engine import execute, local, worker
from penultimate.engine.messages import Ready
from penultimate.engine.observer import Observer, Silent, Summary
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.graph import Step
from penultimate.plugins import load_plugin
from penultimate.records.reading import study_folder
from penultimate.records.table import ROWS, read_rows
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.study.selection import load_study
from penultimate.training.checkpoints import Checkpoints
from penultimate.variables import ANYWAY, CHECKPOINT_SECONDS

SMOKE = load_study("smoke")
"""Which lends its name to graphs of invented steps."""
PHASES = ("render", "train", "checkpoint", "extract", "probe", "rows", "report", "imports")
STUDY = """
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

STUDY = Study(
    name="campaign",
    title="A study to be killed",
    question="Is anything lost?",
    source="glyphs_smoke",
    targets=("digits_smoke",),
    networks=(
        Runs(("softmax", "sigmoid"), Recipe(epochs=4, batch_size=32), ("glyphnet(width=4, features=16)",)),
    ),
    measure=("accuracy", "linear"),
    limited=True,
)
"""


@dataclasses.dataclass
class Aim:
    """A kill that is to come.

    phase    in which it is to fall
    left     after that many calls and returns of functions in it
    victim   the "worker" that is in the phase, or the "main" process of its run
    """

    phase: str
    left: int
    victim: str


class Aims:
    """What the processes of a life share: the kills that are to come, and which of them have been done.

    A kill is noted with the innermost phase of its moment.
    """

    def __init__(self, log: Path) -> None:
        self.path, self.log = log, os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.done = mmap.mmap(-1, 64)
        self.plan: list[Aim] = []
        self.current = 0
        self.phases: list[str] = []
        self.main = 0
        self.life = 0
        self.events: Counter[str] = Counter()
        self.entries: Counter[str] = Counter()

    def begin(self, plan: list[Aim]) -> None:
        self.plan = plan
        self.life += 1
        self.events.clear()
        self.entries.clear()
        self.done[:] = bytes(64)

    def heard(self, frame: Any, event: str, argument: Any) -> None:
        """A function was called, or has returned."""
        aim = self.plan[self.current]
        aim.left -= 1
        if aim.left > 0 or self.done[self.current]:
            return
        try:  # one process does it, however many are there at once
            os.close(os.open(f"{self.path}-{self.life}-{self.current}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        self.done[self.current] = 1
        os.write(self.log, f"{self.phases[-1]} {aim.victim}\n".encode())
        os.kill(self.main if aim.victim == "main" else os.getpid(), signal.SIGKILL)

    def counted(self, frame: Any, event: str, argument: Any) -> None:
        self.events[self.phases[-1]] += 1

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.phases.append(name)
        self.entries[name] += 1
        outer = sys.getprofile(), self.current
        coming = [i for i, aim in enumerate(self.plan) if aim.phase == name and not self.done[i]]
        if not self.plan:
            sys.setprofile(self.counted)
        elif coming:
            self.current = coming[0]
            sys.setprofile(self.heard)
        try:
            yield
        finally:
            sys.setprofile(outer[0])
            self.current = outer[1]
            self.phases.pop()

    def watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **settings: Any) -> Any:
            with self.phase(name):
                return function(*arguments, **settings)

        return watched


class Forked:
    """A worker process as `subprocess.Popen` would start it, but forked: it has imported everything."""

    def __init__(self, arguments: list[str], *, pass_fds: tuple[int, ...], **_: Any) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            with ended_by_exit():
                os.setsid()
                close_all_but({0, 1, 2, aims.log, *pass_fds})
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                sys.argv = [arguments[-2], arguments[-1]]
                worker.main()

    def wait(self, timeout: float = 60) -> int:
        end = time.monotonic() + timeout
        while self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise subprocess.TimeoutExpired("worker", timeout)
            else:
                time.sleep(0.001)
        return self.returncode


@contextlib.contextmanager
def ended_by_exit() -> Iterator[None]:
    """The end of a fork, which must not unwind the stack that it shares with the process it came from."""
    code = 1
    try:
        yield
        code = 0
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def close_all_but(kept: set[int]) -> None:
    for handle in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if handle not in kept:
            with contextlib.suppress(OSError):
                os.close(handle)


aims: Aims


def install(log: Path) -> None:
    """Have every phase say that it is one."""
    global aims
    aims = Aims(log)
    for phase, name in (("render", "data"), ("train", "train"), ("extract", "extract")):
        execute.CORE[name] = aims.watch(phase, execute.CORE[name])
    measure = execute.measure

    def measured(what: Any, inputs: Any) -> Any:
        with aims.phase("probe") if what.name == "linear" else contextlib.nullcontext():
            return measure(what, inputs)

    execute.measure = measured
    execute.encode_rows = aims.watch("rows", execute.encode_rows)
    Store.finish = aims.watch("rows", Store.finish)  # type: ignore[method-assign]
    Checkpoints.save = aims.watch("checkpoint", Checkpoints.save)  # type: ignore[method-assign]
    report.refresh_page = aims.watch("report", report.refresh_page)
    hear = local._hear

    def heard(message: Any, its: Any, schedule: Any) -> None:
        if isinstance(message, Ready):
            os.write(aims.log, f"ready {its.process.pid}\n".encode())
        hear(message, its, schedule)

    local._hear = heard


def live(folder: Path, out: str, popen: Any = Forked) -> int:
    """A life of `penultimate run`; the pid of its process."""
    pid = os.fork()
    if pid == 0:
        with ended_by_exit():
            os.chdir(folder)
            aims.main = os.getpid()
            started = {
                "Popen": popen,
                "DEVNULL": subprocess.DEVNULL,
                "TimeoutExpired": subprocess.TimeoutExpired,
            }
            local.subprocess = SimpleNamespace(**started)
            with Path("said.log").open("a") as said:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
            sys.exit(cli.main(["run", "study.py", "--out", out, "--processes", "2"]))
    return pid


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def finished(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every finished step: when it was finished, and its rows."""
    return {
        path.parent.name: (path.parent.stat().st_ctime_ns, path.read_bytes())
        for path in (root / "steps").glob("*/rows.jsonl")
    }


def workers_of(main: int) -> list[int]:
    found = []
    for children in Path(f"/proc/{main}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                with contextlib.suppress(OSError):
                    if b"penultimate.engine.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(child)
    return found


def kill_importing(folder: Path, log: Path, chosen: random.Random) -> Counter[str]:
    """A life whose workers are real interpreters: some are killed while they import, then the run is."""
    main, fell = live(folder, "imports", subprocess.Popen), Counter[str]()
    seen: set[int] = set()
    end, over = time.monotonic() + chosen.uniform(1.0, 3.0), False
    while time.monotonic() < end and not over:
        for pid in set(workers_of(main)) - seen:
            seen.add(pid)
            time.sleep(chosen.uniform(0.0, 0.6))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                fell["worker"] += f"ready {pid}\n" not in log.read_text()
        time.sleep(0.005)
        over = os.waitpid(main, os.WNOHANG)[0] != 0
    if not over:
        left = set(workers_of(main))
        os.kill(main, signal.SIGKILL)
        os.waitpid(main, 0)
        fell["main"] += bool(left) and not any(f"ready {pid}\n" in log.read_text() for pid in left)
    fell["imports"] = fell.total()
    return fell


def kills(folder: Path, number: int, seed: int) -> dict[str, Any]:
    began, chosen = time.monotonic(), random.Random(seed)
    log = folder / "log"
    (folder / "study.py").write_text(STUDY)
    install(log)
    os.chdir(folder)
    os.environ[CHECKPOINT_SECONDS] = "0.02"
    aims.begin([])
    assert command("warm")[0] == 0  # so that nothing is left to import in the forks
    aims.begin([])
    assert command("counted")[0] == 0
    typical = {phase: aims.events[phase] // aims.entries[phase] for phase in PHASES[:-1]}
    assert ended(live(folder, "whole")) == 0
    whole = {step: rows for step, (_, rows) in finished(folder / "whole").items()}
    least = number // 10
    counts: Counter[str] = Counter()
    lost = changed = rounds = lives = 0
    while sum(counts[p] for p in PHASES) + least < number or min(counts[p] for p in PHASES[:-1]) < least:
        rounds += 1
        out = f"runs{rounds}"
        before: dict[str, tuple[int, bytes]] = {}
        done = False
        while not done:
            aims.begin(planned(chosen, counts, typical))
            lives += 1
            code = ended(live(folder, out))
            done = code == 0
            assert code in (0, 1, -signal.SIGKILL), (folder / "said.log").read_text()
            counts = tallied(log)
            now = finished(folder / out)
            lost += len(before.keys() - now.keys())
            changed += sum(now[step] != of for step, of in before.items() if step in now)
            before = now
        changed += sum(before[step][1] != rows for step, rows in whole.items() if step in before)
        lost += len(whole.keys() - before.keys())
        store = Store(folder / out)
        for step in whole:
            store.verify(step)
        study_folder(folder / out).evidence()
    importing: Counter[str] = Counter()
    while importing["imports"] < least:
        importing += kill_importing(folder, log, chosen)
    aims.begin([])
    assert ended(live(folder, "imports")) == 0
    changed += {step: rows for step, (_, rows) in finished(folder / "imports").items()} != whole
    counts += importing
    return {
        "kills": sum(counts[phase] for phase in PHASES),
        "phases": {phase: counts[phase] for phase in PHASES},
        "victims": {victim: counts[victim] for victim in ("main", "worker")},
        "steps": len(whole),
        "studies": rounds,
        "lives": lives,
        "lost": lost,
        "changed": int(changed),
        "seconds": round(time.monotonic() - began, 1),
    }


def planned(chosen: random.Random, counts: Counter[str], typical: dict[str, int]) -> list[Aim]:
    """Some kills for a life, most of them in the phases in which the fewest fell so far."""
    phases = sorted(PHASES[:-1], key=lambda phase: (counts[phase], chosen.random()))
    return [
        Aim(phase, chosen.randint(1, max(1, typical[phase])), chosen.choice(("worker", "worker", "main")))
        for phase in chosen.sample(phases, 2) + phases[:4]
    ]


def tallied(log: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        phase, victim = line.split()
        if phase != "ready":
            counts[phase] += 1
            counts["main" if phase == "report" else victim] += 1
    return counts


CHORES = """
import os
from penultimate import register
from penultimate.measures import Number

@register.measurement(version=1, per="network", needs=(), yields=None)
def tallied(inputs, *, number=0, side=""):
    handle = os.open(side, os.O_WRONLY | os.O_APPEND)
    os.write(handle, b"%d %d\\n" % (number, os.getpid()))
    os.close(handle)
    yield Number("number", number, "count")
    yield Number("parents", len(inputs.folders), "count")
"""


class Attempts:
    """An engine without processes, which deals with what steps raise as others do (`--on`)."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = 1

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        def work(schedule: Schedule, places: int) -> None:
            while not schedule.is_over:
                step = schedule.next()
                assert step is not None
                schedule.ended(step.id, worker.attempt(store, step, lambda news: None))

        return carry_out(graph, store, observer, 1, work)


def race(folder: Path, processes: int, steps: int) -> dict[str, Any]:
    """That many processes do the same steps in one store at once, each in an order of its own."""
    plugin, side, store = folder / "tallied.py", folder / "side", Store(folder / "runs")
    plugin.write_text(CHORES)
    side.touch()
    load_plugin(plugin)
    store.prepare()
    made: list[Step] = []
    for number in range(steps):
        settings = {"number": number, "side": str(side)}
        parents = tuple(made[number // 2 + shift].id for shift in (0, number // 4) if number > 9)
        made.append(Step("tallied", 1, settings, settings, parents, label=str(number)))
    graph = Graph(SMOKE, {step.id: step for step in made})
    began, racing = time.monotonic(), []
    for seed in range(processes):
        pid = os.fork()
        if pid == 0:
            with ended_by_exit():
                order = random.Random(seed)
                shuffled = {
                    i: dataclasses.replace(s, priority=order.randrange(9)) for i, s in graph.steps.items()
                }
                summary = Attempts().run(Graph(SMOKE, shuffled), store, Silent())
                sys.exit(summary.failed != {} or summary.computed + summary.cached != steps)
        racing.append(pid)
    codes = [ended(pid) for pid in racing]
    seconds = time.monotonic() - began
    done = Counter(line.split()[0] for line in side.read_text().splitlines())
    by = Counter(line.split()[1] for line in side.read_text().splitlines())
    right = 0
    for number, step in enumerate(made):
        rows = read_rows(Store(store.root).verify(step.id) / ROWS)
        right += [row.value for row in rows] == [number, len(set(step.parents))]
    return {
        "processes": processes,
        "steps": steps,
        "codes": codes,
        "computed": done.total(),
        "computed twice": sum(times > 1 for times in done.values()),
        "right": right,
        "computed by": len(by),
        "seconds": round(seconds, 1),
    }


def disk(folder: Path, moments: int, seed: int) -> dict[str, Any]:
    """A disk (a tmpfs) that is full again and again at random moments, with some room made each time."""
    began, chosen, where = time.monotonic(), random.Random(seed), Counter[str]()
    (folder / "study.py").write_text(STUDY)
    os.chdir(folder)
    os.environ[CHECKPOINT_SECONDS] = "0.02"
    os.environ[ANYWAY] = "1"  # else it is refused before it begins
    assert command("whole")[0] == 0
    whole = {step: rows for step, (_, rows) in finished(folder / "whole").items()}
    place = folder / "disk"
    place.mkdir()
    rounds = lost = changed = unsaid = 0
    while where.total() < moments:
        rounds += 1
        size = chosen.randrange(4, 200) * 1024
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
        try:
            before: dict[str, tuple[int, bytes]] = {}
            code = 1
            while code:
                code, said = command("disk/runs")
                now = finished(place / "runs")
                lost += len(before.keys() - now.keys())
                changed += sum(now[step] != of for step, of in before.items() if step in now)
                before, store = now, Store(place / "runs")
                for step in now:
                    store.verify(step)
                if code:
                    unsaid += "No space left" not in said or "Traceback" in said
                    where[next(iter(re.findall(r"failed: (\w+)\.", said)), "the run itself")] += 1
                    pages = (1, 1, 2, 4) if len(now) > 2 else (4, 16, 64)  # images take most of the room
                    size += chosen.choice(pages) * mmap.PAGESIZE
                    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)
            changed += sum(before[step][1] != rows for step, rows in whole.items() if step in before)
            lost += len(whole.keys() - before.keys())
        finally:
            subprocess.run(["umount", place], check=True)
    return {
        "moments": where.total(),
        "in": dict(where.most_common()),
        "studies": rounds,
        "lost": lost,
        "changed": changed,
        "not said": unsaid,
        "seconds": round(time.monotonic() - began, 1),
    }


def command(out: str) -> tuple[int, str]:
    """`penultimate run` in this process: its exit code, and what it said."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = cli.main(["run", "study.py", "--out", out, "--on", "tests.engine.campaign:Attempts"])
    return code, said.getvalue()


if __name__ == "__main__":
    place = Path(sys.argv[2])
    place.mkdir(parents=True, exist_ok=True)
    campaign = {"kills": kills, "race": race, "disk": disk}[sys.argv[1]]
    print(json.dumps(campaign(place.resolve(), int(sys.argv[3]), int(sys.argv[4]))))
