"""Campaigns on prepared copies, `extract_files`, leases and evaluations: killed and damaged.

    python -m tests.engine.interrupted kills FOLDER KILLS SEED
    python -m tests.engine.interrupted damages FOLDER DAMAGES SEED

The last line printed is JSON: how often what happened, and what was lost, changed or passed over in silence.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from penultimate.doctor.results import look_at_store
from tests.data.photographs import folder_of
from tests.engine.campaign import ended, ended_by_exit
from tests.evaluation.pictures import split_folders
from tests.features.test_files import small
from tests.inprocess import InProcess

import penultimate as pu
import penultimate.features.writing as writing
from penultimate.data.disk.preparing import prepare
from penultimate.data.readers.opening import open_dataset
from penultimate.errors import PenultimateError
from penultimate.features.bank import FeatureBank
from penultimate.features.files import extract_files
from penultimate.files import digest_file
from penultimate.records.reading import study_folder
from penultimate.report import exhibit, render_exhibit_text
from penultimate.store import Store
from penultimate.variables import LEASE_SECONDS

NETWORKS = {f"net {i}": f"timm:test_resnet(pretrained=False, seed={i}, crop=32)" for i in (0, 1)}
CLASSES = ("disc", "square")


def copied(place: Path) -> None:
    """Prepare a copy of a folder of images, several files of each split."""
    prepare(str(place.parent / "images"), None, place, 24, lambda said: None, workers=0)


def extracted(place: Path) -> None:
    """Extract the features of two networks, with a journal after every batch."""
    listing = folder_of(place.parent / "photographs", 10)
    networks = {"a": small(0), "b": small(1, side=16, classes=3)}
    extract_files(networks, listing, place, batch_size=2, workers=0, images="these", show=False)


def held(place: Path) -> None:
    """Do some steps under leases, as on a cluster."""
    store = Store(place)
    store.prepare(shared=True)
    for number in range(5):
        name = f"step.a.{number}"
        with store.step_lock(name):
            if not store.is_whole(name):
                folder = store.begin(name)
                for part in range(10):
                    (folder / f"{part}.bin").write_bytes(bytes([part]) * 1000)
                store.finish(name, {"step": "step", "status": "done"})


def evaluated(place: Path, verify: bool = True) -> None:
    """Evaluate two networks on a task, in this process; what is damaged is healed."""
    data = {"shapes": str(place.parent / "images")}
    pu.evaluate(NETWORKS, data, out=place, on=InProcess(), verify=verify)


def commanded(place: Path) -> None:
    """Become the command that evaluates two networks on a task, with its worker processes."""
    models = [part for name, source in NETWORKS.items() for part in ("--model", f"{name}={source}")]
    asked = ["evaluate", *models, "--data", f"shapes={place.parent / 'images'}", "--out", str(place)]
    with (place.parent / "commanded.log").open("ab") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
        os.execv(sys.executable, [sys.executable, "-m", "penultimate.cli", *asked])


WORKS: dict[str, Callable[[Path], None]] = {
    "copies": copied,
    "extraction": extracted,
    "leases": held,
    "evaluation": evaluated,
}
KILLED = {**WORKS, "evaluation": commanded}
"""What is killed: of evaluations the command itself, so that its workers are left behind."""
OF_ITS_OWN = (".lock", "checked.json")
"""The files in which a process and the times of files are written down."""
SHARE = {"copies": 0.3, "extraction": 0.3, "leases": 0.2, "evaluation": 0.2}


RESULTS = ("rows.jsonl", "*.npz", "*.npy", "*.bin", "study.json", "report_files/*")


def fruits(place: Path) -> dict[str, str]:
    """Return the digests of all that is left, without seconds and locks, which tell of the run."""
    if (place / "steps").is_dir():
        files = [path for pattern in RESULTS for path in place.rglob(pattern)]
        files = [path for path in files if "damaged" not in path.parts]
    else:
        files = [path for path in place.rglob("*") if path.is_file() and path.name not in OF_ITS_OWN]
    found = {str(path.relative_to(place)): digest_file(path) for path in files}
    for page in place.rglob("report.html"):
        found[str(page.relative_to(place))] = SECONDS.sub("", page.read_text(encoding="utf-8"))
    return found


SECONDS = re.compile(r"(?s)<dt>Seconds of work.*?</dl>")
"""Where a page says how long its steps took."""


def life(work: Callable[[Path], None], place: Path) -> int:
    """A process that does this work: its pid."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        with ended_by_exit():
            work(place)
    return pid


