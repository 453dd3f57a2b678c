"""One page of several finished studies: whose numbers each exhibit shows, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import penultimate as pu
from penultimate.cli import main
from penultimate.data.readers.entries import ENTRIES
from penultimate.engine.observer import Observer, Summary
from penultimate.errors import RequestError
from penultimate.report import exhibit, read_study
from penultimate.report.base import Built
from penultimate.report.several import joined
from penultimate.store import Store
from penultimate.study import Study
from penultimate.study.existing import with_networks
from penultimate.study.graph import Graph
from tests.inprocess import InProcess
from tests.networks.given import RUNS, TRAINED

NINE = ("softmax", "label_smoothing", "cosine_softmax(scale=0.5, temperature=0.06)")
GRID = replace(RUNS, objectives=NINE)
SWEEP = tuple(f"cosine_softmax(scale={value}, temperature={value})" for value in (0.03, 0.06, 0.09))
ACCURACY = replace(TRAINED, name="separation", networks=(GRID,), measure=("accuracy", "class_separation"))
TRANSFER = replace(
    TRAINED,
    name="transfer",
    networks=(replace(GRID, seeds=(0,)), replace(GRID, seeds=(1,))),
    measure=("linear", "knn"),
)
TEMPERATURE = replace(
    TRAINED,
    name="sweep",
    networks=(replace(GRID, objectives=SWEEP, seeds=(0,), arm="temperature"),),
    measure=("accuracy", "class_separation", "linear"),
)
LONGER = replace(
    ACCURACY,
    name="longer",
    networks=(replace(GRID, recipe=replace(RUNS.recipe, epochs=3)),),
    measure=("accuracy", "dynamics"),
)
STUDIES = (ACCURACY, TRANSFER, TEMPERATURE, LONGER)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("several")
    for study in STUDIES:
        assert pu.run(study, out, engine=InProcess()).complete
    return out


def shown(store: Path, name: str, *studies: Study) -> Built:
    return exhibit(name, store, ",".join(study.name for study in studies), allow_limited=True)


def values(built: Built) -> list[list[float | None]]:
    tables = [table for table in built.tables if table.source == "ours"]
    return [[cell.value for cell in row.cells] for table in tables for row in table.rows]


def test_an_exhibit_that_one_study_fills_is_that_studys(store: Path) -> None:
    both = shown(store, "table1", ACCURACY, TRANSFER)
    alone = shown(store, "table1", TRANSFER)
    assert values(both) == values(alone)
    assert both.caption == f"{alone.caption} The numbers are those of `transfer`."
    assert both.missing == ()


def test_an_exhibit_that_no_study_fills_is_of_what_they_have_in_common(store: Path) -> None:
    half = shown(store, "figure5", TRANSFER, ACCURACY)
    assert "The numbers are those of `transfer` and `separation`." in half.caption
    assert [gap.what for gap in half.missing] != []
    whole = shown(store, "figure5", ACCURACY, TRANSFER, TEMPERATURE)
    assert whole.missing == ()
    assert "those of `separation`, `transfer` and `sweep`" in whole.caption
    (left, right) = (panel for figure in whole.figures for panel in figure.panels if panel.source == "ours")
    assert len([point for point in left.points if not point.faint]) == len(NINE)
    assert len([point for point in right.points if not point.faint]) == len(SWEEP)


def test_of_two_studies_with_other_numbers_the_first_is_shown_and_the_other_named(store: Path) -> None:
    first, second = shown(store, "tableC1", ACCURACY, LONGER), shown(store, "tableC1", LONGER, ACCURACY)
    assert values(first) == values(shown(store, "tableC1", ACCURACY))
    assert values(second) == values(shown(store, "tableC1", LONGER))
    assert values(first) != values(second)
    assert first.caption.endswith(
        "The numbers are those of `separation`. `longer` has other numbers; shown is the study named first of"
        " those that lack nothing of it."
    )


def test_networks_of_other_trainings_are_never_mixed(store: Path) -> None:
    results = read_study(store, "separation,longer")
    assert results.provenance["apart"] == {"longer": "other networks under the names of earlier ones"}
    steps = {row.step for row in results.table}
    assert steps == {row.step for row in read_study(store, "separation").table}
    curves = shown(store, "figureE4", ACCURACY, LONGER)
    assert "The numbers are those of `longer`." in curves.caption


def test_objectives_of_one_short_name_keep_their_own(store: Path) -> None:
    results = read_study(store, "separation,sweep")
    slugs = {entry["spec"]: entry["slug"] for entry in results.description["objectives"]}
    assert slugs[NINE[2]] == "cosine_softmax"
    assert slugs[SWEEP[0]] == SWEEP[0]
    assert len({*slugs.values()}) == len(slugs)


def test_claims_are_judged_by_what_the_studies_have_together(store: Path) -> None:
    alone = shown(store, "claims", ACCURACY)
    both = shown(store, "claims", ACCURACY, TRANSFER)
    judged = {row.label: [cell.text for cell in row.cells] for row in both.tables[0].rows}
    assert len(judged) > len(alone.tables[0].rows)
    with_longer = shown(store, "claims", ACCURACY, TRANSFER, LONGER)
    further = {row.label: [cell.text for cell in row.cells] for row in with_longer.tables[0].rows}
    assert {label: cells for label, cells in further.items() if label in judged} == judged
    own = [cells for label, cells in further.items() if label not in judged]
    assert own
    assert all("(of longer)" in " ".join(cells) for cells in own)


@pytest.mark.long
def test_the_page_lies_in_a_folder_of_its_own_and_names_its_studies(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in (store / "studies").iterdir())
    assert main(["report", "separation", "transfer", "longer", "--out", str(store)]) == 0
    path = store / "pages" / "separation-transfer-longer" / "report.html"
    assert str(path) in capsys.readouterr().out
    page = path.read_text()
    assert "This page shows 3 studies" in page
    assert "(other networks under the names of earlier ones)" in page
    assert "The numbers are those of <code>transfer</code>" in page
    files = {each.name for each in (path.parent / "report_files").iterdir()}
    assert {"results.csv", "results-separation.csv", "results-longer.csv"} <= files
    assert sorted(each.name for each in (store / "studies").iterdir()) == before
    assert main(["status", "--out", str(store)]) == 0
    assert main(["report", "separation", "transfer", "longer", "--out", str(store)]) == 0
    assert path.read_text() == page


@pytest.mark.long
def test_the_page_of_one_study_says_nothing_of_several(store: Path, tmp_path: Path) -> None:
    assert main(["report", "separation", "--out", str(store), "--to", str(tmp_path / "one.html")]) == 0
    page = (tmp_path / "one.html").read_text()
    assert "The numbers are those of" not in page
    assert "This page shows" not in page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["separation", "separation"], "study 'separation' is named twice; name it once"),
        (["separation", "separatio"], "has not been run in .* Did you mean 'separation'"),
        (["separation", "transfer", "--study", "sweep"], "name the studies, or give --study, not both"),
        (["separation", "transfer", "--reference"], "name the studies, or give --reference, not both"),
    ],
)
def test_what_cannot_be_one_page_is_refused(
    arguments: list[str], told: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = [] if "--reference" in arguments else ["--out", str(store)]
    assert main(["report", *arguments, *out]) == 2
    assert re.search(told, capsys.readouterr().err)


class Idle:
    """An engine that leaves a study begun, with nothing done."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        return Summary()


