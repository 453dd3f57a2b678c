"""The input of a measurement's function, and the values that it yields."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate.errors import PenultimateError
from penultimate.files import file_name
from penultimate.graph import TO_CROP
from penultimate.metrics import UndefinedError
from penultimate.networks.key import NetworkKey
from penultimate.progress import Progress
from penultimate.variables import CPU, checkpoint_seconds, device

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from penultimate.data.augmentation.settings import Augmentation
    from penultimate.data.disk.listed import ListedImages
    from penultimate.data.images import ImageSet
    from penultimate.features.bank import FeatureBank
    from penultimate.graph import Step, Supply
    from penultimate.networks.given import GivenNetwork
    from penultimate.networks.protocol import Network
    from penultimate.networks.trained import TrainedNetwork

Setting: TypeAlias = Mapping[str, str | int | float]


@dataclass(frozen=True)
class Number:
    """One measured number; `network` and `other` name its networks if the step has several.

    `setting` is the condition under which it was measured, and `epoch` the epoch of an earlier state of the
    network. `target` is the data set it was measured on, if that is not the step's own.
    """

    metric: str
    value: float
    unit: str | None
    split: str | None = None
    layer: str | None = None
    setting: Setting = field(default_factory=dict)
    epoch: int | None = None
    target: str | None = None
    network: NetworkKey | None = None
    other: NetworkKey | None = None
    layer_b: str | None = None


@dataclass(frozen=True)
class Arrays:
    """Arrays that belong together (a density, a spectrum, a matrix), to which a single row points.

    `network` and `other` name their networks if the step has several; `setting` is the condition under which
    they were measured.
    """

    metric: str
    arrays: Mapping[str, Any]
    split: str | None = None
    setting: Setting = field(default_factory=dict)
    network: NetworkKey | None = None
    other: NetworkKey | None = None

    @property
    def points(self) -> int:
        """The length of the longest array, which the row holds as its value."""
        return max(len(array) for array in self.arrays.values())


@dataclass(frozen=True)
class Undefined:
    """The reason why a quantity has no value."""

    reason: str


@dataclass(frozen=True)
class Fact:
    """A fact that the step's record holds besides its rows."""

    name: str
    value: Any


def measured(
    metric: str, unit: str, split: str, measure: Callable[..., float], *arguments: Any, **settings: Any
) -> Number | Undefined:
    """Return what a function measures, or the reason why it has no value."""
    try:
        return Number(metric, measure(*arguments, **settings), unit, split)
    except UndefinedError as error:
        return Undefined(f"{metric} ({split}): {error}")


