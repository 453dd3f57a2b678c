"""Networks and data of your own: named, evaluated, ranked on a page; what is wrong, in a sentence."""

from __future__ import annotations

import html
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from tests.conftest import rows_in
from tests.evaluation.pictures import class_folders, fill, split_folders
from tests.inprocess import InProcess
from torch import Tensor, nn

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.evaluation import Evaluation
from penultimate.evaluation.example import FOLDER, with_example
from penultimate.evaluation.naming import data_named, networks_named, outside_named
from penultimate.evaluation.request import Request
from penultimate.files import digest_file
from penultimate.results.rows import read_run
from penultimate.study import Given
from penultimate.study.unfold import unfold

NETWORKS = {
    "res & <net>": "timm:test_resnet(pretrained=False, seed=1)",
    "vit": "timm:test_vit(pretrained=False, seed=2)",
}
HOSTILE = '<b>"odd" & co</b>'
"""A class's name."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("folders")
    shapes = split_folders(root / "shapes", ("disc", "square"), 8, 6)
    for split, seed in (("train", 3), ("test", 4)):  # more discs, by another name
        fill(shapes / split / HOSTILE, 8 if split == "train" else 6, 0, seed)
    return {"shapes": shapes, "<i>few</i>": class_folders(root / "few", ("a", "b"), 10)}


@pytest.fixture(scope="module")
def evaluated(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    out = tmp_path_factory.mktemp("evaluated") / "runs"
    return pu.evaluate(NETWORKS, folders, out=out, on=InProcess())


def steps(store: Path, kind: str) -> set[str]:
    return {path.name for path in (store / "steps").glob(f"{kind}.*")}


def test_the_ranking_is_a_table(evaluated: Evaluation) -> None:
    assert evaluated.summary.complete
    frame = evaluated.to_pandas()
    shown = evaluated._repr_html_().replace("\N{NO-BREAK SPACE}", " ")
    assert "linear" in shown.lower()
    assert "<i>few</i>" not in shown
    assert all(html.escape(network) in shown for network in NETWORKS)
    assert frame.equals(pd.DataFrame(evaluated))
    assert {*frame["task"]} == {"", "shapes", "<i>few</i>"}
    assert {*frame["network"]} == {*NETWORKS}
    assert len(frame) == 2 * 3 * 2
    assert ((frame["low"] <= frame["accuracy"]) & (frame["accuracy"] <= frame["high"])).all()
    of_tasks = frame[(frame["task"] != "") & (frame["probe"] == "linear") & (frame["network"] == "vit")]
    whole = frame[(frame["task"] == "") & (frame["probe"] == "linear") & (frame["network"] == "vit")]
    assert whole["accuracy"].item() == pytest.approx(of_tasks["accuracy"].mean())
    rows = rows_in(evaluated.out, evaluated.study).where(metric="linear_top1", objective="vit", layer=None)
    assert sorted(rows.values()) == pytest.approx(sorted(of_tasks["accuracy"]))
    assert (frame["unbeaten"] == (frame["best_place"] == 1)).all()
    assert (frame["low"] < frame["high"]).all()  # though some probes are right on all images
    assert "Place" in repr(evaluated)


def test_everything_is_measured_that_the_networks_can_give(evaluated: Evaluation) -> None:
    table = rows_in(evaluated.out)
    measured = {(row.metric, row.target) for row in table if row.objective == "vit"}
    for metric in ("class_separation", "nonzero_share", "effective_rank", "parameters"):
        assert (metric, "shapes") in measured
    for target in ("shapes", "<i>few</i>"):
        for metric in ("linear_top1", "knn_top1", "logme", "confusions", "probe_predictions"):
            assert (metric, target) in measured
    (pair,) = table.where(metric="pair_cka")
    assert {pair.objective, pair.objective_b} == {*NETWORKS}
    (layers,) = table.where(metric="pair_layers")
    assert (layers.objective, layers.objective_b) == (pair.objective, pair.objective_b)
    assert not table.where(metric="top1")


def test_the_page_says_what_it_rests_on_and_shows_what_is_confused(evaluated: Evaluation) -> None:
    text = evaluated.report.read_text()
    for words in ("What the ranking rests on", "drawn with seed 0", "Holm", "--fine-tune"):
        assert words in text
    assert "published" not in text.partition("</style>")[2]
    assert "a taken for b" in text or "b taken for a" in text or "taken for" in text
    assert 0 < text.count('src="data:image/png;base64,') <= 4 * 3 * 2 * 2
    for name in ("res & <net>", "<i>few</i>", HOSTILE):
        assert name not in text
    assert "&lt;i&gt;few&lt;/i&gt;" in text
    assert {path.name for path in evaluated.report.with_name("report_files").glob("*.csv")} >= {
        *("ranking_linear.csv", "comparisons_knn.csv", "ranks_power.csv", "baselines.csv", "cost.csv"),
        *("confusions--shapes.csv", "features.csv", "likeness_points.csv", "foretold--shapes.csv"),
        *("basis_data.csv", "basis_networks.csv", "basis_prepared.csv", "results.csv"),
    }


def test_a_second_call_does_nothing_and_writes_no_page(
    evaluated: Evaluation, folders: dict[str, Path]
) -> None:
    before = evaluated.report.stat().st_mtime_ns
    again = pu.evaluate(NETWORKS, folders, out=evaluated.out, on=InProcess())
    assert again.summary.computed == 0
    assert again.report.stat().st_mtime_ns == before
    assert again.ranking == evaluated.ranking


def test_a_further_network_costs_only_itself_and_its_pairs(
    evaluated: Evaluation, folders: dict[str, Path]
) -> None:
    more = {**NETWORKS, "third": "timm:test_efficientnet(pretrained=False, seed=1)"}
    before = unfold(Request(NETWORKS, {name: str(where) for name, where in folders.items()}).study())
    after = unfold(Request(more, {name: str(where) for name, where in folders.items()}).study())
    assert {*before.steps} <= {*after.steps}
    for step in (after.steps[step_id] for step_id in {*after.steps} - {*before.steps}):
        assert "third" in step.id
    assert sum(step.name == "pair_cka" for step in after.steps.values()) == 3


@pytest.mark.long
def test_a_bad_network_and_bad_data_cost_nothing_of_the_others(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folders["shapes"], tmp_path / "cut")
    (tmp_path / "cut" / "train" / "disc" / "000.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "not.pth").write_bytes(b"no weights")
    arguments = ["evaluate", "--model", NETWORKS["vit"], "--model", "bad=timm:test_resnet"]
    arguments += ["--weights", str(tmp_path / "not.pth"), "--data", f"shapes={folders['shapes']}"]
    arguments += ["--data", f"cut={tmp_path / 'cut'}", "--out", str(tmp_path / "runs"), "--processes", "1"]
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert "not.pth' does not hold weights" in said.err
    assert "Traceback" not in said.out + said.err
    page = (tmp_path / "runs" / "studies" / "evaluation" / "report.html").read_text()
    assert "No number of bad on shapes" in page
    assert "Left out of cut, train, because they cannot be read" in page
    assert "000.jpg' is not a complete image" in html.unescape(page)
    assert "Unfinished" in page
    assert any("test_vit-shapes" in name for name in steps(tmp_path / "runs", "probed"))


@pytest.mark.long
def test_one_class_has_no_accuracy_and_says_so(tmp_path: Path) -> None:
    one = class_folders(tmp_path / "one", ("only",), 6)
    done = pu.evaluate({"vit": NETWORKS["vit"]}, {"one": one}, out=tmp_path / "runs", on=InProcess())
    assert done.summary.complete
    assert done.ranking == []
    page = done.report.read_text()
    assert "No network has been tested on any task yet" in page
    assert "No number of vit on one: probes on" in page


@pytest.mark.long
def test_a_source_whose_classes_the_networks_tell_apart_is_measured_as_such(tmp_path: Path) -> None:
    from tests.networks.given import TRAINED, first_network

    pu.run(TRAINED, tmp_path / "runs", engine=InProcess())
    networks = networks_named([(str(first_network(tmp_path / "runs")), "")])
    assert [*networks] == ["softmax-s0"]
    data = {"glyphs_smoke": "", "digits_smoke": ""}
    done = pu.evaluate(
        networks, data, source="glyphs_smoke", classifies=True, out=tmp_path / "runs", on=InProcess()
    )
    assert done.summary.complete
    metrics = {row.metric for row in rows_in(tmp_path / "runs", "evaluation")}
    assert {"top1", "ece", "nll", "assignment_accuracy", "semantic_overlap", "nce", "leep"} <= metrics
    assert {row["task"] for row in done} == {"digits_smoke"}
    page = done.report.read_text()
    assert "As classifiers of the source" in page
    assert "temperature" in metrics or "temperature is best" in page


def test_a_size_and_a_crop_are_told_to_all_networks_that_do_not_say_theirs(tmp_path: Path) -> None:
    networks = {"own": "timm:test_vit(pretrained=False, crop=96)", "plain": "timm:test_resnet"}
    study = Request(networks, {"digits": ""}, size=64, crop=0.8).study()
    (block,) = study.networks
    assert isinstance(block, Given)
    assert block.networks == {
        "own": "timm:test_vit(pretrained=False, crop=96, share=0.8)",
        "plain": "timm:test_resnet(crop=64, share=0.8)",
    }
    resized = Request({"a": "timm:test_vit(resize=80)"}, {"digits": ""}, size=64, crop=0.8).study()
    assert resized.networks == (Given({"a": "timm:test_vit(resize=80)"}),)
    for said, why in (({"size": 0}, "size is a number of pixels"), ({"crop": 1.5}, "above 0 to 1, not 1.5")):
        with pytest.raises(RequestError, match=why):
            Request(networks, {"digits": ""}, **said).study()
    with pytest.raises(RequestError, match="not told to a network that was trained here"):
        Request({"a": "folder:runs/steps/x"}, {"digits": ""}, size=64).study()


class Live(nn.Module):
    """A module of this session that scales its features by a number which its weights do not hold."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution, self.last, self.scale = nn.Conv2d(3, 8, 5, stride=4), nn.Linear(8, 3), scale

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.last(self.scale * self.convolution(images).relu().mean((2, 3)))
        return logits


