"""Layouts in which people's images lie, and which images, classes and splits are read from them today.

A layout writes tiny images and tables into a folder, as a known data set or a usual tool leaves them.
`layouts.json` holds what comes out. To record it again, in a few seconds:

    python -m tests.golden.layouts
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from penultimate import PenultimateError
from penultimate.data.decoding import read_colours
from penultimate.data.readers.opening import open_dataset

GOLDEN = Path(__file__).with_suffix(".json")


class Split(NamedTuple):
    """Images in order; `pixels(i)` is image i as uint8 [h w 3] or [h w], labels are [n] or [n l]."""

    names: list[str]
    labels: np.ndarray
    class_names: Sequence[str]
    missing: Sequence[str]
    groups: np.ndarray | None
    pixels: Callable[[int], np.ndarray]


def read(place: Path, said: dict[str, Any]) -> dict[str, Split]:
    """Return the splits of a place through the package's own door. Nothing else here depends on it."""

    settings = ", ".join(f"{name}={value!r}" for name, value in said.items())
    found = {}
    for part, of in open_dataset(f"{place}({settings})" if said else str(place)).splits.items():
        names = [of.name(index) for index in range(len(of))]
        found[part] = Split(names, of.labels, of.class_names, of.missing, of.groups, partial(_pixels, of))
    return found


def _pixels(of: Any, index: int) -> np.ndarray:
    image = of.image(index)
    if isinstance(image, bytes):
        return np.asarray(read_colours(Path("bytes"), content=image)[0])
    return image if isinstance(image, np.ndarray) else np.asarray(read_colours(image)[0])