def test_a_study_that_is_not_finished_is_refused_with_the_command_that_goes_on(store: Path) -> None:
    pu.run(replace(ACCURACY, name="half", networks=(replace(GRID, seeds=(0, 1, 2)),)), store, engine=Idle())
    told = r"'half' is not finished \(\d+ of \d+ steps are done\).*leave it out: penultimate run half --out"
    with pytest.raises(RequestError, match=told):
        read_study(store, "separation,half")


def test_a_study_without_results_is_refused(store: Path, tmp_path: Path) -> None:
    folder = next(store.glob("steps/train.softmax-s0.*"))
    (tmp_path / "t.csv").write_text(f"file,objective,seed\n{folder / 'network.safetensors'},softmax,0\n")
    nothing = replace(with_networks(ACCURACY, tmp_path / "t.csv"), name="nothing", measure=())
    pu.run(nothing, store, engine=InProcess())
    with pytest.raises(RequestError, match="study 'nothing' has no results: none of its steps left a number"):
        read_study(store, "separation,nothing")


def test_studies_of_different_images_are_refused(store: Path) -> None:
    ours = read_study(store, "separation")
    theirs = replace(ours, description={**ours.description, "name": "other", "source": "digits"})
    with pytest.raises(
        RequestError, match=r"'other' were trained on Handwritten digits, .* one page is of one of them"
    ):
        joined([ours, theirs], [{}, {}])


def test_imagenet_with_and_without_a_holdout_are_the_same_images(store: Path) -> None:
    ours = read_study(store, "separation")
    parts = [
        replace(
            ours,
            description={
                **ours.description,
                "name": name,
                "source": name,
                "cards": [ENTRIES[name].card.described()],
            },
        )
        for name in ("imagenet", "imagenet_tuning")
    ]
    both = joined(parts, [{}, {}])
    assert both.provenance["apart"] == {"imagenet_tuning": "pretrained on ImageNet with a holdout"}
