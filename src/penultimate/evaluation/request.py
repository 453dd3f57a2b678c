"""The study that evaluates networks of one's own on data of one's own: named, and put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate import registry
from penultimate.data.catalog import card
from penultimate.data.entries import ENTRIES
from penultimate.errors import RequestError, counted, unknown
from penultimate.networks.sources import KINDS, LIVE, read_source
from penultimate.study.blocks import Given
from penultimate.study.spec import Study

if TYPE_CHECKING:
    from penultimate.data.class_order import ClassOrder

NAME = "evaluation"
"""The usual name of the study, and of its folder."""
MEASURE = (
    "geometry",
    "probed",
    "confusions",
    "layers",
    "pair_cka",
    "transferability",
    "classifier",
    "pair_agreement",
    "overlap",
    "nce",
    "leep",
)
"""What is measured of each network that can give what it takes; the last five take a final layer."""
BY_LAYER, FINE_TUNING, OF_LABELS = "depth", "given_fine_tuning", "multilabel"
"""Probes of every block; training of all weights on each task; areas under the ROC curve of each label."""
OF_TRAINING = "network.json"
"""The file by which a folder holds a network that was trained here."""
OWN = {"crop": {"crop", "resize"}, "share": {"share", "resize"}}
"""What is said to all networks of their images, and by which settings one has said it itself."""
QUESTION = "Which network serves which task best?"
NAMED = re.compile(r"(?P<name>[^=:(/\\]+)=(?P<what>.+)", re.DOTALL)


def evaluation(
    networks: Mapping[str, str],
    data: Mapping[str, str],
    source: str = "",
    classifies: bool | Sequence[str] = False,
    fine_tune: bool = False,
    name: str = NAME,
    size: int | None = None,
    crop: float | None = None,
    class_order: ClassOrder = (),
    copies: str = "keep",
) -> Study:
    """The study of some networks, {name: source}, on some data, {name: folder}.

    A data set that penultimate knows by its name has "" for a folder. `source` is the one of them whose
    classes the networks were trained on, and no task; those that `classifies` names (True: all) have final
    layers for these classes. Without a source, what needs no task is measured on the first data set, or the
    first whose images have one class each. `size` in pixels, and the share of the resized image that a `crop`
    in the middle takes, are told to all networks whose source does not say them. `class_order` is that of the
    source's classes in the networks' outputs; `copies="drop"` leaves out all but one of images that are
    equal, on all data on disk.

    >>> study = evaluation({"ours": "timm:resnet18"}, {"digits": "", "glyphs": ""}, source="glyphs")
    >>> study.source, study.targets, study.title
    ('glyphs', ('digits',), '1 network on 1 task')
    """
    if not networks:
        raise RequestError("no network to evaluate: give one or more, such as timm:resnet50")
    targets = tuple(each for each in data if each != source)
    if not targets:
        raise RequestError("no data to evaluate networks on: give one or more folders, NAME=FOLDER")
    for each, where in data.items():
        if not where and each not in registry.names("dataset"):
            raise RequestError(
                f"{unknown('data set', each, registry.names('dataset'))} A folder: {each}=FOLDER."
            )
    chosen = _classifying(networks, classifies)
    if chosen and not source:
        raise RequestError("which classes the networks tell apart is not known without a source")
    networks = {each: _told(text, size, crop) for each, text in networks.items()}
    blocks = [
        Given({each: text for each, text in networks.items() if (each in chosen) == of_source}, of_source)
        for of_source in (True, False)
        if any((each in chosen) == of_source for each in networks)
    ]
    if copies not in ("keep", "drop"):
        raise RequestError(f"copies are to 'keep' or to 'drop', not {copies!r}")
    if class_order and not (chosen and data[source]):
        raise RequestError(
            "an order of classes goes with a source on disk that the networks classify: --source FOLDER"
            " --classifies all"
        )
    reading: dict[str, dict[str, Any]] = {each: {} for each, where in data.items() if where}
    for how in reading.values():
        how.update({"copies": copies} if copies == "drop" else {})
    if class_order:
        reading[source]["class_order"] = class_order if isinstance(class_order, str) else [*class_order]
    several = [each for each in targets if _has_several_labels(each)]
    further = (BY_LAYER, *([FINE_TUNING] if fine_tune else []), *([OF_LABELS] if several else []))
    return Study(
        name,
        f"{counted(len(networks), 'network')} on {counted(len(targets), 'task')}",
        QUESTION,
        source or next((each for each in targets if each not in several), targets[0]),
        targets,
        tuple(blocks),
        (*MEASURE, *(name for name in further if name in registry.names("measurement"))),
        data={each: where for each, where in data.items() if where},
        reading={each: how for each, how in reading.items() if how},
    )


def _has_several_labels(name: str) -> bool:
    known = ENTRIES[name].card if name in ENTRIES else None
    if name in registry.names("dataset"):
        known = card(name)
    return known is not None and known.has_several_labels


def _classifying(networks: Mapping[str, str], classifies: bool | Sequence[str]) -> set[str]:
    if isinstance(classifies, bool):
        return {*networks} if classifies else set()
    for each in classifies:
        if each not in networks:
            raise unknown("network", each, networks)
    return {*classifies}


def _told(text: str, size: int | None, crop: float | None) -> str:
    """A source with what is said to all of them.

    >>> _told("timm:resnet18(seed=1, crop=96)", 160, 0.9)
    'timm:resnet18(seed=1, crop=96, share=0.9)'
    """
    if size is None and crop is None:
        return text
    if size is not None and size < 1:
        raise RequestError(f"size is a number of pixels, 1 or more, not {size}")
    if crop is not None and not 0 < crop <= 1:
        raise RequestError(f"crop is the part of the resized image that is cut out, above 0 to 1, not {crop}")
    source = read_source(text)
    if source.kind == "folder":
        raise RequestError(f"size and crop are not told to a network that was trained here, '{text}'")
    asked = {"crop": size, "share": None if crop is None else float(crop)}
    own = {each for each in OWN if source.settings.keys() & OWN[each]}
    return _with(text, **{each: said for each, said in asked.items() if said is not None and each not in own})


def networks_named(models: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Networks by name, from what a command says of each: (model, file of weights or "").

    A model is timm:NAME, torchvision:NAME, a Python file and the function in it that builds a module
    (my_net.py:build), or a folder of networks that were trained here; NAME=MODEL gives it a name.

    >>> networks_named([("timm:resnet50", ""), ("ours=timm:resnet50", "best.safetensors")])
    {'resnet50': 'timm:resnet50', 'ours': "timm:resnet50(weights='best.safetensors')"}
    """
    named: dict[str, str] = {}
    for model, weights in models:
        said = NAMED.fullmatch(model)
        own, text = (said["name"].strip(), said["what"]) if said else ("", model)
        for called, source in _sources(text, weights).items():
            name = own or called
            if name in named:
                raise RequestError(
                    f"two networks are called '{name}': {named[name]} and {source}; name one of them,"
                    f" such as --model 'another name={text}'"
                )
            named[name] = source
    return named