def made(
    folder: Path, works: Mapping[str, Callable[[Path], None]]
) -> tuple[dict[str, dict[str, str]], dict[str, float]]:
    """What undisturbed processes leave of each work, and the seconds that they take."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    os.environ[LEASE_SECONDS] = "0.3"
    writing.EVERY = 0.0
    split_folders(folder / "images", CLASSES, 8, 5)
    for name, work in WORKS.items():
        work(folder / f"warm {name}")  # so that nothing is left to import in the forks
    whole, seconds = {}, {}
    for name, work in works.items():
        began = time.monotonic()
        assert ended(life(work, folder / f"whole {name}")) == 0
        seconds[name] = time.monotonic() - began
        whole[name] = fruits(folder / f"whole {name}")
        assert whole[name]
    return whole, seconds


def kills(folder: Path, number: int, seed: int) -> dict[str, Any]:
    """SIGKILL at random moments; the same work again leaves what an undisturbed one does."""
    began, chosen = time.monotonic(), random.Random(seed)
    whole, seconds = made(folder, KILLED)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for name, work in KILLED.items():
        rounds = 0
        while counts[name] < SHARE[name] * number:
            place = folder / f"{name} {rounds}"
            rounds += 1
            for _ in range(chosen.randint(1, 4)):
                pid = life(work, place)
                time.sleep(chosen.uniform(0, seconds[name]))
                with_workers = chosen.random() < 0.5
                try:
                    (os.killpg if with_workers else os.kill)(pid, signal.SIGKILL)
                except ProcessLookupError:  # it has not made its own group yet, and so has no worker
                    os.kill(pid, signal.SIGKILL)
                counts[name] += ended(pid) == -signal.SIGKILL
            code = ended(life(work, place))
            left = [str(path) for path in place.rglob("*.tmp")]
            if code or fruits(place) != whole[name] or left:
                wrong.append(f"{name} {rounds}: {code} {left}")
            shutil.rmtree(place)
    return {
        "kills": counts.total(),
        "of": dict(counts),
        "lost or changed": wrong,
        "seconds": round(time.monotonic() - began, 1),
    }


def seen(name: str, place: Path) -> Any:
    """All that is read of a work's fruits where they are used; raises PenultimateError."""
    if name == "copies":
        opened = open_dataset(str(place), None)
        listings = {split: opened.splits[split] for split in opened.splits}
        return {
            split: [listing.labels.tolist(), [digest(listing, row) for row in range(len(listing))]]
            for split, listing in listings.items()
        }
    if name == "extraction":
        return [FeatureBank.load(place / of).digest() for of in ("a", "b")]
    if name == "leases":
        return [Store(place).verify(f"step.a.{number}").name for number in range(5)]
    shown = [render_exhibit_text(exhibit(each, place)) for each in ("ranking", "tableD1")]
    return shown, study_folder(place).table().to_csv()


def digest(listing: Any, row: int) -> str:
    from penultimate.data.disk.loading import colours_of

    return str(hash(colours_of(listing, row)[0].tobytes()))


def files_of(place: Path) -> list[Path]:
    """The files that are damaged: all but the page, which is written again by a command and not digested."""
    files = sorted(path for path in place.rglob("*") if path.is_file() and path.stat().st_size)
    return [path for path in files if "_files" not in str(path) and path.name != "report.html"]


def told(name: str, place: Path) -> set[str]:
    """What doctor says of the store of an evaluation."""
    found = look_at_store(place) if name == "evaluation" else []
    return {f"{each.text}; {each.remedy}" for each in found}


def damages(folder: Path, number: int, seed: int) -> dict[str, Any]:
    """Flips, cuts and deletions of every kind of file: named where it is read, or by doctor, or healed."""
    began, chosen = time.monotonic(), random.Random(seed)
    whole, _ = made(folder, WORKS)
    counts: Counter[str] = Counter()
    silent: list[str] = []
    for name in WORKS:
        place = folder / f"whole {name}"
        right, sound = seen(name, place), told(name, place)
        for turn in range(round(number * SHARE[name])):
            path = chosen.choice(files_of(place))
            content, when = path.read_bytes(), path.stat()
            deed = ("flip", "flip", "flip", "cut", "deletion")[turn % 5]
            damaged, spot = bytearray(content), chosen.randrange(len(content))
            if deed == "flip":
                damaged[spot] ^= chosen.randrange(1, 256)
            else:
                del damaged[spot:]
            path.unlink()
            if deed != "deletion":
                path.write_bytes(damaged)
                os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
            try:
                outcome = "same" if seen(name, place) == right else "wrong"
            except PenultimateError:
                outcome = "named"
            if outcome != "named" and told(name, place) - sound:
                outcome = "told by doctor" if outcome == "same" else "wrong"
            if outcome == "same" and name in ("copies", "extraction"):
                WORKS[name](place)
                outcome = "healed" if fruits(place) == whole[name] else "wrong"
            if outcome == "named" and name == "evaluation":
                healed = ended(life(WORKS[name], place)) == 0 and seen(name, place) == right
                outcome = "named and healed" if healed and fruits(place) == whole[name] else "wrong"
            if outcome == "same" and ("locks" in path.parts or path.name == ".lock"):
                of_lease = path.parent if path.parent.suffix == ".lease" else path
                with Store(place).lock(of_lease.with_name(of_lease.name.removesuffix(".lease")), wait=True):
                    outcome = "healed"
            counts[f"{name}: {outcome}"] += 1
            if outcome == "wrong" or (
                outcome == "same" and path.name not in (".lock", ".shared", ".writable")
            ):
                silent.append(f"{deed}: {path.relative_to(folder)}")
            if outcome != "named and healed":
                path.write_bytes(content)
                os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    return {
        "damaged": counts.total(),
        "outcomes": dict(counts),
        "silent": silent,
        "seconds": round(time.monotonic() - began, 1),
    }


if __name__ == "__main__":
    where = Path(sys.argv[2])
    where.mkdir(parents=True, exist_ok=True)
    campaign = {"kills": kills, "damages": damages}[sys.argv[1]]
    print(json.dumps(campaign(where.resolve(), int(sys.argv[3]), int(sys.argv[4]))))
