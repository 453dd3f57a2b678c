"""The campaign: files of every kind are flipped and cut, times kept; each is named, and no table changes.

PENULTIMATE_FLIPS=1000 PENULTIMATE_CUTS=100 pytest tests/test_flips.py -s    (`make test-all` does as many)
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from penultimate.doctor.results import look_at_store

from penultimate.engine.execute import execute
from penultimate.engine.messages import Done
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.run import run
from penultimate.engine.schedule import Schedule
from penultimate.errors import PenultimateError
from penultimate.files import digest_bytes, digest_file
from penultimate.records.archive import read_kept
from penultimate.records.keeping import keep
from penultimate.records.reading import read_study as read_folder
from penultimate.records.reading import study_folder
from penultimate.records.tracing import explain
from penultimate.records.tuning import read_tuning
from penultimate.registry import entry
from penultimate.report import exhibit, read_study, render_exhibit_text
from penultimate.store import Store
from penultimate.study.blocks import Runs
from penultimate.study.graph import Graph
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.tuning.conduct import TuningPlan, plan_tuning
from penultimate.tuning.run import tune
from penultimate.variables import CHECKPOINT_SECONDS
from tests.engine.chores import Notes
from tests.inprocess import InProcess

FLIPS = int(os.environ.get("PENULTIMATE_FLIPS", "1000"))
CUTS = int(os.environ.get("PENULTIMATE_CUTS", "100"))
SEED = int(os.environ.get("PENULTIMATE_SEED", "0"))

KINDS = {
    "meta": "runs/steps/*/meta.json",
    "rows": "runs/steps/*/rows.jsonl",
    "arrays": "runs/steps/spectra*/*.npz",
    "bank": "runs/steps/extract*/*.npz",
    "images": "runs/steps/data*/*.npy",
    "manifest": "runs/steps/data*/manifest.json",
    "weights": "runs/steps/train*/**/network.safetensors",
    "card": "runs/steps/train*/**/network.json",
    "sheet": "runs/steps/sheet*/sheet.png",
    "study": "runs/studies/*/study.json",
    "tuning": "runs/studies/*/tuning.json",
    "tuned rows": "runs/studies/*/rows.jsonl",
    "chosen": "runs/studies/*/chosen.py",
    "checkpoint": "runs/partial/*/checkpoint-*",
    "kept card": "kept/kept.json",
    "kept rows": "kept/rows.csv",
    "kept arrays": "kept/arrays.npz",
}


def tiny(name: str, epochs: int) -> Study:
    """Two networks that are trained in a second."""
    recipe = Recipe(epochs=epochs, batch_size=32, learning_rate=0.1, snapshot_every=1)
    runs = Runs(("softmax",), recipe, ("glyphnet(width=4, features=16)",), seeds=(0, 1))
    measure = ("accuracy", "class_separation", "spectra", "linear")
    return Study(name, name, "?", "glyphs_smoke", ("digits_smoke",), (runs,), measure, limited=True)


WHOLE, STOPPED = tiny("whole", 1), tiny("stopped", 3)


def tuning() -> TuningPlan:
    return plan_tuning(WHOLE, ["softmax"], {"recipe.learning_rate": (0.1, 0.2)}, 2, 0)


class Stopping:
    """An engine that is interrupted within the first training."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        schedule = Schedule(graph, store, observer)

        def stop(news: Mapping[str, Any]) -> None:
            if news.get("epoch", 0) > 1:
                signal.raise_signal(signal.SIGINT)

        while (step := schedule.next()) is not None:
            schedule.ended(step.id, Done(execute(store, step, stop)))
        return schedule.summary


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a finished study, one that was stopped, a tuning; and the first one, kept."""
    place = tmp_path_factory.mktemp("whole")
    os.environ[CHECKPOINT_SECONDS] = "0"
    try:
        run(WHOLE, place / "runs", engine=InProcess())
        tune(tuning(), place / "runs", engine=InProcess())
        with pytest.raises(KeyboardInterrupt):
            run(STOPPED, place / "runs", engine=Stopping())
    finally:
        del os.environ[CHECKPOINT_SECONDS]
    keep(study_folder(place / "runs", "whole"), place / "kept")
    return place


@dataclass
class Damage:
    """A file whose byte is another, or whose end is missing, and the time of which says nothing of it."""

    kind: str
    path: Path
    content: bytes

    def __enter__(self) -> Damage:
        self.before, self.when = self.path.read_bytes(), self.path.stat()
        self._write(self.content)
        return self

    def __exit__(self, *error: object) -> None:
        self._write(self.before)

    def _write(self, content: bytes) -> None:
        self.path.write_bytes(content)
        os.utime(self.path, ns=(self.when.st_atime_ns, self.when.st_mtime_ns))

    @property
    def says_the_same(self) -> bool:
        """Whether it is JSON in which a blank became another one."""
        try:
            return bool(json.loads(self.content) == json.loads(self.before))
        except ValueError:
            return False

    @property
    def names(self) -> tuple[str, ...]:
        """One of these has to stand in the sentence about it: the file, with its step or study."""
        return self.path.name, str(self.path)


def damages(place: Path, flips: int, cuts: int) -> Iterator[Damage]:
    """As many flips and cuts, spread evenly over the kinds, then over the files of a kind."""
    chance = random.Random(SEED)
    files = {kind: sorted(place.glob(pattern)) for kind, pattern in KINDS.items()}
    assert all(files.values()), [kind for kind, found in files.items() if not found]
    for number in range(flips + cuts):
        kind = list(KINDS)[number % len(KINDS)]
        path = chance.choice([file for file in files[kind] if file.stat().st_size])
        content = bytearray(path.read_bytes())
        spot = chance.randrange(len(content))
        if number < flips:
            content[spot] ^= chance.randrange(1, 256)
        else:
            del content[spot:]
        yield Damage(kind, path, bytes(content))


def seen(place: Path) -> dict[str, Any]:
    """All that results, show, report and why read."""
    found: dict[str, Any] = {}
    for name in ("whole", "stopped", "tune-whole"):
        results = read_study(place / "runs", name)
        assert results.arrays is not None
        points = [row for row in results.table if row.unit == "points"]
        arrays = [results.arrays(str(row.step), row.metric) for row in points]
        found[name] = (
            results.table.to_csv(),
            json.dumps(results.description, sort_keys=True),
            json.dumps(results.provenance, sort_keys=True),
            results.sheet,
            [{name: values.tobytes() for name, values in each.items()} for each in arrays],
        )
        shown = "tableA1" if name == "tune-whole" else "table1"
        found[f"{name} {shown}"] = render_exhibit_text(exhibit(shown, results, allow_limited=True))
    table1 = entry("exhibit", "table1").resolve()
    found["why"] = explain(study_folder(place / "runs", "whole"), table1, "softmax", "digits_smoke")
    kept = read_kept(place / "kept")
    found["kept"] = kept.description, kept.provenance, kept.table.to_csv(), kept.packed
    return found


def sayings(place: Path) -> set[str]:
    return {f"{finding.text}; {finding.remedy}" for finding in look_at_store(place / "runs")}


@pytest.mark.long
def test_no_flip_and_no_cut_is_silent(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "store"
    shutil.copytree(whole, place)
    right, sound = seen(place), sayings(place)
    shown: Counter[str] = Counter()
    told: Counter[str] = Counter()
    same: Counter[str] = Counter()
    silent: list[str] = []
    began = time.monotonic()
    for damage in damages(place, FLIPS, CUTS):
        with damage:
            same[damage.kind] += damage.says_the_same
            try:
                is_right, by_reading = seen(place) == right, False
            except PenultimateError as error:
                is_right, by_reading = True, damage.path.name in str(error)
            by_doctor = any(damage.path.name in text for text in sayings(place) - sound)
        shown[damage.kind] += by_reading
        told[damage.kind] += by_doctor
        if not is_right or not (by_reading or by_doctor or damage.says_the_same):
            silent.append(f"{damage.kind}: {damage.path}")
    print(f"\n{FLIPS} flips and {CUTS} cuts in {time.monotonic() - began:.0f} s, silent: {len(silent)}")
    for kind in KINDS:
        print(f"  {kind:<12} named by reading {shown[kind]:>3}, by doctor {told[kind]:>3}, same {same[kind]}")
    assert not silent, silent
    assert seen(place) == right
    assert sayings(place) == sound


def fruits(place: Path) -> dict[str, str]:
    """What a store holds of results: all but what tells of the run itself, such as its seconds."""
    patterns = (
        "steps/*/rows.jsonl",
        "steps/*/**/*.safetensors",
        "studies/*/rows.jsonl",
        "studies/*/chosen.py",
    )
    files = {file for pattern in patterns for file in (place / "runs").glob(pattern)}
    store, studies = Store(place / "runs"), sorted((place / "runs/studies").iterdir())
    kept, tuned = read_kept(place / "kept"), read_tuning(place / "runs/studies/tune-whole/tuning.json")
    assert tuned is not None
    return {
        **{str(file.relative_to(place)): digest_file(file) for file in files},
        **{path.name: str(read_folder(store, path).description) for path in studies},
        "kept": f"{ {**kept.description, 'tuning': ''} }{kept.digest}{digest_bytes(kept.packed)}",
        "tuned": str(tuned.objectives),
    }


def all_again(place: Path, notes: Notes) -> dict[str, str]:
    """What comes of the commands that made the store, with --verify."""
    known = {"engine": InProcess(), "observer": notes, "verify": True}
    run(WHOLE, place / "runs", **known)
    run(STOPPED, place / "runs", **known)
    tune(tuning(), place / "runs", **known)
    keep(study_folder(place / "runs", "whole"), place / "kept")
    return fruits(place)


@pytest.fixture(scope="module")
def right(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What comes of a store that is not damaged."""
    place = tmp_path_factory.mktemp("right") / "store"
    shutil.copytree(whole, place)
    return all_again(place, Notes())


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_command_heals_every_kind(
    whole: Path, right: dict[str, str], tmp_path: Path, kind: str
) -> None:
    place, notes = tmp_path / "store", Notes()
    shutil.copytree(whole, place)
    damage = next(each for each in damages(place, len(KINDS), 0) if each.kind == kind)
    damage.__enter__()
    assert all_again(place, notes) == right
    assert not [finding for finding in look_at_store(place / "runs") if finding.remedy]
    if damage.path.is_relative_to(place / "runs/steps") or kind in ("study", "tuning"):
        assert [notice for notice in notes.notices if damage.path.name in notice], notes.notices
