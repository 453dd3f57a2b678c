"""The ranking of an evaluation and what stands behind it: tests, names, baselines, ranks, layers, cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.evaluation.planted import IMAGES, TASK, given, guesses

import penultimate as pu
from penultimate import register, registry
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.evaluation.standings import board, records
from penultimate.evaluation.warnings import shortfalls, warnings
from penultimate.measures.baselines import NAMES
from penultimate.results.exhibit import Exhibit, Shown, show
from penultimate.results.page import render_page
from penultimate.results.rows import Run
from penultimate.results.table import Column, table_of_rows
from penultimate.statistics.paired import Answers
from penultimate.study.foundation import word


def page(run: Run) -> str:
    return render_page(run)[""].decode()


def cells(shown: Shown, table: int = 0) -> dict[str, list[Any]]:
    """Return the cells of a table as shown, by the heading of their row."""
    return dict(zip(shown.tables[table].labels, shown.tables[table].shown(), strict=True))


def test_the_first_is_said_to_be_level_with_one_that_it_is_level_with() -> None:
    """The second is behind beyond chance, the third, which errs on other images, is not."""
    right = [np.arange(1000) < 900, np.arange(1000) < 885, (np.arange(1000) >= 100) & (np.arange(1000) < 980)]
    answers = Answers(np.stack(right), np.zeros(1000, int))
    names = ["first", "second", "third"]
    found = board("digits", {"digits": (names, answers)})
    assert found is not None
    assert list(found.standings.index) == names
    assert [found.place(name) for name in names] == ["1–2", "2–3", "1–3"]
    assert found.leaders == ["first", "third"]
    difference, p, is_told_apart = found.difference("second", "first")
    assert (round(difference or 0.0, 3), is_told_apart) == (-0.015, True)
    assert p == pytest.approx(3 * binomtest(15, 15).pvalue)  # Holm: the smallest of three
    said = found.sentence({name: name for name in names})
    assert "it is not told apart from third (2.0 points, p = " in said
    assert "second" not in said


def test_the_table_holds_places_intervals_and_marks_and_may_be_read_back(tmp_path: Path) -> None:
    run = given(tmp_path, {"good": guesses(12), "poor": guesses(3)})
    shown = show("ranking", run)
    assert [table.name for table in shown.tables] == ["ranking_linear", "ranking_knn"]
    assert cells(shown)["good"][0] == "1"
    assert cells(shown)["poor"] == ["2", "25.0 [5.5, 57.2]"]  # Clopper and Pearson
    assert shown.tables[0].marked() == [["", "best"], ["", ""]]
    (row,) = [each for each in records(run) if each["network"] == "poor" and each["probe"] == "knn"]
    assert (row["accuracy"], row["best_place"], row["unbeaten"], row["test_images"]) == (0.25, 2, False, 12)
    (compared,) = show("comparisons", run).tables[:1]
    assert compared.to_pandas().iloc[0].tolist()[:2] == ["good – poor", pytest.approx(75)]
    assert compared.to_pandas().iloc[0, 2] == pytest.approx(binomtest(9, 9).pvalue)


@pytest.mark.parametrize("names", [("softmax", "sigmoid"), ("first", "second")])
def test_given_networks_stand_beside_no_number_of_the_paper(
    tmp_path: Path, names: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever they are called: the paper's softmax is an objective, this one is somebody's network."""
    run = given(tmp_path, names)
    for name in ("table1", "figureC1", "figure2"):
        with pytest.raises(RequestError, match=r"trained elsewhere.* show ranking"):
            pu.exhibit(name, run)
    assert main(["show", "table1", "--out", str(tmp_path)]) == 2
    assert "penultimate show ranking" in capsys.readouterr().err
    files = render_page(run)
    assert not [name for name in files if "published" in name]
    assert main(["show", "ranking", "--csv", "--out", str(tmp_path)]) == 0
    assert f"{names[0]},1–2,100.0,ours" in capsys.readouterr().out


def test_an_exhibit_of_given_networks_of_a_plugin_stands_on_the_page(tmp_path: Path) -> None:
    def apart(run: Run) -> Any:
        """Registered elsewhere."""
        yield table_of_rows("apart", "How far apart", [Column("x", "X")], [("first", [1.0])])

    run = given(tmp_path, ("first", "second"))
    register.exhibit(Exhibit("apart", "Registered elsewhere", apart, of_given=True))
    try:
        assert "Further exhibits" in page(run)
    finally:
        registry.forget("exhibit", "apart")
    assert "Registered elsewhere" not in page(run)


