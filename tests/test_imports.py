"""What needs no tensor library imports none: each in turn in one process, which tells what it has loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch", "torchvision", "timm", "numpy", "scipy", "sklearn", "matplotlib", "pandas", "jinja2", "PIL"}
LISTS = ("objectives", "datasets", "backbones", "measurements", "metrics", "probes", "studies", "exhibits")
COMMANDS = [
    ["--help"],
    ["--version"],
    ["status"],
    ["evaluate", "--help"],
    ["tune", "--help"],
    *(["list", kind] for kind in LISTS),
]
LIGHT = {
    "registry": "import penultimate; from penultimate import registry\n"
    "for kind in registry.KINDS: registry.names(kind)",
    "exhibits": "import penultimate.results, penultimate.results.exhibits\n"
    "from penultimate.registry import names; assert 'table1' in names('exhibit')",
    "probes": "import penultimate.probes",
    "backbones": "import penultimate.backbones",
    "checking": "import penultimate.checking",
    "statistics": "import penultimate.statistics, penultimate.paper.published, penultimate.metrics\n"
    "import penultimate.records.table, penultimate.metrics.dendrogram",
    "networks": "from penultimate.networks import NetworkKey",
    "presets": "from penultimate.objectives.presets import resolve\n"
    "resolve('label_smoothing + dropout(keep=0.8)').canonical",
    "measurements": "from penultimate.measures import measurement, names\n"
    "assert all(measurement(name).function for name in names())",
    "catalogue": "import penultimate.data; from penultimate.data.catalog import card; card('glyphs')\n"
    "from penultimate.data.augmentation.settings import Augmentation",
    "corruptions": "from penultimate.data.corruptions import BENCHMARK",
    **{
        f"penultimate {' '.join(words)}": f"from penultimate.cli import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass"
        for words in COMMANDS
    },
}
IN_TURN = """
import json, sys
heavy, snippets, before = set(sys.argv[1].split()), json.loads(sys.stdin.read()), set()
for name, code in snippets.items():
    exec(code, {})
    loaded = heavy & set(sys.modules) - before
    before |= loaded
    print("LOADED", json.dumps([name, sorted(loaded)]))
"""
SHOWN = """
from penultimate.records.table import Row, Table
from penultimate.results import Run, show
rows = [Row(objective=o, seed=0, target='glyphs', split='train', metric='class_separation', value=v)
    for o, v in (('softmax', .35), ('sigmoid', .36))]
study = {'name': 's', 'source': 'glyphs', 'targets': ['digits'], 'objectives': []}
for name in ('table1', 'table3', 'tableE1', 'tableA2', 'figureD1'):
    show(name, Run(Table(rows).frame(), study)).text()
"""
JUDGED = "from penultimate.results import read_reference, show; show('claims', read_reference('glyphs'))"


def loaded(snippets: dict[str, str], cwd: Path) -> tuple[dict[str, list[str]], str]:
    """What each of these imports, and all that they print."""
    answer = subprocess.run(
        [sys.executable, "-c", IN_TURN, " ".join(HEAVY)],
        input=json.dumps(snippets),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    marked = [line for line in answer.stdout.splitlines() if line.startswith("LOADED ")]
    return dict(json.loads(line.removeprefix("LOADED ")) for line in marked), answer.stdout


def test_naming_listing_and_asking_import_nothing_heavy(finished_smoke: Path) -> None:
    found, said = loaded(LIGHT, finished_smoke)
    assert {name: heavy for name, heavy in found.items() if heavy} == {}
    assert found.keys() == LIGHT.keys()
    assert any(line.startswith("table1 ") for line in said.splitlines())


@pytest.mark.parametrize(
    ("code", "may_load"),
    [
        (SHOWN, {"numpy", "scipy", "pandas"}),
        (JUDGED, {"numpy", "scipy", "pandas"}),
        ("from penultimate.cli import main; main(['plan', 'quickstart'])", {"numpy", "PIL"}),
        ("from penultimate.cli import main; main(['status', '--verify'])", {"numpy", "PIL"}),
    ],
)
def test_what_counts_or_plans_loads_no_tensor_library(
    finished_smoke: Path, code: str, may_load: set[str]
) -> None:
    assert {*loaded({"it": code}, finished_smoke)[0]["it"]} <= may_load
