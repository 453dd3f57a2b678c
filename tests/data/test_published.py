"""Published data sets: each reader on a tiny copy in its true layout, beside torchvision's readers."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torchvision.datasets
from PIL import Image
from tests.data import published
from tests.data.published import CHOSEN, MAKERS, WNIDS, colour, shade

from penultimate import RequestError
from penultimate.data.disk.loading import decoded
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.data.listing import Listing
from penultimate.data.readers.entries import ENTRIES, entry
from penultimate.data.readers.opening import open_dataset
from penultimate.errors import DamagedFileError
from penultimate.paper.published import table

SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""How an archive is unpacked: Python 3.11.2, which Debian 12 has, knows no filters."""


def seen(listing: Listing) -> list[tuple[int, ...]]:
    """The colour in the middle of each image."""
    colours = []
    for index in range(len(listing)):
        encoded = listing.image(index)
        if isinstance(encoded, np.ndarray):
            colours.append(tuple(int(level) for level in encoded[16, 16]))
        else:
            image = Image.open(io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded)
            colours.append(image.convert("RGB").getpixel((15, 15)))
    return colours


def assert_shows_its_labels(listing: Listing) -> None:
    if listing.labels.ndim == 2:
        expected = [(shade(row > 0),) * 3 for row in listing.labels]
    else:
        expected = [colour(label) for label in listing.labels.tolist()]
    np.testing.assert_allclose(seen(listing), expected, atol=4)


DEVKIT, TRUTH = "ILSVRC2012_devkit_t12", "ILSVRC2012_validation_ground_truth.txt"
SPLITS = {name: list(known.card.sizes)[:3] for name, known in ENTRIES.items()}
SPLITS["imagenet_c"] = ["gaussian_noise/1", "gaussian_noise/5", "fog/3"]
SPLITS |= {name: ["train", "test"] for name in SPLITS if name.endswith("_tuning")}
OF_CLASSES = [name for name, known in ENTRIES.items() if not known.card.has_several_labels]


