"""Studies as data: what is accepted, what is refused and how."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from penultimate.errors import RequestError
from penultimate.study import load_study
from penultimate.study.graph import Step, unfold
from penultimate.study.spec import INSTRUMENTS, override, restrict


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
    assert changed_steps(study, restrict(study, ["softmax"], [])) == {"agreement"}
    fewer = dataclasses.replace(study, targets=study.targets[:1])
    assert changed_steps(study, fewer) == {"sheet"}
    assert changed_steps(study, restrict(study, [], [5])) == {"data", "sheet"} | downstream
