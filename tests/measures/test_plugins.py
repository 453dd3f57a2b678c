"""A study with everything a stranger may bring: loss, data sets, backbone, measurements, from files."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import penultimate, rows_in
from tests.results import planted

from penultimate import registry
from penultimate.features.bank import FeatureBank
from penultimate.plugins import load_plugin, loaded
from penultimate.records.table import Row
from penultimate.results.exhibit import show
from penultimate.results.rows import read_run
from penultimate.study import Study, load_study
from penultimate.study.settings import override
from penultimate.study.unfold import unfold

SAMPLES = Path(__file__).parents[1] / "plugins"
FILES = ("focal", "bars", "stripes", "instruments")
SETTINGS = (
    "source=bars",
    "targets=stripes,digits_smoke",
    "backbones=Tiny(features=12)",
    "objectives=softmax,focal,focal(gamma=1)+dropout(keep=0.8)",
    "measure=accuracy,class_separation,feature_scale(power=3),linear,nearest_mean,collapse,agreement",
    "recipe.epochs=2",
)


def report_of(folder: Path) -> Path:
    """The report of the one study that was run in a folder."""
    (report,) = folder.glob("runs/studies/*/report.html")
    return report


def arguments(files: tuple[str, ...], settings: tuple[str, ...]) -> list[str]:
    plugins = [part for file in files for part in ("--plugin", str(SAMPLES / f"{file}.py"))]
    return [*plugins, *(part for setting in settings for part in ("--set", setting)), "--processes", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a smoke study of plug-ins has been run."""
    folder = tmp_path_factory.mktemp("plugged")
    answer = penultimate("run", "smoke", *arguments(FILES, SETTINGS), cwd=folder, timeout=400)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder


@pytest.fixture(autouse=True)
def _plugins_are_loaded() -> Iterator[None]:
    for file in FILES:
        load_plugin(SAMPLES / f"{file}.py")
    yield
    for plugin in loaded():
        for entry in plugin.entries:
            registry.forget(entry.kind, entry.name)


def bank_of(folder: Path, row: Row, split: str) -> FeatureBank:
    """The features behind a row: those of the parent of its step that holds the split."""
    steps = folder / "runs" / "steps"
    parents = json.loads((steps / str(row.step) / "meta.json").read_text())["parents"]
    (file,) = (
        steps / parent / f"{split}.npz" for parent in parents if (steps / parent / f"{split}.npz").is_file()
    )
    return FeatureBank.load(file)


@pytest.mark.long
def test_a_plugins_measurement_is_a_row_for_each_number_and_split(finished: Path) -> None:
    rows = [row for row in rows_in(finished / "runs") if row.metric in ("mean_norm", "largest_norm")]
    assert len(rows) == 3 * 2 * 2
    for row in rows:
        norms = (np.abs(bank_of(finished, row, str(row.split)).features.astype(float)) ** 3).sum(1) ** (1 / 3)
        expected = norms.mean() if row.metric == "mean_norm" else norms.max()
        assert row.value == pytest.approx(expected, rel=1e-4)
        assert (row.source, row.target, row.seed, row.status) == ("bars", "bars", 0, "limited")


def test_a_plugins_probe_is_scored_by_the_accuracy_of_its_target(finished: Path) -> None:
    rows = list(rows_in(finished / "runs").where(metric="nearest_mean_top1"))
    assert sorted((row.objective, row.target) for row in rows) == sorted(
        (objective, target)
        for objective in ("softmax", "focal(gamma=2)", "dropout(keep=0.8) + focal(gamma=1)")
        for target in ("stripes", "digits_smoke")
    )
    for row in rows:
        train, test = (bank_of(finished, row, split) for split in ("train", "test"))
        means = np.stack([train.features[train.labels == label].mean(0) for label in np.unique(train.labels)])
        nearest = np.linalg.norm(test.features[:, None] - means, axis=-1).argmin(1)
        assert row.value == pytest.approx(float((nearest == test.labels).mean()))


def test_every_exhibit_holds_with_plugins_alone(finished: Path) -> None:
    results = read_run(finished / "runs")
    for name in registry.names("exhibit"):
        assert show(name, results, allow_limited=True).text()
    table1 = show("table1", results, allow_limited=True).tables[0]
    assert table1.labels[1:] == [
        "Focal (gamma = 2)",
        "Dropout (ρ = 0.8) + Focal (gamma = 1)",
    ]
    page = report_of(finished).read_text()
    assert 'id="plugins"' in page
    assert "Measured by plug-ins" in page


