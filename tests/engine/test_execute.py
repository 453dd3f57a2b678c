"""One step, done: what a measurement yields becomes rows and files, or is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import rows_in
from tests.inprocess import InProcess
from tests.measures.banks import bank
from tests.measures.steps import KEY, Parents, measured
from tests.plugged import plugged

import penultimate as pu
from penultimate.engine.execute import DamagedParentError, execute
from penultimate.errors import PenultimateError
from penultimate.features.bank import FeatureBank
from penultimate.files import file_name
from penultimate.graph import Step
from penultimate.measures import Arrays, Fact, Features, Inputs, Number, Undefined, Yield
from penultimate.measures.declaration import Measurement
from penultimate.metrics import UndefinedError
from penultimate.networks.key import NetworkKey
from penultimate.records.provenance import provenance
from penultimate.records.reading import study_folder
from penultimate.store import Store
from penultimate.study import Runs, Study
from penultimate.study.blocks import runs_by_recipe
from penultimate.study.graph import Graph
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe

RECIPE = Recipe(epochs=1, batch_size=32, learning_rate=0.2)
BACKBONES = ("glyphnet(features=16, width=4)",)


# -- what is yielded ----------------------------------------------------------------------------------------


def declared(function: Callable[..., Any], *yields: Yield, **more: Any) -> Measurement:
    return Measurement("mine", 1, "network", (Features("test"),), yields, (), function=function, **more)


def yielding(*items: Any) -> Measurement:
    """A measurement that yields these, and declares a number in ratio and two arrays."""

    def mine(inputs: Inputs) -> Iterator[Any]:
        yield from items

    return declared(mine, Yield("size", "ratio"), Yield("curve", "points", ("x", "y")))


def curve(*names: str) -> Arrays:
    return Arrays("curve", {name: np.arange(3.0) for name in names}, "test")


def test_what_is_yielded_becomes_rows_files_and_facts(tmp_path: Path) -> None:
    items = [
        Number("size", 0.5, "ratio", "test", "block1", {"b": 2, "a": "x"}, epoch=3, target="elsewhere"),
        curve("x", "y"),
        Fact("images", 7),
        Undefined("no third"),
        Undefined("no fourth"),
    ]
    outcome = measured(yielding(*items), Parents(tmp_path).bank("test", bank(0)))
    first, second = outcome.rows
    assert (first.metric, first.value, first.unit, first.split) == ("size", 0.5, "ratio", "test")
    assert (first.layer, first.setting, first.epoch, first.target) == ("block1", "a=x, b=2", 3, "elsewhere")
    assert (first.objective, first.backbone, first.seed, first.draw) == (KEY.objective, KEY.backbone, 0, 0)
    assert (second.metric, second.value, second.unit, second.target) == ("curve", 3, "points", "glyphs")
    with np.load(tmp_path / "out" / "curve.npz", allow_pickle=False) as arrays:
        assert {name: arrays[name].tolist() for name in arrays} == {"x": [0, 1, 2], "y": [0, 1, 2]}
    assert outcome.facts == {"images": 7, "undefined": "no third; no fourth"}


def test_a_number_of_one_of_several_networks_names_it_and_no_arm(tmp_path: Path) -> None:
    one, other = NetworkKey("a", "net", "long", 1, 0), NetworkKey("ours")
    items = [Number("size", 1.0, "ratio", network=one, other=other, layer="x", layer_b="y")]
    (row,) = measured(yielding(*items), Parents(tmp_path).bank("test", bank(0)), key=None).rows
    assert (row.objective, row.backbone, row.arm, row.seed, row.draw) == ("a", "net", None, 1, 0)
    assert (row.objective_b, row.seed_b, row.layer, row.layer_b) == ("ours", None, "x", "y")


@pytest.mark.parametrize(
    ("item", "answer"),
    [
        (
            Number("sise", 1.0, "ratio"),
            "mine yields sise (ratio), which its declaration does not name: size (ratio), ",
        ),
        (Number("size", 1.0, "fraction"), "mine yields size (fraction), which its declaration does not name"),
        (Number("curve", 1.0, "ratio"), "mine yields curve (ratio)"),
        (
            Arrays("size", {"x": np.zeros(2)}),
            "mine yields size (points), which its declaration does not name",
        ),
        (curve("x"), "mine yields the arrays x of curve; its declaration names x, y"),
        (curve("x", "y", "z"), "mine yields the arrays x, y, z of curve; its declaration names x, y"),
        (0.5, "mine yields 0.5; a Number, Arrays, Fact or Undefined is expected"),
        (("size", 0.5), "mine yields ('size', 0.5)"),
    ],
)
def test_what_was_not_declared_is_refused(tmp_path: Path, item: Any, answer: str) -> None:
    with pytest.raises(PenultimateError) as error:
        measured(yielding(item), Parents(tmp_path).bank("test", bank(0)))
    assert answer in str(error.value)


def test_arrays_of_one_metric_are_not_left_twice(tmp_path: Path) -> None:
    with pytest.raises(PenultimateError, match="mine yields the arrays of curve twice"):
        measured(yielding(curve("x", "y"), curve("x", "y")), Parents(tmp_path).bank("test", bank(0)))


@pytest.mark.parametrize("metric", ["../../up", "..", "a/b", "/etc/x", ".lock", "x" * 300, "a\0b"])
def test_arrays_of_any_metric_lie_in_the_steps_folder(tmp_path: Path, metric: str) -> None:
    def mine(inputs: Inputs) -> Iterator[Any]:
        yield Arrays(metric, {"x": np.arange(3.0)})

    what = declared(mine, Yield(metric, "points", ("x",)))
    measured(what, Parents(tmp_path).bank("test", bank(0)))
    (file,) = (tmp_path / "out").glob("*.npz")
    assert file.name == f"{file_name(metric)}.npz"
    assert {*tmp_path.rglob(file.name)} == {file}


def test_a_measurement_that_says_there_is_no_value_keeps_what_it_had_yielded(tmp_path: Path) -> None:
    def mine(inputs: Inputs) -> Iterator[Any]:
        yield Number("size", 1.0, "ratio")
        raise UndefinedError("the rest is constant")

    outcome = measured(declared(mine, Yield("size", "ratio")), Parents(tmp_path).bank("test", bank(0)))
    assert len(outcome.rows) == 1
    assert outcome.facts == {"undefined": "the rest is constant"}


# -- a step in a store --------------------------------------------------------------------------------------


def small(*networks: Runs, measure: tuple[str, ...], **changes: Any) -> Study:
    return Study("small", "", "", "glyphs_smoke", ("digits_smoke",), networks, measure, **changes)


def silent(news: dict[str, Any]) -> None: ...


def test_a_step_that_is_done_is_not_done_again_and_a_damaged_parent_is_named(tmp_path: Path) -> None:
    graph = unfold(small(Runs(("softmax",), RECIPE, BACKBONES), measure=()))
    store = Store(tmp_path)
    store.prepare()
    digits = next(step for step in graph.steps.values() if step.columns["target"] == "digits_smoke")
    first = execute(store, digits, silent)
    again = execute(store, digits, silent)
    assert {name: again[name] for name in first} == first
    assert (first["status"], first["config"]) == ("done", {"name": "digits_smoke", "draw": 0})
    assert first["columns"] == {"draw": 0, "target": "digits_smoke"}
    glyphs = next(step for step in graph.steps.values() if step.columns["target"] == "glyphs_smoke")
    execute(store, glyphs, silent)
    images = store.folder(digits.id) / "train.images.npy"
    images.write_bytes(images.read_bytes()[:-1] + b"x")
    sheet = next(step for step in graph.steps.values() if step.name == "sheet")
    with pytest.raises(DamagedParentError, match=r"train\.images\.npy is not what was written") as error:
        execute(Store(tmp_path), sheet, silent)
    assert error.value.parent == digits.id


@pytest.fixture(scope="module")
def diverged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Graph]:
    """A study of two objectives and two seeds, of which one objective diverges."""
    out = tmp_path_factory.mktemp("diverged")
    grids = runs_by_recipe(
        ("softmax", "squared_error"),
        RECIPE,
        {"squared_error": {"learning_rate": 1e30}},
        backbones=BACKBONES,
        seeds=(0, 1),
        draws=0,
    )
    with plugged("protocol"):
        study = small(*grids, measure=("accuracy", "agreement", "similarity", "final"))
        summary = pu.run(study, out, engine=InProcess())
        graph = unfold(study)
    assert {step_id.partition("-")[0] for step_id in summary.diverged} == {"train.squared_error"}
    assert {step_id.partition(".")[0] for step_id in summary.skipped} >= {"extract", "accuracy", "cell"}
    return out, graph


@pytest.mark.long
def test_a_network_that_diverged_is_left_out_of_what_gathers(diverged: tuple[Path, Graph]) -> None:
    out, graph = diverged
    rows = rows_in(out)
    done = [row for row in rows if row.status != "diverged"]
    pairs = {
        (row.objective, row.seed, row.objective_b, row.seed_b)
        for row in done
        if row.metric in ("agreement_same", "cka") and row.setting is None
    }
    assert pairs == {("softmax", 0, "softmax", 1)}
    for name in ("agreement", "similarity"):
        (step,) = (step for step in graph.steps.values() if step.name == name)
        folder = Store(out).folder(step.id)
        meta = json.loads((folder / "meta.json").read_text())
        assert meta["parents"] == list(step.parents)
        assert {supply.network.objective for supply in step.supplies if supply.network} == {
            "softmax",
            "squared_error(kappa=9, scale=10, target=60)",
        }
    assert {row.objective for row in done} == {"softmax", None}
    told = provenance(study_folder(out))["diverged_networks"].values()
    assert [(key["objective"].partition("(")[0], key["seed"]) for (key,) in told] == [
        ("squared_error", 0),
        ("squared_error", 1),
    ]


# -- a protocol in three stages -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Graph]:
    """Two objectives with two seeds each, measured by the protocol, one step after the other."""
    runs = Runs(("softmax", "sigmoid"), RECIPE, BACKBONES, seeds=(0, 1), draws=0)
    store = Store(tmp_path_factory.mktemp("protocol"))
    store.prepare()
    with plugged("protocol"):
        graph = unfold(small(runs, measure=("final(rate=(0.0, 0.3, 0.9))",)))
        for step in graph.steps.values():
            if step.name != "sheet":
                execute(store, step, silent)
    return store, graph


def right(rate: float, train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]) -> float:
    """How many of the second examples are nearest to their class's mean, drawn towards the mean of all."""
    (features, labels), (unseen, expected) = train, test
    count = 0
    for row, label in zip(unseen, expected, strict=True):
        distances = {}
        for other in sorted(set(labels.tolist())):
            own = features[labels == other].mean(0)
            drawn = (1 - rate) * own + rate * features.mean(0)
            distances[other] = float(((row - drawn) ** 2).sum())
        count += min(distances, key=lambda other: distances[other]) == label
    return count / len(expected)