@pytest.mark.parametrize(
    "names",
    [
        ("Net", "net"),
        ("x" * 70 + "1", "x" * 70 + "2"),
        ("network softmax", "softmax"),
        ("<script>alert(1)</script>", "=cmd()"),
    ],
)
def test_names_that_look_alike_or_do_harm_are_networks_of_their_own(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    run = given(tmp_path, names)
    labels = show("ranking", run).tables[0].labels
    assert len({*labels}) == len(names)
    rows = records(run)
    assert [row["accuracy"] for row in rows[: len(names)]] == [
        (IMAGES - each) / IMAGES for each in range(len(names))
    ]
    assert "<script>alert" not in page(run)


def test_networks_of_one_word_in_step_ids_have_reasons_of_their_own(tmp_path: Path) -> None:
    names = ("my net", "my-net", "x" * 45 + "1", "x" * 45 + "2")
    steps = [
        {
            "step": f"{kind}.{word(name)}-{TASK}.{number}",
            "columns": {"objective": name},
            "undefined": f"reason {number} of {kind}",
        }
        for kind in ("probed", "classifier")
        for number, name in enumerate(names)
    ]
    run = given(tmp_path, ("net",), steps)
    for number, name in enumerate(names):
        assert f"No number of {name} on {TASK}: reason {number} of probed." in show("ranking", run).notes
        told = f"As a classifier, no number of {name} on {TASK}: reason {number} of classifier."
        assert told in show("classifiers", run).notes


def baselines(of_pixels: int, images: int = 60) -> dict[str, Any]:
    """Return the step of baselines, which are tested on a part of the images; colours are never right."""
    shown = np.arange(0, images, 2)
    of = dict(zip(NAMES, (of_pixels, 0, of_pixels // 2), strict=True))
    held = {name: guesses(right, images)[shown] for name, right in of.items()}
    arrays = {"baseline_predictions": {"ids": shown, "labels": shown % 3, **held}}
    rows = [{"metric": "baseline_predictions", "value": len(shown), "unit": "points"}]
    return {"step": f"baselines.{TASK}.0", "rows": rows, "arrays": arrays}


def test_a_network_below_pixels_is_named_first_and_no_baseline_is_ranked(tmp_path: Path) -> None:
    run = given(tmp_path, {"good": guesses(56, 60), "lost": guesses(8, 60)}, [baselines(40)])
    (found,) = shortfalls(run)
    assert (found.network, found.baseline) == ("lost", "pixels")
    assert (found.value, found.of_baseline) == (pytest.approx(4 / 30), pytest.approx(20 / 30))
    # Of six pairs the two of the largest difference come first in Holm's order, so that this one (16 images
    # to none) is multiplied by what is left.
    raw = sorted(binomtest(0, count).pvalue for count in (28, 18, 16, 8, 4, 6))
    holm, most = [], 0.0
    for place, p in enumerate(raw):
        most = max(most, min(1.0, (6 - place) * p))
        holm.append(most)
    assert found.p == pytest.approx(holm[raw.index(binomtest(0, 16).pvalue)], rel=1e-9)
    (line,) = warnings(run)
    assert line.startswith("lost is worse than a linear probe on pixels, 8 x 8 (13.3 against 66.7 %, p ")
    assert {row["network"] for row in records(run)} == {"good", "lost"}
    html = page(run)
    assert "Caution: lost is worse" in html
    assert "below pixels" in html
    table = show("baselines", run).tables[0].to_pandas()
    assert table["Features"].tolist()[:2] == ["Always one class", "Pixels, 8 x 8"]
    assert table[f"{TASK}_percent"].tolist()[-2:] == pytest.approx([100 * 4 / 30, 100 * 28 / 30])


def test_ranks_stand_with_tie_groups_and_what_could_have_been_found(tmp_path: Path) -> None:
    run = given(tmp_path / "three", ("first", "second", "third"))
    shown = show("ranks", run)
    ranks, power = (table.to_pandas() for table in shown.tables)
    assert ranks[f"{TASK}_images"].tolist() == [1, 2, 3]
    assert {*ranks[f"{TASK}_group"]} == {"a"}  # twelve images tell none apart
    assert power.iloc[0].tolist()[1:3] == ["12", "3 of 3"]
    assert not show("ranks", given(tmp_path / "one", ("first",))).tables


CASES = {  # layer, predictions there, predictions from the penultimate features
    "gains": ("layer2", guesses(240, 300), guesses(200, 300)),
    "level": ("layer3", guesses(200, 300, 2), guesses(200, 300)),
    "loses": ("layer1", guesses(150, 300), guesses(200, 300)),
    "stays": ("penultimate", guesses(220, 300), guesses(220, 300)),
}


def test_each_network_has_its_layer_to_read_its_gain_and_the_paired_test(tmp_path: Path) -> None:
    steps, labels = [], np.arange(300) % 3
    for name, (layer, chosen, last) in CASES.items():
        arrays = {"ids": np.arange(300), "labels": labels, "chosen": chosen, "last": last}
        rows = [
            {"metric": "readout_top1", "value": float((chosen == labels).mean()), "layer": layer},
            {"metric": "readout_predictions", "value": 300, "unit": "points"},
        ]
        of = {"columns": {"objective": name}, "rows": rows, "arrays": {"readout_predictions": arrays}}
        steps.append({"step": f"readout.{name}-{TASK}.0", **of})
    run = given(tmp_path, [*CASES], steps)
    shown = show("readout", run)
    found = cells(shown)
    assert {name: found[name][:2] for name in CASES} == {
        "gains": ["layer2", "80.0"],
        "level": ["layer3", "66.7"],
        "loses": ["layer1", "50.0"],
        "stays": ["last", "73.3"],
    }
    assert found["gains"][2].startswith("+13.3 (+9.")
    assert found["stays"][2:] == ["–", "–"]
    right = [guess == labels for guess in CASES["level"][1:]]
    ahead, apart = int((right[0] & ~right[1]).sum()), int((right[0] ^ right[1]).sum())
    p = dict(zip(shown.tables[0].labels, shown.tables[0].to_pandas()[f"{TASK}_p"], strict=True))["level"]
    assert p == pytest.approx(binomtest(ahead, apart).pvalue)  # Holm leaves the largest as it is
    assert "For 3 of four combinations of network" in " ".join(shown.notes)
    marks = dict(zip(shown.tables[0].labels, shown.tables[0].marked(), strict=True))
    assert {name for name, of in marks.items() if "best" in of} == {"gains", "loses"}


def test_the_front_and_the_speed_stand_in_the_table_of_costs(tmp_path: Path) -> None:
    steps = []
    for name, adds in {"best": 2e9, "slow": 3e9, "quick": 1e8, "outside": None}.items():
        rows = [{"metric": "width", "value": 512, "unit": "count"}]
        rows += [] if adds is None else [{"metric": "multiply_adds", "value": adds, "unit": "count"}]
        speed = {"images_a_second": 1234.5, "device": "cpu", "threads": 1, "batch": 32}
        told = {"speed": speed} if name == "best" else {}
        steps.append({"step": f"cost.{name}-{TASK}.0", "columns": {"objective": name}, "rows": rows, **told})
    shown = show("cost", given(tmp_path, ("best", "slow", "quick", "outside"), steps))
    found = cells(shown)
    assert found["best"] == ["100.0", "–", "2", "1,234", "2,048"]
    assert found["outside"][2:4] == ["–", "–"]
    bold = zip(shown.tables[0].labels, shown.tables[0].marked(), strict=True)
    assert {name for name, marks in bold if marks[0] == "best"} == {"best", "quick"}
    assert [point.slug for point in shown.figures[0].panels[0].points] == ["best", "slow", "quick"]
    assert "one thread" in " ".join(shown.notes)


def test_constant_features_are_cautioned_against(tmp_path: Path) -> None:
    steps = []
    for name, constant in (("flat", 8), ("fine", 1)):
        counts = {"constant_features": constant, "width": 8}
        rows = [{"metric": metric, "value": value, "unit": "count"} for metric, value in counts.items()]
        steps.append({"step": f"geometry.{name}-{TASK}.0", "columns": {"objective": name}, "rows": rows})
    run = given(tmp_path, {name: guesses(12) for name in ("flat", "fine")}, steps)
    notes = " ".join(show("ranking", run).notes)
    assert "flat: its features are the same for all test images." in notes
    assert "fine:" not in notes
