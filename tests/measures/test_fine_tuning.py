"""Fine-tuning, stage by stage: each cell is the training that it says, and the best mean is chosen."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.evaluation.pictures import split_folders
from tests.measures.steps import KEY, Parents, measured, value
from tests.training.worlds import squares

from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.images import ChannelStatistics, ImageSet, load_images, save_images
from penultimate.engine.execute import Outcome, execute
from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.features.extraction import extract
from penultimate.graph import Step
from penultimate.layers.comparison import compare_networks
from penultimate.measures.further_training import validating
from penultimate.networks.trained import build, load_network, save_network
from penultimate.probes.linear import LinearProbe
from penultimate.store import Store
from penultimate.study import Given, Runs, Study
from penultimate.study.graph import Graph
from penultimate.study.unfold import unfold
from penultimate.training import Recipe, Start, train
from penultimate.variables import CHECKPOINT_SECONDS

BACKBONE = "glyphnet(features=16, width=4)"
BRIEF = {"steps": 9, "batch_size": 16}
HERE = {"accuracy": "top1", "backbone": BACKBONE, "augmentation": {"shift": 1}}
PROTOCOL = Recipe(
    steps=9,
    batch_size=16,
    warmup=0.0,
    schedule="cosine",
    final_fraction=0.0,
    nesterov=False,
    averaging_window=0.0,
    augmentation=Augmentation(shift=1),
)


@pytest.fixture
def parents(tmp_path: Path) -> Parents:
    """A network of eight classes, and a target of four: 60 images to train on, 40 to test on."""
    folder = tmp_path / "network"
    body, head = build("sigmoid", BACKBONE, 8, 3)
    card = {"objective": "sigmoid", "backbone": BACKBONE, "num_classes": 8, "class_names": list("abcdefgh")}
    save_network(folder, body, head, ChannelStatistics((0.4,) * 3, (0.2,) * 3), card)
    for split, count in (("train", 60), ("test", 40)):
        save_images(tmp_path / "data", split, squares(count, count))
    return on(tmp_path)


def on(root: Path) -> Parents:
    """What a cell is given: the network, the target's images and their features."""
    made = Parents(root, target="digits").network(root / "network")
    made.images("train", root / "data").images("test", root / "data")
    return made.bank("train", extract(load_network(root / "network"), load_images(root / "data", "train")))


def chosen(parents: Parents, stage: str = "fine_tune_choice", **rates: float) -> Parents:
    """The same, with a choice that was made."""
    folder = parents.root / stage
    folder.mkdir()
    choice = {"rates": rates, "mean": 0.5, "edges": 1, "cells": 6}
    (folder / "chosen.json").write_text(json.dumps(choice))
    return parents.made(stage, folder)


def trained(root: Path, images: ImageSet, seed: int = 0, start: Start | None = None, **changes: Any) -> bytes:
    """The network that the protocol comes to, trained here."""
    folder = root / "oracle"
    folder.mkdir()
    recipe = replace(PROTOCOL, **changes)
    assert train("softmax", BACKBONE, images, None, recipe, seed, folder, start=start).status == "done"
    return (folder / "network.safetensors").read_bytes()


def right(folder: Path, images: ImageSet) -> float:
    logits = extract(load_network(folder), images).logits
    assert logits is not None
    return float((logits.argmax(1) == images.labels).mean())


def left(root: Path) -> bytes:
    """The network that a step has trained, before its folder is tidied."""
    return (root / "out" / "checkpoints" / "network.safetensors").read_bytes()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_cell_is_a_training_on_what_does_not_validate_whose_decay_is_lambda_over_the_rate(
    parents: Parents, precision: str
) -> None:
    cell = {"head": "fresh", "learning_rate": 0.02, "decay": 0.003, **BRIEF}
    outcome = measured("fine_tune_cell", parents, cell, **HERE, precision=precision)
    images = load_images(parents.root / "data", "train")
    validation = validating(images, 0)
    assert Counter(images.labels[validation].tolist()) == dict.fromkeys(range(4), 3)
    start = Start(load_network(parents.root / "network"))
    same = {"learning_rate": 0.02, "weight_decay": 0.003 / 0.02, "precision": precision}
    assert trained(parents.root, images.subset(~validation), 0, start, **same) == left(parents.root)
    score = right(parents.root / "oracle", images.subset(validation))
    assert outcome.facts["validation_accuracy"] == score
    assert json.loads((parents.root / "out" / "score.json").read_text()) == score
    assert outcome.rows == []


