"""Tables with several labels for an image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.pictures import SHAPES, picture

from penultimate.data.readers.opening import open_dataset
from penultimate.data.readers.splitting import stratified
from penultimate.errors import RequestError


def table(root: Path, count: int = 48, wrong: str = "") -> Path:
    """Shapes on noise; whether they are round, and whether they are red, in columns of 0 and 1."""
    random = np.random.default_rng(0)
    (root / "images").mkdir(parents=True)
    lines = ["path,Round,red,part"]
    for number in range(count):
        is_round, is_red = number % 2, number // 2 % 2
        colour = (220, 40, 40) if is_red else (40, 60, 210)
        picture(SHAPES[1 - is_round], colour, random).save(root / "images" / f"{number}.png")
        part = "test" if number % 3 == 2 else "train"
        lines.append(f"images/{number}.png,{is_round},{wrong or is_red},{part}")
    (root / "t.csv").write_text("\n".join(lines) + "\n")
    return root / "t.csv"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table(tmp_path_factory.mktemp("shapes"))


def test_labels_are_read_by_name_and_by_pattern(file: Path) -> None:
    found = open_dataset(f"{file}(labels=('round', 'red'))").splits
    assert found["train"].class_names == ("Round", "red")
    numbers = [int(Path(found["test"].name(at)).stem) for at in range(len(found["test"]))]
    assert numbers == [number for number in range(48) if number % 3 == 2]
    assert found["test"].labels.tolist() == [[number % 2, number // 2 % 2] for number in numbers]
    by_pattern = open_dataset(f"{file}(labels='r*')").splits
    assert by_pattern["train"].labels.tolist() == found["train"].labels.tolist()


def test_without_a_split_every_label_is_tested(tmp_path: Path) -> None:
    file = table(tmp_path)
    found = open_dataset(f"{file}(labels=('round', 'red'), split=None)").splits
    assert len(found["test"]) + len(found["train"]) == 48
    assert (found["test"].labels == 1).any(0).all()
    labels = np.array([[1, 0]] * 50 + [[1, 1]] * 10)
    tested = stratified([str(at) for at in range(60)], labels, 0, 0.2)
    assert (tested[:50].sum(), tested[50:].sum()) == (10, 2)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("labels=('round', 'blue')", "column of .*'blue'"),
        ("labels='round'", "labels=... are two columns or more"),
        ("labels=('round', 'part')", "row 1 of 'part' holds 'train'"),
        ("label='round', labels=('round', 'red')", "say one"),
        ("label=('round', 'red')", r"row 1 marks 0.*Several labels for an image.*labels=\('round', 'red'\)"),
    ],
)
def test_what_is_no_column_of_labels_is_refused(said: str, message: str, file: Path) -> None:
    with pytest.raises(RequestError, match=message):
        open_dataset(f"{file}({said})")


def test_labels_are_not_said_of_folders(file: Path) -> None:
    with pytest.raises(RequestError, match=r"labels=\.\.\. is not said of"):
        open_dataset(f"{file.parent}(labels=('a', 'b'))")


def test_missing_images_move_no_label(tmp_path: Path) -> None:
    file = table(tmp_path)
    (tmp_path / "images" / "3.png").unlink()
    found = open_dataset(f"{file}(labels=('round', 'red'))").splits["train"]
    numbers = [int(Path(found.name(at)).stem) for at in range(len(found))]
    assert 3 not in numbers
    assert found.labels.tolist() == [[number % 2, number // 2 % 2] for number in numbers]


def test_a_label_that_no_test_image_shows_is_named(tmp_path: Path) -> None:
    notes = open_dataset(f"{table(tmp_path, wrong='0')}(labels=('round', 'red'))").notes
    assert "of the test images all or none show 1 label ('red')" in " ".join(notes)