@pytest.mark.long
def test_a_module_of_this_session_is_evaluated_as_what_it_is(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, data, threads = Live(1.0).train(), {"shapes": folders["shapes"]}, torch.get_num_threads()
    done = pu.evaluate({"mine": module}, data, size=64, out=tmp_path)
    assert done.summary.complete
    assert module.training
    assert torch.get_num_threads() == threads
    assert {row["network"] for row in done} == {"mine"}
    again = pu.evaluate({"mine": Live(1.0)}, data, size=64, out=tmp_path)
    assert again.summary.computed == 0
    other = pu.evaluate({"mine": Live(2.0)}, data, size=64, out=tmp_path)
    assert len(steps(tmp_path, "given")) == 2, "other features of the same weights are another network"
    assert other.summary.complete
    source = read_run(tmp_path).description["networks"][0]["given"]["mine"]
    assert main(["evaluate", "--model", source, "--data", f"few={folders['<i>few</i>']}", "--plan"]) == 0
    monkey = source.replace("Live-", "Live-0")
    assert main(["evaluate", "--model", monkey, "--data", "digits_smoke", "--out", str(tmp_path / "o")]) == 1
    assert "is a module of the Python session that evaluated it" in capsys.readouterr().err


def test_what_is_no_network_and_what_refuses_its_images_is_said() -> None:
    with pytest.raises(RequestError, match=r"or is an nn\.Module, not a int"):
        pu.evaluate({"a": 3}, {"digits": ""})  # type: ignore[dict-item]
    with pytest.raises(RequestError, match="'a' is a module, which no other process knows"):
        pu.evaluate({"a": Live(1.0)}, {"digits": ""}, on="ray")
    with pytest.raises(RequestError, match=r"'flat' cannot be copied.*\(module, size=64\) says 64 x 64"):
        pu.evaluate({"flat": nn.Linear(3, 4)}, {"digits": ""})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no network to evaluate"),
        (["--model", "timm:test_vit"], "no data to evaluate networks on"),
        (["--model", "resnet50", "--data", "digits"], "is no network: write timm:NAME"),
        (["--model", "net.py", "--data", "digits"], "of a Python file, name the function: net.py:build"),
        (
            ["--model", "timm:a", "--model", "torchvision:a", "--data", "digits"],
            "two networks are called 'a'",
        ),
        (["--weights", "w.pth", "--model", "timm:a", "--data", "digits"], "follows the --model"),
        (["--model", "timm:a", "--data", "digit"], "Did you mean 'digits'"),
        (["--model", "timm:a", "--data", "no/where"], "penultimate: There is no folder 'no/where'"),
        (["--model", "timm:a", "--data", "x=nowhere"], "data 'x': 'nowhere' does not exist"),
        (["--model", "timm:a", "--data", "digits", "--classifies", "all"], "not known without a source"),
        (
            ["--model", "timm:a", "--data", "digits", "--source", "glyphs", "--classifies", "b"],
            "unknown network 'b'. Known: a.",
        ),
    ],
)
def test_a_wrong_request_is_answered_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("def small():\n    return None\n\nclass large: ...\n")
    assert main(["evaluate", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_networks_data_and_studies_of_another_form_are_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"source}, not 'timm:x'"):
        pu.evaluate("timm:x", {"shapes": "shapes"}, out=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"data are {name: place}, not \['shapes'\]"):
        pu.evaluate({"a": "timm:x"}, ["shapes"], out=tmp_path)  # type: ignore[arg-type]


def test_data_are_named_below_the_root_and_outside_like_tasks(tmp_path: Path) -> None:
    (tmp_path / "pets").mkdir()
    assert data_named(["pets", "digits"], str(tmp_path)) == {"pets": str(tmp_path / "pets"), "digits": ""}
    (tmp_path / "t.csv").touch()
    said = f"{tmp_path}/t.csv(label='kind', split='a=b')"
    assert data_named([said]) == {"t": said}
    with pytest.raises(RequestError, match="nor below"):
        data_named(["flowers"], str(tmp_path))
    found = outside_named(["pets", f"other={tmp_path / 'pets'}"], {"pets": "/data/pets"})
    assert found == {"pets": "/data/pets", "other": str(tmp_path / "pets")}
    with pytest.raises(RequestError, match="a task and data outside, at two places"):
        Request(NETWORKS, {"few": "a"}, outside={"few": "b"}).study()


def test_options_ask_for_measurements_and_what_is_gone_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    networks, data = {"one": "timm:resnet18"}, {"digits": ""}
    usual = {*Request(networks, data).study().measure}
    assert {"baselines", "cost", "probed", "few_labels"} <= usual
    assert not {"readout", "given_fine_tuning", "probe_calibration", "outside", "groups"} & usual
    asked = Request(
        networks,
        data,
        fine_tune=True,
        layers=True,
        calibrate=True,
        speed=True,
        baselines=False,
        outside={"maths": ""},
    )
    more = {*asked.study().measure}
    assert {"readout", "given_fine_tuning", "probe_calibration", "outside", "cost(speed=True)"} <= more
    assert "baselines" not in more
    assert main(["evaluate", "--model", "timm:resnet18", "--data", "digits", "--join", "a+b"]) == 2
    assert "--join is gone" in capsys.readouterr().err
    with pytest.raises(RequestError, match="copies are to 'keep' or to 'drop', not 'some'"):
        Request(networks, data, copies="some").study()
    with pytest.raises(RequestError, match="an order of classes goes with a source on disk"):
        Request(networks, data, class_order="text").study()
    with pytest.raises(RequestError, match="of tasks of your own"):
        Request(networks, data, group="site").study()


def test_the_example_is_planned_and_stands_beside_networks_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--example", "--plan", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("example: 2 networks on 2 tasks")
    networks, data = with_example({"mine": "timm:resnet18"}, {"pets": "/data/pets"})
    assert [*networks] == ["softmax", "squared error", "mine"]
    assert [*data] == ["cyrillic", "typeface", "pets"]
    with pytest.raises(RequestError, match="a network called 'softmax' already"):
        with_example({"softmax": "timm:resnet18"}, {})
    record = json.loads((FOLDER / "provenance.json").read_text())
    for folder in ("softmax", "squared_error"):
        files = {path.name: digest_file(path) for path in (FOLDER / folder).iterdir()}
        assert files == record["networks"][folder]["files"]
