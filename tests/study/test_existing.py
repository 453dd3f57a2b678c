"""Networks that exist already in the place of a study's trainings: their table and their rows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.networks import load_network
from penultimate.records.reading import study_folder
from penultimate.records.table import Row
from penultimate.results import read_run, show, write_page
from penultimate.store import Store
from penultimate.study import Runs, Study
from penultimate.study.existing import what_is_left_out, with_networks
from penultimate.study.selection import changed
from penultimate.study.unfold import unfold
from tests.inprocess import InProcess
from tests.networks.given import BACKBONE, RUNS, TRAINED

COSINE = "cosine_softmax(scale=0.5, temperature=0.06)"
STUDY = replace(
    TRAINED,
    name="paper",
    networks=(replace(RUNS, objectives=("softmax", COSINE)),),
    measure=(
        "accuracy",
        "class_separation",
        "layers",
        "calibration",
        "agreement",
        "linear",
        "knn",
        "dynamics",
    ),
)
"""Two objectives with two seeds each, and everything measured that a network from elsewhere may lack."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store in which the study's networks were trained."""
    out = tmp_path_factory.mktemp("trained")
    assert pu.run(STUDY, out, engine=InProcess()).complete
    return out


def weights(out: Path, slug: str, seed: int) -> dict[str, torch.Tensor]:
    (folder,) = out.glob(f"steps/train.{slug}*-s{seed}.*")
    return safetensors.torch.load_file(folder / "network.safetensors")


