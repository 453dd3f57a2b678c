"""Which study is meant: read by name or from a file, its settings changed, some of its networks taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penultimate import registry
from penultimate.data.augmentation.settings import Augmentation
from penultimate.errors import RequestError
from penultimate.networks.key import NetworkKey
from penultimate.paper import studies
from penultimate.study import Given, Study, load_study
from penultimate.study.blocks import Runs
from penultimate.study.selection import changed, not_used, restrict
from penultimate.study.settings import override
from tests.plugged import plugged


@pytest.fixture
def smoke() -> Study:
    return load_study("smoke")


@pytest.fixture
def two_arms(smoke: Study) -> Study:
    """Three objectives with two seeds; under another recipe two of them with one; and a network given."""
    main = replace(smoke.main, seeds=(0, 1))
    longer = replace(main.recipe, epochs=5)
    arm = replace(main, objectives=main.objectives[:2], recipe=longer, seeds=(1,), arm="longer")
    return replace(smoke, networks=(main, arm, Given({"ours": "timm:resnet18"})))


def epochs(study: Study) -> dict[str, int]:
    return {block.arm: block.recipe.epochs for block in study.runs}


def trained(study: Study) -> list[tuple[str, str, int | None]]:
    return [(key.objective.partition("(")[0], key.arm, key.seed) for key in study.keys() if not key.is_given]


# -- settings -----------------------------------------------------------------------------------------------


def test_settings_of_the_study_and_of_its_recipe_are_changed_by_path(smoke: Study) -> None:
    changed = override(
        smoke, ["recipe.epochs=7", "threads=2", "targets='digits_smoke'", "recipe.augmentation.shift=3"]
    )
    assert (changed.main.recipe.epochs, changed.threads, changed.targets) == (7, 2, ("digits_smoke",))
    assert changed.main.recipe.augmentation == Augmentation(shift=3)
    assert smoke.main.recipe.epochs == 3


def test_names_and_lists_need_no_quotes(smoke: Study) -> None:
    changed = override(
        smoke, ["measure=linear, relearning(shots=(5,10))", "targets=digits_smoke", "backbones=glyphplain"]
    )
    assert changed.measure == ("linear", "relearning(shots=(5, 10))")
    assert (changed.targets, changed.backbones) == (("digits_smoke",), ("glyphplain",))
    assert override(smoke, ["measure="]).measure == ()
    assert override(smoke, ["name=mine", "seeds=4"]).main.seeds == (4,)


def test_new_measurements_are_made_of_every_network() -> None:
    asked = _names_measured(override(load_study("full"), ["measure=accuracy,depth"]))
    assert len(asked) > 50
    assert all(names == {"accuracy", "depth"} for names in asked.values())


def _names_measured(study: Study) -> dict[NetworkKey, set[str]]:
    return {key: {one.measurement.name for one in of} for key, of in study.measured().items()}


def test_settings_of_a_grid_are_changed_in_every_grid_or_in_those_of_an_arm(two_arms: Study) -> None:
    assert epochs(override(two_arms, ["recipe.epochs=7"])) == {"": 7, "longer": 7}
    assert epochs(override(two_arms, ["longer.recipe.epochs=7"])) == {"": 3, "longer": 7}
    assert override(two_arms, ["longer.seeds=0,2"]).runs[1].seeds == (0, 2)
    assert override(two_arms, ["draws=0"]).runs[1].draws == 0
    assert override(two_arms, ["longer.seeds=0,2"]).networks[2] == two_arms.networks[2]


def test_other_objectives_are_the_first_grids_and_further_grids_keep_theirs(two_arms: Study) -> None:
    changed = override(two_arms, ["objectives=softmax,sigmoid"])
    assert [block.objectives for block in changed.runs] == [("softmax", "sigmoid"), ("softmax",)]
    assert [block.arm for block in override(two_arms, ["objectives=sigmoid"]).runs] == [""]
    of_arm = override(two_arms, ["longer.objectives=sigmoid"])
    assert [block.objectives for block in of_arm.runs] == [two_arms.main.objectives, ("sigmoid",)]


@pytest.mark.parametrize(
    ("assignment", "answer"),
    [
        ("recipe.epoch=7", "Did you mean 'epochs'"),
        ("recipe=7", "'recipe' has parts; set one of epochs, "),
        ("name.x=7", "'name' has no parts"),
        ("recipe.epochs", "--set wants setting=value, such as recipe.epochs=3; got 'recipe.epochs'"),
        ("recipe.epochs=-3", "epochs"),
        ("targets=('digit_smoke',)", "Did you mean 'digits_smoke'"),
        ("measure=('linea',)", "Did you mean 'linear'"),
        ("seed=1", "no setting 'seed': it is none of objectives, recipe, backbones, seeds, draws, classes, "),
        ("seed=1", "Did you mean 'seeds'"),
        ("longer=7", "no setting 'longer': it is none of longer.objectives, longer.recipe, "),
        ("longer.source=other", "it is none of longer.objectives, "),
        ("linear.grids=3", "unknown setting of 'linear' 'grids'"),
        ("lineer.shots=3", "Did you mean 'linear'"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_nearest_fix(
    two_arms: Study, assignment: str, answer: str
) -> None:
    with pytest.raises(RequestError) as error:
        override(two_arms, [assignment])
    assert answer in str(error.value)


# -- some of the networks -----------------------------------------------------------------------------------


def test_objectives_are_chosen_by_slug_or_spec_and_given_networks_by_name(two_arms: Study) -> None:
    assert trained(restrict(two_arms, ["softmax"], [])) == [
        ("softmax", "", 0),
        ("softmax", "", 1),
        ("softmax", "longer", 1),
    ]
    assert trained(restrict(two_arms, ["squared_error"], [])) == [
        ("squared_error", "", 0),
        ("squared_error", "", 1),
    ]
    by_spec = restrict(two_arms, ["cosine_softmax(scale=0.5, temperature=6e-2)"], [])
    assert by_spec.objectives == ("cosine_softmax(scale=0.5, temperature=0.06)",)
    assert [key.objective for key in restrict(two_arms, ["ours"], []).keys()] == ["ours"]
    both = restrict(two_arms, ["ours", "squared_error"], [1])
    assert [(key.objective.partition("(")[0], key.seed) for key in both.keys()] == [
        ("squared_error", 1),
        ("ours", None),
    ]


def test_other_seeds_are_those_of_the_first_grid_and_as_many_as_a_smaller_grid_had(two_arms: Study) -> None:
    assert [block.seeds for block in restrict(two_arms, [], [1, 2]).runs] == [(1, 2), (1,)]
    assert [block.seeds for block in restrict(two_arms, [], [5, 6]).runs] == [(5, 6), (5,)]
    assert [block.seeds for block in restrict(two_arms, [], [7]).runs] == [(7,), (7,)]


@pytest.mark.parametrize(
    ("names", "answer"),
    [
        (["dropout(keep=0.123)"], "study 'smoke' has no objective 'dropout(keep=0.123)'"),
        (["sigmoid"], "It has: softmax, cosine_softmax, squared_error, ours."),
        (["sofmax"], "Did you mean 'softmax'"),
    ],
)
def test_a_name_that_the_study_has_not_is_refused(two_arms: Study, names: list[str], answer: str) -> None:
    with pytest.raises(RequestError) as error:
        restrict(two_arms, names, [])
    assert answer in str(error.value)


# -- files --------------------------------------------------------------------------------------------------


def test_a_study_file_is_read_and_a_bad_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import dataclasses\nfrom penultimate.paper.studies.smoke import STUDY as SMOKE\n"
        "STUDY = dataclasses.replace(SMOKE, name='mine')\n"
    )
    assert load_study(str(file)).name == "mine"
    answers: dict[str, Any] = {
        "1/0": "ZeroDivisionError: division by zero",
        "x = 1": "must define STUDY = Study(...)",
        "from penultimate.study import Runs\nRuns(())": "objectives is empty",
    }
    for content, answer in answers.items():
        file.write_text(content)
        with pytest.raises(RequestError) as error:
            load_study(str(file))
        assert answer in str(error.value)
    with pytest.raises(RequestError, match="no study file"):
        load_study(str(tmp_path / "none.py"))
    with pytest.raises(RequestError, match="Did you mean 'smoke'"):
        load_study("smok")


@pytest.mark.parametrize("name", registry.names("study"))
def test_every_built_in_study_bears_its_name(name: str) -> None:
    study = load_study(name)
    assert study.name == name
    assert isinstance(study.main, Runs)


def test_a_plugins_objective_is_named_and_joins_the_first_grid(two_arms: Study) -> None:
    with plugged("focal", "instruments"):
        chosen = restrict(two_arms, ["softmax", "focal(gamma=1)", "focal + dropout"], [])
        assert chosen.main.objectives == ("softmax", "focal(gamma=1)", "dropout(keep=0.7) + focal(gamma=2)")
        assert list(chosen.slugs().values()) == ["softmax", "focal", "dropout + focal"]
        assert [block.objectives for block in chosen.runs][1:] == [("softmax",)]
        assert restrict(chosen, ["focal"], []).objectives == ("focal(gamma=1)",)
        with pytest.raises(
            RequestError,
            match=r"'feature_scale' is a measurement, which is used with --set .*measure=.*scale",
        ):
            restrict(two_arms, ["feature_scale"], [])


SMOKE = Path(studies.__file__).with_name("smoke.py").read_text()
"""By what is answered: where the slip shows, how it is told, what is right and what is wrong."""


# -- a changed study beside the whole ------------------------------------------------------------------------


def test_a_changed_study_has_a_name_and_a_title_of_its_own(smoke: Study) -> None:
    part = changed(smoke, ["recipe.epochs=7"], ["softmax", "squared_error"], [0, 1, 2])
    assert part.name == "smoke-recipe_epochs-7-seeds-0-2-softmax-squared_error"
    assert part.title == "smoke, changed: recipe.epochs=7; seeds 0 to 2; only softmax, squared_error"
    assert (part.changed_from, part.question) == ("smoke", smoke.question)
    assert changed(smoke, seeds=[3, 5]).name == "smoke-seeds-3_5"
    assert part.describe()["changed_from"] == "smoke"
    assert "changed_from" not in smoke.describe()


def test_what_changes_nothing_leaves_the_study_as_it_is(smoke: Study) -> None:
    assert changed(smoke) is smoke
    assert changed(smoke, ["recipe.epochs=3"], list(smoke.slugs().values()), [0]) == smoke
    assert changed(smoke, ["title=Mine"]) == replace(smoke, title="Mine")


# -- further objectives -------------------------------------------------------------------------------------


def test_an_added_objective_stands_beside_the_studys_and_its_name_is_whole(two_arms: Study) -> None:
    with plugged("focal"):
        joined = changed(two_arms, add=["focal(gamma=1)", "dropout"])
        assert joined.main.objectives == (*two_arms.main.objectives, "focal(gamma=1)", "dropout(keep=0.7)")
        assert [block.objectives for block in joined.runs][1:] == [two_arms.main.objectives[:2]]
        assert changed(two_arms, add=["focal"]).name == "smoke-with-focal"
        assert changed(two_arms, add=["focal"]).title == "smoke, changed: with focal"
        assert changed(two_arms, only=["softmax"], add=["focal"]).name == "smoke-softmax-focal"


def test_an_added_objective_may_have_a_recipe_of_its_own(two_arms: Study) -> None:
    added = "dropout(keep=0.5) with recipe.learning_rate=0.7 and recipe.epochs=4"
    joined = changed(two_arms, seeds=[0], add=[added])
    (own,) = [block for block in joined.runs if block.objectives == ("dropout(keep=0.5)",)]
    assert (own.recipe.learning_rate, own.recipe.epochs, own.seeds) == (0.7, 4, (0,))
    assert own.measure == two_arms.main.measure
    assert joined.main.recipe == two_arms.main.recipe


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("softmax", "has 'softmax' already"),
        ("sofmax", "Did you mean 'softmax'?"),
        ("poly7", "--plugin FILE"),
        ("poly1", "--plugin examples:poly1"),
        ("dropout with epochs=3", "such as recipe.learning_rate=0.6; got 'epochs=3'"),
        ("dropout with recipe.epochs", "got 'recipe.epochs'"),
        ("dropout with recipe.epoch=3", "epoch"),
        ("dropout with recipe.epochs=-1", "epochs"),
    ],
)
def test_an_objective_that_cannot_be_added_is_refused(two_arms: Study, name: str, answer: str) -> None:
    with pytest.raises(RequestError) as error:
        changed(two_arms, add=[name])
    assert answer in str(error.value)


def test_a_loaded_loss_that_is_not_used_is_told_with_the_way_to_add_it(two_arms: Study) -> None:
    with plugged("focal", "instruments") as (focal, instruments):
        assert not_used(two_arms, focal) == (
            "Loaded focal.py, but this study does not use 'focal'. To use it: --add focal."
        )
        assert not_used(changed(two_arms, add=["focal"]), focal) == ""
        assert "does not use 'feature_scale'" in not_used(two_arms, instruments)
