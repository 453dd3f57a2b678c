"""`penultimate check`: the package's own measurements pass, and of a wrong one it tells what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.plugged import SAMPLES, plugged

from penultimate import registry
from penultimate.checking import CheckOutcome, check_entry, check_file
from penultimate.measures import measurement

STAGES = {name for name in registry.names("measurement") if measurement(name).stage}
LONG = {
    *("fine_tuning", "from_scratch", "given_fine_tuning", "multilabel", "depth"),
    *("relearning_from_test", "relearning_from_training", "transfer_dynamics"),
}
"""Those that train many networks, or probe much, for as long as a study would; and three made of the code of
`relearning` and `dynamics`, a fifth of all that is measured here."""
CASES = [
    pytest.param(name, marks=pytest.mark.long) if name in LONG else name
    for name in registry.names("measurement")
    if name != "joined"  # has a hyperparameter without a default: which networks are joined is always said
]
WRONG = {
    "undeclared": (
        "run",
        "'undeclared' is not declared: write @register.measurement(version=1, per='network'",
    ),
    "needing_a_stage": ("run", "unknown measurement 'nothing_of_the_kind'"),
    "stage_with_rows": (
        "run",
        "is to declare what it yields: yields=(Yield('name', 'unit'), ...), a",
    ),
    "of_another_quantity": (
        "run",
        "yields length (ratio), which its declaration does not name: size (ratio)",
    ),
    "of_other_arrays": ("run", "yields the arrays x of curve; its declaration names x, y"),
    "without_value": ("run", "yields NaN as size"),
    "of_nothing": ("run", "yields nothing on any of 4 steps"),
    "unseeded": ("again", "leaves different bytes in rows.jsonl"),
    "asking_for_more": ("run", "asks for one features train and has 0; its declaration names what it needs"),
    "crashing": ("run", "the plug-in 'wrong_measurements.py', line 63: KeyError"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_the_measurements_of_the_package_keep_the_contract(name: str) -> None:
    findings = check_entry(registry.entry("measurement", name))
    assert [finding.sentence for finding in findings if not finding.ok] == []
    assert [finding.check for finding in findings] == ["signature", "run", "again"]
    run = findings[1].sentence
    assert ("is run by the measurements that need it" in run) == (name in STAGES)
    assert ("rows of" in run) == (name not in STAGES)


@pytest.mark.long
def test_a_protocol_of_a_plugin_is_sound() -> None:
    with plugged("protocol"):
        report = check_file(SAMPLES / "protocol.py")
    assert report.ok, report
    assert {finding.name for finding in report.findings} == {"cell", "choice", "final"}
    (final,) = (finding for finding in report.findings if (finding.name, finding.check) == ("final", "run"))
    assert final.sentence.startswith("It yields 8 rows of 2 quantities in 4 steps")


@pytest.fixture(scope="module")
def wrong() -> Iterator[dict[str, list[CheckOutcome]]]:
    with plugged("wrong_measurements"):
        findings = check_file(SAMPLES / "wrong_measurements.py").findings
        yield {
            name: [finding for finding in findings if finding.name == name]
            for name in registry.names("measurement")
        }


@pytest.mark.long
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_and_nothing_else(wrong: dict[str, list[CheckOutcome]], name: str) -> None:
    check, phrase = WRONG[name]
    told = {finding.check: finding.sentence for finding in wrong[name] if not finding.ok}
    assert list(told) == [check]
    assert phrase in told[check]
    assert told[check].endswith((".", "?", ")"))


@pytest.mark.long
def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from penultimate import register\n"
        "from penultimate.measures import Features, Number, Yield\n\n"
        "SIZE = (Yield('size', 'count'),)\n\n"
        "@register.measurement(version=1, per='target', needs=(Features('train'),), yields=SIZE)\n"
        "def mine(inputs):\n"
        "    yield Number('size', len(inputs.features('train')), 'count', 'train')\n"
    )
    code = f"from penultimate.cli import main; raise SystemExit(main(['check', {str(file)!r}]))"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "All 3 checks passed." in answer.stdout
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("torch")] == ["mine.py"]
