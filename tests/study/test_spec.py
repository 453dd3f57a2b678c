"""Studies as data: what is accepted, what is refused and how."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest

from penultimate.errors import RequestError
from penultimate.study import load_study
from penultimate.study.choosing import override, restrict
from penultimate.study.graph import Step, unfold
from penultimate.study.spec import INSTRUMENTS


@pytest.fixture
def study():  # type: ignore[no-untyped-def]
    return load_study("smoke")


def test_settings_are_changed_by_path(study) -> None:  # type: ignore[no-untyped-def]
    changed = override(study, ["recipe.epochs=7", "threads=2", "targets='digits_smoke'"])
    assert (changed.recipe.epochs, changed.threads, changed.targets) == (7, 2, ("digits_smoke",))
    assert study.recipe.epochs != 7


@pytest.mark.parametrize(
    ("assignment", "answer"),
    [
        ("recipe.epoch=7", "Did you mean 'epochs'"),
        ("recipe=7", "has parts"),
        ("name.x=7", "has no parts"),
        ("recipe.epochs", "setting=value"),
        ("recipe.epochs=-3", "epochs"),
        ("recipe.learning_rate='fast'", "learning_rate"),
        ("targets=('digit_smoke',)", "Did you mean 'digits_smoke'"),
        ("source='digits_smoke'", "no pretraining data set"),
        ("objectives=()", "empty"),
        ("objectives=('softmax','softmax')", "twice"),
        ("objectives=('sofmax',)", "Did you mean 'softmax'"),
        ("seeds=(1,1)", "twice"),
        ("seeds=(-1,)", "a seed is an integer"),
        ("probes=('linea',)", "Did you mean 'linear'"),
        ("threads=0", "threads"),
        ("draw='x'", "draw"),
        ("name='../x'", "named by letters"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_nearest_fix(study, assignment: str, answer: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=answer.replace("(", r"\(")):
        override(study, [assignment])


def test_objectives_are_chosen_by_slug(study) -> None:  # type: ignore[no-untyped-def]
    assert restrict(study, ["softmax"], [3, 4]).seeds == (3, 4)
    assert restrict(study, ["softmax"], []).objectives == ("softmax",)
    with pytest.raises(RequestError, match="has no objective"):
        restrict(study, ["dropout(keep=0.123)"], [])


def test_a_study_file_is_read_and_a_bad_one_is_named(tmp_path: Path) -> None:
    good = tmp_path / "mine.py"
    good.write_text(
        "import dataclasses\nfrom penultimate.studies.smoke import STUDY as SMOKE\n"
        "STUDY = dataclasses.replace(SMOKE, name='mine')\n"
    )
    assert load_study(str(good)).name == "mine"
    for content, answer in (("1/0", "ZeroDivisionError"), ("x = 1", "must define STUDY")):
        good.write_text(content)
        with pytest.raises(RequestError, match=answer):
            load_study(str(good))
    with pytest.raises(RequestError, match="no study file"):
        load_study(str(tmp_path / "none.py"))
    with pytest.raises(RequestError, match="Did you mean 'smoke'"):
        load_study("smok")


def test_parents_come_first_and_identities_are_stable(study) -> None:  # type: ignore[no-untyped-def]
    graph = unfold(study)
    seen: set[str] = set()
    for step_id, step in graph.steps.items():
        assert set(step.parents) <= seen
        assert Step.from_json(step.to_json()).id == step_id
        seen.add(step_id)
    assert list(unfold(load_study("smoke")).steps) == list(graph.steps)


def changed_steps(one, other) -> set[str]:  # type: ignore[no-untyped-def]
    before, after = unfold(one).steps, unfold(other).steps
    return {step.name for step_id, step in after.items() if step_id not in before}


def test_one_setting_changes_only_what_depends_on_it(study) -> None:  # type: ignore[no-untyped-def]
    longer = override(study, ["recipe.epochs=9"])
    downstream = {"train", "extract", "accuracy", "class_separation", "linear", "knn"} | set(INSTRUMENTS)
    assert changed_steps(study, longer) == downstream
    assert changed_steps(study, dataclasses.replace(study, title="another")) == set()
    assert changed_steps(study, restrict(study, ["softmax"], [])) == {"agreement", "similarity"}
    fewer = dataclasses.replace(study, targets=study.targets[:1])
    assert changed_steps(study, fewer) == {"sheet"}
    assert (
        changed_steps(study, restrict(study, [], [5])) == {"data", "sheet", "corrupted", "hard"} | downstream
    )


def test_the_recipe_of_single_objectives_is_adjusted(study) -> None:  # type: ignore[no-untyped-def]
    by_preset = replace(study, adjustments={"cosine_softmax": {"learning_rate": 0.7}})
    changed = {
        step.about["slug"]: step.config["recipe"]["learning_rate"]
        for step in unfold(by_preset).steps.values()
        if step.name == "train"
    }
    assert changed == {"softmax": 0.3, "cosine_softmax": 0.7, "squared_error": 0.3}
    same, other = unfold(study).steps, unfold(by_preset).steps
    assert {
        step.about["slug"] for key, step in other.items() if key not in same and "slug" in step.about
    } == {"cosine_softmax"}


@pytest.mark.parametrize(
    ("adjustments", "answer"),
    [
        ({"cosine": {}}, "Did you mean 'cosine_softmax'"),
        ({"sigmoid": {}}, "no objective of the study is called so"),
        ({"softmax": {"learning": 1}}, "Did you mean 'learning_rate'"),
        ({"softmax": {"learning_rate": -1}}, "learning_rate is a number above 0"),
    ],
)
def test_a_wrong_adjustment_is_refused(study, adjustments, answer: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=answer):
        replace(study, adjustments=adjustments)


def test_some_objectives_have_fewer_seeds(study) -> None:  # type: ignore[no-untyped-def]
    fewer = replace(study, seeds=(0, 1, 2), seeds_of={"cosine_softmax": (1,)})
    trained = {
        (step.about["slug"], step.about["seed"])
        for step in unfold(fewer).steps.values()
        if step.name == "train"
    }
    assert ("cosine_softmax", 1) in trained
    assert len(trained) == 7
    assert restrict(fewer, [], [1, 2]).seeds_of == {"cosine_softmax": (1,)}
    assert restrict(fewer, [], [5, 6]).seeds_of == {"cosine_softmax": (5,)}
    assert restrict(fewer, ["cosine_softmax"], []).seeds_of == {"cosine_softmax": (1,)}
    assert restrict(fewer, ["softmax"], []).seeds_of == {}


@pytest.mark.parametrize(
    ("seeds_of", "answer"), [({"softmax": (7,)}, "some of the study's"), ({"softmax": ()}, "some of")]
)
def test_seeds_that_the_study_has_not_are_refused(study, seeds_of, answer: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=answer):
        replace(study, seeds_of=seeds_of)


PLAIN = "glyphplain(features=32, width=8)"


@pytest.fixture
def twin(study):  # type: ignore[no-untyped-def]
    """Two architectures; the second has two of the objectives and one of the seeds."""
    return replace(
        study,
        backbones=(*study.backbones, PLAIN),
        seeds=(0, 1),
        seeds_of={"cosine_softmax": (1,), PLAIN: (0,)},
        objectives_of={PLAIN: ("softmax", "squared_error")},
    )


def trained(study) -> list[tuple[str, str, int]]:  # type: ignore[no-untyped-def]
    return [
        (step.about["backbone"].partition("(")[0], step.about["slug"], step.about["seed"])
        for step in unfold(study).steps.values()
        if step.name == "train"
    ]


def test_a_backbone_has_its_own_objectives_and_seeds(twin) -> None:  # type: ignore[no-untyped-def]
    runs = trained(twin)
    assert [run for run in runs if run[0] == "glyphplain"] == [
        ("glyphplain", "softmax", 0),
        ("glyphplain", "squared_error", 0),
    ]
    assert len(runs) == 2 + 5
    compared = {
        step.about["backbone"]: [tuple(model) for model in step.config["models"]]
        for step in unfold(twin).steps.values()
        if step.name == "similarity"
    }
    assert [seed for _, seed in compared[PLAIN]] == [0, 0]
    assert len(compared[twin.backbones[0]]) == 5
    assert twin.describe()["objectives_of"] == {PLAIN: ["softmax", "squared_error"]}


def test_the_steps_of_the_first_backbone_do_not_depend_on_the_second(twin) -> None:  # type: ignore[no-untyped-def]
    assert set(unfold(twin.with_backbones(twin.backbones[:1])).steps) < set(unfold(twin).steps)


def test_a_backbone_is_named_in_any_order_of_its_arguments(study) -> None:  # type: ignore[no-untyped-def]
    named = replace(
        study,
        backbones=(*study.backbones, "glyphplain(width=8, features=32)"),
        objectives_of={"glyphplain(width=8, features=32)": ("softmax",)},
        seeds_of={"glyphplain(width=8, features=32)": (0,)},
    )
    assert (list(named.objectives_of), list(named.seeds_of)) == ([PLAIN], [PLAIN])


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"objectives_of": {"glyphplain(features=32)": ("softmax",)}}, "Did you mean 'glyphplain.*It has: "),
        ({"objectives_of": {PLAIN: ("sofmax",)}}, "Did you mean 'softmax'"),
        ({"objectives_of": {PLAIN: ("sigmoid",)}}, "none of the study is called so"),
        ({"objectives_of": {PLAIN: ()}}, "one objective or more"),
        ({"objectives_of": {PLAIN: "softmax"}}, "one objective or more"),
        ({"objectives_of": {PLAIN: ("softmax", "softmax")}}, "twice"),
        ({"backbones": (PLAIN,)}, "'cosine_softmax.*is trained with no backbone"),
        ({"seeds_of": {"softmax": (1,), "squared_error": (1,), PLAIN: (0,)}}, "nothing is trained with"),
        ({"seeds_of": {"glyphplane": (1,)}}, "no objective or backbone of the study is called so"),
        ({"seeds_of": {PLAIN: (7,)}}, "some of the study's"),
    ],
)
def test_what_a_backbone_cannot_have_is_refused(twin, changes, answer: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=answer):
        replace(twin, **changes)


def test_other_backbones_objectives_and_seeds_leave_out_what_is_gone(twin) -> None:  # type: ignore[no-untyped-def]
    alone = override(twin, [f"backbones=('{twin.backbones[0]}',)"])
    assert (alone.objectives_of, list(alone.seeds_of), len(alone.objectives)) == ({}, ["cosine_softmax"], 3)
    second = override(twin, [f"backbones={PLAIN}"])
    assert trained(second) == [("glyphplain", "softmax", 0), ("glyphplain", "squared_error", 0)]
    fewer = override(twin, ["objectives=('softmax', 'sigmoid')"])
    assert (fewer.objectives_of, list(fewer.seeds_of)) == ({PLAIN: ("softmax",)}, [PLAIN])
    assert restrict(twin, ["cosine_softmax"], []).backbones == twin.backbones[:1]
    assert restrict(twin, ["squared_error"], []).objectives_of == {PLAIN: ("squared_error",)}
    assert restrict(twin, [], [0]).seeds_of == {"cosine_softmax": (0,), PLAIN: (0,)}
    assert restrict(twin, [], [4, 5]).seeds_of == {"cosine_softmax": (4,), PLAIN: (4,)}


def test_the_second_architecture_of_glyphs_is_of_its_nine_and_can_be_left_out() -> None:
    glyphs = load_study("glyphs")
    first, second = glyphs.backbones
    runs = [run for run in trained(glyphs) if run[0] == second]
    slugs = ("softmax", "label_smoothing", "sigmoid", "squared_error")
    assert runs == [(second, slug, seed) for seed in (0, 1) for slug in slugs]
    assert len(trained(glyphs)) == 9 * 5 + 5 * 3 + len(runs)
    alone = override(glyphs, [f"backbones=('{first}',)"])
    assert (alone.objectives, alone.objectives_of) == (glyphs.objectives, {})
