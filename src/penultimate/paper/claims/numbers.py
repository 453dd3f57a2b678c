"""The numbers that claims are judged by, as frames [seed, objective]: those of a run, or the printed means.

`Numbers(run)` reads a study and `Numbers()` the paper, a single row of means. A rule is a function of either.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from penultimate.data.catalog import SHIFTS, card, shifted
from penultimate.paper import published
from penultimate.paper.arms import AUTOAUGMENT, SWEEP
from penultimate.paper.claims.effects import Effect, Runs, Unit, of_independent, of_mean, unknown
from penultimate.paper.claims.filed import LEAST_GAIN, LIMITED_DATA
from penultimate.paper.printed import TASKS, mean_of_printed
from penultimate.results.means import printed
from penultimate.results.rows import UNTRAINED_HERE, Run, by_setting, epochs, layers, seeds

Frame: TypeAlias = pd.DataFrame
PrintedColumn: TypeAlias = "tuple[str, str | Callable[[Frame], pd.Series]]"
"""A printed table, and its column or what makes one of its numbers."""
BASELINE = "softmax"
ALTERNATIVES = tuple(name for name in published.objectives() if name != BASELINE)
"""The objectives that the paper compares with softmax."""
FRESH = "head=fresh"
"""The setting of fine-tuning that begins with a fresh final layer, as the paper's does."""
SECOND = "inception_v3"
"""The place of the paper's second architecture."""
PAPER_RUNS = 8
"""The number of networks behind each mean of the paper's Tables 1 and 3."""


@dataclass(frozen=True, eq=False)
class Quantity:
    """What claims are about: its name, the unit of a difference, and where its numbers are.

    `read` returns the frames of a run by task, with the quantity itself, or its mean over tasks, as "".
    `printed` has the paper's by place ("" is the main one) and task, and `top` is the highest value.
    """

    name: str
    unit: Unit
    read: Callable[[Numbers], Mapping[str, Frame]]
    printed: Mapping[tuple[str, str], PrintedColumn] = field(default_factory=dict)
    top: float = 100.0


Frames: TypeAlias = dict[tuple[str, str, Quantity], Mapping[str, Frame]]
_KEPT: WeakKeyDictionary[Run, Frames] = WeakKeyDictionary()
_PRINTED: Frames = {}


@dataclass(frozen=True)
class Numbers:
    """The numbers of a run's arm and architecture, or (without a run) of a place of the paper."""

    run: Run | None = None
    arm: str = ""
    backbone: str = ""

    @property
    def is_printed(self) -> bool:
        """Whether these are the paper's printed means."""
        return self.run is None

    @property
    def study(self) -> Run:
        """The run."""
        assert self.run is not None
        return self.run

    def _frames(self, quantity: Quantity) -> Mapping[str, Frame]:
        """Return the frames of a quantity by task, which are read once for each run."""
        kept = _PRINTED if self.run is None else _KEPT.setdefault(self.run, {})
        key = self.arm, self.backbone, quantity
        if key not in kept:
            is_read = self.run is not None or quantity is GAP
            found = quantity.read(self) if is_read else _printed(quantity, self.arm)
            kept[key] = {task: _known(frame) for task, frame in found.items()}
        return kept[key]

    def frame(self, quantity: Quantity, task: str = "") -> Frame:
        """Return a quantity [seed, objective], empty if it was not measured."""
        return self._frames(quantity).get(task, pd.DataFrame())

    def runs(self, quantity: Quantity, task: str = "") -> dict[str, Runs]:
        """Return a quantity by objective and seed.

        Runs with the printed mean and standard error stand for those of the paper, where it prints one.
        """
        if self.is_printed and quantity is ACCURACY and not self.arm:
            return _stand_ins()
        return by_seed(self.frame(quantity, task))

    def tasks(self, quantity: Quantity) -> list[str]:
        """Return the tasks, shifted test sets, labels or epochs for which a quantity has values."""
        return [task for task, frame in self._frames(quantity).items() if task and not frame.empty]

    def at(self, arm: str) -> Numbers:
        """Return the numbers of another arm, or of another place of the paper."""
        return replace(self, arm=arm)

    def elsewhere(self) -> Numbers | None:
        """Return the numbers of a second architecture, or None if there is none."""
        if self.is_printed:
            return self.at(SECOND)
        others = (replace(self, backbone=one) for one in self.study.backbones[1:])
        return next((one for one in others if not one.frame(LINEAR).empty), None)

    def effect(
        self, groups: Sequence[Runs], weights: Sequence[float], margin: float = 0.0, **shown: Any
    ) -> Effect:
        """Return the effect sum_i w_i mean_i of objectives' runs, or of printed means.

        Objectives of a study are compared within the seeds that they share, by t; without an interval the
        effect decides nothing. Printed means without an error are taken as they stand.
        """
        if self.is_printed:
            return of_independent(groups, weights, margin, **shown)
        seeds = [seed for seed in groups[0] if all(seed in group for group in groups[1:])]
        if seeds:
            values = [
                math.fsum(w * of[seed] for of, w in zip(groups, weights, strict=True)) for seed in seeds
            ]
            return of_mean(values, margin, **shown)
        means = (w * math.fsum(of.values()) / len(of) for of, w in zip(groups, weights, strict=True))
        return unknown(round(math.fsum(means), 9), margin, **shown)

    def layers(self) -> list[str]:
        """Return the layers of the networks in the study's order."""
        return [str(name) for name in self.study.description.get("layers") or ()]

    @property
    def where(self) -> dict[str, Any]:
        """The arm and the architecture, as readers of rows take them."""
        return {"arm": self.arm, "backbone": self.backbone}


