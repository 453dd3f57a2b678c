"""Networks that were not trained here: fetched, loaded, and measured beside those that were."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import timm
import torch
from PIL import Image
from tests.conftest import rows_in
from tests.inprocess import InProcess
from tests.networks.given import MEASURE, NEEDING_A_FINAL_LAYER, STRANGER, TRAINED
from timm.data import create_transform, resolve_model_data_config
from torchvision import models

import penultimate as pu
from penultimate.data import load_images
from penultimate.errors import DamagedFileError, RequestError
from penultimate.networks.sources import fingerprint
from penultimate.networks.store import fetch, load_given
from penultimate.records.reading import study_folder
from penultimate.records.table import Table
from penultimate.results import read_run, write_page
from penultimate.study import Given

TINY = "timm:test_resnet(pretrained=False, seed=1)"


def by_hand(images: np.ndarray, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """What goes into test_resnet's final layer with initial weights, and what comes out, as timm tells it."""
    torch.manual_seed(seed)
    model = timm.create_model("test_resnet", pretrained=False).eval()
    transform = create_transform(**resolve_model_data_config(model), is_training=False)
    sized = torch.stack([transform(Image.fromarray(image)) for image in images])
    with torch.no_grad():
        features = model.forward_head(model.forward_features(sized), pre_logits=True)
        return features, model.get_classifier()(features)


# -- one network --------------------------------------------------------------------------------------------


