"""What a measurement is: a function, and beside it the declaration from which a study plans its steps.

    @register.measurement(version=1, per="network", needs=(Features("train"), Head()), yields=(...))
    def collapse(inputs, *, split="train"): ...

The declaration says what the function is called for (`per`), what it is given (`needs`), what comes out of it
(`yields`) and what it costs; its keyword arguments are settings that a study may change, as in
"similarity(passes=10)". Nothing here imports a tensor library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from penultimate.errors import unknown
from penultimate.objectives.hyperparameters import REQUIRED, Form, Hyperparameter, Interval, bind

if TYPE_CHECKING:
    from penultimate.data.catalog import DatasetCard

Scope: TypeAlias = Literal["network", "pair", "objective", "start", "draw", "study"]

PER: Mapping[str, tuple[Scope, bool]] = {
    "network": ("network", False),
    "target": ("network", True),
    "pair": ("pair", False),
    "objective": ("objective", False),
    "objective_target": ("objective", True),
    "start_target": ("start", True),
    "draw": ("draw", False),
    "study": ("study", False),
    "study_target": ("study", True),
}
"""What a measurement can be called for: the networks of one call, and whether it is repeated for each target.

network             one network
target              one network and one target
pair                two networks
objective           the networks of all seeds of an objective
objective_target    the same, and one target
start_target        the networks that start from the same first weights and see the same draw, and one target
draw                everything that sees one draw of the data (for stages: images made once for all networks)
study               all networks of an arm that share an architecture
study_target        the same, and one target
"""


@dataclass(frozen=True)
class Features:
    """The feature bank of a split: of the target for a measurement per target, else of the source.

    `common`: every network sees the draw of the study's first seed, so that networks can be compared.
    `optional`: nothing is given where the data set has no such split.
    """

    split: str
    common: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Logits(Features):
    """A feature bank of the source with the network's logits for the source's classes."""


@dataclass(frozen=True)
class LogProbabilities(Logits):
    """The same, of objectives whose scores are the logarithms of probabilities."""


@dataclass(frozen=True)
class Pixels:
    """The images of a split, of the target for a measurement per target, else of the source."""

    split: str


@dataclass(frozen=True)
class Shown:
    """Images of a split, and the network to which they are shown; nothing where there is no such split."""

    split: str


@dataclass(frozen=True)
class ClassNames:
    """The names of the source's and of the target's classes, and which of them the study says correspond."""


@dataclass(frozen=True)
class ClassOrder:
    """The names of the source's classes in the order that a given network's outputs are taken to have.

    They are there where the source is of the user's own, and the network was not trained here.
    """


@dataclass(frozen=True)
class Shifted:
    """A shifted test set of the source ("v2", "a", "r", "sketch"); nothing for a source that has none."""

    shift: str


@dataclass(frozen=True)
class Layers:
    """The whole network, to be run; of several seeds the first few only, where `seeds` says so."""

    seeds: int = 0


@dataclass(frozen=True)
class Trained:
    """How the network was trained: `inputs.backbone`, `augmentation` and `precision`, not the network itself.

    Networks that were not trained here are not measured.
    """


@dataclass(frozen=True)
class Weights:
    """The whole network, to be trained further; networks without weights of PyTorch are not measured."""


@dataclass(frozen=True)
class Head:
    """The final layer that was trained on the source's classes."""


@dataclass(frozen=True)
class Snapshots:
    """The network at earlier epochs; networks whose recipe keeps none are not measured."""