def _known(frame: Frame) -> Frame:
    """Return the seeds and objectives that have values, of networks that were trained here."""
    if UNTRAINED_HERE in frame.index:
        frame = frame.drop(index=UNTRAINED_HERE)
    absent = np.isnan(frame.to_numpy(dtype=float))
    if absent.all(axis=0).any() or absent.all(axis=1).any():  # dropna costs two milliseconds
        frame = frame.dropna(how="all").dropna(axis=1, how="all")
    return frame


def by_seed(frame: Frame) -> dict[str, Runs]:
    """Return the values of each column of a frame by seed."""
    seeds, values = frame.index.tolist(), frame.to_numpy(dtype=float).T.tolist()
    return {
        str(name): {seed: value for seed, value in zip(seeds, of, strict=True) if value == value}
        for name, of in zip(frame.columns, values, strict=True)
    }


def mean(runs: Runs) -> float:
    """Return the mean of runs."""
    return math.fsum(runs.values()) / len(runs)


def least(quantity: Quantity, softmax: Runs, share: float = LEAST_GAIN) -> float:
    """Return the smallest difference that counts: a share of what softmax lacks to the highest value."""
    return share * (quantity.top - mean(softmax))


# What is read of a run.


def _final(
    metric: str, split: str = "test", scale: float = 100.0
) -> Callable[[Numbers], Mapping[str, Frame]]:
    return lambda of: {"": seeds(of.study, metric, split, scale=scale, **of.where)}


def mean_over_tasks(frames: Sequence[Frame]) -> Frame:
    """Return the mean of percentages where all tasks have one; equal sums stay equal."""
    if not frames or any(frame.empty for frame in frames):
        return pd.DataFrame()
    total = sum(frame.astype(np.longdouble) for frame in frames) / len(frames)
    mean: Frame = total[[name for name in frames[0] if name in total]].astype(float)
    return mean


def _transfer(probe: str, setting: str = "") -> Callable[[Numbers], Mapping[str, Frame]]:
    def read(of: Numbers) -> Mapping[str, Frame]:
        metrics = {task: f"{probe}_{card(task).accuracy}" for task in of.study.targets}
        facts: dict[str, Any] = {"setting": setting, **of.where}
        found = {task: seeds(of.study, each, target=task, **facts) for task, each in metrics.items()}
        by_task = {task: 100 * frame for task, frame in found.items()}
        return {**by_task, "": 100 * mean_over_tasks([*found.values()])}

    return read


def _shifted(of: Numbers) -> Mapping[str, Frame]:
    sets = shifted(of.study.source)
    return {key: seeds(of.study, "top1", target=name, scale=100.0, **of.where) for key, name in sets.items()}


def _in_layer(metric: str, is_last: bool, scale: float) -> Callable[[Numbers], Mapping[str, Frame]]:
    """Return what reads the penultimate features, or the layer before them."""

    def read(of: Numbers) -> Mapping[str, Frame]:
        found = layers(of.study, metric, scale=scale, **of.where)
        last = found.pop("penultimate", pd.DataFrame())
        return {"": last if is_last else [pd.DataFrame(), *found.values()][-1]}

    return read


def _fall(of: Numbers) -> Mapping[str, Frame]:
    """Return how far each run ends below its R² at the epoch of the peak.

    The peak is taken from the mean of the other runs, because the highest of several snapshots of the run
    itself would be high by chance too. There is no value for runs of fewer than three snapshots.
    """
    course = epochs(of.study, "class_separation", "train", **of.where)
    falls: dict[str, dict[int, float]] = {}
    for slug in course.columns.get_level_values(0).unique() if len(course) else ():
        runs = course[slug].dropna(axis=1, how="all").dropna()
        table = runs.to_numpy()
        for at, seed in enumerate(runs if len(runs) > 2 else ()):
            others = np.delete(table, at, 1) if table.shape[1] > 1 else table
            peak = int(others[:-1].sum(1).argmax())
            falls.setdefault(slug, {})[seed] = table[peak, at] - table[-1, at]
    return {"": pd.DataFrame(falls).sort_index()}


