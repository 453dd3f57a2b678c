"""Names that readers or file systems take for each other: refused where they enter, and kept apart after."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penultimate import registry
from penultimate.data.catalog import CARDS, DatasetCard, card
from penultimate.data.readers.entries import ENTRIES
from penultimate.data.readers.opening import open_dataset
from penultimate.errors import RequestError, as_seen
from penultimate.records.table import Table
from penultimate.records.tracing import explain
from penultimate.report.base import Built, Cell, Column, ExhibitTable, StudyResults, TableRow
from penultimate.report.networks import StudyNetworks
from penultimate.report.page.page import _side_files
from penultimate.report.sets import name_on
from penultimate.report.tables import to_csv
from penultimate.report.text import as_name
from penultimate.study import Given, Runs, Study
from tests.data.published import put, put_image
from tests.records.stores import SOFTMAX, described, finished, prepared

PRINTABLE = [
    ("two words", "two  words"),
    ("net", "net "),
    ("net", " net"),
    ("caf\u00e9", "cafe\u0301"),
    ("\ufb01t", "fit"),
    ("Net", "net"),
    ("Stra\u00dfe", "STRASSE"),
    ("ab", "a\u034fb"),
    ("ab", "a\ufe0fb"),
    ("ab", "a\u3164b"),
]
"""Names of arms, networks and data sets, as far as these may hold such signs."""
UNPRINTABLE = [("ab", "a\u200bb"), ("ab", "\ufeffab"), ("a b", "a\tb"), ("a b", "a\u2028b")]
JOINED = [("a", "b--c"), ("a--b", "c"), ("a-", "b"), ("a", "-b"), ("a_b", "c"), ("a", "b_c"), ("a b", "c")]


def study(**changes: Any) -> Study:
    usual: dict[str, Any] = {
        "name": "mine",
        "title": "",
        "question": "",
        "source": "glyphs_smoke",
        "targets": ("digits_smoke",),
        "networks": (Given({"net": "timm:resnet18"}),),
        "measure": ("accuracy",),
    }
    return Study(**(usual | changes))


def images(root: Path, *classes: str) -> Path:
    for label, name in enumerate(classes):
        for number in range(3):
            put_image(root / name / f"{number}.png", label % 3, number)
    return root


# -- where names enter ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [*PRINTABLE, *UNPRINTABLE, ("ab", "a\u202eb")])
def test_what_readers_do_not_tell_apart_is_seen_as_one(one: str, other: str) -> None:
    assert as_seen(one) == as_seen(other)


@pytest.mark.parametrize(("one", "other"), [("a b", "a_b"), ("a-b", "a_b"), ("a1", "al"), ("\u03b1", "a")])
def test_what_looks_different_is_seen_as_two(one: str, other: str) -> None:
    assert as_seen(one) != as_seen(other)


@pytest.mark.parametrize(("one", "other"), PRINTABLE)
def test_networks_and_arms_that_look_alike_are_refused(one: str, other: str) -> None:
    told = f"{re.escape(ascii(one))} and {re.escape(ascii(other))} look alike"
    given = [Given({name: "timm:resnet18"}) for name in (one, other)]
    with pytest.raises(RequestError, match=f"the networks {told}"):
        study(networks=(Given({one: "timm:resnet18", other: "timm:resnet18"}),))
    with pytest.raises(RequestError, match=f"the networks {told}"):
        study(networks=given)
    with pytest.raises(RequestError, match=f"the arms {told}"):
        study(networks=tuple(Runs(("softmax",), arm=arm) for arm in (one, other)))


@pytest.mark.parametrize("name", ["Softmax", "softmax ", "label smoothing", "Label Smoothing"])
def test_a_network_that_looks_like_an_objective_or_its_label_is_refused(name: str) -> None:
    trained = Runs(("softmax", "label_smoothing"))
    with pytest.raises(RequestError, match=f"and {name!r} look alike"):
        study(networks=(Given({name: "timm:resnet18"}), trained))


@pytest.mark.parametrize(("one", "other"), PRINTABLE)
def test_data_sets_that_look_alike_are_refused(tmp_path: Path, one: str, other: str) -> None:
    places = {
        one: str(images(tmp_path / "a", "ant", "bee")),
        other: str(images(tmp_path / "b", "ant", "bee")),
    }
    with pytest.raises(RequestError, match=r"the data sets '.*' and '.*' look alike; give one of them"):
        study(targets=(one, other), data=places)
    with pytest.raises(RequestError, match="look alike"):
        study(source=one, targets=(other,), data=places)


def test_data_sets_that_have_one_heading_are_refused(tmp_path: Path) -> None:
    place = str(images(tmp_path, "ant", "bee"))
    told = r"'two words' and 'two_words' look alike \('two_words' is shown as 'two words'\)"
    with pytest.raises(RequestError, match=told):
        study(targets=("two words", "two_words"), data={"two words": place, "two_words": place})


@pytest.mark.parametrize(
    "name", ["Digits_smoke", "Digits (smoke)", "digits  (smoke)", "digits smoke", "DIGITS\u3164 smoke"]
)
def test_data_that_look_like_a_data_set_beside_them_are_refused(tmp_path: Path, name: str) -> None:
    place = {name: str(images(tmp_path, "ant", "bee"))}
    with pytest.raises(RequestError, match=r"the data sets 'digits_smoke' and '.*' look alike"):
        study(targets=("digits_smoke", name), data=place)
    assert study(targets=(name,), data=place).targets == (name,)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("\ufb01t", r"Python reads the name '\\ufb01t' of a loss as 'fit': write it so"),
        ("nai\u0308ve", r"Python reads the name 'nai\\u0308ve' of a loss as 'na\\xefve': write it so"),
        ("Sigmoid_cross_entropy", "names 'sigmoid_cross_entropy' and 'Sigmoid_cross_entropy' look alike"),
        ("sigmoid_cross_entrop\u034fy", r"and 'sigmoid_cross_entrop\\u034fy' look alike"),
    ],
)
def test_a_plugin_that_python_or_a_reader_takes_for_another_is_refused(name: str, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        registry.register.loss(name=name)(lambda logits, targets: logits)
    assert name not in registry.names("loss")


@pytest.mark.parametrize("kind", registry.KINDS)
def test_no_two_built_in_names_look_alike(kind: str) -> None:
    names = registry.names(kind)
    assert len({as_seen(name) for name in names}) == len(names)


def test_splits_that_look_alike_are_refused() -> None:
    with pytest.raises(RequestError, match="the splits of data set 'digits' 'test' and 'Test' look alike"):
        dataclasses.replace(card("digits"), sizes={"train": 4, "test": 4, "Test": 4})
    assert isinstance(dataclasses.replace(card("digits"), sizes={"a/1": 4, "a/2": 4}), DatasetCard)


@pytest.mark.parametrize(
    ("one", "other"), [("Ant", "ant"), ("a  b", "a b"), ("ab", "a\u200bb"), ("\u00b2", "2")]
)
def test_classes_that_look_alike_are_named(tmp_path: Path, one: str, other: str) -> None:
    told = "of names that look alike, and each taken for a class: "
    for place in (images(tmp_path / "folders", one, other), tmp_path / "folders" / "t.csv"):
        if place.suffix:
            rows = [f"{name}/{number}.png,{name}" for name in (one, other) for number in range(3)]
            put(place, "\n".join(["path,label", *rows]))
        opened = open_dataset(str(place))
        assert {*opened.splits["train"].class_names} == {one, other}
        (note,) = (note for note in opened.notes if note.startswith(told))
        assert {*note.removeprefix(told).split(", ")} == {ascii(one), ascii(other)}


def test_a_class_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    pixels = np.zeros((4, 8, 8, 3), np.uint8)
    names = {"class_names": ["crane", "ox", "crane"]}
    np.savez(tmp_path / "x.npz", images=pixels, labels=["crane", "ox", "crane", "ox"], **names)
    with pytest.raises(RequestError, match="names the class 'crane' twice; name each once"):
        open_dataset(str(tmp_path / "x.npz"))


# -- files and columns ---------------------------------------------------------------------------------------


def test_names_of_files_are_those_of_one_text_or_pair_alone() -> None:
    texts = [name for pair in (*PRINTABLE, *UNPRINTABLE, *JOINED) for name in pair]
    texts += ["", "..", "a/b", "x" * 90, "x" * 90 + "y", "_Digits---8a5edab28263", "a---b", "A", "con"]
    several = [*((text,) for text in {*texts}), *itertools.product({*texts}, repeat=2)]
    names = [as_name(*parts) for parts in several]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,90}", name) for name in names)
    assert len({name.lower() for name in names}) == len(several)


def test_panels_of_targets_are_called_like_no_others() -> None:
    own = ["mean", "scale", "ours", "published", "published-pets", "layers-1", "between-1", "Digits", "a-b"]
    targets = [*own, *CARDS, *ENTRIES]
    names = [name_on("figureD1", target) for target in targets]
    assert len({name.lower() for name in names}) == len(targets)
    assert not {name.removeprefix("figureD1") for name in names} & {f"-{name}" for name in own}
    assert name_on("figureD1", "pets") == "figureD1-pets"


def test_columns_of_one_name_are_told_apart() -> None:
    keys = ("a_percent", "a_percent", "A_percent", "a_percent_se", "source", "Network", "a\u202e_percent")
    row = TableRow("net", tuple(Cell("1", 1.0, error=0.5) for _ in keys))
    table = ExhibitTable("t", "", "Network", tuple(Column(key, key) for key in keys), (row,))
    header = next(csv.reader(io.StringIO(to_csv(table))))
    assert header[:2] == ["Network", "a_percent"]
    assert len({as_seen(name) for name in header}) == len(header) == 2 + 2 * len(keys)
    (read,) = csv.DictReader(io.StringIO(to_csv(table)))
    assert len(read) == len(header)


@pytest.mark.parametrize("name", ["figure2", "Figure2"])
def test_a_page_with_two_tables_of_one_name_is_refused(name: str) -> None:
    def built(called: str, number: float) -> Built:
        row = TableRow("net", (Cell(f"{number}", number),))
        return Built("mine", "", "", (ExhibitTable(called, "", "Network", (Column("a", "A"),), (row,)),))

    exhibits = [built("figure2", 1.0), built(name, 2.0)]
    with pytest.raises(RequestError, match=f"two tables or panels of the page are called '{name}.csv'"):
        _side_files(StudyResults({}, Table(())), exhibits, {})


# -- where names are asked for and shown ---------------------------------------------------------------------


def entry(spec: str, label: str = "", slug: str = "") -> dict[str, str]:
    return {"slug": slug or spec, "label": label or spec, "spec": spec}


def value(tmp_path: Path, objectives: list[dict[str, str]], asked: str) -> str:
    """Return the value that `penultimate why` tells of what is asked for: 0.5, 0.625, ... in their order."""
    store = prepared(tmp_path)
    steps = []
    for number, each in enumerate(objectives):
        columns = {**SOFTMAX, "objective": each["spec"], "source": "glyphs", "target": "glyphs"}
        rows = [{"metric": "top1", "split": "test", "value": 0.5 + number / 8}]
        steps.append(finished(store, f"accuracy.{number}.0", columns, rows))
    networks = [{"objectives": [each["spec"] for each in objectives], "backbones": ["net"], "arm": ""}]
    folder = described(store, "mine", steps, objectives=objectives, networks=networks)
    said = explain(folder, registry.entry("exhibit", "table1").resolve(), asked)
    return re.findall(r"top1 +test +([0-9.]+)", said)[0]


@pytest.mark.parametrize("names", [("softmax", "softmax "), ("net", "Net", "net "), ("a b", "a  b", "a_b")])
def test_why_finds_a_name_as_it_is_written_first(tmp_path: Path, names: tuple[str, ...]) -> None:
    for number, name in enumerate(names):
        for order in (names, names[::-1]):
            found = value(tmp_path / f"{number}{order[0]}", [entry(each) for each in order], name)
            assert found == f"{0.5 + order.index(name) / 8:g}"


def test_why_takes_a_spec_before_a_label_and_asks_where_a_label_is_of_two(tmp_path: Path) -> None:
    objectives = [
        entry("softmax", label="sigmoid"),
        entry("sigmoid", label="Twice"),
        entry("ours", label="Twice"),
    ]
    assert value(tmp_path / "a", objectives, "sigmoid") == "0.625"
    with pytest.raises(RequestError, match="several objectives called 'Twice': is it 'sigmoid' or 'ours'"):
        value(tmp_path / "b", objectives, "Twice")


@pytest.mark.parametrize(("one", "other"), [*PRINTABLE, *UNPRINTABLE])
def test_labels_that_look_alike_have_the_same_numbers_in_all_arms(one: str, other: str) -> None:
    arms = {"": [one, other], "second": [other], "third": [other, one]}
    networks = StudyNetworks(
        {
            "objectives": [entry(one), entry(other)],
            "networks": [{"objectives": specs, "arm": arm} for arm, specs in arms.items()],
        }
    )
    labels = {arm: {each.spec: each.label for each in networks.objectives(arm, ())} for arm in arms}
    assert labels[""][one].endswith(" [1 of 2]")
    assert all(labels[arm][spec] == labels[""][spec] for arm, specs in arms.items() for spec in specs)