def _sources(text: str, weights: str) -> dict[str, str]:
    """What a model is called unless it is named, and its source; of a folder, each network in it."""
    kind = text.partition(":")[0]
    if (kind in KINDS and kind != "folder") or ".py:" in text:
        source = _with(text, weights=weights) if weights else text
        name = read_source(source).name
        name = Path(name.partition(".py:")[0]).name if ".py:" in name else name
        return {f"{name} {Path(weights).stem}" if weights else name: source}
    path = Path(text.removeprefix("folder:")).expanduser()
    if weights:
        raise RequestError(
            f"--weights goes with a network of timm, torchvision or a Python file, not '{text}'"
        )
    if (path / OF_TRAINING).is_file():
        return {_called(path): f"folder:{path}"}
    inner = sorted(
        file.parent for pattern in ("", "*/", "steps/train.*/") for file in path.glob(pattern + OF_TRAINING)
    )
    if not inner:
        raise RequestError(
            f"'{text}' is no network: write timm:NAME, torchvision:NAME, FILE.py:FUNCTION, or a folder of"
            f" networks that were trained here (kinds: {', '.join(kind for kind in KINDS if kind != LIVE)})"
        )
    found = {_called(folder): f"folder:{folder}" for folder in inner}
    if len(found) == len(inner):
        return found
    return {f"{_called(folder)} {folder.name[-4:]}": f"folder:{folder}" for folder in inner}


def _with(text: str, **settings: Any) -> str:
    """A source with further settings."""
    listed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    if not text.endswith(")") or not listed:
        return f"{text}({listed})" if listed else text
    return f"{text[:-1]}{'' if text.endswith('()') else ', '}{listed})"


def _called(folder: Path) -> str:
    """A trained network by its folder: train.softmax-s0.0f3c... is softmax-s0."""
    parts = folder.resolve().name.split(".")
    return parts[1] if len(parts) == 3 and parts[0] == "train" else folder.resolve().name


def data_named(texts: Iterable[str], root: str = "") -> dict[str, str]:
    """Data by name, each with its place: NAME=PLACE, a place, or a name that is known or below `root`.

    A place is a folder or file of one's own or, under the name of a published data set, where that lies.

    >>> data_named(["pets=/data/pets", "digits"])
    {'pets': '/data/pets', 'digits': ''}
    """
    named: dict[str, str] = {}
    for text in texts:
        name, equals, where = (part.strip() for part in text.partition("="))
        if not equals:
            below = Path(root).expanduser() / name
            if name in registry.names("dataset"):
                where = ""
            elif root and below.exists():
                where = str(Path(root) / name)
            elif root and name in ENTRIES:
                where = root
            elif Path(name).expanduser().exists():
                place = Path(name).expanduser().resolve()
                name, where = place.name if place.is_dir() else place.stem, name
            else:
                there = f", nor below '{root}'" if root else "; --root FOLDER says where named data lie"
                what = ""  # of a path, only that it is not there
                if name in ENTRIES:
                    what = f"Where the images of '{name}' lie is not said. "
                elif Path(name).name == name:
                    what = f"{unknown('data set', name, (*registry.names('dataset'), *ENTRIES))} "
                raise RequestError(f"{what}There is no folder '{name}'{there}. One's own: NAME=FOLDER.")
        if name in named:
            raise RequestError(f"two data sets are called '{name}'; name one of them otherwise: NAME=FOLDER")
        named[name] = where
    return named
