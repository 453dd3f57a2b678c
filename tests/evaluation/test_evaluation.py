"""Networks and data of your own: named, evaluated, ranked on a page; what is wrong, in a sentence."""

from __future__ import annotations

import html
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from tests.conftest import rows_in
from tests.data.published import chexpert_files, chexpert_rows
from tests.evaluation.pictures import class_folders, fill, split_folders
from tests.inprocess import InProcess
from tests.report.reading import table_of
from torch import Tensor, nn

import penultimate as pu
from penultimate.cli import main
from penultimate.engine.observer import Silent
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.evaluation import Evaluation
from penultimate.evaluation.boards import records
from penultimate.evaluation.naming import data_named, networks_named
from penultimate.evaluation.request import Request
from penultimate.networks import architectures
from penultimate.report import exhibit, read_study
from penultimate.report.measurements import admit
from penultimate.store import Store
from penultimate.study import Given, Study
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
    return {
        "shapes": shapes,
        "<i>few</i>": class_folders(root / "few", ("a", "b"), 10),
    }


@pytest.fixture(scope="module")
def evaluated(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    out = tmp_path_factory.mktemp("evaluated") / "runs"
    return pu.evaluate(NETWORKS, folders, out=out, on=InProcess())


def steps(store: Path, kind: str) -> set[str]:
    return {path.name for path in (store / "steps").glob(f"{kind}.*")}


def test_the_ranking_is_a_table(evaluated: Evaluation) -> None:
    assert evaluated.summary.complete
    frame = evaluated.to_pandas()
    shown = evaluated._repr_html_()
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


def test_every_probe_has_its_paired_comparisons(evaluated: Evaluation) -> None:
    names = [table.name for table in exhibit("comparisons", evaluated.out).tables]
    assert names == ["comparisons", "comparisons_knn"]


def test_everything_is_measured_that_the_networks_can_give(evaluated: Evaluation) -> None:
    table = rows_in(evaluated.out)
    measured = {(row.metric, row.target) for row in table if row.objective == "vit"}
    for metric in ("class_separation", "nonzero_share", "effective_rank", "feature_spectrum", "parameters"):
        assert (metric, "shapes") in measured
    for target in ("shapes", "<i>few</i>"):
        for metric in ("linear_top1", "knn_top1", "logme", "confusions", "probe_predictions"):
            assert (metric, target) in measured
    (pair,) = table.where(metric="pair_cka")
    assert {pair.objective, pair.objective_b} == {*NETWORKS}
    (layers,) = table.where(metric="pair_layers")
    assert (layers.objective, layers.objective_b) == (pair.objective, pair.objective_b)
    assert not table.where(metric="top1")


def test_baselines_and_costs_are_measured_and_no_baseline_is_ranked(evaluated: Evaluation) -> None:
    table = rows_in(evaluated.out)
    assert {row.target for row in table.where(metric="baseline_top1")} == {"shapes", "<i>few</i>"}
    assert {row.objective for row in table.where(metric="multiply_adds")} == {*NETWORKS}
    assert {row["network"] for row in evaluated} == {*NETWORKS}
    assert len(exhibit("baselines", evaluated.out).tables[0].rows) == 6
    assert len(exhibit("cost", evaluated.out).tables[0].rows) == 2


def test_names_are_escaped_wherever_the_page_has_them(evaluated: Evaluation) -> None:
    text = evaluated.report.read_text()
    for name in ("res & <net>", "<i>few</i>", HOSTILE):
        assert name not in text
    assert "&lt;i&gt;few&lt;/i&gt;" in text
    assert "&lt;b&gt;" in text


def test_the_page_says_what_it_rests_on_and_shows_what_is_confused(evaluated: Evaluation) -> None:
    text = evaluated.report.read_text()
    for words in (
        "What the ranking rests on",
        "drawn with seed 0",
        "Preprocessing",
        "Holm",
        "Fine-tuning of all",
    ):
        assert words in text
    assert "published" not in text.partition("</style>")[2]
    made = read_study(evaluated.out)
    confused = list(made.table.where(metric="confusions"))
    assert made.arrays is not None
    wrong = sum(int(made.arrays(str(row.step), "confusions")["counts"].sum()) for row in confused)
    assert wrong
    assert text.count('src="data:image/png;base64,') <= 4 * 3 * 2 * 2
    assert 'src="data:image/png;base64,' in text


def test_a_second_call_does_nothing_and_writes_no_page(
    evaluated: Evaluation, folders: dict[str, Path]
) -> None:
    before = evaluated.report.stat().st_mtime_ns
    again = pu.evaluate(NETWORKS, folders, out=evaluated.out, on=InProcess())
    assert again.summary.computed == 0
    assert again.report.stat().st_mtime_ns == before
    assert again.ranking == evaluated.ranking


def test_a_network_that_is_left_out_leaves_the_page(
    evaluated: Evaluation, folders: dict[str, Path], tmp_path: Path
) -> None:
    """Nothing is computed, and yet it is another study: of one network, under the same name."""
    shutil.copytree(evaluated.out, tmp_path / "runs")
    less = pu.evaluate({"vit": NETWORKS["vit"]}, folders, out=tmp_path / "runs", on=InProcess())
    assert less.summary.computed == 0
    assert {row["network"] for row in less.ranking} == {"vit"}
    assert "res &amp; &lt;net&gt;" in evaluated.report.read_text()
    assert "res &amp; &lt;net&gt;" not in less.report.read_text()


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


def test_of_a_source_that_is_no_task_only_test_images_are_looked_at(folders: dict[str, Path]) -> None:
    data = {"here": str(folders["shapes"]), "there": str(folders["shapes"])}
    study = Request(NETWORKS, data, source="here", classifies=True).study()
    assert {name: found.asked for name, found in study.located.items()} == {
        "here": ("test",),
        "there": ("train", "test"),
    }
    asked = [step for step in unfold(study).steps.values() if step.name == "extract"]
    assert {step.columns["target"] for step in asked if step.supplies[-1].name == "train"} == {"there"}


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
    assert "Left out of cut, train, for all networks: one image that cannot be read" in page
    assert "000.jpg' is not a complete image" in html.unescape(page)
    assert "Unfinished" in page
    assert any("test_vit-shapes" in name for name in steps(tmp_path / "runs", "probed"))


@pytest.mark.long
def test_a_mistyped_network_leaves_the_page_as_it_is(
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "runs"
    pu.evaluate({"vit": NETWORKS["vit"]}, {"shapes": folders["shapes"]}, out=out, on=InProcess())
    study = out / "studies" / "evaluation"
    before = {file.name: file.read_bytes() for file in study.iterdir() if file.is_file()}
    architectures.expect_known("timm", "tv_resnet34")  # a former name
    for typed in ("timm:test_vitt(pretrained=False)", "timm:resnet18.none", "torchvision:resnet1"):
        arguments = ["evaluate", "--model", typed, "--data", f"shapes={folders['shapes']}", "--out", str(out)]
        assert main(arguments) == 2
        assert "has no network" in (said := capsys.readouterr().err)
        assert "Did you mean '" in said
    monkeypatch.setitem(sys.modules, "timm", None)
    architectures._names.cache_clear()
    assert (
        main(["evaluate", "--model", "timm:new", "--data", f"shapes={folders['shapes']}", "--out", str(out)])
        == 2
    )
    assert "networks of timm need it: pip install" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in study.iterdir() if file.is_file()} == before


@pytest.mark.long
def test_why_nothing_was_measured_is_said_where_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = class_folders(tmp_path / "one", ("only",), 6)
    arguments = ["--data", str(one), "--out", str(tmp_path / "runs"), "--processes", "1"]
    assert main(["evaluate", "--model", NETWORKS["vit"], *arguments]) == 0
    assert "y holds one class only" in " ".join(capsys.readouterr().out.split())


@pytest.mark.long
def test_one_class_has_no_accuracy_and_says_so(tmp_path: Path) -> None:
    one = class_folders(tmp_path / "one", ("only",), 6)
    done = pu.evaluate({"vit": NETWORKS["vit"]}, {"one": one}, out=tmp_path / "runs", on=InProcess())
    assert done.summary.complete
    assert done.ranking == []
    page = done.report.read_text()
    assert "No network has been tested on any task yet" in page
    assert "No number of vit on one: probes on" in page
    assert "no other network in the column is better" not in page


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


@pytest.mark.long
def test_fine_tuning_is_by_option_and_learns(folders: dict[str, Path], tmp_path: Path) -> None:
    study = Request(NETWORKS, {"few": str(folders["<i>few</i>"])}, fine_tune=True).study()
    assert "given_fine_tuning" in study.measure
    short = "given_fine_tuning(learning_rate=(0.001,), steps=4, batch_size=4)"
    measure = tuple(short if each == "given_fine_tuning" else each for each in study.measure)
    tuned = replace(study, measure=("probed", measure[-1]))
    assert pu.run(tuned, tmp_path / "runs", engine=InProcess()).complete
    (row,) = rows_in(tmp_path / "runs").where(metric="given_fine_tuned_top1", objective="vit")
    assert row.value >= 0.75
    measurements = admit(read_study(tmp_path / "runs"))
    rows = {each["network"]: each for each in records(measurements) if each["probe"] == "tuned"}
    assert {*rows} == {*NETWORKS}
    assert rows["vit"]["accuracy"] == pytest.approx(row.value)
    assert rows["vit"]["low"] <= row.value <= rows["vit"]["high"]
    assert exhibit("tuned", tmp_path / "runs").notes == ()
    ranking = exhibit("ranking", tmp_path / "runs")
    assert [table.name for table in ranking.tables] == ["ranking_linear", "ranking_knn", "ranking_tuned"]
    names = [table.name for table in exhibit("comparisons", tmp_path / "runs").tables]
    assert names == ["comparisons", "comparisons_knn", "comparisons_tuned"]
    wider = replace(tuned, measure=("probed", short.replace("(0.001,)", "(0.001, 0.01)")))
    again = pu.run(wider, tmp_path / "runs", engine=InProcess())
    assert again.computed == 6, (
        "of either network the further cell, the choice, and the network with what was chosen"
    )
    assert exhibit("tuned", tmp_path / "runs").notes[0].startswith("For two of two (one for each network")


ODD = """
import torch
from torch import nn

class Odd(nn.Module):
    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(3, 8, 3, stride=4), nn.Conv2d(8, 8, 3)
        self.relu, self.pool = nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        self.fc, self.kind = nn.Linear(8, 3), kind

    def forward(self, images):
        maps = self.relu(self.second(self.relu(self.first(images))))
        features = self.pool(maps).flatten(1)
        if self.kind == "nan":
            features = features * float("nan")
        if self.kind == "tiny":
            features = features * 1e-9
        if self.kind == "constant":
            features = features * 0 + 1
        logits = self.fc(features)
        return {"tuple": (logits, features), "dict": {"logits": logits, "rest": None}}.get(self.kind, logits)

def nan(): return Odd("nan")
def tiny(): return Odd("tiny")
def constant(): return Odd("constant")
def of_tuple(): return Odd("tuple")
def of_dict(): return Odd("dict")
"""


@pytest.mark.long
def test_odd_networks_are_named_with_what_is_odd_and_cost_nothing_of_the_others(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.networks.test_onnx import Small, export

    (tmp_path / "odd.py").write_text(ODD)
    export(Small("linear"), tmp_path / "small.onnx")
    export(Small("features"), tmp_path / "trunk.onnx")
    kinds = ("nan", "tiny", "constant", "of_tuple", "of_dict")
    arguments = [f"--model={kind}={tmp_path / 'odd.py'}:{kind}" for kind in kinds]
    arguments += [f"--model=file=onnx:{tmp_path / 'small.onnx'}", f"--data=shapes={folders['shapes']}"]
    arguments += [f"--model=trunk=onnx:{tmp_path / 'trunk.onnx'}"]
    assert main(["evaluate", *arguments, "--out", str(tmp_path / "runs"), "--processes", "1"]) == 1
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    failed = [line for line in said.err.splitlines() if line.startswith("failed:")]
    assert failed
    assert all(".nan-" in line for line in failed)
    ranked = {row["network"] for row in records(admit(read_study(tmp_path / "runs"))) if row["task"]}
    assert ranked == {"tiny", "of_tuple", "of_dict", "file", "trunk"}
    itself = "no last layer was found in its graph, so its output itself is evaluated"
    assert itself in " ".join((said.out + said.err).split())
    sizes = rows_in(tmp_path / "runs", "evaluation").where(metric="parameters")
    counts = {row.objective: row.value for row in sizes}
    assert (counts["trunk"], counts["file"]) == (224, 224 + 45)
    page = " ".join(html.unescape((tmp_path / "runs/studies/evaluation/report.html").read_text()).split())
    for words in (
        ": its features are not finite for 18 images of a batch",
        "No number of constant on shapes: probes on ‘shapes’: all 24 examples of X are one point",
        "tiny: its features are tiny (root mean square",
        f"trunk: {itself}",
        "constant: its features are the same for all test images",
        "grams of file on shapes: only its penultimate features are compared: network ‘network’: OnnxBody",
        "layers of of_dict on shapes: only its penultimate features are measured",
        "ran twice in one forward pass",
        "How each network is shown its images",
        "what is usual for ImageNet; its size and channels are the file",
    ):
        assert words in page, words
    pairs = {(row.objective, row.objective_b) for row in rows_in(tmp_path / "runs").where(metric="pair_cka")}
    assert ("of_dict", "file") in pairs
    assert not any("nan" in pair for pair in pairs)


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
    source = read_study(tmp_path).description["networks"][0]["given"]["mine"]
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


def test_a_folder_of_trained_networks_is_all_of_them(tmp_path: Path) -> None:
    for name in ("train.softmax-s0.0123", "train.sigmoid-s0.4567", "hard.d0-glyphs.89ab"):
        (tmp_path / "steps" / name).mkdir(parents=True)
        (tmp_path / "steps" / name / "network.json").write_text("{}")
    found = networks_named([(str(tmp_path), "")])
    assert [*found] == ["sigmoid-s0", "softmax-s0"]
    assert found["softmax-s0"] == f"folder:{tmp_path / 'steps' / 'train.softmax-s0.0123'}"


@pytest.mark.long
def test_that_a_folder_has_changed_since_the_last_run_is_said(tmp_path: Path) -> None:
    class Noting(Silent):
        def noticed(self, message: str) -> None:
            said.append(message)

    said: list[str] = []
    root, other = class_folders(tmp_path / "x", ("a", "b"), 5), class_folders(tmp_path / "y", ("a", "b"), 5)
    study = Request({"vit": NETWORKS["vit"]}, {"x": str(root), "y": str(other)}).study()
    study = replace(study, measure=("probed",))
    for _ in range(2):
        pu.run(study, tmp_path / "runs", observer=Noting(), engine=InProcess())
    assert said == []
    fill(root / "a", 6, 0, seed=8)
    changed = replace(study, name=study.name)  # which looks at the folders again
    assert pu.run(changed, tmp_path / "runs", observer=Noting(), engine=InProcess()).computed == 4
    assert said[0].startswith("the images of 'x' have changed since the study was last run")
    assert not any("'y'" in message for message in said)
    assert said[1].startswith("no longer part of the study: ")
    assert said[1].endswith("; what is done of them is kept")  # no command brings images back


def test_a_folder_that_changes_while_it_is_planned_is_read_again(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "x", ("a", "b"), 5)
    first = unfold(Request({"vit": NETWORKS["vit"]}, {"x": str(root)}).study())
    class_folders(root, ("c",), 5)
    second = unfold(Request({"vit": NETWORKS["vit"]}, {"x": str(root)}).study())
    changed = {step.name for step_id, step in second.steps.items() if step_id not in first.steps}
    assert {"data", "extract", "probed"} <= changed
    assert "given" not in changed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no network to evaluate"),
        (["--model", "timm:test_vit"], "no data to evaluate networks on"),
        (["--model", "resnet50", "--data", "digits"], "is no network: write timm:NAME"),
        (["--model", "tim:resnet50", "--data", "digits"], "'tim:resnet50' is no network"),
        (["--model", "net.py", "--data", "digits"], "of a Python file, name the function: net.py:small"),
        (["--model", "net.py:smal", "--data", "digits"], "no function 'smal'. Did you mean 'small'?"),
        (["--model", "net.py:zzz", "--data", "digits"], "no function 'zzz'. It defines: small, large."),
        (
            ["--model", "timm:a", "--model", "torchvision:a", "--data", "digits"],
            "two networks are called 'a'",
        ),
        (["--weights", "w.pth", "--model", "timm:a", "--data", "digits"], "follows the --model"),
        (["--model", "timm:a", "--data", "digit"], "Did you mean 'digits'"),
        (["--model", "timm:a", "--data", "no/where"], "penultimate: There is no folder 'no/where'"),
        (["--model", "timm:a", "--data", "x=nowhere"], "data 'x': 'nowhere' does not exist"),
        (["--model", "timm:a", "--data", "digits=nowhere"], "penultimate knows already"),
        (["--model", "timm:a", "--data", "digits", "--data", "digits"], "two data sets are called 'digits'"),
        (["--model", "timm:a", "--data", "digits", "--classifies", "all"], "not known without a source"),
        (
            ["--model", "timm:a", "--data", "digits", "--source", "glyphs", "--classifies", "b"],
            "unknown network 'b'. Known: a.",
        ),
        (["--model", "timm:a", "--data", "digits", "--processes", "0"], "at least 1"),
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


def test_named_data_lie_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "pets").mkdir()
    assert data_named(["pets", "digits"], str(tmp_path)) == {"pets": str(tmp_path / "pets"), "digits": ""}
    (tmp_path / "t.csv").touch()
    said = f"{tmp_path}/t.csv(label='kind', split='a=b')"
    assert data_named([said]) == {"t": said}
    assert data_named([f"birds={said}"]) == {"birds": said}
    assert data_named(["t.csv(label='kind')"], str(tmp_path)) == {"t.csv": f"{tmp_path}/t.csv(label='kind')"}
    with pytest.raises(RequestError, match="nor below"):
        data_named(["flowers"], str(tmp_path))


def test_a_plan_says_that_the_cost_of_images_on_disk_shows_when_a_step_is_done(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", NETWORKS["vit"], "--data", f"shapes={folders['shapes']}", "--out", str(tmp_path)]
    assert main(["evaluate", "--plan", *arguments]) == 0
    assert "steps whose cost shows when one is done" in capsys.readouterr().out
    assert not Store(tmp_path).root.joinpath("steps").exists()


def test_an_evaluation_is_read_from_its_rows_alone(evaluated: Evaluation) -> None:
    """As it is where the folders of the data are gone."""
    results = read_study(evaluated.out)
    measurements = admit(results)
    assert measurements.targets == ("shapes", "<i>few</i>")
    ranked = [row.label for row in exhibit("ranking", results).tables[0].rows]
    assert [objective.label for objective in measurements.objectives] == ranked
    assert {*ranked} == {*NETWORKS}


def radiographs(root: Path) -> str:
    train, valid = chexpert_rows("train", range(1, 61)), chexpert_rows("valid", range(64541, 64571))
    return str(chexpert_files(root, train, valid))


@pytest.mark.long
def test_each_label_of_images_of_several_is_scored_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = pu.evaluate(
        {"vit": NETWORKS["vit"]},
        {"chexpert": radiographs(tmp_path)},
        out=tmp_path / "runs",
        on=InProcess(),
    )
    assert done.summary.complete
    areas = rows_in(done.out).where(metric="multilabel_auc", target="chexpert")
    assert {row.split for row in areas} == {"test", "validation"}
    assert len({row.setting for row in areas}) > 1
    page = " ".join(html.unescape(done.report.read_text()).split())
    assert "CheXpert, validation images: AUC" in page
    assert "Which layer serves each task best: no task has images of one label each." in page
    (role,) = (row.cells[0].text for row in table_of(exhibit("basis", done.out), "basis_data").rows)
    assert role == "task"


def test_networks_data_and_studies_of_another_form_are_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"source}, not 'timm:x'; write {'x': 'timm:x'}"):
        pu.evaluate("timm:x", {"shapes": "shapes"}, out=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"data are {name: place}, not \['shapes'\]"):
        pu.evaluate({"a": "timm:x"}, ["shapes"], out=tmp_path)  # type: ignore[arg-type]


def test_of_images_of_several_labels_nothing_is_measured_that_takes_classes(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    chexpert = {"chexpert": radiographs(tmp_path)}
    alone = Request(NETWORKS, chexpert).study()
    measured = {step.name for step in unfold(alone).steps.values()}
    assert measured == {"data", "given", "extract", "grams", "pair_cka", "multilabel", "cost"}
    beside = Request(NETWORKS, {**chexpert, "few": str(folders["<i>few</i>"])}).study()
    assert beside.source == "few"
    assert "multilabel" not in Request(NETWORKS, {"few": str(folders["<i>few</i>"])}).study().measure


@pytest.mark.long
def test_networks_and_data_of_any_name_stay_within_the_store(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """Their banks lie in folders that they name, beside the step's own files."""
    names = ("..", ".", "checkpoint-9", "rows.jsonl", "a/b", "best.tmp", "é" * 100)
    sources = {name: f"timm:test_resnet(pretrained=False, seed={i}, crop=32)" for i, name in enumerate(names)}
    place = str(folders["<i>few</i>"])
    study = Study("names", "", "", "..", (), (Given(sources),), ("geometry",), data={"..": place})
    run(study, tmp_path / "runs", engine=InProcess())
    assert {path.name for path in tmp_path.iterdir()} == {"runs"}
    inside = {path.name for path in (tmp_path / "runs").iterdir()}
    assert inside == {"steps", "partial", "locks", "studies"}
    assert {path.name for path in (tmp_path / "runs/partial").iterdir()} == {".writable"}
    found = rows_in(tmp_path / "runs").where(metric="class_separation")
    assert {row.objective for row in found} == {*names}
    store = Store(tmp_path / "runs")
    for step in (tmp_path / "runs/steps").iterdir():
        store.verify(step.name)


@pytest.mark.parametrize("name", ["..", ".", "", "/", ".lock", "a b", "x" * 300, "é" * 100, "a\nb", "a\0b"])
def test_an_evaluation_that_no_folder_can_be_called_by_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="a study's name consists of") as error:
        Request({"a": "timm:test_resnet"}, {"digits": ""}, name=name).study()
    assert len(str(error.value)) < 500
