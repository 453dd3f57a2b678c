"""Tiny copies of published data sets in the layout in which each is published, files for files.

Every image of a class is of the class's colour, so that a label that is shifted shows in the pixels.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torchvision.datasets
from PIL import Image
from scipy.io import savemat

from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
from penultimate.data.readers.entries import ENTRIES
from penultimate.data.readers.published import PATHOLOGIES, imagenet_words

for _module in (torchvision.datasets.cifar, torchvision.datasets.flowers102):
    _module.check_integrity = lambda path, md5=None: Path(path).is_file()  # tiny copies have other sums

OBSERVATIONS = (
    *("No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema"),
    *("Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other"),
    *("Fracture", "Support Devices"),
)
COLUMNS = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *OBSERVATIONS)
WNIDS = sorted(imagenet_words())
"""ImageNet's thousand."""
CHOSEN = (3, 10, 200, 999)
"""The classes of ImageNet's that tiny copies hold."""


def colour(label: int) -> tuple[int, int, int]:
    """That of a class: blue steps by ten, so that JPEG cannot blur one into the next."""
    return 50 + 40 * (label % 5), 50 + 40 * (label // 5 % 5), 50 + 40 * (label // 25 % 5)


def jpeg(label: int, number: int = 0) -> bytes:
    buffer = io.BytesIO()
    image = Image.new("RGB", (40 + number, 30), colour(label))
    image.save(buffer, "JPEG", quality=95, comment=f"{label} {number}".encode())
    return buffer.getvalue()


def put(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def put_image(path: Path, label: int, number: int = 0) -> None:
    put(path, jpeg(label, number))


def food101(root: Path) -> None:
    base = root / "food-101"
    classes = ["apple_pie", "baby_back_ribs", "baklava"]
    listed: dict[str, dict[str, list[str]]] = {"train": {}, "test": {}}
    for label, name in enumerate(classes):
        for number in range(5):
            put_image(base / f"images/{name}/{1000 + number}.jpg", label, number)
            part = "train" if number < 3 else "test"
            listed[part].setdefault(name, []).append(f"{name}/{1000 + number}")
    for part, names in listed.items():
        put(base / f"meta/{part}.json", json.dumps(names))
        put(base / f"meta/{part}.txt", "\n".join(line for lines in names.values() for line in lines))
    put(base / "meta/classes.txt", "\n".join(classes) + "\n")
    put(base / "meta/labels.txt", "Apple pie\nBaby back ribs\nBaklava\n")
    put(base / "license_agreement.txt", "...")


def _cifar_rows(labels: list[int]) -> np.ndarray:
    return np.concatenate([np.repeat(np.array(colour(label), np.uint8), 1024)[None] for label in labels])


def cifar10(root: Path) -> None:
    base = root / "cifar-10-batches-py"
    for number, name in enumerate([f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]):
        labels = [(number + k) % 10 for k in range(4)]
        content = {
            "batch_label": "training batch 1 of 5",
            "labels": labels,
            "data": _cifar_rows(labels),
            "filenames": ["x.png"] * 4,
        }
        put(base / name, pickle.dumps(content))
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    meta = {"num_cases_per_batch": 4, "label_names": names, "num_vis": 3072}
    put(base / "batches.meta", pickle.dumps(meta))
    put(base / "readme.html", "<html>")


def cifar100(root: Path) -> None:
    base = root / "cifar-100-python"
    for name, count in (("train", 12), ("test", 6)):
        fine = [7 * (k % 6) for k in range(count)]
        content = {
            "filenames": ["x.png"] * count,
            "batch_label": "training batch 1 of 1",
            "fine_labels": fine,
            "coarse_labels": [label // 5 for label in fine],
            "data": _cifar_rows(fine),
        }
        put(base / name, pickle.dumps(content))
    meta = {
        "fine_label_names": [f"fine_{k:02}" for k in range(100)],
        "coarse_label_names": [f"coarse_{k}" for k in range(20)],
    }
    put(base / "meta", pickle.dumps(meta))


def birdsnap(root: Path) -> None:
    """With an image that could not be downloaded, and a species all of whose images could not."""
    base = root / "birdsnap"
    species = [
        ("1", "Acadian Flycatcher"),
        ("2", "Acorn Woodpecker"),
        ("3", "Alder Flycatcher"),
        ("4", "Anhinga"),
    ]
    put(
        base / "species.txt",
        "id\tcommon\tscientific\tdir\n"
        + "".join(f"{k}\t{name}\tLatin name\t{name.replace(' ', '_')}\n" for k, name in species),
    )
    lines = ["url\tmd5\tpath\tspecies_id\tbb_x1\tbb_y1\tbb_x2\tbb_y2\tback_x\tback_y"]
    tested = ["path"]
    for label, (k, name) in enumerate(species):
        for number in range(4):
            path = f"{name.replace(' ', '_')}/{k}{number}.jpg"
            lines.append(f"http://farm.example/{number}\tmd5\t{path}\t{k}\t1\t1\t20\t20\tnull\tnull")
            if number == 3:
                tested.append(path)
            if name != "Acorn Woodpecker" and (label, number) != (2, 1):
                put_image(base / "download/images" / path, label, number)
    put(base / "images.txt", "\n".join(lines) + "\n")
    put(base / "test_images.txt", "\n".join(tested) + "\n")
    put(base / "get_birdsnap.py", "print 'python 2'\n")


def sun397(root: Path) -> None:
    base = root / "SUN397"
    classes = ["/a/abbey", "/a/apartment_building/outdoor", "/b/badlands"]
    put(base / "ClassName.txt", "".join(f"{name}\n" for name in classes))
    for split in ("01", "02"):
        for part, numbers in (("Training", (0, 1, 2)), ("Testing", (3, 4))):
            lines = [
                f"{name}/sun_{split if split == '02' else ''}a{k}.jpg" for name in classes for k in numbers
            ]
            put(base / f"{part}_{split}.txt", "\r\n".join(lines) + "\r\n")
    for label, name in enumerate(classes):
        for number in range(6):  # the sixth is in no partition
            put_image(base / f"{name[1:]}/sun_a{number}.jpg", label, number)


def cars(root: Path) -> None:
    base = root / "stanford_cars"
    names = ["AM General Hummer SUV 2000", "Acura RL Sedan 2012", "Ram C/V Cargo Van Minivan 2012"]
    savemat(
        _made(base / "devkit/cars_meta.mat"),
        {"class_names": np.array([names], dtype=object)},
    )
    types = [(name, object) for name in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")]
    for part, path, count in (
        ("train", "devkit/cars_train_annos.mat", 6),
        ("test", "cars_test_annos_withlabels.mat", 5),
    ):
        rows = np.empty((1, count), dtype=types)
        for number in range(count):
            label = (2 * number + (part == "test")) % 3
            rows[0, number] = (1, 2, 30, 20, np.uint8(label + 1), f"{number + 1:05}.jpg")
            put_image(base / f"cars_{part}/{number + 1:05}.jpg", label, number)
        savemat(_made(base / path), {"annotations": rows})


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def pets(root: Path) -> None:
    base = root / "oxford-iiit-pet"
    breeds = [("Abyssinian", 1), ("american_bulldog", 2), ("Bengal", 1)]
    lines: dict[str, list[str]] = {"trainval": [], "test": []}
    for label, (breed, kind) in enumerate(breeds):
        for number in range(5):
            image = f"{breed}_{number + 100}"
            line = f"{image} {label + 1} {kind} 1"
            if (breed, number) != ("american_bulldog", 3):
                lines["trainval" if number < 3 else "test"].append(line)
            put_image(base / f"images/{image}.jpg", label, number)
    for part, listed in lines.items():
        put(base / f"annotations/{part}.txt", "\n".join(listed) + "\n")
    header = "#Image CLASS-ID SPECIES BREED ID\n#ID: 1:37 Class ids\n"
    put(base / "annotations/list.txt", header + "\n".join(lines["trainval"] + lines["test"]))
    put(base / "images/Abyssinian_100.mat", b"MATLAB 5.0")


def flowers102(root: Path) -> None:
    base = root / "flowers-102"
    labels = [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    for number, label in enumerate(labels, 1):
        put_image(base / f"jpg/image_{number:05}.jpg", label - 1, number)
    savemat(_made(base / "imagelabels.mat"), {"labels": np.array([labels], np.uint8)})
    ids = {"trnid": [7, 1, 4], "valid": [5, 2, 8], "tstid": [3, 6, 9, 10]}
    savemat(base / "setid.mat", {key: np.array([value], np.uint16) for key, value in ids.items()})


def imagenet(root: Path) -> None:
    """train and val as folders of classes, as torchvision and everyone's script leave them."""
    for label in CHOSEN:
        for number in range(3):
            put_image(root / f"train/{WNIDS[label]}/{WNIDS[label]}_{number}.JPEG", label, number)
    for number, label in enumerate(CHOSEN * 2, 1):
        put_image(root / f"val/{WNIDS[label]}/ILSVRC2012_val_{number:08}.JPEG", label, number)


def imagenet100(root: Path) -> None:
    """A few of its hundred classes, in the colours of their places among these, beside others."""
    hundred = sorted(ENTRIES["imagenet100"].wnids.split())
    for label in (0, 7, 42, 99):
        for number in range(3):
            put_image(root / f"train/{hundred[label]}/{hundred[label]}_{number}.JPEG", label, number)
        put_image(root / f"val/{hundred[label]}/ILSVRC2012_val_{label:08}.JPEG", label)
    for part in ("train", "val"):
        put_image(root / f"{part}/{WNIDS[3]}/{WNIDS[3]}_0.JPEG", 1)


def imagenet_tuning(root: Path) -> None:
    imagenet(root)


def cifar10_tuning(root: Path) -> None:
    cifar10(root)


def cifar100_tuning(root: Path) -> None:
    cifar100(root)


def imagenet_kaggle(root: Path) -> None:
    data = root / "ILSVRC/Data/CLS-LOC"
    for label in CHOSEN:
        for number in range(3):
            put_image(data / f"train/{WNIDS[label]}/{WNIDS[label]}_{number}.JPEG", label, number)
    lines = ["ImageId,PredictionString"]
    for number, label in reversed(list(enumerate(CHOSEN * 2, 1))):
        put_image(data / f"val/ILSVRC2012_val_{number:08}.JPEG", label, number)
        lines.append(f"ILSVRC2012_val_{number:08},{WNIDS[label]} 85 1 499 272 {WNIDS[label]} 1 1 20 20 ")
    put(data / "test/ILSVRC2012_test_00000001.JPEG", jpeg(0))
    put(root / "LOC_val_solution.csv", "\n".join(lines) + "\n")
    put(root / "LOC_synset_mapping.txt", "".join(f"{w} {imagenet_words()[w]}\n" for w in WNIDS))


def imagenet_v2(root: Path) -> None:
    for label in range(1000):
        folder = root / "imagenetv2-matched-frequency-format-val" / str(label)
        folder.mkdir(parents=True)
        if label in CHOSEN:
            put_image(folder / "0af3f1b55de791c4144e2fb6d7dfe96dfc22d3fc.jpeg", label)


def _wnids(root: Path, folder: str) -> None:
    for label in CHOSEN:
        for number in range(2):
            put_image(root / folder / WNIDS[label] / f"0.0{number}_cat _ dog_0.9.jpg", label, number)


def imagenet_a(root: Path) -> None:
    _wnids(root, "imagenet-a")
    put(root / "imagenet-a/README.txt", f"{WNIDS[3]} tench\n")


def imagenet_r(root: Path) -> None:
    _wnids(root, "imagenet-r")
    put(root / "imagenet-r/README.txt", "...")


def imagenet_sketch(root: Path) -> None:
    _wnids(root, "sketch")


def imagenet_c(root: Path) -> None:
    """Its archives unpacked side by side, one of them into a folder of its own."""
    for corruption, severity in itertools.product(BENCHMARK, SEVERITIES):
        above = "weather" if corruption in ("snow", "frost", "fog", "brightness") else "."
        for label in CHOSEN:
            place = root / "imagenet-c" / above / corruption / str(severity) / WNIDS[label]
            put_image(place / "ILSVRC2012_val_00000001.JPEG", label)


def shade(present: Sequence[bool]) -> int:
    """The grey of a radiograph with these of the competition's findings."""
    return 20 + sum(6 << place for place, there in enumerate(present) if there)


def chexpert_rows(part: str, patients: Sequence[int]) -> list[dict[str, str]]:
    """Rows as they are: one to three studies' images a patient, blanks where nothing is mentioned."""
    random = np.random.default_rng(len(patients))
    rows = []
    for patient in patients:
        for view in range(1, 2 + patient % 3):
            side = "Lateral" if view == 3 else "Frontal"
            path = f"CheXpert-v1.0-small/{part}/patient{patient:05d}/study1/view{view}_{side.lower()}.jpg"
            choices = ("1.0", "0.0", "-1.0", "") if part == "train" else ("1.0", "0.0")
            values = {name: str(random.choice(choices)) for name in OBSERVATIONS}
            facts = {"Path": path, "Sex": "Female", "Age": "68", "Frontal/Lateral": side, "AP/PA": "AP"}
            rows.append({**facts, **values})
    return rows


def chexpert_files(
    root: Path,
    train: Sequence[Mapping[str, str]],
    valid: Sequence[Mapping[str, str]],
    columns: Sequence[str] = COLUMNS,
) -> Path:
    """A folder in CheXpert's layout: the tables, and a grey JPEG for every row whose path lies in it."""
    folder = root / "CheXpert-v1.0-small"
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in {"train.csv": train, "valid.csv": valid}.items():
        with (folder / name).open("w", newline="") as file:
            table = csv.DictWriter(file, columns, extrasaction="ignore")
            table.writeheader()
            table.writerows(rows)
        for row in rows:
            path = root / row["Path"]
            if "patient" in row["Path"] and ".." not in row["Path"]:
                path.parent.mkdir(parents=True, exist_ok=True)
                grey = shade([row.get(finding) == "1.0" for finding in PATHOLOGIES])
                Image.new("L", (39, 32), grey).save(path)
    return folder


def chexpert(root: Path) -> None:
    train, valid = chexpert_rows("train", range(1, 31)), chexpert_rows("valid", range(64541, 64547))
    chexpert_files(root, train, valid)


MAKERS: dict[str, Callable[[Path], None]] = {
    maker.__name__: maker
    for maker in (
        imagenet, imagenet_tuning, imagenet100, imagenet_v2, imagenet_a, imagenet_r, imagenet_sketch,
        imagenet_c, food101, cifar10, cifar100, birdsnap, sun397, cars, pets, flowers102, chexpert,
        cifar10_tuning, cifar100_tuning,
    )
}  # fmt: skip