def test_the_exhibit_of_plugins_holds_each_of_their_numbers(finished: Path) -> None:
    shown = show("plugins", finished / "runs", allow_limited=True)
    metric, probe = shown.tables
    assert [column.label for column in metric.columns] == [
        "mean norm (train)",
        "largest norm (train)",
        "mean norm (test)",
        "largest norm (test)",
    ]
    table = rows_in(finished / "runs")
    for row, spec in zip(metric.values.to_numpy(), load_study_of_plugins().objectives, strict=True):
        for cell, split in ((row[0], "train"), (row[2], "test")):
            (value,) = table.where(objective=spec, metric="mean_norm", split=split)
            assert cell == pytest.approx(value.value)
    assert [column.label for column in probe.columns][2:] == ["Stripes", "Digits smoke", "Mean"]
    for row, spec in zip(probe.values.to_numpy(), load_study_of_plugins().objectives, strict=True):
        values = table.where(objective=spec, metric="nearest_mean_top1").values()
        assert row[-1] == pytest.approx(100 * values.mean())


def load_study_of_plugins() -> Study:
    return override(load_study("smoke"), SETTINGS)


@pytest.mark.long
def test_a_study_without_plugins_says_how_to_name_one() -> None:
    shown = show("plugins", planted.run())
    assert not shown.is_measured
    said = " ".join(shown.text().split())
    assert "--plugin FILE --set measure=accuracy,class_separation,linear,knn,NAME" in said


def test_a_changed_plugin_changes_its_own_steps_and_no_others(finished: Path, tmp_path: Path) -> None:
    study = load_study_of_plugins()
    before = unfold(study).steps
    assert all((finished / "runs" / "steps" / step_id).is_dir() for step_id in before)
    for entry in load_plugin(SAMPLES / "instruments.py").entries:
        registry.forget(entry.kind, entry.name)
    changed = tmp_path / "instruments.py"
    changed.write_text((SAMPLES / "instruments.py").read_text() + "ANOTHER = 1\n")
    load_plugin(changed)
    new = [step for step_id, step in unfold(study).steps.items() if step_id not in before]
    assert Counter(step.name for step in new) == {"feature_scale": 3, "nearest_mean": 3 * 2}
    other = override(study, ["measure=accuracy,linear,nearest_mean(order=1)"])
    added = {step.name for step_id, step in unfold(other).steps.items() if step_id not in before}
    assert added == {"nearest_mean"}


SMALL = [
    *("--only", "softmax", "--processes", "1", "--set", "recipe.epochs=1"),
    *("--set", "targets=syllabics_smoke"),
]
WRONG = {
    "fails": (
        "yield Number('fails', {}['x'], 'count', 'test')",
        "the plug-in 'wrong.py', line 9: KeyError: 'x'",
    ),
    "ends": ("raise SystemExit(3)", "SystemExit: 3"),
    "words": ("yield 'many'", "words yields 'many'; a Number, Arrays, Fact or Undefined is expected"),
    "other": ("yield Number('others', 1.0, 'count', 'test')", "which its declaration does not name"),
}


@pytest.mark.long
def test_what_one_plugin_does_wrong_costs_no_other_result(tmp_path: Path) -> None:
    files = []
    for name, (code, _) in WRONG.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "wrong.py").write_text(
            "from penultimate import register\n"
            "from penultimate.measures import Features, Number, Undefined, Yield\n\n\n"
            "@register.measurement(\n"
            "    version=1, per='network', needs=(Features('test'),), yields=(Yield('"
            + name
            + "', 'count'),)\n"
            f")\ndef {name}(inputs):\n    {code}\n    yield Undefined('never')\n"
        )
        files += ["--plugin", f"{name}/wrong.py"]
    names = ",".join(["accuracy", "class_separation", *WRONG, "linear"])
    more = ["--set", f"measure={names}", *SMALL]
    answer = penultimate("run", "smoke", *files, *more, cwd=tmp_path, timeout=400)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    for name, (_, sentence) in WRONG.items():
        assert f"failed: {name}.softmax-s0-glyphs_smoke." in answer.stderr, answer.stderr
        assert sentence in answer.stderr
    assert f"penultimate check {tmp_path / 'fails' / 'wrong.py'}" in answer.stderr
    assert "Traceback" not in answer.stderr
    table = rows_in(tmp_path / "runs")
    assert len(table.where(metric="linear_top1")) == 1
    said = show("plugins", tmp_path / "runs", allow_limited=True).text()
    assert all(f"{name}: not measured." in said for name in WRONG)


@pytest.mark.long
def test_the_same_study_again_has_nothing_to_do(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "runs", tmp_path / "runs")
    answer = penultimate("run", "smoke", *arguments(FILES, SETTINGS), cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "Everything is done already." in answer.stdout
    missing = penultimate("run", "smoke", *arguments(FILES[:3], SETTINGS), cwd=tmp_path)
    assert missing.returncode == 2
    assert "unknown measurement 'feature_scale'" in missing.stderr