def test_all_training_images_are_used_in_the_end_and_the_test_images_only_then(parents: Parents) -> None:
    outcome = measured(
        "fine_tuning",
        chosen(parents, learning_rate=0.02, decay=0.0),
        {"head": "fresh", "images": 24, **BRIEF},
        **HERE,
    )
    images, test = (load_images(parents.root / "data", split) for split in ("train", "test"))
    before = load_network(parents.root / "network")
    assert trained(parents.root, images, 0, Start(before), learning_rate=0.02, weight_decay=0) == left(
        parents.root
    )
    rows = outcome.rows
    assert value(rows, "fine_tuned_top1") == right(parents.root / "oracle", test)
    assert value(rows, "fine_tuned_learning_rate") == 0.02
    assert (value(rows, "fine_tuned_edges"), value(rows, "fine_tuned_cells")) == (1, 6)
    assert {row.setting for row in rows} == {"head=fresh"}

    after = load_network(parents.root / "oracle")
    some = test.subset(np.sort(torch.randperm(40, generator=_drawn()).numpy()[:24]))
    alike = compare_networks({"b": before, "a": after}, some, output="penultimate").between("b", "a")
    with np.load(parents.root / "out" / "fine_tuned_layers.npz") as arrays:
        assert arrays["matrix"] == pytest.approx(alike)
        layers = arrays["layers"].tolist()
    assert [value(rows, "fine_tuned_cka", layer=layer) for layer in layers] == pytest.approx(alike.diagonal())


def test_layers_are_compared_in_the_batches_and_passes_that_are_asked_for(parents: Parents) -> None:
    """The paper's Figure D.3: batches of 1,500 images, ten passes over all test images."""
    settings = {"head": "fresh", "images": 40, "compared": 10, "passes": 3, **BRIEF}
    measured("fine_tuning", chosen(parents, learning_rate=0.02, decay=0.0), settings, **HERE)
    before, after = load_network(parents.root / "network"), load_network(parents.root / "out" / "checkpoints")
    test = load_images(parents.root / "data", "test")
    named = {"b": before, "a": after}
    alike = compare_networks(named, test, output="penultimate", batch_size=10, passes=3)
    with np.load(parents.root / "out" / "fine_tuned_layers.npz") as arrays:
        assert arrays["matrix"] == pytest.approx(alike.between("b", "a"))
        assert arrays["sizes"].sum() == 3 * 40
    once = compare_networks(named, test, output="penultimate").between("b", "a")
    assert abs(alike.between("b", "a") - once).max() > 1e-6


def _drawn() -> torch.Generator:
    from penultimate.data.seeding import derived_generator

    return derived_generator("images compared")


def test_the_final_layer_can_start_as_the_optimum_of_the_linear_probe(parents: Parents) -> None:
    settings = {"head": "probe", "steps": 1, "batch_size": 16}
    measured("fine_tuning", chosen(parents, learning_rate=1e-9, decay=0.0), settings, **HERE)
    bank = FeatureBank.load(parents.root / "extract.3" / "train.npz")
    probe = LinearProbe().fit(bank.features, bank.labels)
    head = load_network(parents.root / "out" / "checkpoints").objective.head
    assert head.weight.detach().numpy() == pytest.approx(probe.coef_, abs=1e-5)
    assert head.bias.detach().numpy() == pytest.approx(probe.intercept_, abs=1e-5)


def test_from_scratch_is_the_same_from_first_weights(parents: Parents) -> None:
    made = chosen(parents, "scratch_choice", learning_rate=0.02, decay=0.003)
    outcome = measured("from_scratch", made, BRIEF, replace(KEY, objective=""), **HERE)
    images, test = (load_images(parents.root / "data", split) for split in ("train", "test"))
    rates = {"learning_rate": 0.02, "weight_decay": 0.003 / 0.02}
    assert trained(parents.root, images, **rates) == left(parents.root)
    assert value(outcome.rows, "from_scratch_top1", objective=None) == right(parents.root / "oracle", test)


