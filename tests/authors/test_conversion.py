"""The authors' checkpoints, converted, beside the same network in TensorFlow's own operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision  # noqa: F401  (loaded after TensorFlow, its copy of LLVM ends the process)

from penultimate import backbones, objective
from penultimate.cli import main
from penultimate.data.legacy_bicubic import legacy_bicubic, legacy_square
from penultimate.errors import DamagedFileError, RequestError
from penultimate.networks.checkpoint_table import read_checkpoint_table
from penultimate.networks.released.catalogue import LOSSES
from penultimate.networks.released.convert import convert, get, open_checkpoint
from tests.authors.tensorflow_network import MEAN, STD, Network

OUTPUTS, WIDTH = 21, 8
SIDES = (
    (64, 64),
    (64, 64),
    (75, 64),
    (97, 50),
    (33, 33),
    (128, 96),
    (224, 224),
    (40, 90),
    (51, 51),
    (66, 70),
)


@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES)
def test_a_converted_network_computes_what_tensorflow_does(loss: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    theirs = Network(loss, OUTPUTS, WIDTH, seed=len(loss))
    theirs(np.zeros((1, 64, 64, 3)))
    theirs.save(tmp_path / "model.ckpt")
    tensors = convert(open_checkpoint(tmp_path / "model.ckpt"), loss, outputs=OUTPUTS)
    body = backbones.build(f"resnet50(pool='same', width={WIDTH})").eval()
    body.load_state_dict(
        {name.removeprefix("backbone."): value for name, value in tensors.items() if "backbone" in name}
    )
    head = objective(LOSSES[loss], num_features=body.num_features, num_classes=OUTPUTS - 1).eval()
    head.load_state_dict(
        {name.removeprefix("objective."): value for name, value in tensors.items() if "objective" in name}
    )
    generator = np.random.default_rng(0)
    for height, width in SIDES:
        image = generator.random((1, height, width, 3))
        expected = theirs(image)
        prepared = torch.from_numpy((image - MEAN) / STD).float().permute(0, 3, 1, 2)
        with torch.no_grad():
            features = body(prepared)
            logits = head(features)
            probabilities = head.probabilities(logits)
        for name, ours in (("features", features), ("logits", logits), ("probabilities", probabilities)):
            scale = abs(expected[name]).max()
            np.testing.assert_allclose(ours.numpy() / scale, expected[name] / scale, atol=1e-4, err_msg=name)


@pytest.mark.long
def test_images_are_resized_as_by_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    generator = np.random.default_rng(0)
    for _ in range(50):
        height, width = generator.integers(5, 400, 2)
        size = int(generator.choice([224, 64, 33]))
        image = generator.random((height, width, 3), dtype=np.float32)
        expected = tf.compat.v1.image.resize_bicubic(image[None], [size, size])[0].numpy()
        np.testing.assert_allclose(legacy_bicubic(image, size), expected, atol=1e-5)


@pytest.mark.long
def test_a_folder_of_checkpoints_becomes_a_table(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    places = {("softmax", 0), ("softmax", 3), ("cosine_softmax", 0), ("sigmoid", 7)}
    for loss, seed in places:
        network = Network(loss, OUTPUTS, WIDTH, seed)
        network(np.zeros((1, 64, 64, 3)))
        network.save(tmp_path / "checkpoints" / loss / f"seed{seed}" / "model.ckpt")
    said: list[str] = []
    table = get(tmp_path, said.append, OUTPUTS)
    assert {(row.objective.partition("(")[0], row.seed) for row in read_checkpoint_table(table)} == places
    assert "softmax: no network of seed 1, 2, 4, 5, 6, 7; a study runs with the others" in said
    assert said[-1] == f"4 of 72 networks are in '{table}'"

    said.clear()
    get(tmp_path, said.append, OUTPUTS)
    assert not any("converted" in line for line in said)

    data = tmp_path / "checkpoints/softmax/seed3/model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100_000])
    with pytest.raises(DamagedFileError, match=r"softmax/seed3/model.ckpt' is .*download it again"):
        get(tmp_path, said.append, OUTPUTS)
    assert len(read_checkpoint_table(table)) == 3
    with pytest.raises(RequestError, match="has 21 outputs; 1,001 are expected"):
        convert(open_checkpoint(tmp_path / "checkpoints/softmax/seed0/model.ckpt"), "softmax")
    network.save(tmp_path / "plain.ckpt", average=False)
    with pytest.raises(RequestError, match="holds no average of the weights"):
        convert(open_checkpoint(tmp_path / "plain.ckpt"), "sigmoid", outputs=OUTPUTS)


def test_without_checkpoints_the_message_says_how_to_download_them(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"no checkpoints of the authors in .* gcloud storage cp -r"):
        get(tmp_path, print)
    (tmp_path / "savedmodels" / "softmax").mkdir(parents=True)
    (tmp_path / "savedmodels" / "softmax" / "saved_model.pb").touch()
    with pytest.raises(RequestError, match="holds SavedModels"):
        get(tmp_path, print)


def test_the_middle_is_cut_out_before_it_is_resized() -> None:
    image = np.zeros((100, 160, 3), np.uint8)
    image[6:94, 36:124] = 200  # .875 of the shorter side is 88 pixels, from (12 + 1) // 2 and (72 + 1) // 2
    assert (legacy_square(image, 256, 224) == 200).all()
    assert (legacy_square(image, 224, 224)[0] == 0).all()


def test_the_study_of_the_authors_networks_asks_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "kornblith2021"]) == 2
    assert "give --networks FOLDER/networks.csv" in capsys.readouterr().err
