"""The form of a measurement: a function under a declaration, from which a study plans its steps.

    @register.measurement(version=1, per="network", needs=(Features("train"), Head()), yields=(...))
    def collapse(inputs, *, split="train"): ...

The declaration states what the function is called for (`per`), what it receives (`needs`), what it yields
(`yields`) and what it costs. The function's keyword arguments are settings that a study may change, as in
"similarity(passes=10)". Nothing here imports a tensor library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from penultimate.errors import unknown
from penultimate.objectives.hyperparameters import REQUIRED, Form, Hyperparameter, Interval, bind

Scope: TypeAlias = Literal["network", "pair", "objective", "start", "draw", "study"]

PER: Mapping[str, tuple[Scope, bool]] = {
    "network": ("network", False),  # one network
    "target": ("network", True),  # one network and one target
    "outside": ("network", True),  # one network and one data set outside the source (or else a target)
    "pair": ("pair", False),  # two networks
    "objective": ("objective", False),  # the networks of all seeds of an objective
    "objective_target": ("objective", True),
    "start_target": ("start", True),  # the networks of the same initial weights and draw, and one target
    "draw": ("draw", False),  # one draw of the data (for stages that make images once for all networks)
    "study": ("study", False),  # all networks of an arm that share an architecture
    "study_target": ("study", True),
}
"""What a measurement is called for: the networks of one call, and whether it is repeated for each target."""


@dataclass(frozen=True)
class Features:
    """The feature bank of a split: of the target for a measurement per target, else of the source.

    `common`: every network sees the draw of the study's first seed, so that networks can be compared.
    `optional`: the measurement runs without the bank if the data set has no such split.
    `of_source`: the bank of the source, whatever the measurement is for.
    """

    split: str
    common: bool = False
    optional: bool = False
    of_source: bool = False


@dataclass(frozen=True)
class Logits(Features):
    """A feature bank with the network's logits for the source's classes."""


@dataclass(frozen=True)
class LogProbabilities(Logits):
    """A feature bank with logits, for objectives whose logits are trained as log-probabilities."""


@dataclass(frozen=True)
class Pixels:
    """The images of a split: of the target for a measurement per target, else of the source.

    `of_source`: those of the source, whatever the measurement is for.
    """

    split: str
    of_source: bool = False


@dataclass(frozen=True)
class Shown:
    """The images of a split and the network that sees them; nothing if there is no such split."""

    split: str


@dataclass(frozen=True)
class ClassNames:
    """The names of the source's and the target's classes, and which of them correspond in the study."""


@dataclass(frozen=True)
class ClassOrder:
    """The names of the source's classes in the assumed order of a given network's outputs.

    They exist if the source is the user's own data and the network was not trained here.
    """


@dataclass(frozen=True)
class Shifted:
    """A shifted test set of the source ("v2", "a", "r", "sketch"); nothing if the source has none."""

    shift: str


@dataclass(frozen=True)
class Layers:
    """The whole network, to be run; if `seeds` is not 0, only for that many first seeds."""

    seeds: int = 0


@dataclass(frozen=True)
class Trained:
    """How the network was trained (`inputs.backbone`, `augmentation`, `precision`), not the network itself.

    Networks that were not trained here are not measured.
    """


@dataclass(frozen=True)
class Weights:
    """The whole network, to be trained further; networks without PyTorch weights are not measured."""


@dataclass(frozen=True)
class Head:
    """The final layer that was trained on the source's classes.

    `on_features` asks that it acts on the penultimate features; a network trained with a projector has none.
    """

    on_features: bool = False


@dataclass(frozen=True)
class Snapshots:
    """The network at earlier epochs; networks whose recipe keeps no snapshots are not measured."""


@dataclass(frozen=True)
class Made:
    """The files that a stage has left; `optional`: the measurement runs even if the stage cannot be done.

    If both the stage and the measurement are repeated for the values of a setting, the measurement gets the
    files made for its own value. `seeds` names the setting that holds for how many first seeds of an
    objective the stage is done.
    """

    stage: str
    optional: bool = False
    seeds: str = ""


Need: TypeAlias = (
    Features
    | Pixels
    | Shown
    | ClassNames
    | ClassOrder
    | Shifted
    | Layers
    | Weights
    | Trained
    | Head
    | Snapshots
    | Made
)


SHOWN: Mapping[str, tuple[float, int]] = {"fraction": (100, 1), "count": (1, 0), "pixels": (1, 0)}
"""How the numbers of a unit are displayed: a factor, and the number of decimals (other units: 1 and 3)."""


@dataclass(frozen=True)
class Yield:
    """One quantity that a measurement yields.

    unit      the unit of the values in its rows; "points" for a row that points to arrays
    arrays    the names of these arrays
    called    its name within a sentence
    decimals  the number of decimals displayed, if it differs from the unit's
    """

    metric: str
    unit: str
    arrays: tuple[str, ...] = ()
    called: str = ""
    decimals: int | None = None

    @property
    def scale(self) -> float:
        """The factor by which its numbers are multiplied for display."""
        return SHOWN.get(self.unit, (1.0, 3))[0]

    @property
    def digits(self) -> int:
        """The number of decimals displayed."""
        return SHOWN.get(self.unit, (1.0, 3))[1] if self.decimals is None else self.decimals


def accuracies(stem: str, called: str) -> tuple[Yield, ...]:
    """Return the declarations of a target's two official accuracies, STEM_top1 and STEM_mean_per_class."""
    return tuple(Yield(f"{stem}_{kind}", "fraction", called=called) for kind in ("top1", "mean_per_class"))