def outcome(place: Path, said: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of each split's images by class and name, or that the layout is refused.

    The order of images is left out: a reader may choose it. An image that cannot be read has the number None.
    """
    try:
        splits = read(place, said)
    except PenultimateError:
        return {"refused": True}
    found: dict[str, Any] = {"classes": [*splits["train"].class_names]}
    for part, of in sorted(splits.items()):
        images: dict[str, dict[str, int | None]] = {}
        for index in sorted(range(len(of.names)), key=of.names.__getitem__):
            label = of.labels[index]
            key = of.class_names[label] if of.labels.ndim == 1 else " ".join(map(str, label))
            images.setdefault(key, {})[of.names[index]] = _number(of, index)
        found[part] = {"images": dict(sorted(images.items())), "count": len(of.names)}
        if of.missing:
            found[part]["missing"] = sorted(of.missing)
        if of.groups is not None:
            found[part]["groups"] = sorted(set(of.groups.tolist()))
    return found


def _number(of: Split, index: int) -> int | None:
    """Return the number of an image as its pixel at the top left shows it."""
    try:
        return round(float(np.mean(of.pixels(index)[0, 0])) / 4)
    except PenultimateError:
        return None


class Folder:
    """A folder in which images are numbered in the order of writing: number n has the grey level 4 n."""

    def __init__(self, root: Path) -> None:
        self.root, self.count = root, 0

    def __truediv__(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def image(self) -> Image.Image:
        self.count += 1
        assert self.count < 64, "grey levels are bytes"
        return Image.new("L", (8, 8), 4 * self.count)

    def array(self, count: int) -> np.ndarray:
        return np.stack([np.asarray(self.image()) for _ in range(count)])

    def images(self, *patterns: str) -> list[str]:
        """Write images; "{cat,dog}/{1..3}.jpg" are six, and "empty:x" is a file without content."""
        names = [name for pattern in patterns for name in expanded(pattern)]
        for name in names:
            if name.startswith("empty:"):
                (self / name[6:]).write_bytes(b"")
            else:
                self.image().save(self / name)
        return names

    def lines(self, name: str, *lines: str, encoding: str = "utf-8") -> str:
        (self / name).write_text("".join(f"{line}\n" for line in lines), encoding)
        return name


def expanded(pattern: str) -> list[str]:
    """Return what a pattern stands for, as in a shell.

    >>> expanded("{cat,dog}/{1..2}.jpg")
    ['cat/1.jpg', 'cat/2.jpg', 'dog/1.jpg', 'dog/2.jpg']
    """
    parts = [[each] if at % 2 == 0 else each.split(",") for at, each in enumerate(re.split(r"[{}]", pattern))]
    for part in parts:
        if ".." in part[0] and len(part) == 1 and part[0][0].isdigit():
            first, last = map(int, part[0].split(".."))
            part[:] = [str(number) for number in range(first, last + 1)]
    return ["".join(each) for each in itertools.product(*parts)]


def write(text: str, at: Folder) -> str:
    """Write a layout from its notation; return the name of its last table, or "" if it has none.

    The notation has parts between " + ". A part is patterns of images, or a table with a row for each
    image of its first pattern: "FILE:ENCODING | HEAD | ROW | PATTERNS | LABELS". The encoding and
    the labels may be left out, and the head "-" stands for none.
    """
    place = ""
    for part in text.split(" + "):
        name, *rest = part.split(" | ")
        if not rest:
            at.images(*part.split(" "))
            continue
        head, row, patterns, *labels = rest
        place, _, encoding = name.partition(":")
        listed, *beside = patterns.split(" ")
        rows = rows_of(row, at.images(listed), labels[0].split(",") if labels else ["ant", "bee", "wasp"])
        at.images(*beside)
        at.lines(place, *([] if head == "-" else [head]), *rows, encoding=encoding or "utf-8")
    return place


def rows_of(row: str, images: Sequence[str], labels: Sequence[str]) -> Iterator[str]:
    """Yield a row for each image: {of} goes round the labels, {k} and {a}, {b}, {c} round three classes."""
    parts, marks = ("train", "train", "validation", "test"), ("1.0", "0.0", "-1.0")
    for i, path in enumerate(images):
        k, fold, windows = i % 3, i // 3, path.replace("/", "\\")
        known = {"i": i, "k": k, "pair": i // 2, "fold": fold, "last": fold == 3, "part": parts[fold % 4]}
        known |= {letter: f"{float(k == at)}" for at, letter in enumerate("abc")}
        known |= {"of": labels[i % len(labels)], "mark": marks[k], "path": path, "windows": windows}
        known |= {"name": Path(path).name, "stem": Path(path).stem, "folder": path.split("/")[0]}
        yield row.format(**known)


FOLDERS = {
    "eurosat": "EuroSAT/2750/{AnnualCrop,Forest,River}/{1..6}.jpg",
    "imagenette": "noisy_imagenette.csv | path,noisy_labels_0,is_valid | {path},{of},False"
    " | train/{n01440764,n02102040}/{1..4}.JPEG val/{n01440764,n02102040}/{5..6}.JPEG",
    "fastai_mnist_sample": "labels.csv | name,label | {path},{k}"
    " | train/{3,7}/{1..5}.png valid/{3,7}/{6..8}.png",
    "kaggle_dogs_vs_cats": "train/{cat,dog}.{0..4}.jpg test1/{1..4}.jpg",
    "classes_in_names": "images/{Abyssinian,beagle}_{1..4}.jpg",
    "microsoft_cats_and_dogs": "PetImages/{Cat,Dog}/{0..5}.jpg empty:PetImages/{Cat/666.jpg,Dog/Thumbs.db}",
    "wrapped_twice": "{training_set/training_set,test_set/test_set}/{cats,dogs}/{1..4}.jpg",
    "intel": "{seg_train/seg_train,seg_test/seg_test}/{forest,sea}/{0..3}.jpg seg_pred/seg_pred/{6..8}.jpg",
    "tiny_imagenet": "val/val_annotations.txt | - | {name}\t{of}\t0\t32\t44\t62 | val/images/val_{0..5}.JPEG"
    " train/{n01443537,n01629819}/images/{0..3}.JPEG test/images/test_{0..2}.JPEG | n01443537,n01629819",
    "tiny_imagenet_sorted": "{train,val}/{n01443537,n01629819}/images/{0..3}.JPEG empty:words.txt",
    "chest_xray": "chest_xray/{train,val,test}/{NORMAL,PNEUMONIA}/{0..3}.jpeg"
    " empty:{__MACOSX/chest_xray/train/NORMAL/._0.jpeg,chest_xray/train/.DS_Store}",
    "roboflow_folders": "{train,valid,test}/{ripe,unripe}/{1..3}.jpg empty:README.roboflow.txt",
    "jupyter_checkpoints": "{train,test}/{ant,bee}/{0..2}.png"
    " {train/.ipynb_checkpoints,test/ant/.ipynb_checkpoints}/{3..4}-checkpoint.png",
    "one_folder_around": "archive/flowers/{daisy,rose,tulip}/{1..5}.jpg empty:archive/flowers/LICENSE.txt",
    "classes_that_are_numbers": "{train,valid}/{1,2,10}/{0..2}.jpg",
    "splits_within_classes": "{cat,dog}/{train,test}/{1..4}.jpg",
    "a_class_called_train": "{bus,car,train}/{0..4}.jpg",
    "patients_kept_together": "{benign,malignant}/patient{0..4}/{0..2}.png",
    "a_domain_that_is_tested_on": "{amazon,dslr,webcam}/{bike,mug}/{0..2}.jpg",
    "numbered_folds": "fold{1..3}/{ant,bee}/{0..1}.png",
    "many_endings": "{ant,bee}/{0.JPG,1.png,2.webp,3.tif,4.bmp,5.gif,deeper/6.jpeg} stray.png",
    "other_scripts": "{Käfer,муравей,蜂}/{0..3}.png",
    "class_of_test_alone": "train/{ant,bee}/{0..2}.png test/{ant,wasp}/{3..5}.png",
    "class_without_test_images": "train/{ant,bee,wasp}/{0..2}.png test/{ant,wasp}/{3..4}.png",
    "one_class": "ant/{0..4}.png",
    "no_class_folders": "{0..4}.png",
    "cub_200_2011": "train_test_split.txt | - | {i} {of} | images/{001.Auk,002.Bunting}/{1..5}.jpg | 0,1",
    "gtsrb": "Test.csv | Width,ClassId,Path | 53,{k},{path} | Test/{0..5}.png Train/{0,1,2}/{6..8}.png",
    "dog_breeds_folder": "labels.csv | id,breed | {stem},{of} | train/{0..11}.jpg test/{90..92}.jpg",
    "ham10000_folder": "metadata.csv | lesion_id,image_id,dx | HAM_{pair},{stem},{of}"
    " | HAM10000_images_part_{1/ISIC_1,2/ISIC_2}{0..5}.jpg",
    "aptos_folder": "train.csv | id_code,diagnosis | {stem},{k} | train_images/a{0..11}.png"
    " + test.csv | id_code | {stem} | test_images/b{0..2}.png",
    "tables_of_splits": "train.csv | filename,label | {name},{of} | images/a{0..5}.png"
    " + test.csv | filename,label | {name},{of} | images/b{0..2}.png",
    "lists_without_a_header": "train.txt | - | {path} {k} | images/a{0..5}.png"
    " + val.txt | - | {path} {k} | images/b{0..2}.png",
    "metadata_of_hugging_face": "train/metadata.csv | file_name,label | {name},{of} | train/{0..5}.png"
    " + test/metadata.csv | file_name,label | {name},{of} | test/{0..2}.png",
    "metadata_in_json_lines": 'metadata.jsonl | - | {{"file_name": "{name}", "label": {k}}} | {0..11}.png',
    "captions": "metadata.csv | file_name,text | {path},insect {i} | {train,test}/{ant,bee}/{0..2}.png",
    "roboflow_classes": "train/_classes.csv | filename, ant, bee, fly | {name}, {a}, {b}, {c}"
    " | train/{0..5}.jpg"
    " + valid/_classes.csv | filename, ant, bee, fly | {name}, {a}, {b}, {c} | valid/{0..2}.jpg",
}
"""Layouts of which a user gives the folder."""
TABLES = {
    "dog_breeds": FOLDERS["dog_breeds_folder"],
    "ham10000": FOLDERS["ham10000_folder"],
    "ham10000_lesions_kept_together": FOLDERS["ham10000_folder"],
    "aptos": "train.csv | id_code,diagnosis | {stem},{k} | train_images/a{0..11}.png test_images/b{0..2}.png",
    "cifar_on_kaggle": "trainLabels.csv | id,label | {stem},{of} | train/{1..12}.png",
    "cifar_on_kaggle_with_test": "labels.csv | id,label | {stem},{of} | train/{1..12}.png test/{1..3}.png",
    "isic_one_hot": "Truth.csv | image,MEL,NV,BCC,UNK | {stem},{a},{b},{c},0.0 | Input/ISIC_{0..11}.jpg",
    "isic_columns_said": "Truth.csv | image,MEL,NV,BCC | {stem},{a},{b},{c} | Input/ISIC_{0..11}.jpg",
    "chest_x_ray_14": "Entries.csv | Image Index,Finding Labels,Patient ID,View | {name},{of},{pair},PA"
    " | images_00{1/images/a,2/images/b}{0..5}.png | Cardiomegaly|Emphysema,Hernia,No Finding",
    "chexpert": "train.csv | Path,Patient,Cardiomegaly,Edema | {path},{pair},{mark},{c}"
    " | train/patient{1..6}/study1/view{1,2}.jpg",
    "chexpert_with_blanks": "train.csv | Path,Cardiomegaly,Edema | {path},{mark}, | train/{1..6}/view1.jpg",
    "celeba": "t.csv | image_id,partition,smiling | {name},{k},{of} | img/{0..11}.jpg | no,no,no,yes,yes,yes",
    "birds_on_kaggle": "birds.csv | class id,filepaths,labels,data set | {k},{path},{of},{folder}"
    " | {train,valid,test}/{AVOCET,KIWI}/{1..2}.jpg | AVOCET,AVOCET,KIWI,KIWI",
    "windows_paths_and_semicolons": "t.csv | Path;Class | {windows};{of} | img/{0..11}.png",
    "byte_order_mark": "t.csv:utf-8-sig | file,label | {path},{of} | img/{0..11}.png",
    "utf_16_with_tabs": "t.txt:utf-16 | file\tlabel | {path}\t{of} | img/{0..11}.png",
    "index_of_pandas": "t.csv | ,path,label | {i},{path},{of} | img/{0..11}.png",
    "missing_labels": "t.csv | path,label | {path},{of} | img/{0..11}.png | ant,bee,,ant,bee,NaN",
    "labels_of_minus_one": "t.csv | path,label | {path},{of} | img/{0..11}.png | 0,1,-1",
    "several_labels_in_a_cell": 't.csv | path,labels | {path},"{of},odd" | img/{0..11}.png',
    "is_valid_column": "t.csv | fname,label,is_valid | {path},{of},{last} | img/{0..11}.png",
    "split_column": "t.csv | path,label,split | {path},{of},{part} | img/{0..11}.png",
    "fold_that_is_tested_on": "t.csv | path,label,fold | {path},{of},{fold} | img/{0..11}.png",
    "group_column": "t.csv | path,label,patient | {path},{of},p{fold} | images/{0..35}.png",
    "split_that_parts_groups": "t.csv | path,label,split,patient | {path},{of},{part},p{k} | img/{0..11}.png",
    "json_lines": 't.jsonl | - | {{"path": "{path}", "label": "{of}", "split": "{part}"}} | img/{0..11}.png',
    "no_label_column": "t.csv | path,width | {path},64{i} | img/{0..11}.png",
    "columns_said": "t.csv | id,where,kind | {i},{fold},{of} | img/{0..11}.png",
}
"""Layouts of which a user gives the table."""
SAID: dict[str, dict[str, Any]] = {
    "patients_kept_together": {"group": 1},
    "a_domain_that_is_tested_on": {"test": "amazon"},
    "ham10000_lesions_kept_together": {"label": "dx", "group": "lesion_id"},
    "isic_columns_said": {"label": ("NV", "MEL", "BCC")},
    "chest_x_ray_14": {"label": "Finding Labels"},
    "chexpert": {"labels": ("Cardiomegaly", "Edema"), "group": "Patient"},
    "chexpert_with_blanks": {"labels": ("Cardiomegaly", "Edema")},
    "fold_that_is_tested_on": {"split": "fold", "test": 3},
    "group_column": {"group": "patient"},
    "split_that_parts_groups": {"group": "patient"},
    "columns_said": {"image": "id", "label": "kind"},
}
"""What a user says beside the place."""


def missing_files(at: Folder) -> str:
    place = write("t.csv | path,label | {path},{of} | img/{0..11}.png", at)
    for number in (2, 7, 9):
        (at / f"img/{number}.png").unlink()
    return place


def photographs(at: Folder) -> str:
    """A photograph that its EXIF data turn, and images in CMYK, with alpha, of 16 bits, of a palette."""
    at.images("{ant,bee}/{0..1}.jpg")
    turned, exif = at.image(), Image.Exif()
    turned.paste(252, (0, 0, 8, 4))
    exif[0x0112] = 6
    turned.save(at / "ant/turned.jpg", exif=exif, quality=100)
    at.image().convert("CMYK").save(at / "ant/cmyk.jpg")
    at.image().convert("RGBA").save(at / "bee/alpha.png")
    Image.fromarray(np.asarray(at.image()).astype(np.uint16) * 257).save(at / "bee/deep.png")
    at.image().convert("P").save(at / "bee/palette.gif")
    return ""


def archive(at: Folder) -> str:
    at.images("flowers/{daisy,rose}/{0..2}.jpg")
    shutil.make_archive(str(at / "flowers"), "zip", at / "flowers")
    return "flowers.zip"


def parquet(at: Folder) -> str:
    import pandas as pd

    split = ["train"] * 8 + ["test"] * 4
    frame = {"path": at.images("{0..11}.png"), "label": ["ant", "bee"] * 6, "split": split}
    pd.DataFrame(frame).to_parquet(at / "t.parquet")
    return "t.parquet"


def parquet_with_images(at: Folder) -> str:
    import pandas as pd

    for part in ("train", "test"):
        names = at.images(f"{part}{{0..5}}.png")
        images = [{"bytes": (at / name).read_bytes(), "path": name} for name in names]
        pd.DataFrame({"image": images, "label": [0, 1] * 3}).to_parquet(at / f"{part}-00000-of-00001.parquet")
    return ""


def hugging_face(at: Folder, count: int) -> Any:
    import datasets

    datasets.disable_progress_bars()
    features = datasets.Features(image=datasets.Image(), label=datasets.ClassLabel(names=["wasp", "ant"]))
    rows = {"image": [at.image() for _ in range(count)], "label": [i % 2 for i in range(count)]}
    return datasets.Dataset.from_dict(rows, features=features)


def save_to_disk(at: Folder) -> str:
    hugging_face(at, 10).save_to_disk(at.root)
    return ""


def save_to_disk_with_splits(at: Folder) -> str:
    import datasets

    parts = {"train": 6, "validation": 2, "test": 2}
    made = {part: hugging_face(at, count) for part, count in parts.items()}
    datasets.DatasetDict(made).save_to_disk(at.root)
    return ""


def medmnist(at: Folder) -> str:
    parts = {"train": 8, "val": 4, "test": 4}
    images = {f"{part}_images": at.array(count) for part, count in parts.items()}
    labels = {f"{part}_labels": np.arange(count)[:, None] % 4 for part, count in parts.items()}
    np.savez(at / "pathmnist.npz", **images, **labels)
    return "pathmnist.npz"


def keras_mnist(at: Folder) -> str:
    trained, tested = np.arange(10, dtype=np.uint8) % 5, np.arange(5, dtype=np.uint8)
    np.savez(at / "mnist.npz", x_train=at.array(10), y_train=trained, x_test=at.array(5), y_test=tested)
    return "mnist.npz"


def arrays_with_class_names(at: Folder) -> str:
    labels, names = np.arange(12) % 3, np.array(["wasp", "ant", "bee"])
    np.savez(at / "insects.npz", images=at.array(12), labels=labels, class_names=names)
    return "insects.npz"


def arrays_of_floats(at: Folder) -> str:
    np.savez(at / "a.npz", images=at.array(8).astype(np.float32) / 255, labels=np.arange(8) % 2)
    return "a.npz"


def numpy_files(at: Folder) -> str:
    for part, count in (("train", 8), ("test", 4)):
        np.save(at / f"x_{part}.npy", at.array(count))
        np.save(at / f"y_{part}.npy", np.array(["ant", "bee"])[np.arange(count) % 2])
    return ""


WRITTEN = (missing_files, photographs, archive, parquet, parquet_with_images, save_to_disk)
WRITTEN += (save_to_disk_with_splits, medmnist, keras_mnist, numpy_files)
WRITTEN += (arrays_with_class_names, arrays_of_floats)
LAYOUTS: dict[str, Callable[[Folder], str]] = {
    **{name: lambda at, text=text: write(text, at) and "" for name, text in FOLDERS.items()},
    **{name: lambda at, text=text: write(text, at) for name, text in TABLES.items()},
    **{function.__name__: function for function in WRITTEN},
}
"""Write a layout into a folder; return what a user gives: a file in it, or "" for the folder itself."""


def record(name: str, folder: Path) -> dict[str, Any]:
    """Write a layout into a folder of its name and return what is read from it."""
    root = folder / name
    root.mkdir()
    return outcome(root / LAYOUTS[name](Folder(root)), SAID.get(name, {}))


def main() -> None:
    """Record all layouts."""
    with tempfile.TemporaryDirectory() as folder:
        found = {name: record(name, Path(folder)) for name in LAYOUTS}
    GOLDEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    refused = [name for name, of in found.items() if "refused" in of]
    print(f"{len(found)} layouts, {len(refused)} of them refused: {', '.join(refused)}")


if __name__ == "__main__":
    main()
