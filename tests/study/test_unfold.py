"""Studies unfolded: which steps there are, what they are given, and what makes them the same step again."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penultimate.graph import Step
from penultimate.networks.key import NetworkKey
from penultimate.study import Given, Runs, Study, load_study
from penultimate.study import foundation as room
from penultimate.study.selection import restrict
from penultimate.study.settings import override
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from tests.plugged import SAMPLES, plugged

TINY = "glyphnet(features=16, width=4)"
RECIPE = Recipe(epochs=1)
ON_NETWORKS = {
    *(
        "accuracy",
        "class_separation",
        "collapse",
        "hardness",
        "spectra",
        "distances",
        "calibration",
        "layers",
    ),
    *("dynamics", "robustness"),
}
TOGETHER = {"agreement", "similarity"}
ON_TARGETS = {"transfer_dynamics", "depth", "linear", "knn", "overlap", "transferability", "nce", "leep"}
FINE_TUNED = {"fine_tune_cell", "fine_tune_choice", "fine_tuning"}
SCRATCH = {"scratch_cell", "scratch_choice", "from_scratch"}


@pytest.fixture
def smoke() -> Study:
    return load_study("smoke")


def small(*networks: Runs | Given, measure: tuple[str, ...] = ("knn",), **changes: Any) -> Study:
    """A study on the smoke world, of one tiny network unless others are named."""
    networks = networks or (Runs(("softmax",), RECIPE, backbones=(TINY,)),)
    return Study("small", "", "", "glyphs_smoke", ("digits_smoke",), networks, measure, **changes)


def steps_of(study: Study, name: str) -> list[Step]:
    return [step for step in unfold(study).steps.values() if step.name == name]


def new(before: Study, after: Study) -> set[str]:
    """The kinds of the steps that the first study does not have."""
    known = unfold(before).steps
    return {step.name for step_id, step in unfold(after).steps.items() if step_id not in known}


# -- the graph ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["smoke", "glyphs"])
def test_parents_come_first_and_identities_are_stable(name: str) -> None:
    graph = unfold(load_study(name))
    seen: set[str] = set()
    for step_id, step in graph.steps.items():
        assert step.id == step_id
        assert set(step.parents) <= seen
        assert {supply.parent for supply in step.supplies} == set(step.parents)
        seen.add(step_id)
    assert list(unfold(load_study(name)).steps) == list(graph.steps)
    children = graph.children()
    assert sum(map(len, children.values())) == sum(len(step.parents) for step in graph.steps.values())


def test_an_id_says_what_the_step_is_of() -> None:
    (network,) = steps_of(small(Runs(("dropout(keep=0.9)",), RECIPE, backbones=(TINY,), seeds=(3,))), "train")
    name, label, digest = network.id.split(".")
    assert (name, label, len(digest)) == ("train", "dropout-s3", 16)
    (measured,) = steps_of(small(Given({"our own": "timm:resnet18"})), "knn")
    assert measured.id.startswith("knn.our_own-digits_smoke.")


def test_networks_are_compared_within_their_arm_and_architecture() -> None:
    plain = Runs(("softmax", "sigmoid"), RECIPE, backbones=(TINY, "glyphplain"), seeds=(0,))
    longer = replace(plain, backbones=(TINY,), recipe=Recipe(epochs=2), arm="longer")
    steps = steps_of(
        small(plain, longer, Given({"ours": "timm:resnet18"}), measure=("similarity",)), "similarity"
    )
    compared = [
        (step.columns["backbone"], step.columns["arm"], [key.objective for key in networks(step)])
        for step in steps
    ]
    assert compared == [
        (TINY, None, ["softmax", "sigmoid", "ours"]),
        ("glyphplain", None, ["softmax", "sigmoid"]),
        (TINY, "longer", ["softmax", "sigmoid"]),
    ]


def test_what_two_arms_have_in_common_is_done_once_and_belongs_to_both() -> None:
    plain = Runs(("softmax", "sigmoid"), RECIPE, backbones=(TINY,), seeds=(0,))
    again = replace(plain, objectives=("sigmoid",), arm="again")
    graph = unfold(small(plain, again, measure=("knn", "similarity")))
    arms = [
        (step.name, step.columns.get("objective"), *graph.arms[step_id])
        for step_id, step in graph.steps.items()
        if step.name in ("train", "knn", "similarity")
    ]
    assert arms == [
        ("train", "softmax", ""),
        ("knn", "softmax", ""),
        ("train", "sigmoid", "", "again"),
        ("knn", "sigmoid", "", "again"),
        ("similarity", None, ""),
        ("similarity", None, "again"),
    ]


def networks(step: Step) -> list[NetworkKey]:
    return [supply.network for supply in step.supplies if supply.kind == "network" and supply.network]


def test_networks_that_are_compared_see_the_first_draw_and_else_their_own() -> None:
    runs = Runs(("softmax",), RECIPE, backbones=(TINY,), seeds=(4, 2))
    graph = unfold(small(runs, Given({"ours": "timm:resnet18"}), measure=("agreement", "class_separation")))

    def draws(name: str) -> list[tuple[int | None, int]]:
        banks = [
            (supply.network, graph.steps[supply.parent])
            for step in graph.steps.values()
            if step.name == name
            for supply in step.supplies
        ]
        return sorted(
            {
                (key.seed, graph.steps[parent].columns["draw"])
                for key, bank in banks
                if key is not None
                for parent in bank.parents
                if graph.steps[parent].name == "data"
            },
            key=str,
        )

    assert draws("agreement") == [(2, 4), (4, 4)]
    assert draws("class_separation") == [(2, 2), (4, 4), (None, 4)]


# -- what cannot be measured --------------------------------------------------------------------------------


def test_what_a_network_does_not_have_is_not_measured_of_it(smoke: Study) -> None:
    assert {step.columns["objective"].partition("(")[0] for step in steps_of(smoke, "calibration")} == {
        "softmax",
        "cosine_softmax",
    }
    assert len(steps_of(smoke, "dynamics")) == 3
    assert steps_of(override(smoke, ["recipe.snapshot_every=0"]), "dynamics") == []


@pytest.mark.parametrize("classifies", [False, True])
def test_of_a_given_network_only_what_needs_no_final_layer_is_measured(
    smoke: Study, classifies: bool
) -> None:
    with_final = {"accuracy", "collapse", "hardness", "spectra", "calibration", "robustness", "agreement"}
    with_final |= {"overlap", "nce", "leep"}
    every = ON_NETWORKS | ON_TARGETS | TOGETHER
    always = every - with_final - {"dynamics", "transfer_dynamics"}
    study = replace(smoke, networks=(Given({"ours": "timm:resnet18"}, classifies=classifies),))
    kinds = {step.name for step in unfold(study).steps.values()} & every
    assert kinds == always | (with_final if classifies else set())
    alone = {step.name for step in unfold(replace(study, measure=("hardness",))).steps.values()}
    assert ("extract" in alone) == ("hardness" in alone) == classifies


# -- identity -----------------------------------------------------------------------------------------------


def test_one_setting_changes_only_what_depends_on_it(smoke: Study) -> None:
    downstream = {"train", "extract", "multilabel"} | ON_NETWORKS | ON_TARGETS | TOGETHER | FINE_TUNED
    assert new(smoke, override(smoke, ["recipe.epochs=9"])) == downstream
    assert new(smoke, replace(smoke, title="another")) == set()
    assert new(smoke, restrict(smoke, ["softmax"], [])) == TOGETHER
    assert new(smoke, replace(smoke, targets=smoke.targets[:1])) == {"sheet"}
    of_draw = {"data", "sheet", "corrupted", "hard"} | SCRATCH
    assert new(smoke, restrict(smoke, [], [5])) == of_draw | downstream
    assert new(smoke, replace(smoke, measure=("similarity(passes=2)",))) == {"similarity"}
    assert new(smoke, override(smoke, ["measure=robustness(per_class=1)"])) == {"corrupted", "robustness"}


def test_a_default_that_is_written_out_changes_nothing() -> None:
    usual = small(measure=("similarity", "relearning"))
    written = small(
        Runs(("softmax",), Recipe(epochs=1, momentum=0.9), backbones=(TINY,)),
        measure=("similarity(passes=1, images=5120)", "relearning(shots=(5, 10, 40))"),
    )
    assert list(unfold(usual).steps) == list(unfold(written).steps)
    (trained,) = steps_of(usual, "train")
    assert trained.identity["recipe"] == {"epochs": 1, "precision": "float32"}
    assert trained.config["recipe"]["momentum"] == 0.9
    assert [step.identity for step in steps_of(usual, "similarity")] == [{"seeds": [0]}]


@dataclasses.dataclass(frozen=True)
class LaterRecipe(Recipe):
    """A recipe with a field that there is not today."""

    mixup: float = 0.0


def test_a_new_field_with_a_default_retrains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(unfold(small()).steps)
    monkeypatch.setattr(room, "USUAL", LaterRecipe(precision="bfloat16"))
    same = small(Runs(("softmax",), LaterRecipe(epochs=1), backbones=(TINY,)))
    mixed = small(Runs(("softmax",), LaterRecipe(epochs=1, mixup=0.2), backbones=(TINY,)))
    assert list(unfold(same).steps) == before
    assert new(same, mixed) == {"train", "extract", "knn"}
    (trained,) = steps_of(mixed, "train")
    assert trained.identity["recipe"] == {"epochs": 1, "precision": "float32", "mixup": 0.2}


def test_threads_belong_to_the_step_and_change_the_identity_of_trainings_alone(smoke: Study) -> None:
    one, two = (list(unfold(replace(smoke, threads=threads)).steps.values()) for threads in (1, 2))
    changed = {step.name for step, other in zip(one, two, strict=True) if step.identity != other.identity}
    assert changed == {"train", *FINE_TUNED - {"fine_tune_choice"}, *SCRATCH - {"scratch_choice"}}
    assert {step.resources.threads for step in two} == {2}
    unmoved = {step.name for step, other in zip(one, two, strict=True) if step.id == other.id}
    assert unmoved == {"data", "sheet", "corrupted", "hard"}


def test_the_name_of_an_arm_changes_no_step() -> None:
    main = Runs(("softmax",), RECIPE, backbones=(TINY,))
    longer = replace(main, recipe=Recipe(epochs=2), arm="longer")
    measure = ("knn", "similarity", "agreement")
    named = unfold(small(main, longer, measure=measure)).steps
    renamed = unfold(small(main, replace(longer, arm="twice as long"), measure=measure)).steps
    alone = unfold(small(replace(longer, arm=""), measure=measure)).steps
    assert list(named) == list(renamed)
    assert set(alone) < set(named)
    assert {
        step.columns["arm"] for step_id, step in named.items() if step_id in alone and step.name == "train"
    } == {"longer"}


def test_a_changed_plugin_is_done_again_with_what_rests_on_it(tmp_path: Path) -> None:
    study = {"measure": ("final", "knn")}
    with plugged("protocol"):
        before = unfold(small(**study)).steps
        other_rates = unfold(small(measure=("final(rate=(0.0, 0.25))", "knn"))).steps
    changed = tmp_path / "protocol.py"
    changed.write_text((SAMPLES / "protocol.py").read_text() + "ANOTHER = 1\n")
    with plugged(changed):
        after = unfold(small(**study)).steps
    assert {step.name for step_id, step in after.items() if step_id not in before} == {
        "cell",
        "choice",
        "final",
    }
    added = [step for step_id, step in other_rates.items() if step_id not in before]
    assert Counter(step.name for step in added) == {"cell": 1, "choice": 1, "final": 1}


# -- a protocol in stages -----------------------------------------------------------------------------------


def test_a_protocol_in_three_stages_is_a_static_graph() -> None:
    runs = Runs(("softmax", "sigmoid"), RECIPE, backbones=(TINY,), seeds=(0, 1))
    with plugged("protocol"):
        graph = unfold(replace(small(runs, measure=("final",)), targets=("digits_smoke", "syllabics_smoke")))
    count = Counter(step.name for step in graph.steps.values())
    assert count["cell"] == 2 * 2 * 2 * 2  # objectives, seeds, targets, rates
    assert (count["choice"], count["final"]) == (2 * 2, 2 * 2 * 2)
    for step in graph.steps.values():
        kinds = Counter(graph.steps[parent].name for parent in step.parents)
        if step.name == "choice":
            assert step.gathers
            assert kinds == {"cell": 4}
            cells = [
                (supply.network.seed, supply.settings["rate"]) for supply in step.supplies if supply.network
            ]
            assert sorted(cells) == [(0, 0.0), (0, 0.5), (1, 0.0), (1, 0.5)]
            assert {supply.network.objective for supply in step.supplies if supply.network} == {
                step.columns["objective"]
            }
            assert {supply.of for supply in step.supplies} == {step.columns["target"]}
        if step.name == "final":
            assert not step.gathers
            assert kinds == {"extract": 2, "choice": 1}
            (choice,) = (
                graph.steps[parent] for parent in step.parents if graph.steps[parent].name == "choice"
            )
            assert choice.columns["objective"] == step.columns["objective"]
            assert choice.columns["target"] == step.columns["target"]
