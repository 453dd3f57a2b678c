"""Baselines that need no network: their features, their probes, and networks that are named below them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from tests.evaluation.test_boards import given
from tests.measures.steps import Parents, measured
from tests.records.stores import described, finished

from penultimate.data.images import ImageSet, save_images
from penultimate.errors import RequestError
from penultimate.evaluation.baselines import first_lines, shortfalls
from penultimate.evaluation.boards import records
from penultimate.evaluation.request import Request
from penultimate.features.baselines import BASELINES, random_convolutions, shrunk_pixels
from penultimate.measures.baselines import NAMES
from penultimate.records.reading import StudyFolder
from penultimate.report import exhibit, read_study
from penultimate.report.measurements import admit
from penultimate.report.page.page import render_report

IMAGES = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8))


def test_features_agree_with_plain_numpy() -> None:
    pixels = IMAGES.numpy().astype(float)
    cells = pixels.reshape(5, 8, 4, 8, 4, 3).mean((2, 4)) / 255
    assert np.allclose(shrunk_pixels(IMAGES), cells.transpose(0, 3, 1, 2).reshape(5, -1), atol=1e-6)
    found = BASELINES["colours"](IMAGES).numpy()
    for image, row in zip(pixels, found, strict=True):
        flat = image.reshape(-1, 3)
        shares, _ = np.histogramdd(flat, bins=[np.arange(0, 257, 64)] * 3)
        expected = [*(flat.mean(0) / 255), *(flat.std(0) / 255), *(shares.ravel() / len(flat))]
        assert np.allclose(row, expected, atol=1e-6)


def test_convolutions_ignore_brightness_and_contrast_and_are_the_same_in_every_call() -> None:
    found = random_convolutions(IMAGES)
    assert torch.equal(found, random_convolutions(IMAGES))
    darker = random_convolutions(IMAGES // 2)
    assert torch.allclose(found, darker, rtol=0.05, atol=0.05)
    assert found.std(0).min() > 0
    flat = random_convolutions(torch.full((2, 9, 7, 1), 200, dtype=torch.uint8))
    assert torch.allclose(flat, torch.zeros(()), atol=1e-5)
    with pytest.raises(RequestError, match=r"images are uint8 \[n h w c\]; these are torch.float32"):
        random_convolutions(IMAGES.float())


def picture_folder(root: Path, labels: np.ndarray) -> Path:
    """Images whose brightness is their class, in two splits."""
    random = np.random.default_rng(1)
    for split, first in (("train", 0), ("test", len(labels))):
        pixels = 60 * labels[:, None, None, None] + random.integers(0, 50, (len(labels), 12, 12, 3))
        ids = np.arange(first, first + len(labels))
        classes = tuple("abc"[: labels.max() + 1])
        save_images(root, split, ImageSet(pixels.astype(np.uint8), labels, ids, classes))
    return root


def test_probes_of_the_baselines_leave_predictions_and_accuracies(tmp_path: Path) -> None:
    folder = picture_folder(tmp_path / "data", np.arange(60) % 3)
    parents = Parents(tmp_path, target="tasks").images("train", folder).images("test", folder)
    rows = measured("baselines", parents, accuracy="top1").rows
    value = {row.setting: row.value for row in rows if row.metric == "baseline_top1"}
    with np.load(tmp_path / "out" / "baseline_predictions.npz") as arrays:
        assert {*arrays} == {"ids", "labels", *NAMES}
        for name in NAMES:
            assert value[f"baseline={name}"] == (arrays[name] == arrays["labels"]).mean()
    assert value["baseline=pixels"] == value["baseline=colours"] == 1.0


def test_a_task_of_one_class_has_no_baselines_but_a_reason(tmp_path: Path) -> None:
    folder = picture_folder(tmp_path / "data", np.zeros(8, np.int64))
    parents = Parents(tmp_path, target="tasks").images("train", folder).images("test", folder)
    outcome = measured("baselines", parents, accuracy="top1")
    assert not outcome.rows
    assert outcome.facts["undefined"].startswith("baselines on 'tasks': y holds one class only")


def compared(root: Path, right: dict[str, int], of_pixels: int, images: int = 60) -> StudyFolder:
    """A study of networks that are right on their first images, beside baselines; colours are never right."""
    labels = np.arange(images) % 3

    def guesses(first: int) -> np.ndarray:
        return np.where(np.arange(images) < first, labels, (labels + 1) % 3)

    study = given(root, [*right])
    columns = {"source": "digits_smoke", "target": "digits_smoke"}
    steps = []
    for number, (name, first) in enumerate(right.items()):
        arrays = {"ids": np.arange(images), "labels": labels, "linear": guesses(first), "knn": guesses(first)}
        rows = [{"metric": "probe_predictions", "value": images, "unit": "points"}]
        of = {"objective": name, **columns}
        step = f"probed.of{number}-digits_smoke.1"
        steps.append(finished(study.store, step, of, rows, arrays={"probe_predictions": arrays}))
    simple = {"pixels": guesses(of_pixels), "colours": guesses(0), "convolutions": guesses(of_pixels // 2)}
    shown = np.arange(0, images, 2)  # baselines are tested on a part of the images
    arrays = {"ids": shown, "labels": labels[shown], **{name: of[shown] for name, of in simple.items()}}
    rows = [{"metric": "baseline_predictions", "value": len(shown), "unit": "points"}]
    step = "baselines.digits_smoke.0"
    steps.append(finished(study.store, step, columns, rows, arrays={"baseline_predictions": arrays}))
    return described(
        study.store,
        "mine",
        steps,
        source="digits_smoke",
        targets=["digits_smoke"],
        measure=["probed", "baselines"],
        networks=[{"given": dict.fromkeys(right, "timm:resnet18"), "measure": None}],
        objectives=[{"slug": name, "label": name, "spec": name} for name in right],
        title="",
        question="",
    )


def test_a_network_below_pixels_is_named_first_and_no_baseline_is_ranked(tmp_path: Path) -> None:
    compared(tmp_path, {"good": 56, "lost": 8}, 40)
    measurements = admit(read_study(tmp_path))
    (found,) = shortfalls(measurements)
    assert (found.network.slug, found.baseline) == ("lost", "pixels")
    assert (found.value, found.of_baseline) == (4 / 30, 20 / 30)
    # Six pairs are tested; the two of the largest difference (good and lost against colours or pixels) come
    # first in Holm's order, so that lost against pixels (16 images to none) is multiplied by what is left.
    raw = sorted(binomtest(0, count).pvalue for count in (28, 18, 16, 8, 4, 6))
    holm, most = [], 0.0
    for place, p in enumerate(raw):
        most = max(most, min(1.0, (6 - place) * p))
        holm.append(most)
    assert found.p == pytest.approx(holm[raw.index(binomtest(0, 16).pvalue)], rel=1e-9)
    (line,) = first_lines((found,))
    assert line.startswith("lost is worse than a linear probe on pixels, 8 x 8 (13.3 against 66.7 %, p ")
    assert {row["network"] for row in records(measurements)} == {"good", "lost"}
    page = render_report(read_study(tmp_path))[""].decode()
    assert page.index("Below a baseline") < page.index('class="deck"')
    assert "below pixels" in page
    assert "lost on " in str(exhibit("ranking", tmp_path).notes)
    table = exhibit("baselines", tmp_path).tables[0]
    assert [row.label for row in table.rows][:4] == [
        "Always one class",
        "Pixels, 8 x 8",
        "Colour statistics",
        "Random convolutions",
    ]
    assert [row.cells[0].value for row in table.rows][-2:] == pytest.approx([100 * 4 / 30, 100 * 28 / 30])


def test_a_network_that_may_be_level_with_a_baseline_is_not_named(tmp_path: Path) -> None:
    compared(tmp_path, {"good": 56, "level": 36}, 40)  # two of thirty images are not enough
    assert shortfalls(admit(read_study(tmp_path))) == ()
    assert exhibit("baselines", tmp_path).notes[0].startswith("No network is worse")
    assert "Below a baseline" not in render_report(read_study(tmp_path))[""].decode()


def test_of_many_networks_below_baselines_three_are_named_one_by_one(tmp_path: Path) -> None:
    compared(tmp_path, dict.fromkeys("abcde", 0), 40)
    told = first_lines(shortfalls(admit(read_study(tmp_path))))
    assert len(told) == 4
    assert told[-1] == "Below a baseline are also d and e."


def test_they_may_be_left_out(tmp_path: Path) -> None:
    networks, data = {"one": "timm:resnet18"}, {"digits": ""}
    assert "baselines" in Request(networks, data).study().measure
    assert "baselines" not in Request(networks, data, baselines=False).study().measure
    given(tmp_path, ("first", "second"))
    assert not exhibit("baselines", tmp_path).is_measured
    assert shortfalls(admit(read_study(tmp_path))) == ()