@dataclass(frozen=True)
class Inputs:
    """The results of a step's parents, accessed by their role in the step.

    `folder` is the step's own folder, for the files of a stage; `folders` holds its parents' folders by id.
    """

    step: Step
    folder: Path
    folders: Mapping[str, Path]
    progress: Progress

    @property
    def checkpoint_seconds(self) -> float:
        """The seconds between two checkpoints of a training run."""
        return checkpoint_seconds()

    @property
    def source(self) -> str:
        """The data set that the networks were trained on."""
        return str(self.step.columns["source"])

    @property
    def target(self) -> str:
        """The data set of the measurement: a target, or the source."""
        return str(self.step.columns["target"])

    @property
    def accuracy(self) -> str:
        """The official accuracy of the target."""
        return str(self.step.config["accuracy"])

    @property
    def draw(self) -> int:
        """The draw of data that the network sees."""
        return int(self.step.columns.get("draw") or 0)

    @property
    def seed(self) -> int:
        """The network's seed; 0 for one that was not trained here."""
        return int(self.step.columns.get("seed") or 0)

    @property
    def seeds(self) -> list[int]:
        """The seeds of all networks of the group, for a measurement of several networks."""
        return list(self.step.config["seeds"])

    @property
    def backbone(self) -> str:
        """The spec of the architecture."""
        return str(self.step.config["backbone"])

    @property
    def augmentation(self) -> Augmentation:
        """The augmentation of the images that the network was trained on."""
        from penultimate.data.augmentation.settings import Augmentation

        return Augmentation(**self.step.config.get("augmentation", {}))

    @property
    def precision(self) -> str:
        """The precision in which the network was trained; float32 for one that was not trained here."""
        return str(self.step.config.get("precision", "float32"))

    @property
    def device(self) -> str:
        """The device that runs the network: the GPU if the step has a share of one, else the CPU."""
        return device(CPU) if self.step.resources.gpus else CPU

    def features(self, split: str, of: str = "") -> FeatureBank:
        """Return the feature bank of a split of the target (of the source, for a measurement per network).

        `of` names the data set, if the measurement needs banks of both.
        """
        return self._bank(self._one("features", split, of))

    def has_features(self, split: str) -> bool:
        """Return whether there is a feature bank of an optional split."""
        return bool(self._all("features", split))

    def all_features(self, split: str) -> dict[NetworkKey, FeatureBank]:
        """Return the feature banks of all networks except those whose training diverged."""
        supplies = self._all("features", split)
        return {supply.network: self._bank(supply) for supply in supplies if supply.network is not None}

    def images(self, split: str) -> ImageSet:
        """Return in memory what `shown` returns."""
        from penultimate.data.disk.listed import ListedImages

        shown = self.shown(split)
        return shown.in_memory() if isinstance(shown, ListedImages) else shown

    def has_images(self, split: str) -> bool:
        """Return whether there are images of an optional split."""
        return bool(self._all("images", split))

    def shown(
        self, split: str, to: Network | None = None, most: int | None = None
    ) -> ImageSet | ListedImages:
        """Return the images of a split as the network, or the network `to`, sees them.

        Images on disk stay there until a batch is requested. `most` limits the number of images, by the
        `sample` that is the same for all networks.
        """
        shown = self.shown_in(self.image_folder(split), split, to)
        return shown if most is None else shown.subset(sample(len(shown), most))

    def shown_in(self, folder: Path, split: str, to: Network | None = None) -> ImageSet | ListedImages:
        """Return the images of a split in a folder as `shown` does.

        Raise UndefinedError for images on disk if there is no network.
        """
        from penultimate.data.disk.listed import LISTING, listed_images
        from penultimate.data.images import load_images

        if not (folder / LISTING).is_file():
            return load_images(folder, split)
        if to is None and not self._all("network"):
            raise UndefinedError(
                f"{self.step.name} has no network that says how the images of '{self.target}' on disk are"
                " resized and cropped"
            )
        return listed_images(folder, split, (to or self.network).preparation, self.workers)

    @property
    def workers(self) -> int:
        """The number of processes that decode images: one per thread of the step, or none for one thread."""
        import torch

        threads = torch.get_num_threads()
        return threads if threads > 1 else 0

    def pictures(self, split: str) -> ImageSet:
        """Return the images of a split as pictures; for images on disk these are small versions."""
        from penultimate.data.images import load_images

        return load_images(self.image_folder(split), split)

    def class_names(self, of: str) -> tuple[str, ...]:
        """Return the names of the classes of the source or the target."""
        from penultimate.data.images import read_manifest

        return tuple(read_manifest(self.image_folder("train", of))["class_names"])

    @property
    def counterparts(self) -> Mapping[str, list[str]]:
        """The source classes that correspond to each class of the target, as the study declares them."""
        return dict(self.step.config.get("counterparts", {}))

    def image_folder(self, split: str, of: str = "") -> Path:
        """Return the folder of the step that rendered or listed a split of the target (or of a data set)."""
        return self.folders[self._one("images", split, of or self.target).parent]

    def shifted(self) -> dict[str, Path]:
        """Return the folders of the source's shifted test sets that the measurement needs, by data set."""
        return {
            supply.of: self.folders[supply.parent]
            for supply in self._all("images", "test")
            if supply.of != self.target
        }

    @cached_property
    def network(self) -> Network:
        """The network, ready to run."""
        return self.load_from(self._one("network"))

    def load_from(self, supply: Supply) -> Network:
        """Return the network that a parent has left, set to resize images as the step's protocol requires."""
        from penultimate.networks.trained import TrainedNetwork

        network = load_network_of(self.folders[supply.parent], self.device)
        if self.step.config.get("resize") != TO_CROP:
            return network
        assert isinstance(network, TrainedNetwork)  # no study asks it of another
        return network.resized_to_crop()

    @property
    def network_folder(self) -> Path:
        """The folder that holds the network and its snapshots."""
        return self.folders[self._one("network").parent]

    def network_folders(self) -> dict[NetworkKey, Path]:
        """Return the folders of all networks except those whose training diverged."""
        supplies = self._all("network")
        return {
            supply.network: self.folders[supply.parent] for supply in supplies if supply.network is not None
        }

    @property
    def head_weight(self) -> npt.NDArray[np.float32]:
        """The weight of the network's final layer [k m]."""
        weight = self.network.head_weight
        if weight is None:
            raise PenultimateError(f"{self.step.name} asks for a final layer that is not there")
        numbers: npt.NDArray[np.float32] = weight.cpu().numpy()
        return numbers

    @property
    def applied_weight(self) -> npt.NDArray[np.float32]:
        """The weight of the final layer as the logits use it: a cosine head's rows are scaled to length 1."""
        from penultimate.networks.trained import TrainedNetwork

        network = self.network
        if not isinstance(network, TrainedNetwork) or network.head_weight is None:
            return self.head_weight
        numbers: npt.NDArray[np.float32] = network.objective.head.applied_weight.cpu().numpy()
        return numbers

    def made(self, stage: str) -> Path | None:
        """Return the folder of a stage that was done once, or None if it could not be done."""
        return next((self.folders[supply.parent] for supply in self._all("made", stage)), None)

    def all_made(self, stage: str) -> list[tuple[Supply, Path]]:
        """Return the folders of a stage that was done several times, each with the supply it was done for."""
        return [(supply, self.folders[supply.parent]) for supply in self._all("made", stage)]

    def _all(self, kind: str, name: str = "") -> list[Supply]:
        return [
            supply
            for supply in self.step.supplies
            if (supply.kind, supply.name) == (kind, name) and supply.parent in self.folders
        ]

    def _one(self, kind: str, name: str = "", of: str = "") -> Supply:
        supplies = [supply for supply in self._all(kind, name) if of in ("", supply.of)]
        if len(supplies) != 1:
            raise PenultimateError(
                f"{self.step.name} asks for one {kind} {name}".rstrip()
                + f" and has {len(supplies)}; its declaration names what it needs"
            )
        return supplies[0]

    def _bank(self, supply: Supply) -> FeatureBank:
        from penultimate.features.bank import FACTS, FeatureBank

        folder = self.folders[supply.parent]
        streamed = next(folder.glob(f"*/{FACTS}"), None)
        return FeatureBank.load(streamed.parent if streamed else folder / f"{file_name(supply.name)}.npz")


def load_network_of(folder: Path, device: str = "cpu") -> TrainedNetwork | GivenNetwork:
    """Return the trained or given network that a step left in a folder, moved to a device."""
    from penultimate.networks.sources import GIVEN
    from penultimate.networks.store import load_given
    from penultimate.networks.trained import load_network

    if (folder / GIVEN).is_file():
        return load_given(folder).to(device)
    return load_network(folder).to(device)


def read_card(folder: Path) -> dict[str, Any]:
    """Return the facts about a trained network that its folder holds."""
    from penultimate.networks.trained import CARD

    content: dict[str, Any] = json.loads((folder / CARD).read_text("utf-8"))
    return content


def sample(total: int, count: int) -> npt.NDArray[np.int64]:
    """Return the ascending indices of `count` of `total` examples, the same for all networks.

    Return all indices if there are no more than `count`.

    >>> sample(3, 5).tolist(), len(sample(1000, 10))
    ([0, 1, 2], 10)
    """
    import numpy as np
    import torch

    from penultimate.data.seeding import derived_generator

    if count >= total:
        return np.arange(total)
    order = torch.randperm(total, generator=derived_generator("images compared"))
    places: npt.NDArray[np.int64] = order[:count].sort().values.numpy()
    return places
