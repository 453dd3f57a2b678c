"""Examination of a store and of the package's reference runs: every file's digest, and stray files."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from penultimate import registry
from penultimate.data.readers.places import read_place
from penultimate.data.readers.prepared import read_copy
from penultimate.doctor.findings import Finding
from penultimate.errors import DamagedFileError, PenultimateError, RequestError, counted
from penultimate.files import OtherVersionError, digest_file, size_text, without_digest
from penultimate.locks import said_of
from penultimate.records.archive import read_kept, references
from penultimate.records.reading import PAGE, PAGE_STATE, STUDY_FILE, StudyFolder, out_option, read_study
from penultimate.records.tuning import TUNING_FILE, read_tuning
from penultimate.store import META, Store

AHEAD = 60.0
"""The number of seconds by which a file's time may be ahead of the clock."""


def look_at_store(
    root: Path, progressed: Callable[[int, int], None] = lambda done, total: None
) -> list[Finding]:
    """Return what is found in a store: studies, steps, unfinished work, damaged and stray files."""
    store = Store(root)
    folders = sorted(path for path in _inside(root / "studies") if path.is_dir())
    steps = sorted(path.name for path in _inside(root / "steps"))
    if not folders and not steps:
        there = "is empty" if root.exists() else "does not exist"
        return [Finding(f"'{root}' {there}; a study fills it: penultimate run quickstart --out {root}")]
    studies, findings = _studies(store, folders, set(steps))
    findings += _steps(root, steps, studies, progressed)
    findings += _copies(root, steps, studies)
    findings += _unfinished(store, studies)
    findings += _lying_about(root, any(store.holder(path / ".lock") is not None for path in folders))
    return findings


def look_at_data() -> list[Finding]:
    """Return findings on whether the reference runs of the package are as they were kept."""
    findings = []
    for folder in references().values():
        try:
            read_kept(folder)
        except PenultimateError as error:
            findings.append(Finding(str(error), "install the package again, or check its files out again"))
    whole = counted(len(references()) - len(findings), "reference run")
    return [Finding(f"{whole} of the package: every file is what was kept"), *findings]


def _studies(
    store: Store, folders: Iterable[Path], present: set[str]
) -> tuple[list[StudyFolder], list[Finding]]:
    """Return the studies that can be read, and the findings on each folder."""
    studies, findings = [], []
    for path in folders:
        command = _command(path.name)
        typed = f" ({command}{out_option(store.root)})" if command else ""
        again = f"what was run there, again: it writes the file again and keeps all steps{typed}"
        try:
            study = read_study(store, path)
        except FileNotFoundError:
            if any((path / name).exists() for name in (TUNING_FILE, PAGE)):
                findings.append(Finding(f"'{path / STUDY_FILE}' is missing", again))
            continue
        except DamagedFileError as error:
            findings.append(Finding(str(error), again))
            continue
        except RequestError as error:
            text, _, remedy = str(error).rpartition("; ")
            findings.append(Finding(text, remedy))
            continue
        studies.append(study)
        ids = {*study.description["steps"]} - {*study.description.get("left_out", ())}
        findings.append(Finding(f"{study.name}: {len(present & ids)} of {len(ids)} steps"))
        shown, text = path / PAGE_STATE, ""
        try:
            if shown.is_file() and not study.is_running() and shown.read_bytes() != study.state():
                text = f"the page of {study.name} does not show what the study has, or shows what is gone"
        except PenultimateError as error:  # from the record of a search that the page shows
            text = str(error)
        findings += [Finding(text, study.command_for("", verify=False))] if text else []
        findings += [Finding(text, study.command_for("", verify=False)) for text in _changed_beside(study)]
    return studies, findings


def _command(name: str) -> str:
    """Return the command that runs a study, as far as the name of its folder tells.

    It is "" for a study from a file and for one that was changed, whose names do not tell it.
    """
    kind, dash, study = name.partition("-")
    if kind == "tune" and dash:
        return f"penultimate tune all --study {study}"
    return f"penultimate run {name}" if name in registry.names("study") else ""


def _changed_beside(study: StudyFolder) -> Iterator[str]:
    """Yield a sentence for each file in a study's folder that is not what was written."""
    for name, digest in study.files.items():
        path = study.path / name
        if not path.is_file() or digest_file(path) != digest:
            yield f"'{path}' is not what was written (its sha256 differs)"
    if study.is_tuning:
        try:
            if read_tuning(study.path / TUNING_FILE) is None:
                yield f"'{study.path / TUNING_FILE}' is missing"
        except PenultimateError as error:
            yield str(error).rpartition("; ")[0]