@dataclass(frozen=True)
class Measurement:
    """The declaration of a measurement or a stage.

    version   a number that is raised by hand if the results change for the same settings
    yields    every quantity that it can yield
    each      the settings that hold several values; each combination of values is a step
    several_labels  whether it is for targets whose images have several labels each; all others are for
              targets whose images have one class each; None: for both
    ranges    the allowed values of settings, {setting: Interval or words}; other values are refused before
              anything runs
    stage     whether it leaves files for other measurements and no rows; a study does not name a stage
    first     whether it is done before all other measurements of a network
    seconds   the time of a step on the embedded world's images, on one CPU core of a laptop
    trains    whether it trains a network, in `steps` steps on `batch_size` images each
    """

    name: str
    version: int
    per: str
    needs: tuple[Need, ...]
    yields: tuple[Yield, ...]
    settings: tuple[Hyperparameter, ...]
    each: tuple[str, ...] = ()
    several_labels: bool | None = False
    ranges: Mapping[str, Interval | tuple[str, ...]] = field(default_factory=dict)
    stage: bool = False
    first: bool = False
    seconds: float | None = None
    trains: bool = False
    function: Callable[..., Any] | None = field(default=None, compare=False)

    @property
    def scope(self) -> Scope:
        return PER[self.per][0]

    @property
    def of_targets(self) -> bool:
        return PER[self.per][1]

    @property
    def runs_networks(self) -> bool:
        """Whether it runs or trains a network, so that a GPU is useful."""
        return any(isinstance(need, Layers | Weights | Snapshots | Trained) for need in self.needs)

    @property
    def of_snapshots(self) -> bool:
        """Whether it is repeated for the network at earlier epochs."""
        return any(isinstance(need, Snapshots) for need in self.needs)

    @property
    def several(self) -> tuple[str, ...]:
        """The settings that may hold several values: those in `each`, and those whose default is a tuple."""
        tuples = [setting.name for setting in self.settings if isinstance(setting.default, tuple)]
        return tuple(dict.fromkeys((*self.each, *tuples)))

    def bound(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of every setting, given or default.

        Raise RequestError for an unknown setting, and for a value outside its range. Each of several values
        must be a whole number if the default values are; so must the value of a setting that is None by
        default.
        """
        bound = bind(self.name, [self._ranged(setting) for setting in self.settings], given, "setting")
        for setting in self.settings:
            value = bound[setting.name]
            if setting.name not in self.ranges or (setting.default is None and value is None):
                continue
            if setting.name in self.several or setting.default is None:
                for one in value if isinstance(value, tuple | list) else (value,):
                    self._check_one(setting, one)
        return bound

    def _check_one(self, setting: Hyperparameter, value: Any) -> None:
        """Raise RequestError if a value of a setting is not allowed."""
        allowed = self.ranges[setting.name]
        if isinstance(allowed, tuple):
            if value not in allowed:
                raise unknown(f"{setting.name} of {self.name}", str(value), allowed)
            return
        usual = setting.default if isinstance(setting.default, tuple) else (setting.default,)
        form: Form = "number" if any(isinstance(value, float) for value in usual) else "integer"
        dataclasses.replace(setting, interval=allowed, form=form).checked(value, self.name)

    def _ranged(self, setting: Hyperparameter) -> Hyperparameter:
        allowed = self.ranges.get(setting.name)
        return dataclasses.replace(setting, interval=allowed) if isinstance(allowed, Interval) else setting

    def changed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that differ from their defaults, which are part of a step's identity."""
        return {name: value for name, value in values.items() if repr(value) != self._usual.get(name, "None")}

    @cached_property
    def _usual(self) -> dict[str, str]:
        optional = [setting for setting in self.settings if setting.default is not REQUIRED]
        return {setting.name: repr(setting.checked(setting.default, self.name)) for setting in optional}
