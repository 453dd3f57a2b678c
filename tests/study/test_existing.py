"""Networks that exist already in the place of a study's trainings: their table and their rows."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.records.reading import study_folder
from penultimate.records.table import Row
from penultimate.store import Store
from penultimate.study import Runs
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
    first, training = what_is_left_out(study, after)
    assert first.startswith(
        "the table has no network of softmax, cosine_softmax, softmax (augmentation), which"
    )
    assert training.endswith("trained elsewhere: the curves of training, dynamics")


# -- what is refused ----------------------------------------------------------------------------------------


def written(folder: Path, text: str, name: str = "t.csv") -> Path:
    (folder / "a.pth").write_bytes(b"a")
    (folder / "b.pth").write_bytes(b"b")
    (folder / "same.pth").write_bytes(b"a")
    (folder / "folder").mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


HEAD = "file,objective,seed\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "No columns to parse"),
        ("file,seed\na.pth,0\n", "lacks the column objective; a row for each network is expected"),
        (
            "file,objective,seed,amr\na.pth,softmax,0,x\n",
            "unknown column of the table .* 'amr'. Did you mean 'arm'",
        ),
        (f"{HEAD}a.pth,softmax,0\nc.pth,softmax,1\n", r"line 3: '.*c\.pth' is missing"),
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
            "trains softmax with glyphnet.*a column backbone says which",
        ),
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
    assert "the table has no network of cosine_softmax, which the study leaves out" in capsys.readouterr().err
    assert main(show) == 0
    shown = capsys.readouterr().out
    assert "Squared error" in shown
    assert {row.seed for row in study_folder(tmp_path / "runs").table().where(metric="top1")} == {0, 1}
    for name in ("part", "ema", "mean", "std", "arm", "backbone", "file", "objective", "seed"):
        assert f"`{name}`" in page