def _matched(of: Numbers) -> Mapping[str, Frame]:
    """Return the test accuracy of each run when its training accuracy first reaches a common level.

    The level is the highest training accuracy that all runs of the seed reach. Both accuracies are
    interpolated between snapshots; a run whose first snapshot lies above the level is left out.
    """
    train, test = (epochs(of.study, "top1", split, scale=100.0, **of.where) for split in ("train", "test"))
    if train.empty or test.empty:
        return {}
    levels = train.max().groupby(level=1).min()
    found: dict[str, dict[int, float]] = {}
    for slug, seed in (column for column in train if column in test):
        sides = train[slug, seed].dropna().tolist(), test[slug, seed].dropna().tolist()
        value = level_crossing(*sides, float(levels[seed]))
        if value is not None:
            found.setdefault(slug, {})[seed] = value
    return {"": pd.DataFrame(found).sort_index()}


def level_crossing(across: Sequence[float], up: Sequence[float], level: float) -> float | None:
    """Return the height of a line where it first reaches `level` across, or None if it starts above that.

    >>> level_crossing([40, 80], [40, 60], 60)
    50.0
    """
    if not across or len(across) != len(up) or across[0] > level:
        return None
    for place, right in enumerate(across):
        if right >= level:
            left = across[max(place - 1, 0)]
            share = (level - left) / (right - left) if right > left else 1.0
            return up[max(place - 1, 0)] * (1 - share) + up[place] * share
    return None


def judged_shots(shots: Iterable[int], images_per_class: float) -> int | None:
    """Return the number whose share of the training images is nearest, by ratio, to the paper's.

    >>> judged_shots([5, 10, 40], images_per_class=100), judged_shots([40, 100], images_per_class=1281)
    (5, 40)
    """
    wanted = LIMITED_DATA * images_per_class
    # Two numbers that are as far from the wanted one differ in rounding alone: then the smaller one is taken.
    return min(shots, key=lambda count: (round(abs(math.log(count / wanted)), 9), count), default=None)


def _shots(of: Numbers) -> str:
    """Return the setting of relearning that is judged, which is the main arm's."""
    source = card(of.study.source)
    known = by_setting(of.study, "relearn_top1", ("shots",), backbone=of.backbone)
    images = source.sizes.get("train", source.images) / source.classes
    return f"shots={judged_shots([int(shots) for (shots,) in known], images)}"


def _relearned(of: Numbers) -> Mapping[str, Frame]:
    return {"": seeds(of.study, "relearn_top1", setting=_shots(of), scale=100.0, **of.where)}


def _gap(of: Numbers) -> Mapping[str, Frame]:
    """Return relearned accuracy less the original head's, on the same images where those were measured."""
    heads, original = of.frame(RELEARNED), pd.DataFrame()
    if of.run is not None:
        original = seeds(of.run, "relearn_original_top1", setting=_shots(of), scale=100.0, **of.where)
    original = of.frame(ACCURACY) if original.empty else original
    return {"": (heads - original)[[slug for slug in heads if slug in original]]}


def _labels(of: Numbers) -> Mapping[str, Frame]:
    """Return the areas of each label, with uncertain labels counted as absent, as the paper counts them."""
    found: dict[str, Frame] = {}
    for target in of.study.several_labels[:1]:
        for names in (("label",), ("label", "uncertain")):
            frames = by_setting(of.study, "multilabel_auc", names, target=target, scale=100.0, **of.where)
            found |= {key[0]: frame for key, frame in frames.items() if key[1:] in ((), ("zeros",))}
    return found


def _snapshots(of: Numbers) -> Mapping[str, Frame]:
    """Return mean linear transfer after each epoch."""
    tasks = of.study.targets
    found = [epochs(of.study, f"linear_{card(task).accuracy}", target=task, **of.where) for task in tasks]
    course = 100 * mean_over_tasks(found)
    return {f"{epoch:g}": row.dropna().unstack(level=0) for epoch, row in course.iterrows()}


# What the paper prints.


def _printed(quantity: Quantity, place: str) -> Mapping[str, Frame]:
    found = {}
    for (_, task), (name, column) in (each for each in quantity.printed.items() if each[0][0] == place):
        table = _table(name)
        if "augmentation" in table:
            table = table[table["augmentation"] == place]
        values = (column(table) if callable(column) else table[column]).dropna().astype(float)
        slugs = [f"{name:g}" if isinstance(name, float) else str(name) for name in values.index]
        found[task] = pd.DataFrame([values.to_numpy()], columns=slugs)
    return found


_table = functools.cache(printed)