def as_of_torchvision(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same under the names of a trainer: wrapped, and with a final layer called fc."""
    named = {name.replace("backbone.", "module."): value for name, value in tensors.items()}
    ends = {"objective.head.weight": "module.fc.weight", "objective.head.bias": "module.fc.bias"}
    return {ends.get(name, name): value for name, value in named.items()}


def put_networks(out: Path, folder: Path) -> Path:
    """Four files in two forms, and their table."""
    for slug in ("softmax", "cosine_softmax"):
        safetensors.torch.save_file(weights(out, slug, 0), folder / f"{slug}-0.safetensors")
        torch.save({"state_dict": as_of_torchvision(weights(out, slug, 1))}, folder / f"{slug}-1.pth")
    table = folder / "networks.csv"
    table.write_text(
        "file,objective,seed\nsoftmax-0.safetensors,softmax,0\nsoftmax-1.pth,softmax,1\n"
        f'cosine_softmax-0.safetensors,cosine_softmax,0\n./cosine_softmax-1.pth,"{COSINE}",1\n'
    )
    return table


def numbers(out: Path, study: str) -> dict[tuple[Any, ...], float]:
    """What was measured of finished networks, by all that a row says but its step."""
    names = [item.name for item in fields(Row) if item.name not in ("step", "value")]
    rows = study_folder(out, study).table()
    return {
        tuple(getattr(row, name) for name in names): row.value
        for row in rows
        if row.epoch is None and row.unit != "points"
    }


# -- what is measured ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_networks_from_files_give_the_rows_of_the_runs_that_trained_them(
    trained: Path, tmp_path: Path
) -> None:
    study = replace(with_networks(STUDY, put_networks(trained, tmp_path)), name="elsewhere")
    summary = pu.run(study, tmp_path / "runs", engine=InProcess())
    assert summary.complete
    ours, theirs = numbers(tmp_path / "runs", "elsewhere"), numbers(trained, "paper")
    assert len(ours) > 150
    assert ours == theirs
    steps = {path.name.partition(".")[0] for path in (tmp_path / "runs/steps").iterdir()}
    assert steps >= {"given", "accuracy", "linear"}
    assert not steps & {"train", "dynamics"}


@pytest.mark.long
def test_exhibits_and_the_page_show_them_as_runs_of_their_objectives(trained: Path, tmp_path: Path) -> None:
    study = replace(
        with_networks(STUDY, put_networks(trained, tmp_path)),
        name="elsewhere",
        measure=("accuracy", "class_separation", "linear"),
    )
    pu.run(study, tmp_path / "runs", engine=InProcess())
    results = read_run(tmp_path / "runs")
    table3 = show("table3", results, allow_limited=True)
    (ours,) = (table for table in table3.tables if table.source == "ours")
    assert ours.slugs == ("softmax", "cosine_softmax")
    assert ours.counts is not None
    assert {*ours.counts.stack()} == {2}
    curves = show("figureC1", results, allow_limited=True)
    assert not curves.is_measured
    write_page(results, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "learning_rate" not in page


@pytest.mark.long
def test_a_final_layer_without_bias_has_zeros_and_says_so(trained: Path, tmp_path: Path) -> None:
    table = put_networks(trained, tmp_path)
    tensors = as_of_torchvision(weights(trained, "softmax", 1))
    del tensors["module.fc.bias"]
    torch.save(tensors, tmp_path / "softmax-1.pth")
    study = replace(with_networks(STUDY, table), name="without", measure=("accuracy",))
    pu.run(study, tmp_path / "runs", engine=InProcess())
    (folder,) = (tmp_path / "runs/steps").glob("given.softmax-s1.*")
    noted = json.loads((folder / "meta.json").read_text())["noted"]
    assert "'module.fc.weight' has no bias, and 0 is taken" in noted["no bias"]
    assert not load_network(folder).objective.head.bias.any()


# -- steps --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_content_of_a_file_is_its_identity_and_its_name_is_not(trained: Path, tmp_path: Path) -> None:
    table = put_networks(trained, tmp_path)
    before = unfold(with_networks(STUDY, table)).steps
    (tmp_path / "softmax-1.pth").rename(tmp_path / "moved.pth")
    table.write_text(table.read_text().replace("softmax-1.pth,softmax", "moved.pth,softmax"))
    assert [*unfold(with_networks(STUDY, table)).steps] == [*before]
    tensors = as_of_torchvision(weights(trained, "softmax", 1))
    tensors["module.fc.bias"] += 1
    torch.save(tensors, tmp_path / "moved.pth")
    after = unfold(with_networks(STUDY, table)).steps
    gone = {name for name in before if name not in after}
    assert {name for name in gone if name.startswith("given.")} == {
        name for name in before if name.startswith("given.softmax-s1.")
    }


def test_a_seed_that_no_grid_has_belongs_to_the_first(tmp_path: Path) -> None:
    first = Runs(("softmax",), backbones=(BACKBONE,), seeds=(0, 1), draws=0, measure=("accuracy",))
    study = replace(TRAINED, networks=(first, replace(first, seeds=(3, 4), measure=("knn",))))
    for seed in (4, 10, 11):
        (tmp_path / f"{seed}.pth").write_bytes(b"%d" % seed)
    rows = "".join(f"{seed}.pth,softmax,{seed}\n" for seed in (11, 10, 4))
    (tmp_path / "t.csv").write_text(f"file,objective,seed\n{rows}")
    blocks = with_networks(study, tmp_path / "t.csv").runs
    assert [(block.seeds, block.measure) for block in blocks] == [((10, 11), ("accuracy",)), ((4,), ("knn",))]


def test_objectives_and_arms_without_a_file_are_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_bytes(b"a")
    (tmp_path / "t.csv").write_text("file,objective,seed,arm\na.pth,sigmoid,0,augmentation\n")
    study = replace(
        STUDY,
        networks=(*STUDY.networks, replace(RUNS, objectives=("softmax", "sigmoid"), arm="augmentation")),
    )
    after = with_networks(study, tmp_path / "t.csv")
    assert [str(key) for key in after.keys()] == [f"sigmoid | {BACKBONE} | augmentation | seed 0, draw 0"]
    first, second, training = what_is_left_out(study, after)
    assert first.startswith("no network is given of softmax, cosine_softmax, which")
    assert second.startswith("no network is given of softmax in the arm 'augmentation'")
    assert training.endswith("trained elsewhere: the curves of training, dynamics")


@pytest.mark.long
def test_the_command_runs_any_study_on_a_table(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = put_networks(trained, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from tests.study.test_existing import STUDY\n"
        "from dataclasses import fields, replace\n"
        "STUDY = replace(STUDY, measure=('accuracy', 'class_separation'))\n"
    )
    options = ["mine.py", "--networks", table.name, "--only", "softmax"]
    assert main(["plan", *options]) == 0
    said = capsys.readouterr()
    assert "train " not in said.out
    assert "given " in said.out
    assert main(["run", *options, "--processes", "1"]) == 0
    said = capsys.readouterr()
    assert "not available of networks that were trained elsewhere: the curves of training" in said.err
    folder = study_folder(tmp_path / "runs")
    assert folder.name == "paper-networks-softmax"
    assert "networks of networks.csv; only softmax" in folder.description["title"]
    assert {row.seed for row in folder.table()} == {0, 1}


# -- what is refused ----------------------------------------------------------------------------------------


def written(folder: Path, text: str, name: str = "t.csv") -> Path:
    (folder / "a.pth").write_bytes(b"a")
    (folder / "b.pth").write_bytes(b"b")
    (folder / "same.pth").write_bytes(b"a")
    (folder / "folder").mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


HEAD = "file,objective,seed\n"
FIRST = "module.block1.first.normalisation.weight"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "No columns to parse"),
        (HEAD, "lists none"),
        ("file,seed\na.pth,0\n", "lacks the column objective; a row for each network is expected"),
        (
            "file,objective,seed,amr\na.pth,softmax,0,x\n",
            "unknown column of the table .* 'amr'. Did you mean 'arm'",
        ),
        (f"{HEAD}a.pth,softmax,0\nc.pth,softmax,1\n", r"line 3: '.*c\.pth' is missing"),
        (f"{HEAD}c.pth,softmax,0\nd.pth,softmax,1\n", r"line 2: '.*c\.pth' is missing"),
        (f"{HEAD}folder,softmax,0\n", "is a folder; name the file in it"),
        (f"{HEAD},softmax,0\n", "line 2: no file is named"),
        (f"{HEAD}a.pth,,0\n", "line 2: no objective is named"),
        (f"{HEAD}a.pth,softmaxx,0\n", "line 2: unknown .*softmaxx.* Did you mean 'softmax'"),
        (
            f"{HEAD}a.pth,sigmoid,0\n",
            "line 2: unknown objective of the study 'sigmoid'. Known: softmax, cosine_soft",
        ),
        (
            f"{HEAD}a.pth,cosine_softmax(temperature=0.2),0\n",
            r"unknown objective .*temperature=0\.2.*Did you mean",
        ),
        (f"{HEAD}a.pth,softmax,x\n", "line 2: a seed is an integer from 0 to 2.31 - 1, not 'x'"),
        (f"{HEAD}a.pth,softmax,-1\n", "a seed is an integer .* not '-1'"),
        (f"{HEAD}a.pth,softmax,99999999999\n", "a seed is an integer"),
        (
            f"{HEAD}a.pth,softmax,1\nb.pth,softmax,1\n",
            r"line 3: softmax .* seed 1 is given twice, as '.*a\.pth'",
        ),
        (
            f"{HEAD}a.pth,softmax,1\nsame.pth,softmax,2\n",
            r"line 3: '.*same\.pth' holds the same bytes as '.*a\.pth'",
        ),
        ("file,objective,seed,arm\na.pth,softmax,1,long\n", "unknown arm 'long'. Known: .none."),
        (
            "file,objective,seed,backbone\na.pth,softmax,1,resnet50\n",
            "trains softmax with glyphnet.*not 'resnet50'",
        ),
        ("file,objective,seed,mean\na.pth,softmax,1,0.5\n", "mean and std go together"),
        ("file,objective,seed,mean,std\na.pth,softmax,1,0.5,0\n", "std is above 0"),
        ("file,objective,seed,mean,std\na.pth,softmax,1,nan,1\n", "mean is a number for each channel"),
        ("file,objective,seed,ema\na.pth,softmax,1,maybe\n", "ema is true or false, not 'maybe'"),
        (f"{HEAD}a.pth,softmax,0,1\n", "cannot be read: Length of header"),
    ],
)
def test_a_table_that_says_something_impossible_is_refused_with_its_line(
    text: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match=told):
        with_networks(STUDY, written(tmp_path, text))


def test_a_study_of_several_architectures_asks_which_is_meant(tmp_path: Path) -> None:
    two = replace(STUDY, networks=(replace(RUNS, backbones=(BACKBONE, "glyphwide(features=16, width=4)")),))
    with pytest.raises(RequestError, match="a column backbone says which"):
        with_networks(two, written(tmp_path, f"{HEAD}a.pth,softmax,0\n"))
    named = written(
        tmp_path, 'file,objective,seed,backbone\na.pth,softmax,0,"glyphwide(features=16, width=4)"\n'
    )
    assert [key.backbone for key in with_networks(two, named).keys()] == ["glyphwide(features=16, width=4)"]


def test_seeds_and_objectives_that_the_table_lacks_are_refused_later_too(tmp_path: Path) -> None:
    study = with_networks(STUDY, written(tmp_path, f"{HEAD}a.pth,softmax,0\n"))
    with pytest.raises(RequestError, match=r"the table of networks has no file of 'softmax .* seed 5"):
        changed(study, seeds=(5,))
    with pytest.raises(RequestError, match="no file of 'sigmoid"):
        changed(study, ["objectives=sigmoid"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda held: held.update({"module.fc.weight": held["module.fc.weight"][:5]}),
            r"no final layer of .* classes on 16 features, .*module\.fc\.weight is \[5, 16\]",
        ),
        (lambda held: held.pop("module.fc.weight"), "no final layer of"),
        (
            lambda held: held["module.fc.weight"].fill_(float("nan")),
            r"'module\.fc\.weight' holds values that are not finite",
        ),
        (lambda held: held[FIRST].fill_(float("nan")), "holds values that are not finite"),
        (
            lambda held: held.pop(FIRST),
            r"does not hold weights of this network \(GlyphNet\).*missing",
        ),
        (lambda held: held.update({"module.other": torch.zeros(3)}), r"1 is left over \(other"),
    ],
)
def test_a_file_that_does_not_fit_names_its_tensors(
    change: Callable[[dict[str, torch.Tensor]], object], told: str, trained: Path, tmp_path: Path
) -> None:
    tensors = as_of_torchvision(weights(trained, "softmax", 1))
    change(tensors)
    torch.save(tensors, tmp_path / "a.pth")
    (tmp_path / "t.csv").write_text(f"{HEAD}a.pth,softmax,0\n")
    study: Study = replace(with_networks(STUDY, tmp_path / "t.csv"), measure=("class_separation",))
    with pytest.raises(RequestError, match=told):
        pu.run(study, tmp_path / "runs", engine=InProcess())


def test_a_file_that_changes_after_the_start_is_refused(trained: Path, tmp_path: Path) -> None:
    put_networks(trained, tmp_path)
    graph = unfold(replace(with_networks(STUDY, tmp_path / "networks.csv"), measure=("accuracy",)))
    (tmp_path / "softmax-1.pth").write_bytes(b"other")
    with pytest.raises(RequestError, match=r"softmax-1\.pth' was changed or removed since the study began"):
        pu.run(graph.study, tmp_path / "runs", engine=InProcess())
    assert not [*Store(tmp_path / "runs").root.glob("steps/given.softmax-s1.*")]


# -- the page of documentation ------------------------------------------------------------------------------


@pytest.mark.long
def test_the_example_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "existing.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    commands = re.findall(r"```console\n(.*?)```", page, re.DOTALL)[-1].splitlines()
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        exec(compile(code, "existing.md", "exec"), {})
    run_smoke, show = (shlex.split(command)[1:] for command in commands)
    assert main([*run_smoke, "--processes", "1"]) == 0
    assert "no network is given of cosine_softmax, which the study leaves out" in capsys.readouterr().err
    assert main(show) == 0
    shown = capsys.readouterr().out
    assert "Squared error" in shown
    assert {row.seed for row in study_folder(tmp_path / "runs").table().where(metric="top1")} == {0, 1}
    for name in ("part", "ema", "mean", "std", "arm", "backbone", "file", "objective", "seed"):
        assert f"`{name}`" in page
