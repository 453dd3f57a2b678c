"""The request of an evaluation: the user's networks and data, the settings, and the resulting study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate import registry
from penultimate.data.catalog import card
from penultimate.data.readers.entries import ENTRIES
from penultimate.data.readers.places import read_place, with_group
from penultimate.errors import RequestError, counted, unknown
from penultimate.networks.sources import is_a_network, read_source, with_settings
from penultimate.specs import parse
from penultimate.study.blocks import Given
from penultimate.study.spec import Study

if TYPE_CHECKING:
    from torch import nn

    from penultimate.networks.model import Model

NAME = "evaluation"
"""The default name of the study and of its folder."""
MEASURE = (
    *("geometry", "probed", "confusions", "layers", "pair_cka", "pair_likeness", "transferability"),
    *("few_labels", "compactness"),
    *("classifier", "pair_agreement", "overlap", "nce", "leep"),
)
"""The measurements of each network that can provide their input; the last five need a final layer."""
OWN = {"crop": {"crop", "resize"}, "share": {"share", "resize"}}
"""The image settings for all networks, and the settings by which a source overrides each."""
QUESTION = "Which network serves which task best?"


@dataclass(frozen=True)
class Request:
    """The networks, {name: source or module}, the data, {name: place}, and the settings of `pu.evaluate`.

    source       the data whose classes the networks were trained on, which are not a task; "": unknown
    classifies   the networks whose final layers are for these classes; True: all
    class_order  the order of these classes in the networks' outputs, as `read_class_order` takes it: "text"
                 (the default, as in torchvision's ImageFolder), "natural" (as in timm), names, or their file
    outside      {name: place} of data whose images are told from the source's (or from the first task's)
    group        the column of the tables, or the level of the folders, of groups that no split parts
    copies       what to do with equal images on disk: "keep" all, or "drop" all but one
    size, crop   the pixels of images, and the share of the resized image in the centre crop, for all networks
                 whose sources do not set them
    poolings     the ways in which tokens become features ("all": every way); a network with tokens is
                 evaluated once for each
    fine_tune    whether all weights are also trained on each task
    layers       whether each network's layer to read is chosen on validation images and tested
    calibrate    whether the calibration of the linear probes is measured, for which they are fitted again
    speed        whether it is measured how many images a second each network takes
    baselines    whether pixels, colours and random convolutions are measured on each task as well
    gpus         the share of a GPU for each step that runs a network; 0: the CPU
    name         the name of the study and of its folder
    """

    networks: Mapping[str, str | nn.Module | Model]
    data: Mapping[str, str | Path]
    source: str = ""
    classifies: bool | Sequence[str] = False
    class_order: str | Path | Sequence[str] | Mapping[Any, Any] = ()
    outside: Mapping[str, str | Path] = field(default_factory=dict)
    group: str | int = ""
    copies: str = "keep"
    size: int | None = None
    crop: float | None = None
    poolings: str | Sequence[str] = ()
    fine_tune: bool = False
    layers: bool = False
    calibrate: bool = False
    speed: bool = False
    baselines: bool = True
    gpus: float = 0.0
    name: str = NAME

    def __post_init__(self) -> None:
        for what, kind in {"networks": "source", "data": "place", "outside": "place"}.items():
            given = getattr(self, what)
            if not isinstance(given, Mapping):
                raise RequestError(f"{what} are {{name: {kind}}}, not {given!r:.300}")

    @property
    def modules(self) -> list[str]:
        """The names of the networks that are modules of this process."""
        return [name for name, what in self.networks.items() if not isinstance(what, str)]

    @cached_property
    def sources(self) -> dict[str, str]:
        """The sources of the networks; a module is kept in this process under its source.

        Networks with tokens are there once more for each of the `poolings`, behind them in their names.
        """
        own = {name: self._source(name, what) for name, what in self.networks.items()}
        if not self.poolings:
            return own
        from penultimate.networks.poolings import with_poolings  # late: it loads a tensor library

        return with_poolings(own, self.poolings)

    def _source(self, name: str, what: str | nn.Module | Model) -> str:
        if isinstance(what, str):
            return what
        from penultimate.networks.building import keep

        return keep(name, what, self._image_settings)

    def study(self) -> Study:
        """Return the study; without a source, measurements that need no task use the first data set.

        That is the first whose images have one class each, if there is one. Raises RequestError for an
        invalid request.
        """
        targets = tuple(name for name in self.data if name != self.source)
        self._expect_data(targets)
        classifying = self._classifying()
        given: dict[bool, dict[str, str]] = {True: {}, False: {}}
        for name, text in self.sources.items():
            given[name in classifying][name] = self._with_image_settings(text)
        several = [name for name in targets if _has_several_labels(name, str(self.data[name]))]
        places = {
            name: str(where)
            for name, where in {**self.outside, **self.data, **self._grouped(targets)}.items()
        }
        has_groups = any(places[name] and read_place(places[name]).group for name in targets)
        further = {
            "cost(speed=True)" if self.speed else "cost": True,
            "depth": True,
            "readout": self.layers,
            "baselines": self.baselines,
            "given_fine_tuning": self.fine_tune,
            "multilabel(scores=True)": bool(several),
            "groups": has_groups,
            "outside": bool(self.outside),
            "probe_calibration": self.calibrate,
        }
        asked = [text for text, is_asked in further.items() if is_asked]
        return Study(
            self.name or NAME,
            f"{counted(len(self.sources), 'network')} on {counted(len(targets), 'task')}",
            QUESTION,
            self.source or next((name for name in targets if name not in several), targets[0]),
            targets,
            tuple(Given(networks, of_source) for of_source, networks in given.items() if networks),
            (*MEASURE, *(text for text in asked if parse(text).name in registry.names("measurement"))),
            gpus=self.gpus,
            data={name: where for name, where in places.items() if where},
            reading=self._reading(bool(classifying)),
            outside=tuple(self.outside),
        )

    def _expect_data(self, targets: tuple[str, ...]) -> None:
        if not self.networks:
            raise RequestError("no network to evaluate: give one or more, such as timm:resnet50")
        if not targets:
            raise RequestError("no data to evaluate networks on: give one or more folders, NAME=FOLDER")
        known = registry.names("dataset")
        for name, where in self.outside.items():
            if name in self.data and str(where) not in ("", str(self.data[name])):
                raise RequestError(f"'{name}' is a task and data outside, at two places; rename one of them")
        for name, where in {**self.outside, **self.data}.items():
            if is_a_network(str(where)):
                raise RequestError(f"'{where}' is a network, not data; networks are given by --model")
            if not str(where) and name not in known:
                raise RequestError(f"{unknown('data set', name, known)} A folder: {name}=FOLDER.")

    def _grouped(self, targets: Sequence[str]) -> dict[str, str]:
        """Return the places of tasks of the user's own, with the groups that are asked for."""
        own = {name: str(self.data[name]) for name in targets if str(self.data[name]) and name not in ENTRIES}
        if self.group == "":
            return {}
        if not own:
            raise RequestError(f"group={self.group!r} is of tasks of your own, tables or folders")
        return {name: with_group(where, self.group) for name, where in own.items()}

    def _classifying(self) -> set[str]:
        """Return the networks whose final layers are for the source's classes."""
        every = self.networks if self.classifies else ()
        chosen = {*every} if isinstance(self.classifies, bool) else {*self.classifies}
        for name in chosen - {*self.networks}:
            raise unknown("network", name, self.networks)
        if chosen and not self.source:
            raise RequestError("which classes the networks tell apart is not known without a source")
        return chosen

    def _reading(self, classified: bool) -> dict[str, dict[str, Any]]:
        """Return the settings for reading data on disk that differ from the defaults."""
        if self.copies not in ("keep", "drop"):
            raise RequestError(f"copies are to 'keep' or to 'drop', not {self.copies!r}")
        reading: dict[str, dict[str, Any]] = {}
        if self.copies == "drop":
            reading = {name: {"copies": "drop"} for name, where in self.data.items() if str(where)}
        if self.class_order:
            from penultimate.data.readers.class_order import read_class_order  # late: it loads NumPy

            order = read_class_order(self.class_order)
            if not (classified and str(self.data.get(self.source, ""))):
                raise RequestError(
                    "an order of classes goes with a source on disk: --source FOLDER --classifies all"
                )
            reading.setdefault(self.source, {})["class_order"] = order if isinstance(order, str) else [*order]
        return reading

    @property
    def _image_settings(self) -> dict[str, Any]:
        """The image settings for all networks."""
        asked = {"crop": self.size, "share": None if self.crop is None else float(self.crop)}
        return {name: value for name, value in asked.items() if value is not None}

    def _with_image_settings(self, text: str) -> str:
        """Return a source with the image settings for all networks that it does not set itself."""
        if not self._image_settings:
            return text
        if self.size is not None and self.size < 1:
            raise RequestError(f"size is a number of pixels, 1 or more, not {self.size}")
        if self.crop is not None and not 0 < self.crop <= 1:
            raise RequestError(f"crop is the share of the resized image, above 0 to 1, not {self.crop}")
        source = read_source(text)
        if source.kind == "folder":
            raise RequestError(f"size and crop are not told to a network that was trained here, '{text}'")
        asked = self._image_settings.items()
        return with_settings(text, **{key: of for key, of in asked if not source.settings.keys() & OWN[key]})


def _has_several_labels(name: str, where: str) -> bool:
    if where and read_place(where).labels:
        return True
    if name in registry.names("dataset"):
        return card(name).has_several_labels
    known = ENTRIES[name].card if name in ENTRIES else None
    return known is not None and known.has_several_labels