@dataclass(frozen=True)
class Made:
    """The files that a stage has left; `optional`: the measurement goes on where the stage cannot be done.

    Of a stage that is repeated for a setting's values, a measurement that is too gets what was made for its
    own value. `seeds` names the setting that says of how many seeds an objective, the first ones, it is done.
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


Direction: TypeAlias = Literal["", "high", "low"]
SHOWN: Mapping[str, tuple[str, float, int]] = {
    "fraction": ("%", 100, 1),
    **dict.fromkeys(("count", "pixels"), ("", 1, 0)),
}
"""How the numbers of a unit are shown: its sign, what they are multiplied by, and their decimals."""
OTHERS = ("", 1.0, 3)
"""How the numbers of all other units are shown."""


@dataclass(frozen=True)
class Yield:
    """One quantity that comes out of a measurement: its numbers, and what a reader is told of them.

    unit     of the values in its rows; `SHOWN` says how they are shown
    arrays   the names of the arrays that its rows point to
    better   which values are better: "high", "low", or "" where neither is
    words    what it is, for a reader who has not met it
    called   what it is called within a sentence
    decimals  how many are shown, where they are not those of its unit
    """

    metric: str
    unit: str
    arrays: tuple[str, ...] = ()
    better: Direction = ""
    words: str = ""
    called: str = ""
    decimals: int | None = None

    @property
    def sign(self) -> str:
        """The sign that stands beside its numbers where they are shown."""
        return SHOWN.get(self.unit, OTHERS)[0]

    @property
    def scale(self) -> float:
        """What its numbers are multiplied by where they are shown."""
        return SHOWN.get(self.unit, OTHERS)[1]

    @property
    def digits(self) -> int:
        """How many decimals of its numbers are shown."""
        return SHOWN.get(self.unit, OTHERS)[2] if self.decimals is None else self.decimals


@dataclass(frozen=True)
class Cost:
    """What a step takes besides its `seconds`, as far as it does not follow from what it needs.

    fits     the probes that it fits to the features of a target, or of each layer where it needs `Layers`
    passes   how many times as long as features alone it takes to show a network an image
    trains   whether it trains a network, in `steps` steps on `batch_size` images each
    decoded  the splits whose images, where they lie on disk, it holds in memory all at once
    images   how many images it leaves on disk, by the card of the source and the settings
    """

    fits: tuple[Literal["linear", "knn"], ...] = ()
    passes: float = 1.0
    trains: bool = False
    decoded: tuple[str, ...] = ()
    images: Callable[[DatasetCard, Mapping[str, Any]], int] | None = None


@dataclass(frozen=True)
class Measurement:
    """A measurement or a stage as it is declared.

    version   raised by hand when the results change for the same settings
    yields    every quantity that it can yield; None: what it yields is known only when it runs (plug-ins)
    each      settings that hold several values: one step for every combination of them
    several_labels  whether it is for targets of whose images each has several labels; others are for those of
              one class each
    ranges    where the values of settings lie, {setting: Interval}, or which words they may be; others are
              refused before anything runs
    stage     leaves files for other measurements, and no rows; a study does not name it
    first     done before everything else that a network is measured by
    seconds   of a step on the embedded world's images, on one CPU core of a laptop
    cost      what it takes besides
    """

    name: str
    version: int
    per: str
    needs: tuple[Need, ...]
    yields: tuple[Yield, ...] | None
    settings: tuple[Hyperparameter, ...]
    each: tuple[str, ...] = ()
    several_labels: bool = False
    ranges: Mapping[str, Interval | tuple[str, ...]] = field(default_factory=dict)
    stage: bool = False
    first: bool = False
    seconds: float | None = None
    cost: Cost = Cost()
    kind: str = "measurement"
    function: Callable[..., Any] | None = field(default=None, compare=False)

    @property
    def scope(self) -> Scope:
        return PER[self.per][0]

    @property
    def of_targets(self) -> bool:
        return PER[self.per][1]

    @property
    def runs_networks(self) -> bool:
        """Whether a network runs in it or is trained, for which a GPU is of use."""
        return any(isinstance(need, Layers | Weights | Snapshots | Trained) for need in self.needs)

    @property
    def of_snapshots(self) -> bool:
        """Whether it is repeated for the network at earlier epochs."""
        return any(isinstance(need, Snapshots) for need in self.needs)

    @property
    def several(self) -> tuple[str, ...]:
        """The settings that may hold several values: those of `each`, and those whose default is a tuple."""
        tuples = [setting.name for setting in self.settings if isinstance(setting.default, tuple)]
        return tuple(dict.fromkeys((*self.each, *tuples)))

    def bound(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return every setting, as given or by default; raises RequestError for one that it does not have.

        Or for a value that is not in its range; each of several is a whole number where the usual ones are,
        and so is one that is None by default.
        """
        bound = bind(self.name, [self._ranged(setting) for setting in self.settings], given, "setting")
        for setting in self.settings:
            values = bound[setting.name]
            if setting.name not in self.ranges:
                continue
            if setting.name in self.several:
                for value in values if isinstance(values, tuple | list) else (values,):
                    self._check_one(setting, value)
            elif setting.default is None and values is not None:
                self._check_one(setting, values)
        return bound

    def _check_one(self, setting: Hyperparameter, value: Any) -> None:
        """Raises RequestError for a value that is not what it may be."""
        allowed = self.ranges[setting.name]
        if isinstance(allowed, tuple):
            if value not in allowed:
                raise unknown(f"{setting.name} of {self.name}", str(value), allowed)
            return
        usual = setting.default if isinstance(setting.default, tuple) else (setting.default,)
        form: Form = "number" if any(isinstance(value, float) for value in usual) else "integer"
        dataclasses.replace(self._ranged(setting), form=form).checked(value, self.name)

    def _ranged(self, setting: Hyperparameter) -> Hyperparameter:
        allowed = self.ranges.get(setting.name)
        return dataclasses.replace(setting, interval=allowed) if isinstance(allowed, Interval) else setting

    def changed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the settings that differ from their defaults: what a step's identity holds."""
        return {name: value for name, value in values.items() if repr(value) != self._usual.get(name, "None")}

    @cached_property
    def _usual(self) -> dict[str, str]:
        optional = [setting for setting in self.settings if setting.default is not REQUIRED]
        return {setting.name: repr(setting.checked(setting.default, self.name)) for setting in optional}