def _stand_ins() -> dict[str, Runs]:
    """Return eight numbers for each objective that have its printed mean and standard error."""
    table = _table(_TABLE_3)
    apart = table["imagenet_top1_se"] * math.sqrt(PAPER_RUNS - 1)
    return {
        str(slug): {place: table[_TOP1][slug] - (-1) ** place * apart[slug] for place in range(PAPER_RUNS)}
        for slug in table.index
    }


def _mean_of_shifts(table: Frame) -> pd.Series:
    return table[[f"imagenet_{shift}_percent" for shift in SHIFTS]].mean(axis=1)


def _at(table: str, column: str | Callable[[Frame], pd.Series], place: str = "") -> dict[Any, PrintedColumn]:
    return {(place, ""): (table, column)}


def _by_task(table: str, tasks: Iterable[str], column: str = "{}_percent") -> dict[Any, PrintedColumn]:
    return {("", task): (table, column.format(task)) for task in tasks}


_TABLE_3, _TABLE_4 = "neurips_table3_class_separation", "iclr_table4_temperature"
_TABLE_B1, _TABLE_E3 = "neurips_tableB1_inception_v3", "neurips_tableE3_autoaugment_separation"
_PLACES = {"": _TABLE_3, AUTOAUGMENT: _TABLE_E3, SECOND: _TABLE_B1, SWEEP: _TABLE_4}
_TOP1, _R2 = "imagenet_top1_percent", "class_separation_r2"
_OF_R2 = Unit("{} of R²", 3)
_FINDINGS = ("atelectasis", "cardiomegaly", "consolidation", "edema", "pleural_effusion")

ACCURACY = Quantity(
    "accuracy on the classes trained on",
    Unit("{} points of test accuracy"),
    _final("top1"),
    {(place, ""): (table, _TOP1) for place, table in _PLACES.items()},
)
TRAIN = Quantity(
    "accuracy on the training images",
    Unit("{} points of training accuracy"),
    _final("top1", "train"),
    _at("neurips_tableC1_train_accuracy", "train_top1_percent"),
)
MATCHED = Quantity("accuracy in the course of training", ACCURACY.unit, _matched)
ECE = Quantity(
    "calibration",
    Unit("{} of the calibration error", 3),
    _final("ece", scale=1.0),
    _at("neurips_tableC3_calibration", "uncalibrated_ece_fraction"),
)
SEPARATION = Quantity(
    "class separation",
    _OF_R2,
    _final("class_separation", "train", 1.0),
    {(place, ""): (table, _R2) for place, table in _PLACES.items()},
    top=1.0,
)
SEPARATION_BEFORE = Quantity(
    "class separation before the last layer", _OF_R2, _in_layer("class_separation", False, 1.0), top=1.0
)
FALL = Quantity("class separation in the course of training", _OF_R2, _fall, top=1.0)
LINEAR = Quantity(
    "linear transfer",
    Unit("{} points of linear transfer"),
    _transfer("linear"),
    _at("neurips_table1_linear", mean_of_printed)
    | _at(_TABLE_B1, mean_of_printed, SECOND)
    | _at(_TABLE_4, mean_of_printed, SWEEP)
    | _by_task("neurips_table1_linear", TASKS),
)
KNN = Quantity(
    "kNN transfer",
    Unit("{} points of kNN transfer"),
    _transfer("knn"),
    _at("neurips_table1_knn", mean_of_printed) | _by_task("neurips_table1_knn", TASKS),
)
FINE_TUNED = Quantity(
    "fine-tuned transfer",
    Unit("{} points of fine-tuned transfer"),
    _transfer("fine_tuned", FRESH),
    _at("neurips_table2_finetune", "avg_percent") | _by_task("neurips_table2_finetune", TASKS),
)
ROBUST = Quantity(
    "accuracy on shifted test sets",
    ACCURACY.unit,
    _shifted,
    _at("neurips_tableC2_robustness", _mean_of_shifts)
    | _by_task("neurips_tableC2_robustness", SHIFTS, "imagenet_{}_percent"),
)
RELEARNED = Quantity(
    "relearned heads",
    Unit("{} points of relearned accuracy"),
    _relearned,
    _at("iclr_table3_linear", "imagenet_50k_relearned_top1_percent"),
)
GAP = Quantity("what relearned heads lose", RELEARNED.unit, _gap)
ACTIVE = Quantity(
    "penultimate activations that are not zero",
    Unit("{} points of activations"),
    _in_layer("nonzero_share", True, 100.0),
)
SNAPSHOTS = Quantity("linear transfer in the course of training", LINEAR.unit, _snapshots)
LABELS = Quantity(
    "transfer to images of several labels",
    Unit("{} points of AUC"),
    _labels,
    _by_task("neurips_tableD1_chexpert_iid", _FINDINGS, "{}_auc_percent"),
)