def test_what_diverges_everywhere_has_no_value_and_says_so(parents: Parents) -> None:
    cell = {"head": "fresh", "learning_rate": 1e30, "decay": 0.0, "steps": 60, "batch_size": 16}
    outcome = measured("fine_tune_cell", parents, cell, **HERE)
    assert "training on 'digits' diverged: the loss was no longer a number" in outcome.facts["undefined"]
    assert not (parents.root / "out" / "score.json").exists()
    (parents.root / "none").mkdir()
    nothing = measured("fine_tuning", parents.made("fine_tune_choice", parents.root / "none"), **HERE)
    assert nothing.rows == []
    assert nothing.facts["undefined"] == "training diverged at every learning rate and decay"


# -- a choice -----------------------------------------------------------------------------------------------


def choice(root: Path, scores: dict[tuple[float, float], list[float | None]]) -> Outcome:
    """What is chosen of these cells; None: a network that diverged."""
    from penultimate.graph import Supply

    made = Parents(root, target="digits")
    for (rate, decay), values in scores.items():
        for score in values:
            name = f"cell.{len(made.folders)}"
            (root / name).mkdir()
            if score is not None:
                (root / name / "score.json").write_text(json.dumps(score))
            settings = {"learning_rate": rate, "decay": decay}
            made.add(Supply("made", name, "fine_tune_cell", "digits", settings=settings), root / name)
    return measured("fine_tune_choice", made, {"head": "fresh"}, None)


def read(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "out" / "chosen.json").read_text())
    return found


def test_the_best_mean_is_chosen_and_one_that_diverged_is_out(tmp_path: Path) -> None:
    outcome = choice(
        tmp_path,
        {
            (0.01, 0.0): [0.5, 0.5],
            (0.1, 0.0): [0.9, 0.2],
            (1.0, 0.0): [1.0, None],
            (0.01, 1e-3): [0.3, 0.3],
            (0.1, 1e-3): [0.5, 0.7],
            (1.0, 1e-3): [None, None],
        },
    )
    assert read(tmp_path) == {
        "rates": {"learning_rate": 0.1, "decay": 1e-3},
        "mean": 0.6,
        "edges": 1,
        "cells": 6,
    }
    assert outcome.facts["cells"][0] == [0.01, 0.0, 0.5]
    assert outcome.facts["cells"][-1] == [1.0, 1e-3, None]


def test_no_cell_that_holds_is_no_choice(tmp_path: Path) -> None:
    outcome = choice(tmp_path, {(0.1, 0.0): [None], (1.0, 0.0): [None]})
    assert outcome.facts["undefined"] == "all of 2 learning rates and decays diverged"


# -- the graph ----------------------------------------------------------------------------------------------

GRID = "learning_rate=(0.01, 0.1), decay=(0.0, 0.001, 0.01), steps=3, batch_size=16"
TUNING = {"fine_tune_cell", "fine_tune_choice", "fine_tuning"}
SCRATCH = {"scratch_cell", "scratch_choice", "from_scratch"}


def graph(
    measure: str,
    *more: Runs | Given,
    seeds: tuple[int, ...] = (0, 1),
    precision: str = "float32",
    **changes: Any,
) -> Graph:
    recipe = Recipe(epochs=1, precision=precision)
    runs = Runs(("softmax", "sigmoid"), recipe, (BACKBONE,), seeds)
    networks = (runs, *more)
    return unfold(
        Study(
            "small", "", "", "glyphs_smoke", ("digits_smoke",), networks, (measure,), limited=True, **changes
        )
    )


def steps(made: Graph, name: str) -> list[Step]:
    return [step for step in made.steps.values() if step.name == name]


def test_a_choice_is_of_the_first_networks_and_every_network_is_tuned_by_it() -> None:
    made = graph(f"fine_tuning({GRID}, seeds=2)", seeds=(0, 1, 2))
    assert len(steps(made, "fine_tune_cell")) == 2 * 2 * 2 * 6
    assert {step.columns["seed"] for step in steps(made, "fine_tune_cell")} == {0, 1}
    assert len(steps(made, "fine_tune_choice")) == 2 * 2
    for step in steps(made, "fine_tune_choice"):
        cells = [made.steps[parent] for parent in step.parents]
        assert len(cells) == 2 * 6
        assert {cell.config["head"] for cell in cells} == {step.config["head"]}
    finals = steps(made, "fine_tuning")
    assert {(step.columns["objective"], step.columns["seed"], step.config["head"]) for step in finals} == {
        (objective, seed, head)
        for objective in ("softmax", "sigmoid")
        for seed in (0, 1, 2)
        for head in ("fresh", "probe")
    }
    for step in finals:
        (one,) = (made.steps[parent] for parent in step.parents if parent.startswith("fine_tune_choice"))
        assert (one.config["head"], one.columns["objective"]) == (
            step.config["head"],
            step.columns["objective"],
        )