def banks(store: Store, graph: Graph, step: Step) -> dict[str, FeatureBank]:
    return {
        supply.name: FeatureBank.load(store.folder(supply.parent) / f"{supply.name}.npz")
        for supply in step.supplies
        if supply.kind == "features"
    }


@pytest.mark.long
def test_a_rate_is_chosen_over_all_seeds_and_used_for_each(protocol: tuple[Store, Graph]) -> None:
    store, graph = protocol
    scores: dict[str, dict[float, list[float]]] = {}
    for step in graph.steps.values():
        if step.name == "cell":
            train = banks(store, graph, step)["train"]
            features, labels = train.features, train.labels
            score = right(step.config["rate"], (features[::2], labels[::2]), (features[1::2], labels[1::2]))
            scores.setdefault(step.columns["objective"], {}).setdefault(step.config["rate"], []).append(score)
    assert {objective: sorted(of) for objective, of in scores.items()} == {
        objective: [0.0, 0.3, 0.9] for objective in ("softmax", "sigmoid")
    }
    finals = [step for step in graph.steps.values() if step.name == "final"]
    assert len(finals) == 4
    for step in finals:
        of_objective = scores[step.columns["objective"]]
        assert all(len(values) == 2 for values in of_objective.values())
        best = max(of_objective, key=lambda rate: (round(sum(of_objective[rate]), 12), -rate))
        rows = [json.loads(line) for line in (store.folder(step.id) / "rows.jsonl").read_text().splitlines()]
        top1, chosen = rows
        assert (chosen["metric"], chosen["value"]) == ("final_rate", best)
        train, test = (banks(store, graph, step)[split] for split in ("train", "test"))
        expected = right(best, (train.features, train.labels), (test.features, test.labels))
        assert top1["value"] == pytest.approx(expected)
        assert top1["setting"] == f"rate={best}"
        assert (top1["objective"], top1["seed"]) == (step.columns["objective"], step.columns["seed"])
