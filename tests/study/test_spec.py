"""Studies as data: which networks they name, what is accepted, what is refused and how."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penultimate import registry
from penultimate.errors import RequestError
from penultimate.networks.key import NetworkKey
from penultimate.paper.studies.world import COMPARED
from penultimate.study import Given, Runs, Study, load_study
from penultimate.study.blocks import runs_by_recipe
from penultimate.training.recipe import Recipe

TINY = "glyphnet(features=16, width=4)"
SHORT, LONG = Recipe(epochs=1), Recipe(epochs=2)


def study(*networks: Any, **changes: Any) -> Study:
    """A study on the smoke world."""
    plain: dict[str, Any] = {
        "name": "mine",
        "title": "Mine",
        "question": "Which?",
        "source": "glyphs_smoke",
        "targets": ("digits_smoke",),
        "networks": networks or (Runs(("softmax",), SHORT, backbones=(TINY,)),),
    }
    return Study(**{**plain, **changes})


# -- one grid -----------------------------------------------------------------------------------------------


def test_a_grid_is_every_objective_on_every_backbone_with_every_seed() -> None:
    runs = Runs(("softmax", "sigmoid"), backbones=(TINY, "glyphplain"), seeds=(3, 1), arm="long")
    assert list(runs.keys()) == [
        NetworkKey(objective, backbone, "long", seed, seed)
        for seed in (3, 1)
        for backbone in (TINY, "glyphplain")
        for objective in ("softmax", "sigmoid")
    ]


def test_names_take_their_one_spelling() -> None:
    runs = Runs(
        ["cosine_softmax(temperature = 5e-2, scale=1)"],  # type: ignore[arg-type]
        backbones=("glyphnet(width=4, features=16)",),
        measure=("similarity( passes=1)", "relearning(shots=5)"),
    )
    assert runs.objectives == ("cosine_softmax(scale=1, temperature=0.05)",)
    assert runs.backbones == (TINY,)
    assert runs.measure == ("similarity", "relearning(shots=(5,))")


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"objectives": ()}, "objectives is empty; at least one is needed"),
        ({"objectives": "softmax"}, "objectives must be of type tuple[str, ...], not 'softmax'"),
        ({"objectives": ("sofmax",)}, "Did you mean 'softmax'"),
        ({"objectives": ("dropout(keep=0.5)", "dropout(keep = 5e-1)")}, "twice; name it once"),
        ({"backbones": (TINY, "glyphnet(width=4, features=16)")}, "twice"),
        ({"backbones": ("glyphnett",)}, "Did you mean 'glyphnet'"),
        ({"seeds": (1, 1)}, "seeds names 1 twice"),
        ({"seeds": (-1,)}, "seeds are integers from 0 to 2^31 - 1, not (-1,)"),
        ({"seeds": 3}, "seeds must be of type tuple[int, ...], not 3"),
        ({"draws": "sed"}, "draws is 'seed' or an integer from 0 to 2^31 - 1, not 'sed'"),
        ({"arm": "a, b"}, "an arm is named by a word or two"),
        ({"classes": 1}, "or 0 for all, not 1"),
        ({"recipe": {"epochs": 3}}, "recipe must be of type Recipe, not {'epochs': 3}"),
        ({"measure": "linear"}, "measure must be of type tuple[str, ...] | None, not 'linear'"),
        ({"measure": ("linea",)}, "Did you mean 'linear'"),
        ({"measure": ("similarity", "similarity(passes=2)")}, "measure names 'similarity' twice"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(settings: dict[str, Any], answer: str) -> None:
    with pytest.raises(RequestError) as error:
        Runs(**{"objectives": ("softmax",), **settings})
    assert answer in str(error.value)


@pytest.mark.parametrize(
    ("networks", "answer"),
    [
        ({}, "given networks are {name: source}, one or more"),
        (("timm:resnet18",), "networks must be of type Mapping[str, str], not ('timm:resnet18',)"),
        ({"a|b": "timm:resnet18"}, "a given network is named by a word or two"),
        ({"ours": "resnet18"}, "'resnet18' names no network; write KIND:NAME"),
        ({"ours": "timm:"}, "'timm:' names no network"),
        ({"ours": "tim:resnet18"}, "Did you mean 'timm'"),
        ({"ours": "timm:resnet18(pretraned=False)"}, "Did you mean 'pretrained'"),
    ],
)
def test_given_networks_that_cannot_be_are_refused(networks: Any, answer: str) -> None:
    with pytest.raises(RequestError) as error:
        Given(networks)
    assert answer in str(error.value)


# -- their union --------------------------------------------------------------------------------------------


def test_all_networks_once_and_one_seed_after_the_other() -> None:
    both = Runs(("softmax", "sigmoid"), SHORT, backbones=(TINY,), seeds=(1, 0))
    arm = Runs(("softmax",), LONG, backbones=(TINY,), seeds=(0, 1, 2), arm="long")
    again = Runs(("sigmoid",), SHORT, backbones=(TINY,), seeds=(0,), measure=("similarity",))
    keys = study(both, arm, again, Given({"ours": "timm:resnet18"})).keys()
    assert [(key.objective, key.arm, key.seed) for key in keys] == [
        ("softmax", "", 1),
        ("sigmoid", "", 1),
        ("softmax", "long", 1),
        ("softmax", "", 0),
        ("sigmoid", "", 0),
        ("softmax", "long", 0),
        ("softmax", "long", 2),
        ("ours", "", None),
    ]


def test_a_network_of_two_grids_is_measured_by_what_both_ask_for() -> None:
    first = Runs(("softmax", "sigmoid"), SHORT, backbones=(TINY,))
    second = Runs(("sigmoid",), SHORT, backbones=(TINY,), measure=("similarity(passes=2)", "knn"))
    measured = study(first, second, measure=("accuracy", "knn")).measured()
    assert {key.objective: [request.text for request in requests] for key, requests in measured.items()} == {
        "softmax": ["accuracy", "knn"],
        "sigmoid": ["accuracy", "knn", "similarity(passes=2)"],
    }


def test_a_network_of_two_grids_is_measured_under_one_setting() -> None:
    again = Runs(("softmax",), SHORT, backbones=(TINY,), measure=("similarity(passes=2)",))
    for measure in (("similarity",), ("similarity(passes=3)",)):
        with pytest.raises(RequestError, match="names 'similarity' twice"):
            study(GRID, again, measure=measure).measured()
    assert study(GRID, again, measure=("similarity(passes=2)",)).measured()


def test_the_first_grid_is_the_one_that_exhibits_speak_of() -> None:
    made = study(
        Given({"ours": "timm:resnet18"}),
        Runs(("sigmoid",), SHORT, backbones=("glyphplain",), seeds=(4,)),
        Runs(("softmax", "sigmoid"), SHORT, backbones=(TINY,)),
    )
    assert made.main is made.networks[1]
    assert (made.objectives, made.backbones) == (("sigmoid", "softmax"), ("glyphplain", TINY))
    assert made.first_draw == 4
    assert study(Given({"ours": "timm:resnet18"})).first_draw == 0
    with pytest.raises(RequestError, match="study 'mine' trains no network"):
        _ = study(Given({"ours": "timm:resnet18"})).main


def test_objectives_that_change_the_recipe_are_grids_of_their_own() -> None:
    changes = {"cosine_softmax( temperature=0.1)": {"learning_rate": 0.7}}
    grids = runs_by_recipe(
        ("softmax", "cosine_softmax(temperature=0.1)", "sigmoid"),
        SHORT,
        changes,
        backbones=(TINY,),
        seeds=(0, 1),
    )
    rates = {(key.objective, key.seed): grid.recipe.learning_rate for grid in grids for key in grid.keys()}
    swept = "cosine_softmax(scale=1, temperature=0.1)"
    usual = SHORT.learning_rate
    assert rates == {(text, seed): usual for text in ("softmax", "sigmoid") for seed in (0, 1)} | {
        (swept, 0): 0.7,
        (swept, 1): 0.7,
    }
    assert {grid.arm for grid in grids} == {""}
    with pytest.raises(RequestError, match="learning_rate is a number above 0"):
        runs_by_recipe(("softmax",), SHORT, {"softmax": {"learning_rate": -1}})


GRID = Runs(("softmax",), SHORT, backbones=(TINY,))


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"name": "../x"}, "a study's name consists of at most 100 letters, digits, '_' and '-'"),
        ({"networks": ()}, "networks is empty; at least one Runs(...) or Given(...) is needed"),
        ({"networks": ("softmax",)}, "networks must be of type tuple[Runs | Given, ...], not ('softmax',)"),
        ({"tuned_by": ("first", "../x")}, "digits, '_' and '-', and is not '../x'"),
        ({"targets": ("digits_smoke", "digits_smoke")}, "targets names 'digits_smoke' twice"),
        ({"targets": ("digit_smoke",)}, "Did you mean 'digits_smoke'"),
        ({"counterparts": {"digit_smoke": {}}}, "Did you mean 'digits_smoke'"),
        (
            {"targets": ("glyphs_smoke_r",)},
            "'glyphs_smoke_r' cannot be a target: it has no split train (it has test)",
        ),
        (
            {"source": "digits_smoke"},
            "'digits_smoke' cannot be trained on: it has no split holdout (it has train, test)",
        ),
        ({"source": "glyph_smoke"}, "Did you mean 'glyphs_smoke'"),
        ({"beside": "gliphs"}, "Did you mean 'glyphs'"),
        ({"measure": ("nearest",)}, "Your own is known once its file is loaded: --plugin FILE."),
        (
            {"measure": ("corrupted",)},
            "'corrupted' is a stage of other measurements; name one of them instead",
        ),
        ({"measure": ("similarity(pases=2)",)}, "Did you mean 'passes'"),
        ({"threads": 0}, "threads is an integer of 1 or more, not 0"),
        ({"gpus": 1.5}, "gpus is a share of one GPU, from 0 to 1, or how many share a training, not 1.5"),
        (
            {"networks": (GRID, dataclasses.replace(GRID, recipe=LONG))},
            f"'softmax | {TINY} | seed 0' has two recipes; give one of them another name or arm",
        ),
        (
            {"networks": (GRID, dataclasses.replace(GRID, draws=3))},
            f"'softmax | {TINY} | seed 0' has two draws; give one of them another name or arm",
        ),
        (
            {"networks": (Given({"a": "timm:resnet18"}), Given({"a": "timm:resnet50"}))},
            "'a' has two sources; give one of them another name or arm",
        ),
        (
            {"networks": (Given({"a": "timm:resnet18"}), Given({"a": "timm:resnet18"}, classifies=True))},
            "'a' has two sources",
        ),
        (
            {"networks": (GRID, Given({"softmax": "timm:resnet18"}))},
            "the given network 'softmax' is called like an objective; rename it",
        ),
    ],
)
def test_a_study_that_cannot_be_is_refused_by_its_name(changes: dict[str, Any], answer: str) -> None:
    with pytest.raises(RequestError) as error:
        study(**changes)
    assert answer in str(error.value)
    assert str(error.value).startswith(f"study '{changes.get('name', 'mine')}': ")


def test_a_study_describes_itself_as_json() -> None:
    described = study(
        Runs(
            ("softmax", "dropout(keep=0.9)"),
            SHORT,
            backbones=(TINY,),
            seeds=(0, 1),
            arm="a",
            measure=("knn",),
        ),
        Given({"ours": "timm:resnet18"}, classifies=True),
        threads=2,
        limited=True,
    ).describe()
    runs, given = described["networks"]
    assert {name: runs[name] for name in ("objectives", "backbones", "seeds", "draws", "arm", "measure")} == {
        "objectives": ["softmax", "dropout(keep=0.9)"],
        "backbones": [TINY],
        "seeds": [0, 1],
        "draws": "seed",
        "arm": "a",
        "measure": ["knn"],
    }
    assert Recipe(**runs["recipe"]) == SHORT
    assert given == {"given": {"ours": "timm:resnet18"}, "classifies": True, "measure": None}
    assert described["objectives"] == [
        {"slug": "softmax", "label": "Softmax", "spec": "softmax"},
        {"slug": "dropout", "label": "Dropout", "spec": "dropout(keep=0.9)"},
        {"slug": "ours", "label": "ours", "spec": "ours"},
    ]
    assert (described["threads"], described["limited"], described["cards"]) == (2, True, [])


@pytest.mark.parametrize(
    ("whole", "beginnings"),
    [("glyphs", ("glyphs_",)), ("evidence", ("glyphs_", "evidence_")), ("full", ("full_",))],
)
def test_the_parts_of_a_study_are_the_whole_and_compare_networks_in_one_of_them(
    whole: str, beginnings: tuple[str, ...]
) -> None:
    parts = [load_study(name) for name in registry.names("study") if name.startswith(beginnings)]
    parts = [part for part in parts if part.source == "glyphs"]
    study = load_study(whole)
    measured: dict[NetworkKey, set[str]] = {}
    comparing: dict[tuple[str, str, str], set[str]] = {}
    for part in parts:
        for key, requests in part.measured().items():
            measured.setdefault(key, set()).update(request.text for request in requests)
            for request in requests:
                if request.text in COMPARED:
                    comparing.setdefault((request.text, key.arm, key.backbone), set()).add(part.name)
    assert measured == {key: {one.text for one in of} for key, of in study.measured().items()}
    assert {len(names) for names in comparing.values()} == {1}
    assert {compares for compares, _, _ in comparing} == {*COMPARED}
