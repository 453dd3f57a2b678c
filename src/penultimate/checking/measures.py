"""The checks of a measurement: its declaration holds when a small study runs it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from penultimate.checking.examination import Check, Examined, signature_of
from penultimate.checking.report import require
from penultimate.engine.execute import execute
from penultimate.graph import Step
from penultimate.measures.catalogue import measurement, several
from penultimate.records.table import ROWS, read_rows
from penultimate.specs import Spec
from penultimate.store import Store
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe

RECIPE = Recipe(epochs=2, batch_size=32, learning_rate=0.1, snapshot_every=1)
OF_STAGES = "a stage is run by the measurements that need it"


def small_study(measure: str, target: str) -> Study:
    """Return a study of four tiny networks: two objectives with two seeds on one draw, and one target."""
    backbones = ("glyphnet(width=4, features=16)",)
    networks = Runs(("softmax", "sigmoid"), RECIPE, backbones, seeds=(0, 1), draws=0)
    title = "What `penultimate check` runs a measurement on"
    return Study("check", title, "", "glyphs_smoke", (target,), (networks,), (measure,), limited=True)


@cache
def _store() -> Store:
    """Return the store of this process, in which the tiny networks are trained only once."""
    root = Path(tempfile.mkdtemp(prefix="penultimate-check-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    store = Store(root)
    store.prepare()
    return store


def _done(name: str) -> list[Step]:
    """Run a measurement on the small study, with everything that it needs, and return its finished steps.

    A setting that holds several values is reduced to the first.
    """
    declared = measurement(name)
    usual = {setting.name: setting.default for setting in declared.settings}
    lone = {setting: several(name, setting, usual[setting])[:1] for setting in declared.several}
    target = "findings_smoke" if declared.several_labels else "digits_smoke"
    steps = unfold(small_study(str(Spec(name, lone)), target)).steps.values()
    for step in steps:
        if step.name != "sheet":
            execute(_store(), step, lambda news: None)
    return [step for step in steps if step.name == name]


def ask_declaration(examined: Examined) -> str:
    declared = measurement(examined.name)
    require(
        bool(declared.yields) != bool(declared.stage),
        f"{examined.name} is a stage, which leaves files and no rows; declare yields=()."
        if declared.stage
        else f"{examined.name} declares no quantity: yields=(Yield('name', 'unit'), ...).",
    )
    listed = ", ".join(item.metric for item in declared.yields)
    return f"per {declared.per}, yields {listed or 'files'}"


def ask_run(examined: Examined) -> str:
    """Check that what a measurement yields on the small study is declared, and finite or undefined."""
    if measurement(examined.name).stage:
        return OF_STAGES
    steps = _done(examined.name)
    rows = [row for step in steps for row in read_rows(_store().folder(step.id) / ROWS)]
    require(
        rows,
        f"{examined.name} yields nothing on any of {len(steps)} steps of a small study of trained networks.",
    )
    for row in rows:
        require(
            row.value == row.value,
            f"{examined.name} yields NaN as {row.metric}; where there is no value, yield Undefined(reason).",
        )
    metrics = {row.metric for row in rows}
    return f"{len(rows)} rows of {len(metrics)} quantities in {len(steps)} steps of a small study"


def ask_again(examined: Examined) -> str:
    """Check that a step leaves the same bytes when it is run again."""
    if measurement(examined.name).stage:
        return OF_STAGES
    step, store = _done(examined.name)[0], _store()
    before = _files(store.folder(step.id))
    store.set_aside(step.id)
    execute(store, step, lambda news: None)
    after = _files(store.folder(step.id))
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    require(
        not changed,
        f"{examined.name} leaves different bytes in {', '.join(changed)} when it is run again; derive its"
        " random numbers from a fixed seed.",
    )
    return "leaves the same bytes when it is run again"


def _files(folder: Path) -> dict[str, bytes]:
    """Return a step's files without its meta, which holds times."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "meta.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


MEASUREMENT_CHECKS = (
    signature_of(("inputs",)),
    Check("declaration", ask_declaration, essential=True),
    Check("run", ask_run, essential=True),
    Check("again", ask_again),
)