@pytest.mark.long
@pytest.mark.parametrize("name", OF_CLASSES)
def test_every_label_is_that_of_what_the_image_shows(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    opened = open_dataset(name, tmp_path)
    ids = []
    for split in SPLITS[name]:
        listing = opened.splits[split]
        assert len(listing) >= (1 if name == "imagenet_tuning" else 3)
        assert_shows_its_labels(listing)
        ids += listing.ids.tolist()
    assert len(set(ids)) == len(ids)
    scores = {"pets": "mean_per_class", "flowers102": "mean_per_class", "chexpert": "auc"}
    assert opened.accuracy == scores.get(name, "top1")


@pytest.mark.long
@pytest.mark.parametrize("name", ENTRIES)
def test_the_root_may_be_the_folder_itself(name: str, tmp_path: Path) -> None:
    inner = tmp_path / ENTRIES[name].folder
    MAKERS[name](inner if inner.name == "imagenet" else tmp_path)
    split = SPLITS[name][-1]
    ours, theirs = (open_dataset(name, root).splits[split] for root in (inner, tmp_path))
    assert ours.digest == theirs.digest


def test_of_imagenets_training_images_those_held_out_are_a_share_by_their_names(tmp_path: Path) -> None:
    published.imagenet(tmp_path)
    whole = open_dataset("imagenet", tmp_path).splits["train"]
    parts = open_dataset("imagenet_tuning", tmp_path).splits
    ids = [parts[split].ids.tolist() for split in ("train", "holdout")]
    assert sorted(ids[0] + ids[1]) == whole.ids.tolist()
    assert [len(some) for some in ids] == [11, 1]
    names = [Path(whole.name(row)).name for row in range(len(whole))]
    assert Path(parts["holdout"].name(0)).name == min(
        names, key=lambda name: hashlib.sha256(name.encode()).hexdigest()
    )
    assert round(1281167 * 5 / 128) == entry("imagenet_tuning").card.sizes["holdout"] == 50046
    assert_shows_its_labels(parts["holdout"])


@pytest.mark.parametrize(("name", "sizes"), [("cifar10", (18, 2)), ("cifar100", (11, 1))])
def test_of_cifars_training_images_a_tenth_is_held_out(
    name: str, sizes: tuple[int, int], tmp_path: Path
) -> None:
    """Names within a batch recur in the next, so that the batch is part of what is digested."""
    MAKERS[name](tmp_path)
    whole, parts = (open_dataset(called, tmp_path).splits for called in (name, f"{name}_tuning"))
    train, held = (parts[split] for split in ("train", "holdout"))
    assert (len(train), len(held)) == sizes
    assert sorted([*train.ids, *held.ids]) == sorted(whole["train"].ids)
    names = [whole["train"].name(row) for row in range(len(whole["train"]))]
    digested = sorted(names, key=lambda each: hashlib.sha256(each.encode()).hexdigest())
    assert {held.name(row) for row in range(len(held))} == set(digested[: sizes[1]])
    assert parts["test"].digest == whole["test"].digest
    assert dict(entry(f"{name}_tuning").card.sizes) == {"train": 45000, "test": 10000, "holdout": 5000}
    for listing in (train, held):
        assert_shows_its_labels(listing)


def test_imagenet100_leaves_other_classes_out(tmp_path: Path) -> None:
    published.imagenet100(tmp_path)
    splits = open_dataset("imagenet100", tmp_path).splits
    assert [len(splits[split]) for split in ("train", "test")] == [12, 4]
    assert len(splits["train"].class_names) == 100
    assert set(splits["test"].labels.tolist()) == {0, 7, 42, 99}


def test_of_chexpert_a_share_of_the_training_images_is_tested_on(tmp_path: Path) -> None:
    published.chexpert(tmp_path)
    splits = open_dataset("chexpert", tmp_path).splits
    sizes = {split: len(splits[split]) for split in splits}
    assert sizes == {"train": 54, "test": 6, "validation": 12}
    assert splits["test"].labels.shape == (6, 5)


def test_the_sizes_are_the_papers_corrected() -> None:
    for row in table("neurips_tableA2_datasets"):
        ours = {"food": "food101", "flowers": "flowers102"}.get(row["dataset"], row["dataset"])
        card = entry(ours).card
        assert card.classes == int(row["classes_corrected"])
        sizes = {"train": int(row["train_images_corrected"]), "test": int(row["test_images_corrected"])}
        assert dict(card.sizes) == sizes
        assert card.accuracy == row["accuracy_measure"]


def _theirs(name: str, root: Path, split: str) -> tuple[list[str], list[int]]:
    """Paths and labels by torchvision's reader, without the checksums of the real files."""
    kinds: dict[str, Any] = {
        "food101": torchvision.datasets.Food101,
        "cars": torchvision.datasets.StanfordCars,
        "pets": torchvision.datasets.OxfordIIITPet,
        "flowers102": type(
            "Flowers", (torchvision.datasets.Flowers102,), {"_check_integrity": lambda self: True}
        ),
    }
    theirs = {"pets": ["trainval"], "flowers102": ["train", "val"]}.get(name, ["train"])
    paths: list[str] = []
    labels: list[int] = []
    for part in theirs if split == "train" else ["test"]:
        found = kinds[name](root, split=part)
        pairs = (
            found._samples
            if name == "cars"
            else zip(getattr(found, "_image_files", None) or found._images, found._labels, strict=True)
        )
        for path, label in pairs:
            paths.append(Path(path).relative_to(found._base_folder).as_posix())
            labels.append(int(label))
    return paths, labels


@pytest.mark.long
@pytest.mark.parametrize("name", ["food101", "cars", "pets", "flowers102"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_torchvision_reads_the_same(name: str, split: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    ours = open_dataset(name, tmp_path).splits[split]
    assert ([ours.name(index) for index in range(len(ours))], ours.labels.tolist()) == _theirs(
        name, tmp_path, split
    )


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_torchvision_reads_the_same_pixels(
    name: str, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MAKERS[name](tmp_path)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda path, md5: True)
    kind = {"cifar10": torchvision.datasets.CIFAR10, "cifar100": torchvision.datasets.CIFAR100}[name]
    theirs = kind(tmp_path, train=split == "train")
    ours = open_dataset(name, tmp_path).splits[split]
    np.testing.assert_array_equal([ours.image(index) for index in range(len(ours))], theirs.data)
    assert ours.labels.tolist() == theirs.targets
    assert list(ours.class_names) == theirs.classes


@pytest.mark.long
@pytest.mark.parametrize("maker", ["imagenet", "imagenet_archives", "imagenet_flat", "imagenet_kaggle"])
def test_every_arrangement_of_imagenet_is_the_same_data(maker: str, tmp_path: Path) -> None:
    published.imagenet(tmp_path / "folders")
    getattr(published, maker)(tmp_path / "other")
    plain, other = (open_dataset("imagenet", tmp_path / folder) for folder in ("folders", "other"))
    for split in ("train", "test"):
        assert_shows_its_labels(other.splits[split])
        assert other.splits[split].class_names == plain.splits[split].class_names
        content = [
            sorted(
                zip(d.splits[split].labels.tolist(), map(bytes, d.splits[split].image_digests), strict=True)
            )
            for d in (plain, other)
        ]
        assert content[0] == content[1]


@pytest.mark.long
@pytest.mark.parametrize("maker", ["imagenet_archives", "imagenet_flat", "imagenet_kaggle"])
def test_what_labels_imagenet_may_lie_in_its_folder_below_the_root(maker: str, tmp_path: Path) -> None:
    getattr(published, maker)(tmp_path / "imagenet")
    ours, theirs = (open_dataset("imagenet", root) for root in (tmp_path, tmp_path / "imagenet"))
    for split in ("train", "test"):
        assert ours.splits[split].digest == theirs.splits[split].digest


def test_imagenet_c_is_shown_as_it_is_published(tmp_path: Path) -> None:
    """Its own test.py crops to 224 x 224 and does not resize: the images are so large already."""
    path = tmp_path / "fog/3" / WNIDS[3] / "ILSVRC2012_val_00000001.JPEG"
    path.parent.mkdir(parents=True)
    Image.effect_noise((224, 224), 60).convert("RGB").save(path)
    listing = open_dataset("imagenet_c", tmp_path).splits["fog/3"]
    preparation = Preparation(256, 224, "bilinear", ChannelStatistics((0.5,) * 3, (0.5,) * 3))
    (batch,) = decoded(listing, [preparation], workers=0)
    np.testing.assert_array_equal(batch.prepared(preparation)[0], Image.open(path))


def test_imagenets_archives_are_read_where_they_lie(tmp_path: Path) -> None:
    published.imagenet_archives(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    train = open_dataset("imagenet", tmp_path).splits["train"]
    assert isinstance(train.image(0), bytes)
    assert train.name(0) == f"{WNIDS[3]}/{WNIDS[3]}_0.JPEG"
    assert pickle.loads(pickle.dumps(train)).image(5) == train.image(5)
    assert train.digest == train.digest
    assert sorted(tmp_path.rglob("*")) == before


def test_validation_images_without_labels_are_refused(tmp_path: Path) -> None:
    published.imagenet_flat(tmp_path)
    (tmp_path / "ILSVRC2012_devkit_t12.tar.gz").unlink()
    with pytest.raises(RequestError, match=r"lie in no class folders.*put ILSVRC2012_devkit_t12.tar.gz"):
        open_dataset("imagenet", tmp_path).splits["test"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("maker", "name", "content", "message"),
    [
        ("imagenet_kaggle", "LOC_val_solution.csv", "a,b\n1,2\n", "has no columns ImageId, PredictionString"),
        ("imagenet_flat", f"{DEVKIT}/data/{TRUTH}", "490\nhen\n", f"{TRUTH}' .*lists no classes: .*'hen'"),
        ("imagenet_flat", f"{DEVKIT}/data/{TRUTH}", b"\xff\xfe", f"{TRUTH}' .*lists no classes"),
    ],
)
def test_damaged_labels_of_validation_images_are_named(
    maker: str, name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    getattr(published, maker)(tmp_path)
    if maker == "imagenet_flat":
        with tarfile.open(tmp_path / f"{DEVKIT}.tar.gz") as archive:
            archive.extractall(tmp_path, **SAFELY)
    published.put(tmp_path / name, content)
    with pytest.raises(DamagedFileError, match=message):
        open_dataset("imagenet", tmp_path).splits["test"]


def test_labels_are_places_among_the_thousand(tmp_path: Path) -> None:
    """A subset of classes keeps the thousand's labels; V2's folders are numbers, and 10 is not before 3."""
    for name in ("imagenet_a", "imagenet_r", "imagenet_sketch", "imagenet_v2"):
        MAKERS[name](tmp_path / name)
        listing = open_dataset(name, tmp_path / name).splits["test"]
        assert len(listing.class_names) == 1000
        assert tuple(np.unique(listing.labels)) == CHOSEN
        assert listing.labels.tolist() == sorted(listing.labels.tolist())
        assert listing.class_names[10].split()[0] == WNIDS[10]


def test_a_class_that_imagenet_has_not_is_named(tmp_path: Path) -> None:
    published.imagenet_a(tmp_path)
    (tmp_path / "imagenet-a/n01491362").mkdir()
    with pytest.raises(
        DamagedFileError, match=r"'n01491362' is not one of the 1000 classes\. Did you mean 'n01491361'"
    ):
        open_dataset("imagenet_a", tmp_path).splits["test"]


def test_missing_images_are_named_and_shift_nothing(tmp_path: Path) -> None:
    published.birdsnap(tmp_path)
    opened = open_dataset("birdsnap", tmp_path)
    train = opened.splits["train"]
    assert train.class_names[1] == "Acorn Woodpecker"
    assert not (train.labels == 1).any()
    assert len(train.missing) == 4
    assert train.missing[-1] == "download/images/Alder_Flycatcher/31.jpg"
    whole = {train.name(index): int(train.ids[index]) for index in range(len(train))}
    (tmp_path / "birdsnap/download/images/Acadian_Flycatcher/10.jpg").unlink()
    fewer = open_dataset("birdsnap", tmp_path).splits["train"]
    assert len(fewer) == len(train) - 1
    assert {fewer.name(index): int(fewer.ids[index]) for index in range(len(fewer))}.items() < whole.items()
    assert "8 of 47,386 images are there; 47,378 are missing, 'download/" in opened.shortfall("train")


def test_an_image_in_no_partition_belongs_to_none(tmp_path: Path) -> None:
    published.sun397(tmp_path)
    opened = open_dataset("sun397", tmp_path)
    names = [opened.splits[s].name(i) for s in ("train", "test") for i in range(len(opened.splits[s]))]
    assert len(names) == 15
    assert not any(name.endswith("a5.jpg") for name in names)
    assert opened.splits["train"].class_names[1] == "apartment_building/outdoor"


@pytest.mark.parametrize("place", [".", "..", "Partitions", "../Partitions"])
def test_suns_partitions_lie_where_people_put_them(place: str, tmp_path: Path) -> None:
    published.sun397(tmp_path)
    base = tmp_path / "SUN397"
    expected = open_dataset("sun397", tmp_path).splits["test"].digest
    (base / place).mkdir(exist_ok=True)
    for name in ("Training_01.txt", "Testing_01.txt", "ClassName.txt"):
        shutil.move(base / name, base / place / name)
    assert open_dataset("sun397", tmp_path).splits["test"].digest == expected


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _write(content: bytes | str) -> Callable[[Path], Any]:
    return lambda path: published.put(path, content)


CARS_TEST = "stanford_cars/cars_test_annos_withlabels.mat"
PETS_TEST = "oxford-iiit-pet/annotations/test.txt"
NO_MAT = "is not a whole MATLAB file"
VERSION_7_3 = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(64)
SPOILT: list[tuple[str, str, Callable[[Path], Any], str]] = [
    ("food101", "food-101/meta/train.txt", Path.unlink, r"train\.txt' is missing"),
    ("food101", "food-101/meta/test.txt", _write("cake/1"), "'cake' is not one of the 3"),
    ("food101", "food-101/meta/test.txt", _write(b"\xff\xfe\x00"), "is no list of images"),
    ("sun397", "SUN397/Testing_01.txt", _write("/a/abbey/../../etc/x.jpg"), "is not one of the 3 classes"),
    ("cars", "stanford_cars/devkit/cars_meta.mat", _truncate, NO_MAT),
    ("cars", "stanford_cars/devkit/cars_meta.mat", _write(b""), NO_MAT),
    ("cars", CARS_TEST, Path.unlink, r"withlabels\.mat' cannot be read"),
    (
        "cars",
        CARS_TEST,
        lambda path: shutil.copy(path.parent / "devkit/cars_test_annos.mat", path),
        "labels no images; is it the file with labels",
    ),
    ("flowers102", "flowers-102/setid.mat", _truncate, NO_MAT),
    ("flowers102", "flowers-102/setid.mat", _write(VERSION_7_3), rf"{NO_MAT} .*matlab v7\.3"),
    ("pets", PETS_TEST, _write("Bengal_1"), "'Bengal_1' is not 'NAME NUMBER"),
    ("pets", PETS_TEST, _write("../x_1 1 1 1"), "lies outside"),
    ("pets", PETS_TEST, _write("x_1 0 1 1"), "is not 'NAME NUMBER|the class 0"),
    ("cifar10", "cifar-10-batches-py/test_batch", _truncate, "test_batch' is not one of CIFAR's files"),
    ("cifar10", "cifar-10-batches-py/test_batch", Path.unlink, "test_batch' is missing"),
    ("cifar100", "cifar-100-python/meta", _write(pickle.dumps([1])), "holds no dictionary"),
    ("birdsnap", "birdsnap/images.txt", _write("a,b\n1,2\n"), "has no columns path, species_id"),
    (
        "cifar10",
        "cifar-10-batches-py/test_batch",
        _write(published.python2_pickle({b"labels": [b"cat"], b"data": np.zeros((1, 3072), np.uint8)})),
        "test_batch' has labels that are no numbers",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "file", "spoil", "message"), SPOILT)
def test_a_damaged_list_is_named(
    name: str, file: str, spoil: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    MAKERS[name](tmp_path)
    spoil(tmp_path / file)
    opened = open_dataset(name, tmp_path)
    with pytest.raises((RequestError, DamagedFileError), match=message):
        dict(opened.splits)


class _Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_nothing_in_a_pickle_runs(tmp_path: Path) -> None:
    published.cifar10(tmp_path)
    batch = tmp_path / "cifar-10-batches-py/test_batch"
    batch.write_bytes(pickle.dumps({"data": _Hostile(tmp_path / "owned"), "labels": [0]}))
    with pytest.raises(DamagedFileError, match=r"it asks for \w+\.mkdir, which no array needs"):
        open_dataset("cifar10", tmp_path).splits["test"]
    assert not (tmp_path / "owned").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["link", "cut", "no tar"])
def test_a_bad_archive_of_imagenet_is_refused(kind: str, tmp_path: Path) -> None:
    published.imagenet_archives(tmp_path)
    path = tmp_path / "ILSVRC2012_img_train.tar"
    if kind == "cut":
        path.write_bytes(path.read_bytes()[:12000])
    elif kind == "no tar":
        path.write_bytes(b"<html>404 not found</html>" * 99)
    else:
        with tarfile.open(path, "a") as archive:
            member = tarfile.TarInfo("n01440764.tar")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    message = {
        "link": "not an ordinary file",
        "cut": "ends within|not a whole tar",
        "no tar": "not a whole tar",
    }
    with pytest.raises(DamagedFileError, match=message[kind]):
        open_dataset("imagenet", tmp_path).splits["train"]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"where Oxford-IIIT Pets lies is not said"):
        open_dataset("pets")
    whose = "is not Oxford-IIIT Pets as it is published.* own go by another name than 'pets'"
    with pytest.raises(RequestError, match=whose):
        open_dataset("pets", tmp_path).splits["train"]
    with pytest.raises(RequestError, match=r"does not exist; it is to hold Oxford-IIIT Pets"):
        open_dataset("pets", tmp_path / "gone").splits["train"]
    with pytest.raises(RequestError, match=r"neither a published data set .*Did you mean 'flowers102'\?"):
        open_dataset("flower102")


def test_the_digest_is_of_the_content_and_kept(tmp_path: Path) -> None:
    published.food101(tmp_path / "a")
    published.food101(tmp_path / "elsewhere")
    cache = tmp_path / "cache"
    first = open_dataset("food101", tmp_path / "a", cache=cache).splits["train"]
    assert first.digest == open_dataset("food101", tmp_path / "elsewhere").splits["train"].digest
    (kept,) = cache.iterdir()
    again = open_dataset("food101", tmp_path / "a", cache=cache).splits["train"]
    assert again.digest == first.digest
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")  # a damaged one is not believed
    assert open_dataset("food101", tmp_path / "a", cache=cache).splits["train"].digest == first.digest
    changed = tmp_path / "a/food-101/images/baklava/1000.jpg"
    published.put_image(changed, 2, 9)
    assert open_dataset("food101", tmp_path / "a", cache=cache).splits["train"].digest != first.digest
    assert first.subset([2, 0]).digest != first.subset([0, 2]).digest


def test_the_digests_of_two_arrays_in_a_file_are_kept_apart(tmp_path: Path) -> None:
    images = np.arange(4, dtype=np.uint8).repeat(192).reshape(4, 8, 8, 3)
    np.savez(tmp_path / "x.npz", x_train=images, y_train=[0, 1] * 2, x_test=images + 9, y_test=[0, 1] * 2)
    kept, fresh = (
        open_dataset(str(tmp_path / "x.npz"), cache=cache).splits for cache in (tmp_path / "cache", None)
    )
    for split in ("train", "test"):
        np.testing.assert_array_equal(kept[split].image_digests, fresh[split].image_digests)