def test_from_scratch_is_trained_once_for_a_seed_whatever_the_objectives() -> None:
    made = graph(f"from_scratch({GRID}, seeds=2)", seeds=(0, 1, 2))
    assert {name: len(steps(made, name)) for name in sorted(SCRATCH)} == {
        "from_scratch": 3,
        "scratch_cell": 2 * 6,
        "scratch_choice": 1,
    }
    assert {made.steps[parent].name for parent in steps(made, "scratch_cell")[0].parents} == {"data"}
    assert steps(made, "from_scratch")[0].columns == {
        "objective": None,
        "backbone": BACKBONE,
        "arm": None,
        "seed": 0,
        "draw": 0,
        "source": "glyphs_smoke",
        "target": "digits_smoke",
    }


def test_from_scratch_on_images_on_disk_is_refused_before_anything_runs(tmp_path: Path) -> None:
    found = str(split_folders(tmp_path / "others", ("x", "y"), 6, 3))
    runs = Runs(("softmax",), Recipe(epochs=1), (BACKBONE,))
    study = Study(
        "small", "", "", "glyphs_smoke", ("others",), (runs,), ("from_scratch",), data={"others": found}
    )
    with pytest.raises(RequestError, match="'small' measures from_scratch on 'others', whose images lie on"):
        unfold(study)


def test_a_wider_grid_trains_the_new_cells_only() -> None:
    narrow, wide = (
        graph(f"fine_tuning(learning_rate={rates}, decay=(0.0,), steps=3)")
        for rates in ("(0.01, 0.1)", "(0.01, 0.1, 0.3)")
    )
    fresh = [step for step_id, step in wide.steps.items() if step_id not in narrow.steps]
    cells = [step for step in fresh if step.name == "fine_tune_cell"]
    assert {step.config["learning_rate"] for step in cells} == {0.3}


def test_networks_that_were_not_trained_here_are_left_out() -> None:
    made = graph(f"fine_tuning({GRID})", Given({"theirs": "timm:resnet18(pretrained=False)"}))
    assert {step.columns["objective"] for step in steps(made, "fine_tuning")} == {"softmax", "sigmoid"}
    assert len(steps(graph(f"from_scratch({GRID})", Given({"theirs": "timm:resnet18"})), "from_scratch")) == 2


class StoppedError(Exception):
    """A run is broken off."""


@pytest.mark.long
def test_broken_off_and_resumed_a_step_leaves_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = graph(
        "fine_tuning(learning_rate=0.05, decay=0.001, steps=12, batch_size=16, head='fresh')", seeds=(0,)
    )
    last = next(step for step in steps(made, "fine_tuning") if step.columns["objective"] == "softmax")
    wanted = _ancestors(made, last.id)
    whole = Store(tmp_path / "whole")
    whole.prepare()
    needed = [step for step_id, step in made.steps.items() if step_id in wanted]
    tuned = [step for step in needed if step.name.startswith("fine_tun")]
    for step in needed[: -len(tuned)]:
        execute(whole, step, lambda news: None)
    shutil.copytree(whole.root, tmp_path / "broken")
    broken = Store(tmp_path / "broken")
    monkeypatch.setenv(CHECKPOINT_SECONDS, "0")
    stops = Counter[str]()
    for step in tuned:
        name = step.name

        def stop(news: dict[str, Any], name: str = name) -> None:
            if "epoch" in news and stops[name] < 3:
                stops[name] += 1
                raise StoppedError

        while not broken.is_whole(step.id):
            with contextlib.suppress(StoppedError):
                execute(broken, step, stop)
        execute(whole, step, lambda news: None)
    assert stops == {"fine_tune_cell": 3, "fine_tuning": 3}
    for step in tuned:
        files, again = (_files(store, step.id) for store in (whole, broken))
        assert files == again
        assert not any("checkpoint" in name for name in files)


def _files(store: Store, step_id: str) -> dict[str, bytes]:
    folder = store.folder(step_id)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "meta.json"
    }


def _ancestors(made: Graph, step_id: str) -> set[str]:
    return {step_id}.union(*(_ancestors(made, parent) for parent in made.steps[step_id].parents))
