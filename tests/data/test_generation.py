"""`generate`: the same digest twice, progress, and the ways in which a request or a data set can be wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.plugged import plugged

from penultimate import RequestError, register, registry
from penultimate.data import DatasetCard, ImageSet, card, generate, load_images
from penultimate.engine.execute import execute
from penultimate.evaluation.request import Request
from penultimate.store import Store
from penultimate.study.unfold import unfold

SMOKE = ["glyphs_smoke", "syllabics_smoke", "digits_smoke"]


@pytest.mark.parametrize("name", SMOKE)
def test_a_draw_has_one_digest(tmp_path: Path, name: str) -> None:
    first = generate(name, 3, tmp_path / "a")
    again = generate(name, 3, tmp_path / "b")
    other = generate(name, 4, tmp_path / "c")
    assert first == again
    assert first["digest"] != other["digest"]
    assert {split: facts["images"] for split, facts in first["splits"].items()} == dict(card(name).sizes)
    assert (first["name"], first["draw"]) == (name, 3)
    for split, size in card(name).sizes.items():
        assert len(load_images(tmp_path / "a", split)) == size


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"unknown dataset 'digit_smoke'\. Did you mean 'digits_smoke'\?"):
        generate("digit_smoke", 0, tmp_path)
    for draw in (-1, True):
        with pytest.raises(RequestError, match=f"a draw is a whole number from 0 up, not {draw!r}"):
            generate("digits_smoke", draw, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="it is, or lies below, a file"):
        generate("digits_smoke", 0, tmp_path / "file")
    generate("digits_smoke", 0, tmp_path / "taken")
    with pytest.raises(
        RequestError, match=r"already holds digits_smoke \(draw 0\); give digits_smoke \(draw 1\)"
    ):
        generate("digits_smoke", 1, tmp_path / "taken")
    assert load_images(tmp_path / "taken", "train").ids.size == 50


@pytest.fixture
def plug_in() -> Iterator[Callable[[dict[str, Sequence[int]]], None]]:
    """Register `own_images`: its card promises 4 training and 2 test images, it makes those of these ids."""

    def add(makes: dict[str, Sequence[int]]) -> None:
        def own_images(draw: int) -> dict[str, ImageSet]:
            return {
                split: ImageSet(
                    np.full((len(ids), 4, 4, 3), draw, np.uint8),
                    np.arange(len(ids)) % 2,
                    np.array(ids),
                    ("a", "b"),
                )
                for split, ids in makes.items()
            }

        own_images.card = DatasetCard(  # type: ignore[attr-defined]
            "own_images", "Own", 2, {"train": 4, "test": 2}, "top1", "", "", ""
        )
        register.dataset(own_images)

    yield add
    registry.forget("dataset", "own_images")


def test_a_plug_in_is_generated_like_any_other(tmp_path: Path, plug_in: Callable[..., None]) -> None:
    plug_in({"train": range(4), "test": (4, 5)})
    generate("own_images", 9, tmp_path)
    assert set(load_images(tmp_path, "test").images.reshape(-1)) == {9}


@pytest.mark.parametrize(
    ("makes", "message"),
    [
        ({"train": range(4), "tset": (4, 5)}, "'tset': its card names no such split, or it is made twice"),
        ({"train": range(5), "test": (5, 6)}, "its card says 4 images of 2 classes; 5 of 2 were made"),
        ({"train": range(4)}, "makes no test, which its card promises"),
        ({"train": range(4), "test": (4, 3)}, r"the id 3 is in 'train' too \(1 of 2 do\)"),
    ],
)
def test_a_data_set_must_keep_what_its_card_promises_and_share_no_image_between_splits(
    tmp_path: Path, plug_in: Callable[..., None], makes: dict[str, Sequence[int]], message: str
) -> None:
    plug_in(makes)
    with pytest.raises(RequestError, match=message):
        generate("own_images", 0, tmp_path)


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        ("np.random.default_rng().integers(0, 255, (6, 4, 4, 3))", "makes other images of its split 'train'"),
        ("np.load(HERE / 'pixels.npy')", "could not be made when the study began, and now it can"),
    ],
)
def test_a_data_set_that_is_not_as_it_was_when_the_study_began_is_refused(
    tmp_path: Path, pixels: str, message: str
) -> None:
    text = f"""
from pathlib import Path
import numpy as np
from penultimate import register
from penultimate.data import DatasetCard, ImageSet

HERE = Path(__file__).parent

@register.dataset
def changing(draw):
    pixels = {pixels}.astype(np.uint8)
    for split, ids in (("train", np.arange(4)), ("test", np.arange(4, 6))):
        yield split, ImageSet(pixels[ids], ids % 2, ids, ("a", "b"))

changing.card = DatasetCard("changing", "Changing", 2, {{"train": 4, "test": 2}}, "top1", "", "", "")
"""
    (tmp_path / "mine.py").write_text(text)
    store = Store(tmp_path / "runs")
    store.prepare()
    with plugged(tmp_path / "mine.py"):
        networks = {"net": "timm:test_resnet(pretrained=False)"}
        steps = unfold(Request(networks, {"changing": ""}).study()).steps.values()
        np.save(tmp_path / "pixels.npy", np.ones((6, 4, 4, 3), np.uint8))
        with pytest.raises(RequestError, match=message):
            execute(store, next(step for step in steps if step.name == "data"), lambda news: None)
