"""What is written is what is read: studies, specs, steps, rows, settings, archives, as chance makes them."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
from pathlib import Path
from typing import Any

import pytest

from penultimate.data.augmentation.settings import Augmentation
from penultimate.objectives.presets import PRESETS, resolve
from penultimate.records.table import COLUMNS, INTEGERS, Row, encode_rows, read_rows, setting_text
from penultimate.specs import Spec, parse_sum
from penultimate.study import Given, Runs, Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import PRECISIONS, SCHEDULES, STOPPING, Recipe

COUNT = 5000
COUNTS = pytest.mark.parametrize("count", [pytest.param(COUNT, marks=pytest.mark.long), 100])
SIGNS = "aZ09 _-.,;:'\"`=+@|%$#&{}[]()<>/\\^~*?!\n\r\t\0\x1b\x7f\x85\u2028\u202e\u200déß漢🙂\ufeff\ud800＝"
NUMBERS = (
    0.0,
    -0.0,
    1.0,
    0.1,
    1e-300,
    -5e-324,
    1.7976931348623157e308,
    math.pi,
    math.inf,
    -math.inf,
    math.nan,
)
CHANGES: dict[str, tuple[Any, ...]] = {
    "epochs": (1, 7),
    "batch_size": (2, 128),
    "ghost_batch": (2,),
    "learning_rate": (1e-9, 3),
    "warmup": (0, 1.0),
    "schedule": tuple(name for name in SCHEDULES if name != "exponential"),
    "final_fraction": (1, 0.5),
    "momentum": (0.5, 0.99),
    "weight_decay": (0, 1e-3),
    "decay_batch_norm": (True,),
    "decay_biases": (True,),
    "averaging_window": (0, 0.5),
    "averaging_momentum": (0.0, 0.9999),
    "precision": tuple(name for name in PRECISIONS if name != "float32"),
    "augmentation": (Augmentation(0), Augmentation(flip=True), Augmentation(autoaugment=True, mixup=0.2)),
    "stopping": tuple(name for name in STOPPING if name != "last"),
    "patience": (3,),
    "evaluate_every": (2,),
    "snapshot_every": (1,),
}
"""Other values than the default of every setting of a recipe, but one that others depend on."""
MEASURES = ("accuracy", "linear", "knn", "relearning(shots={a})", "relearning(shots=({a}, {b}))", "collapse")
MEASURES += ("distances(count={b}, seed={a})", "similarity(passes={a}, images={b})", "dynamics(images={b})")


def text(rng: random.Random, longest: int = 12) -> str:
    return "".join(rng.choice(SIGNS) for _ in range(rng.randrange(longest)))


def words(rng: random.Random) -> str:
    """What an arm or a given network may be called."""
    return "".join(sign for sign in text(rng) + rng.choice("xyz") if sign.isprintable() and sign not in "|,=")


def objective(rng: random.Random) -> str:
    preset = PRESETS[rng.choice(list(PRESETS))]
    numbers = [each for each in preset.hyperparameters if not isinstance(each.default, str)]
    changed = {each.name: each.default / rng.choice((1, 1, 2)) for each in numbers}
    return str(Spec(preset.name, changed))


def recipe(rng: random.Random) -> Recipe:
    names = rng.sample(list(CHANGES), rng.randrange(4))
    return Recipe(**{name: rng.choice(CHANGES[name]) for name in names})


def study(rng: random.Random) -> Study:
    """A small study, any of whose fields may be anything that it may be."""
    measure = tuple(
        {name.partition("(")[0]: name for name in rng.sample(MEASURES, rng.randrange(1, 4))}.values()
    )
    measure = tuple(name.format(a=rng.randrange(2, 9), b=rng.randrange(9, 99)) for name in measure)
    arms = ["", *dict.fromkeys(words(rng) for _ in range(rng.randrange(2)))]
    grids = tuple(
        Runs(
            tuple({resolve(objective(rng)).canonical: None for _ in range(rng.randrange(1, 3))}),
            recipe(rng),
            (rng.choice(("glyphnet", "glyphplain", "glyphnet(width=8, features=64)")),),
            tuple(rng.sample(range(99), rng.randrange(1, 3))),
            rng.choice(("seed", rng.randrange(2**31))),
            arm,
            rng.choice((None, measure[:1])),
        )
        for arm in arms
    )
    given = (Given({f"given {words(rng)}": "timm:resnet18(pretrained=False, seed=1)"}, rng.random() < 0.5),)
    return Study(
        rng.choice(("mine", "my-study", "étude_2")),
        text(rng),
        text(rng),
        "glyphs_smoke",
        rng.choice(((), ("digits_smoke",), ("digits_smoke", "syllabics_smoke"))),
        (*grids, *(given if rng.random() < 0.3 else ())),
        measure,
        threads=rng.choice((1, 1, 2)),
        limited=rng.random() < 0.5,
        expected_seconds=rng.choice(({}, {"train": rng.random()})),
    )


def rewritten(spec: str, rng: random.Random) -> str:
    """The same objective in other words: its arguments in another order, spaces between them."""
    terms = []
    for term in parse_sum(spec):
        arguments = [f"{key} = {value!r}" for key, value in term.arguments.items()]
        rng.shuffle(arguments)
        terms.append(f"{term.name}( {' , '.join(arguments)} )" if arguments else term.name)
    return " + ".join(terms)


def in_other_words(rng: random.Random, block: Runs) -> Runs:
    settings = dataclasses.asdict(block.recipe)
    return Runs(
        measure=block.measure,
        arm=block.arm,
        draws=block.draws,
        seeds=block.seeds,
        backbones=tuple(rewritten(text, rng) for text in block.backbones),
        recipe=Recipe(**dict(reversed(settings.items()))),
        objectives=tuple(rewritten(text, rng) for text in block.objectives),
    )


def with_setting(name: str, value: Any, block: Runs) -> Runs:
    return dataclasses.replace(block, recipe=dataclasses.replace(block.recipe, **{name: value}))


@COUNTS
def test_a_step_is_the_same_however_it_is_written_and_another_for_other_values(count: int) -> None:
    for number in range(count):
        rng = random.Random(number)
        made = dataclasses.replace(study(rng), networks=study(rng).runs)
        written = made.with_runs(functools.partial(in_other_words, rng))
        other_words = dataclasses.replace(
            written, title="x", question="y", limited=not made.limited, expected_seconds={}
        )
        steps = unfold(made).steps
        assert list(unfold(other_words).steps) == list(steps)
        name = rng.choice(list(CHANGES))
        usual = getattr(made.main.recipe, name)
        value = next((value for value in CHANGES[name] if value != usual), getattr(Recipe(), name))
        changed = made.with_runs(functools.partial(with_setting, name, value))
        trained = {step.id for step in steps.values() if step.name == "train"}
        again = {step.id for step in unfold(changed).steps.values() if step.name == "train"}
        assert trained != again
        if not {block.recipe for block in changed.runs} & {block.recipe for block in made.runs}:
            assert not trained & again


def row(rng: random.Random) -> Row:
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        if name in INTEGERS:
            columns[name] = rng.choice((None, 0, 1, 2**31 - 1, 10**20))
        elif name not in ("value", "status", "setting", "metric"):
            columns[name] = rng.choice((None, text(rng)))
    columns["setting"] = setting_text(setting(rng))
    columns["status"] = rng.choice(("done", "diverged", "limited"))
    value = rng.choice((rng.choice(NUMBERS), rng.random() * 10 ** rng.randrange(-300, 300)))
    return Row(**columns, metric=text(rng) or "m", value=value)


def setting(rng: random.Random) -> dict[str, str | int | float]:
    names = [text(rng).replace("=", "").replace(",", "") + str(place) for place in range(rng.randrange(3))]
    plain = text(rng).replace("=", "").replace(",", "")
    return {name: rng.choice((plain, 3, 0.1)) for name in names}


def shown(rows: list[Row]) -> list[str]:
    """Rows as text, which tells -0.0 from 0.0 and NaN from nothing."""
    return [*map(repr, rows)]


@COUNTS
def test_rows_are_read_as_they_were_written(tmp_path: Path, count: int) -> None:
    rng = random.Random(count)
    rows = [row(rng) for _ in range(count)]
    (tmp_path / "rows.jsonl").write_bytes(encode_rows(rows))
    assert shown(read_rows(tmp_path / "rows.jsonl")) == shown(rows)
    for _ in range(count):
        condition = setting(rng)
        made = Row(metric="m", value=0, setting=setting_text(condition))
        assert made.settings == {name: str(value) for name, value in condition.items()}