def test_a_network_of_timm_gives_its_own_features_and_logits(tmp_path: Path) -> None:
    facts = fetch(TINY, tuple(map(str, range(1000))), tmp_path)
    network = load_given(tmp_path)
    images = np.random.default_rng(0).integers(0, 256, (5, 24, 24, 3), dtype=np.uint8)
    features, logits = by_hand(images)
    found = network.features(torch.from_numpy(images))
    torch.testing.assert_close(found, features, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(network.logits(found), logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(network.log_probabilities(logits).exp().sum(-1), torch.ones(5))
    assert network.head_weight is not None
    assert network.head_weight.shape == (1000, features.shape[1])
    assert network.class_names[:2] == ("0", "1")
    assert set(facts) == {"weights", "preparation"}
    assert facts == fetch(TINY, (), tmp_path)


def test_images_of_one_colour_and_of_any_size_are_prepared(tmp_path: Path) -> None:
    fetch(TINY, (), tmp_path)
    network = load_given(tmp_path)
    grey = np.random.default_rng(0).integers(0, 256, (3, 9, 14, 1), dtype=np.uint8)
    expected, _ = by_hand(np.repeat(grey, 3, -1))
    found = network.features(torch.from_numpy(grey))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ending", ["pth", "safetensors"])
def test_the_weights_of_a_file_are_taken(tmp_path: Path, ending: str) -> None:
    torch.manual_seed(3)
    tensors = timm.create_model("test_resnet", pretrained=False).state_dict()
    file = tmp_path / f"weights.{ending}"
    if ending == "pth":
        torch.save({"state_dict": tensors}, file)
    else:
        safetensors.torch.save_file(tensors, file)
    source = f"timm:test_resnet(weights={str(file)!r})"
    assert list(fingerprint(source)) == [file.name]
    fetch(source, (), tmp_path)
    kept = safetensors.torch.load_file(tmp_path / "given.safetensors")
    assert kept.keys() == tensors.keys()
    assert all(torch.equal(kept[name], values) for name, values in tensors.items())


@pytest.mark.long
@pytest.mark.parametrize(("name", "ends"), [("googlenet", "aux"), ("inception_v3", "AuxLogits")])
def test_downloaded_weights_hold_auxiliary_heads_and_the_network_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, ends: str
) -> None:
    theirs = models.get_model(name, aux_logits=True, init_weights=False).eval()
    state = theirs.state_dict()
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", lambda *_, **__: state)
    fetch(f"torchvision:{name}(crop=96)", (), tmp_path)
    kept = safetensors.torch.load_file(tmp_path / "given.safetensors")
    assert kept.keys() == {tensor for tensor in state if not tensor.startswith(ends)}
    network = load_given(tmp_path)
    images = torch.randn(1, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    theirs.transform_input = True  # as torchvision sets it for its own weights
    with torch.no_grad():
        expected = theirs(images)
    torch.testing.assert_close(network.logits(network.features(images)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("file", "damaged"),
    [
        ("given.json", lambda content: content[:-20]),
        ("given.safetensors", lambda content: content[:-20]),
        ("given.json", lambda content: content.replace(b"class_names", b"names")),
    ],
)
def test_a_damaged_network_is_named(tmp_path: Path, file: str, damaged: Callable[[bytes], bytes]) -> None:
    fetch(TINY, (), tmp_path)
    (tmp_path / file).write_bytes(damaged((tmp_path / file).read_bytes()))
    with pytest.raises(DamagedFileError, match=r"the given network in '.*' cannot be read"):
        load_given(tmp_path)


# -- in a study ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(finished_given: Path) -> Table:
    return rows_in(finished_given, "given")


def network_folder(out: Path, name: str) -> Path:
    (folder,) = (out / "steps").glob(f"given.{name}.*")
    return folder


def values(rows: Table) -> dict[tuple[Any, ...], float]:
    return {(row.metric, row.target, row.split, row.layer, row.setting): row.value for row in rows}


def test_what_needs_no_final_layer_is_measured_of_all(table: Table) -> None:
    for name in ("stranger", "earlier"):
        rows = table.where(objective=name)
        assert {row.metric for row in rows if row.metric.startswith(("linear", "knn"))} == {
            *("linear_top1", "linear_lambda", "linear_validation_accuracy", "linear_certified_gap"),
            *("knn_top1", "knn_k", "knn_leave_one_out"),
        }
        steps = {str(row.step).partition(".")[0] for row in rows}
        assert steps == {"class_separation", "layers", "similarity", "linear", "knn"}
        assert steps == set(MEASURE) - set(NEEDING_A_FINAL_LAYER) - {"dynamics"}


@pytest.mark.long
def test_a_stranger_is_measured_by_what_goes_into_its_final_layer(finished_given: Path, table: Table) -> None:
    (world,) = (finished_given / "steps").glob("data.d0-glyphs_smoke.*")
    images = load_images(world, "test")
    features = by_hand(np.asarray(images.images))[0].numpy()
    rows = values(table.where(objective="stranger", metric="class_separation", split="test"))
    separation = pu.class_separation(features, images.labels)
    assert rows["class_separation", "glyphs_smoke", "test", None, None] == pytest.approx(separation, rel=1e-3)
    assert rows["class_separation", "glyphs_smoke", "test", "penultimate", None] == pytest.approx(
        separation, rel=1e-3
    )
    layers = table.where(objective="stranger", metric="nonzero_share").column("layer")
    assert layers == ("layer1.0", "layer2.0", "layer3.0", "layer4.0", "penultimate")


def test_a_network_that_was_trained_here_has_the_same_numbers_when_it_is_given(table: Table) -> None:
    steps = ("class_separation", "layers", "linear", "knn", "accuracy", "hardness", "calibration")

    def measured(rows: Table) -> dict[tuple[Any, ...], float]:
        return values(
            Table(row for row in rows if str(row.step).partition(".")[0] in steps and row.unit != "points")
        )

    own = measured(table.where(objective="softmax", seed=0))
    assert len(own) > 30
    assert measured(table.where(objective="classifier")) == pytest.approx(own, rel=1e-9)
    without = measured(table.where(objective="earlier"))
    assert without == pytest.approx({key: own[key] for key in without}, rel=1e-9)
    assert own.keys() - without.keys() == {
        key for key in own if not key[0].startswith(("class_sep", "nonzero", "linear", "knn"))
    }


def test_a_classifier_that_is_given_is_right_as_often_as_it_was(table: Table) -> None:
    ours, given = (
        values(table.where(objective=name, seed=seed, metric="top1", epoch=None, split="test"))
        for name, seed in (("softmax", 0), ("classifier", None))
    )
    assert ours == given
    alike = table.where(objective="classifier", objective_b="softmax", metric="agreement_same")
    assert [(row.seed_b, row.value == 1) for row in alike] == [(0, True), (1, False)]


def test_a_folder_whose_weights_were_changed_since_their_training_is_refused(
    finished_given: Path, tmp_path: Path
) -> None:
    (trained, *_) = (finished_given / "steps").glob("train.*")
    copied = tmp_path / "copied"
    shutil.copytree(trained, copied)
    assert fingerprint(f"folder:{copied}") == fingerprint(f"folder:{trained}")
    weights = copied / "network.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(DamagedFileError, match=r"network\.safetensors' is not what was written"):
        fingerprint(f"folder:{copied}")


def test_width_and_layers_of_a_study_are_those_of_the_networks_that_it_trained(finished_given: Path) -> None:
    described = study_folder(finished_given, "given").described()
    assert described["num_features"] == 16
    assert described["layers"] == ["block1", "block2", "bottleneck1", "bottleneck2", "penultimate"]
    assert [entry["spec"] for entry in described["objectives"]] == [
        "softmax",
        "stranger",
        "earlier",
        "classifier",
    ]


@pytest.mark.long
def test_a_study_of_given_networks_alone_has_a_page_and_tables(tmp_path: Path) -> None:
    study = replace(
        TRAINED,
        name="alone",
        networks=(Given({"one": STRANGER, "other": "timm:test_resnet(pretrained=False, seed=2)"}),),
        measure=("class_separation", "linear"),
        limited=False,
    )
    assert pu.run(study, tmp_path / "runs", engine=InProcess()).complete
    (ours,) = pu.exhibit("features", tmp_path / "runs").tables
    assert {*ours.labels} == {"one", "other"}
    with pytest.raises(RequestError, match="Table 1 is about networks that a study trains"):
        pu.exhibit("table1", tmp_path / "runs")
    assert write_page(read_run(tmp_path / "runs", "alone"), tmp_path / "page.html")
