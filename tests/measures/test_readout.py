"""The layer to read: chosen on validation images alone, by an oracle that computes the split itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.measures.steps import Parents, measured
from tests.measures.worlds import network, world

from penultimate.data.images import load_images
from penultimate.features.extraction import extract
from penultimate.layers import pooling
from penultimate.networks.trained import load_network
from penultimate.probes.linear import LinearProbe
from penultimate.probes.validation import split_off


@pytest.fixture(scope="module")
def parents(tmp_path_factory: pytest.TempPathFactory) -> Parents:
    root = tmp_path_factory.mktemp("readout")
    images, folder = world(root), network(root, "softmax")
    parents = Parents(root, target="tasks").network(folder)
    for split in ("train", "test"):
        bank = extract(load_network(folder), load_images(images, split))
        parents.images(split, images).bank(split, bank)
    return parents


def labels_of(root: Path, split: str) -> Any:
    return load_images(root / "data", split).labels


def test_the_layer_that_does_best_on_validation_is_chosen_whatever_the_test_images_say(
    parents: Parents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`honest` tells validation images apart and no test image, `tempting` the other way round."""
    root = parents.root
    labels = {split: labels_of(root, split) for split in ("train", "test")}
    classes = len(np.unique(labels["train"]))
    validation = split_off(labels["train"], 0.2, 0)
    noise = np.random.default_rng(0)

    def layers(network: Any, images: Any, stem: Path) -> dict[str, Path]:
        split = stem.name
        of = labels[split]
        known = 5.0 * np.eye(classes)[of]
        blurred = noise.normal(size=known.shape)
        held = np.where(validation[:, None], blurred, known) if split == "train" else known
        made = {"honest": known if split == "train" else blurred, "tempting": held}
        for name, values in made.items():
            np.save(root / f"{name}-{split}.npy", values.astype(np.float32))
        return {name: root / f"{name}-{split}.npy" for name in made}

    monkeypatch.setattr(pooling, "pooled_layers", layers)
    rows = measured("readout", parents, accuracy="top1").rows
    (row,) = [row for row in rows if row.metric == "readout_top1"]
    assert row.layer == "honest"
    assert row.value < 0.6
    with np.load(root / "out" / "readout_predictions.npz") as arrays:
        assert (arrays["chosen"] == arrays["labels"]).mean() == row.value
        assert arrays["labels"].tolist() == labels["test"].tolist()


@pytest.mark.long
def test_its_numbers_are_those_of_the_probes_of_depth_and_of_scikit_learn(parents: Parents) -> None:
    by_depth = measured("depth", parents, accuracy="top1").rows
    rows = measured("readout", parents, accuracy="top1").rows
    (row,) = [row for row in rows if row.metric == "readout_top1"]
    validated = {one.layer: one.value for one in by_depth if one.metric == "linear_validation_accuracy"}
    assert row.layer == [layer for layer in validated if validated[layer] == max(validated.values())][-1]
    tested = {one.layer: one.value for one in by_depth if one.metric == "linear_top1"}
    assert row.value == tested[row.layer]
    with np.load(parents.root / "out" / "readout_predictions.npz") as arrays:
        assert (arrays["last"] == arrays["labels"]).mean() == tested["penultimate"]
        last = arrays["last"]
    network = load_network(parents.root / "train.softmax-0")
    train, test = (extract(network, load_images(parents.root / "data", split)) for split in ("train", "test"))
    probe = LinearProbe(seed=0).fit(train.features, train.labels)
    theirs = LogisticRegression(C=1 / probe.lambda_, tol=1e-8, max_iter=5000)
    theirs.fit(train.features.astype(float), train.labels)
    assert (theirs.predict(test.features) == last).mean() > 0.98