def _steps(
    root: Path, steps: list[str], studies: list[StudyFolder], progressed: Callable[[int, int], None]
) -> list[Finding]:
    """Compare every file of every step with its digest."""
    damaged: dict[str, str] = {}
    others: list[str] = []
    files, size, latest = 0, 0, 0.0
    torch: Counter[str] = Counter()
    for done, step_id in enumerate(steps):
        progressed(done, len(steps))
        try:
            meta = Store(root, thorough=True).finished(step_id)
            if meta is None:  # the step was set aside meanwhile
                continue
            latest = max(latest, (root / "steps" / step_id / META).stat().st_mtime)
        except OtherVersionError as error:
            others.append(str(error).rpartition("; ")[0])
        except (DamagedFileError, PermissionError) as error:
            damaged[step_id] = str(error)
        else:
            files += len(meta.files)
            size += sum(facts["bytes"] for facts in meta.files.values())
            torch[meta.content["packages"]["torch"]] += 1
    whole = len(steps) - len(damaged) - len(others)
    findings = [
        Finding(
            f"{counted(whole, 'step')}, {counted(files, 'file')}, {size_text(size)}: as they were written"
        )
    ]
    if len(torch) > 1:
        made = ", ".join(f"{count} with torch {version}" for version, count in torch.items())
        findings.append(Finding(f"steps were made {made}: bits are promised to be equal for one version"))
    findings += [
        Finding(text, _healing(step_id, root / "steps" / step_id, studies))
        for step_id, text in damaged.items()
    ]
    if others:
        findings.append(
            Finding(f"{others[0]}; {counted(len(others), 'step')} in all", "give --out another folder")
        )
    if latest > time.time() + AHEAD:
        behind = (
            "the clock is behind the times of files here: it was set back, or ahead when they were written"
        )
        findings.append(
            Finding(behind, "set the clock; results are sound, for digests decide, and not times")
        )
    return findings


def _copies(root: Path, steps: Iterable[str], studies: Iterable[StudyFolder]) -> list[Finding]:
    """Compare every file of every prepared copy that these studies read with its digest."""
    places = set()
    for where in (where for study in studies for where in study.description.get("data", {}).values()):
        with contextlib.suppress(PenultimateError):  # on another machine it may have been a path
            places.add(read_place(where).path)
    for step_id in (each for each in steps if each.startswith("data.")):
        with contextlib.suppress(PenultimateError, OSError):
            meta = Store(root).meta(step_id)
            if meta is not None and "where" in meta.content["config"]:
                places.add(Path(meta.content["config"]["where"]))
    findings = []
    for place in sorted({place.absolute() for place in places}):
        try:
            copy = read_copy(place)
            if copy is None or not copy.whole:
                continue
            for split in copy.files:
                copy.expect_whole(split, thorough=True)
            files = [facts["bytes"] for of in copy.files.values() for facts in of.values()]
            whole = f"prepared copy '{place}': {counted(len(files), 'file')}, {size_text(sum(files))}"
            findings.append(Finding(f"{whole}: as they were written"))
        except PenultimateError as error:
            text, _, remedy = str(error).partition("; ")
            findings.append(Finding(text, remedy.partition(": ")[2] or remedy))
    return findings


def _healing(step_id: str, place: Path, studies: Iterable[StudyFolder], verify: bool = True) -> str:
    """Return the command that computes a step again, or continues it."""
    for study in studies:
        if step_id in study.description["steps"]:
            return study.command_for(step_id, verify)
    return f"no study here needs it: rm -r {shlex.quote(str(place))}"


def _unfinished(store: Store, studies: list[StudyFolder]) -> list[Finding]:
    """Return findings on work in progress, and on what was left of it by runs that were stopped."""
    findings = []
    running = set()
    for study in studies:
        holder = store.holder(study.path / ".lock")
        if holder is not None:
            running.add(study.name)
            findings.append(Finding(f"{study.name} is being run, by {said_of(holder)}"))
    awaited = {
        step_id for study in studies if study.name in running for step_id in study.description["steps"]
    }
    for path in sorted(path for path in _inside(store.root / "partial") if path.is_dir()):
        step_id = path.name.partition("@")[0]
        if step_id in awaited or store.holder(store.root / "locks" / step_id) is not None:
            continue
        text = f"step {step_id} was begun ({size_text(_size(path))} in '{path}'), and nobody works on it"
        for file in sorted(path.rglob("checkpoint-*")):
            try:
                without_digest(file)
            except (DamagedFileError, OSError) as error:
                text += f"; {error}, and is passed over"
        findings.append(Finding(text, _healing(step_id, path, studies, verify=False)))
    return findings


def _lying_about(root: Path, is_running: bool) -> list[Finding]:
    """Return findings on files set aside, and on temporary files of processes that were killed."""
    findings = []
    damaged = list(_inside(root / "damaged"))
    if damaged:
        size = size_text(_size(root / "damaged"))
        aside = f"'{root / 'damaged'}' holds what was set aside: {counted(len(damaged), 'thing')}, {size}"
        findings.append(Finding(f"{aside}; nothing reads it, and it may be deleted"))
    stray = [*(root / "studies").rglob(".*.tmp"), *(root / "partial").glob(".*.tmp")]
    if stray and not is_running:
        remove = f"rm {shlex.join(map(str, sorted(stray)))}"
        findings.append(
            Finding(f"{counted(len(stray), 'temporary file')} of processes that were killed", remove)
        )
    return findings


def _inside(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
