"""The checks of a measurement: its declaration holds when a small study runs it."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from penultimate.checking.examination import Check, Examined, WrongError, signature
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
OF_STAGES = "A stage is run by the measurements that need it"


def small_study(measure: str, target: str) -> Study:
    """Return a study of four tiny networks: two objectives with two seeds on one draw, and one target."""
    backbones = ("glyphnet(width=4, features=16)",)
    networks = Runs(("softmax", "sigmoid"), RECIPE, backbones, seeds=(0, 1), draws=0)
    title = "What `penultimate check` runs a measurement on"
    return Study("check", title, "", "glyphs_smoke", (target,), (networks,), (measure,), limited=True)


@cache
def _store() -> Store:
    """Return the store of this process, in which the tiny networks are trained only once."""
    store = Store(tempfile.mkdtemp(prefix="penultimate-check-"))
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


def run(examined: Examined) -> str:
    """Check that what a measurement yields on the small study is declared, and finite or undefined."""
    declared = measurement(examined.name)
    if bool(declared.yields) == declared.stage:
        raise WrongError("is to declare what it yields: yields=(Yield('name', 'unit'), ...), a stage ()")
    if declared.stage:
        return OF_STAGES
    steps = _done(examined.name)
    rows = [row for step in steps for row in read_rows(_store().folder(step.id) / ROWS)]
    if not rows:
        raise WrongError(f"yields nothing on any of {len(steps)} steps of a small study of trained networks")
    for row in rows:
        if row.value != row.value:
            raise WrongError(f"yields NaN as {row.metric}; where there is no value, yield Undefined(reason)")
    metrics = {row.metric for row in rows}
    return f"It yields {len(rows)} rows of {len(metrics)} quantities in {len(steps)} steps of a small study"


def again(examined: Examined) -> str:
    """Check that a step leaves the same bytes when it is run again."""
    if measurement(examined.name).stage:
        return OF_STAGES
    step, store = _done(examined.name)[0], _store()
    before = _contents(store.folder(step.id))
    store.set_aside(step.id)
    execute(store, step, lambda news: None)
    after = _contents(store.folder(step.id))
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    if changed:
        listed = ", ".join(changed)
        raise WrongError(
            f"leaves different bytes in {listed} when it is run again; fix the seed that it draws by"
        )
    return "It leaves the same bytes when it is run again"


def _contents(folder: Path) -> dict[str, bytes]:
    """Return a step's files without its meta, which holds times."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "meta.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


CHECKS: dict[str, tuple[tuple[Check, ...], tuple[Check, ...]]] = {"measurement": ((signature, run), (again,))}
