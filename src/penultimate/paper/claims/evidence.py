"""The numbers that claims are judged by, as frames [seed, objective]: those of a run, or the printed means.

`Evidence(run)` holds a study's numbers and `Evidence()` the paper's, a single row of means. A rule is a
function of evidence and judges both alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate.data.catalog import SHIFTS, card, shifted
from penultimate.paper import published
from penultimate.paper.arms import AUTOAUGMENT, SWEEP
from penultimate.paper.claims.effects import Effect, exact, of_independent, of_mean
from penultimate.paper.claims.margins import LEAST_GAIN, LEAST_RUNS, LIMITED_DATA
from penultimate.paper.claims.trials import Unit
from penultimate.paper.printed import TASKS, mean_of_printed
from penultimate.results.means import printed
from penultimate.results.rows import (
    MEAN,
    UNTRAINED_HERE,
    Run,
    by_setting,
    epochs,
    layers,
    mean_of,
    seeds,
    transfer,
)

if TYPE_CHECKING:
    import pandas as pd

    Frame: TypeAlias = pd.DataFrame
    Runs: TypeAlias = pd.Series

BASELINE = "softmax"
ALTERNATIVES = tuple(name for name in published.objectives() if name != BASELINE)
"""The objectives that the paper compares with softmax."""
FRESH = "head=fresh"
"""The setting of fine-tuning that begins with a fresh final layer, as the paper's does."""
SECOND = "inception_v3"
"""The place of the paper's second architecture."""
PAPER_RUNS = 8
"""The number of networks behind each mean of the paper's Tables 1 and 3."""
PENULTIMATE = "penultimate"
PrintedAt: TypeAlias = "tuple[str, str | Callable[[Frame], Runs]]"
"""A printed table, and its column or what makes one of its numbers."""


@dataclass(frozen=True)
class Quantity:
    """What claims are about: its name, the unit of a difference, and where its numbers are.

    `read` returns the frame of a run, of one task if a task is given; `printed` has the printed numbers by
    the place that they are of ("" is the main one), and `by_task` the table and column of a task. `top` is
    the highest value.
    """

    name: str
    unit: Unit
    read: Callable[[Evidence, str], Frame]
    printed: Mapping[str, PrintedAt] = field(default_factory=dict, hash=False)
    by_task: tuple[str, str] = ("", "")
    top: float = 100.0


@dataclass(frozen=True)
class Evidence:
    """The numbers of a run's arm and architecture, or (without a run) of a place of the paper."""

    run: Run | None = None
    arm: str = ""
    backbone: str = ""
    _read: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_printed(self) -> bool:
        """Whether these are the paper's printed means."""
        return self.run is None

    @property
    def study(self) -> Run:
        """The run."""
        assert self.run is not None
        return self.run

    def frame(self, quantity: Quantity, task: str = "") -> Frame:
        """Return a quantity [seed, objective], empty if it was not measured."""
        key = self.arm, self.backbone, quantity.name, task
        if key not in self._read:
            found = quantity.read(self, task) if self.run else _printed(quantity, self.arm, task)
            self._read[key] = found.dropna(how="all").dropna(axis=1, how="all")
        frame: Frame = self._read[key]
        return frame

    def beside_softmax(self, quantity: Quantity, task: str = "") -> tuple[Runs | None, dict[str, Runs]]:
        """Return the runs of softmax, and those of the paper's alternatives by slug.

        Runs with the printed mean and standard error stand for those of the paper, where it prints one.
        """
        frame = self.frame(quantity, task)
        if self.is_printed and quantity is ACCURACY and not self.arm:
            frame = _stand_ins()
        runs = {str(slug): frame[slug].dropna() for slug in frame.columns}
        return runs.get(BASELINE), {name: runs[name] for name in ALTERNATIVES if name in runs}

    def tasks(self, quantity: Quantity) -> list[str]:
        """Return the tasks, shifted test sets, labels or epochs for which a quantity has values."""
        if self.is_printed:
            listed = _printed_tasks(quantity)
        elif quantity is ROBUST:
            listed = [*shifted(self.study.source)]
        elif quantity in (LABELS, SNAPSHOTS):
            listed = [*_in_parts(self, quantity)]
        else:
            listed = self.study.targets
        return [task for task in listed if not self.frame(quantity, task).empty]

    def at(self, arm: str) -> Evidence:
        """Return the evidence of another arm, or of another place of the paper."""
        return replace(self, arm=arm)

    def elsewhere(self) -> Evidence | None:
        """Return the evidence of a second architecture, or None if there is none."""
        if self.is_printed:
            return self.at(SECOND)
        others = (replace(self, backbone=one) for one in self.study.backbones[1:])
        return next((one for one in others if not one.frame(LINEAR).empty), None)

    def is_enough(self, runs: int) -> bool:
        """Return whether this number of runs is enough to judge anything."""
        return self.is_printed or runs >= LEAST_RUNS

    def effect(
        self, groups: Sequence[Runs], weights: Sequence[float], margin: float = 0.0
    ) -> tuple[Effect, int]:
        """Return the effect sum_i w_i mean_i, and the number of runs that it rests on.

        Objectives of a study are compared within the seeds that they share, by t; without an interval the
        effect decides nothing. Printed means without an error are taken as they stand.
        """
        sides = [group.to_dict() for group in groups]
        if self.is_printed:
            shared: list[Any] = []
            found, runs = of_independent(groups, weights, margin), min(map(len, sides))
        else:
            shared = [seed for seed in sides[0] if all(seed in side for side in sides[1:])]
            each = [math.fsum(w * of[seed] for of, w in zip(sides, weights, strict=True)) for seed in shared]
            found, runs = of_mean(each, margin), len(shared)
        if found is None:
            kept = [[side[seed] for seed in shared] if shared else [*side.values()] for side in sides]
            means = (w * math.fsum(side) / len(side) for side, w in zip(kept, weights, strict=True))
            estimate = round(math.fsum(means), 9)
            unknown = Effect(estimate, -math.inf, math.inf, margin, 1.0, 1.0)
            found = exact(estimate, margin) if self.is_printed else unknown
        return found, runs


def least(quantity: Quantity, softmax: Runs, share: float = LEAST_GAIN) -> float:
    """Return the smallest difference that counts: a share of what softmax lacks to the highest value."""
    return share * (quantity.top - float(softmax.mean()))


# What is read of a run.


def _where(of: Evidence) -> dict[str, str]:
    return {"arm": of.arm, "backbone": of.backbone}


def _final(metric: str, split: str = "test", scale: float = 100.0) -> Callable[[Evidence, str], Frame]:
    return lambda of, task: seeds(of.study, metric, split, scale=scale, **_where(of))


def _mean_transfer(of: Evidence, probe: str, setting: str = "", read: Callable[..., Frame] = seeds) -> Frame:
    """Return the mean over tasks in per cent, summed so that equal sums stay equal."""
    import numpy as np

    by_task = transfer(of.study, probe, setting, read, 1.0, **_where(of))
    frames = [frame.astype(np.longdouble) for task, frame in by_task.items() if task != MEAN]
    return 100.0 * mean_of(frames).astype(float)


def _transfer(probe: str, setting: str = "") -> Callable[[Evidence, str], Frame]:
    def read(of: Evidence, task: str) -> Frame:
        if not task:
            return _mean_transfer(of, probe, setting)
        metric = f"{probe}_{card(task).accuracy}"
        return seeds(of.study, metric, target=task, setting=setting, scale=100.0, **_where(of))

    return read


def _shifted(of: Evidence, task: str) -> Frame:
    return seeds(of.study, "top1", target=shifted(of.study.source)[task], scale=100.0, **_where(of))


def _in_layer(metric: str, place: str, scale: float) -> Callable[[Evidence, str], Frame]:
    """Return what reads the penultimate features, or the layer "before" them."""

    def read(of: Evidence, task: str) -> Frame:
        found = layers(of.study, metric, scale=scale, **_where(of))
        last = found.pop(PENULTIMATE, None)
        frames = [last] if place == PENULTIMATE else [found[name] for name in in_order(of.study, found)]
        return frames[-1] if frames and frames[-1] is not None else _none()

    return read


def _none() -> Frame:
    import pandas as pd

    return pd.DataFrame()


def in_order(run: Run, names: Iterable[str]) -> list[str]:
    """Return layers in the study's order, the penultimate features last."""
    place = {str(name): number for number, name in enumerate(run.description.get("layers", ()))}
    return sorted(names, key=lambda name: (name == PENULTIMATE, place.get(name, len(place))))


def _fall(of: Evidence, task: str) -> Frame:
    """Return how far each run ends below its R² at the epoch of the peak.

    The peak is taken from the mean of the other runs, because the highest of several snapshots of the run
    itself would be high by chance too. There is no value for runs of fewer than three snapshots.
    """
    course = epochs(of.study, "class_separation", "train", arm=of.arm, backbone=of.backbone)
    falls: dict[str, dict[int, float]] = {}
    for slug in course.columns.get_level_values(0).unique() if len(course) else ():
        runs = course[slug].dropna(axis=1, how="all").dropna()
        if len(runs) < 3:
            continue
        for seed in runs:
            others = runs.drop(columns=seed) if runs.shape[1] > 1 else runs
            peak = others.iloc[:-1].sum(axis=1).idxmax()
            falls.setdefault(slug, {})[seed] = runs.loc[peak, seed] - runs[seed].iloc[-1]
    return _framed(falls)


def _matched(of: Evidence, task: str) -> Frame:
    """Return the test accuracy of each run when its training accuracy first reaches a common level.

    The level is the highest training accuracy that all runs of the seed reach. Both accuracies are
    interpolated between snapshots; a run whose first snapshot lies above the level is left out.
    """
    train, test = (epochs(of.study, "top1", split, scale=100.0, **_where(of)) for split in ("train", "test"))
    if train.empty or test.empty:
        return _none()
    levels = train.max().groupby(level=1).min()
    found: dict[str, dict[int, float]] = {}
    for slug, seed in train.columns:
        if (slug, seed) in test:
            sides = train[slug, seed].dropna().tolist(), test[slug, seed].dropna().tolist()
            value = level_crossing(*sides, float(levels[seed]))
            if value is not None:
                found.setdefault(slug, {})[seed] = value
    return _framed(found)


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


def _framed(runs: Mapping[str, Mapping[int, float]]) -> Frame:
    import pandas as pd

    return pd.DataFrame(runs).sort_index()


def relearned(of: Evidence) -> dict[int, Frame]:
    """Return the accuracies of relearned heads, by the number of images per class, in ascending order."""
    found = by_setting(of.study, "relearn_top1", ("shots",), scale=100.0, **_where(of))
    return {int(shots): frame for (shots,), frame in found.items()}


def shots_of(of: Evidence) -> int | None:
    """Return the number of images per class at which relearning is judged, or None if there is none."""
    source = card(of.study.source)
    return judged_shots(relearned(of.at("")), source.sizes.get("train", source.images) / source.classes)


def judged_shots(shots: Iterable[int], images_per_class: float) -> int | None:
    """Return the number whose share of the training images is nearest, by ratio, to the paper's.

    >>> judged_shots([5, 10, 40], images_per_class=100), judged_shots([40, 100], images_per_class=1281)
    (5, 40)
    """
    wanted = LIMITED_DATA * images_per_class
    # Two numbers that are as far from the wanted one differ in rounding alone: then the smaller one is taken.
    return min(shots, key=lambda count: (round(abs(math.log(count / wanted)), 9), count), default=None)


def _relearned(of: Evidence, task: str) -> Frame:
    shots = shots_of(of)
    return _none() if shots is None else relearned(of).get(shots, _none())


def _gap(of: Evidence, task: str) -> Frame:
    """Return relearned accuracy less the original head's, on the same images where those were measured."""
    heads = of.frame(RELEARNED)
    original = _none()
    if of.run is not None:
        setting = f"shots={shots_of(of)}"
        original = seeds(of.run, "relearn_original_top1", setting=setting, scale=100.0, **_where(of))
    gap = heads - (of.frame(ACCURACY) if original.empty else original)
    return gap[[slug for slug in heads if slug in gap]]


def _in_parts(of: Evidence, quantity: Quantity) -> dict[str, Frame]:
    """Return the frames of each label, or of each epoch."""
    key = of.arm, of.backbone, quantity.name, "parts"
    if key not in of._read:
        of._read[key] = _labels(of) if quantity is LABELS else snapshots(of)
    found: dict[str, Frame] = of._read[key]
    return found


def _labels(of: Evidence) -> dict[str, Frame]:
    """Return the areas of each label, with uncertain labels counted as absent, as the paper counts them."""
    found: dict[str, Frame] = {}
    for target in of.study.several_labels[:1]:
        rows = of.study.rows("multilabel_auc", target=target, arm=of.arm, backbone=of.backbone)
        rows = rows[rows["epoch"].isna() & rows["layer"].isna() & rows["setting"].notna()]
        for text in rows["setting"].unique():
            parts = dict(part.partition("=")[::2] for part in text.split(", "))
            if "label" in parts and parts.get("uncertain", "zeros") == "zeros":
                found[parts["label"]] = 100.0 * of.study.pivot(rows[rows["setting"] == text])
    return found


def snapshots(of: Evidence) -> dict[str, Frame]:
    course = _mean_transfer(of, "linear", read=epochs)
    return {f"{epoch:g}": row.dropna().unstack(level=0) for epoch, row in course.iterrows()}


def _part(quantity: str) -> Callable[[Evidence, str], Frame]:
    return lambda of, task: _in_parts(of, {"labels": LABELS, "snapshots": SNAPSHOTS}[quantity])[task]


# What the paper prints.


@cache
def _printed(quantity: Quantity, place: str, task: str) -> Frame:
    if quantity is GAP:
        return _gap(Evidence(arm=place), "")
    table, column = quantity.printed.get(place, ("", ""))
    if task:
        table, column = quantity.by_task[0], quantity.by_task[1].format(task)
    if not table:
        return _none()
    found = _table(table)
    if "augmentation" in found:
        found = found[found["augmentation"] == place]
    values = column(found) if callable(column) else found[column]
    return (
        values.astype(float)
        .rename(index=lambda name: f"{name:g}" if isinstance(name, float) else name)[
            values.notna().to_numpy()
        ]
        .to_frame()
        .T.set_axis([0])
    )


_table = cache(printed)


def _printed_tasks(quantity: Quantity) -> list[str]:
    table, column = quantity.by_task
    if not table:
        return []
    if quantity is ROBUST:
        return [*SHIFTS]
    before, after = column.split("{}")
    keys = _table(table).columns
    if quantity is LABELS:
        return [key.removesuffix(after) for key in keys if key.endswith(after)]
    return [task for task in TASKS if f"{before}{task}{after}" in keys]


@cache
def _stand_ins() -> Frame:
    """Return eight numbers for each objective that have its printed mean and standard error."""
    import pandas as pd

    table = printed(_TABLE_3)
    apart = table["imagenet_top1_se"] * math.sqrt(PAPER_RUNS - 1)
    signs = [(-1) ** (place + 1) for place in range(PAPER_RUNS)]
    return pd.DataFrame([table[_TOP1] + sign * apart for sign in signs]).reset_index(drop=True)


def _mean_of_shifts(table: Frame) -> Runs:
    return table[[f"imagenet_{shift}_percent" for shift in SHIFTS]].mean(axis=1)


_TABLE_3, _TABLE_4 = "neurips_table3_class_separation", "iclr_table4_temperature"
_TABLE_B1, _TABLE_E3 = "neurips_tableB1_inception_v3", "neurips_tableE3_autoaugment_separation"
_TOP1, _R2 = "imagenet_top1_percent", "class_separation_r2"
_POINTS = "{} points of "

ACCURACY = Quantity(
    "accuracy on the classes trained on",
    Unit(_POINTS + "test accuracy"),
    _final("top1"),
    {
        "": (_TABLE_3, _TOP1),
        AUTOAUGMENT: (_TABLE_E3, _TOP1),
        SECOND: (_TABLE_B1, _TOP1),
        SWEEP: (_TABLE_4, _TOP1),
    },
)
TRAIN = Quantity(
    "accuracy on the training images",
    Unit(_POINTS + "training accuracy"),
    _final("top1", "train"),
    {"": ("neurips_tableC1_train_accuracy", "train_top1_percent")},
)
MATCHED = Quantity("accuracy in the course of training", Unit(_POINTS + "test accuracy"), _matched)
ECE = Quantity(
    "calibration",
    Unit("{} of the calibration error", 3),
    _final("ece", scale=1.0),
    {"": ("neurips_tableC3_calibration", "uncalibrated_ece_fraction")},
)
SEPARATION = Quantity(
    "class separation",
    Unit("{} of R²", 3),
    _final("class_separation", "train", 1.0),
    {
        "": (_TABLE_3, _R2),
        AUTOAUGMENT: (_TABLE_E3, _R2),
        SECOND: (_TABLE_B1, _R2),
        SWEEP: (_TABLE_4, _R2),
    },
    top=1.0,
)
SEPARATION_BEFORE = Quantity(
    "class separation before the last layer",
    SEPARATION.unit,
    _in_layer("class_separation", "before", 1.0),
    top=1.0,
)
FALL = Quantity("class separation in the course of training", SEPARATION.unit, _fall, top=1.0)
LINEAR = Quantity(
    "linear transfer",
    Unit(_POINTS + "linear transfer"),
    _transfer("linear"),
    {
        "": ("neurips_table1_linear", mean_of_printed),
        SECOND: (_TABLE_B1, mean_of_printed),
        SWEEP: (_TABLE_4, mean_of_printed),
    },
    ("neurips_table1_linear", "{}_percent"),
)
KNN = Quantity(
    "kNN transfer",
    Unit(_POINTS + "kNN transfer"),
    _transfer("knn"),
    {"": ("neurips_table1_knn", mean_of_printed)},
    ("neurips_table1_knn", "{}_percent"),
)
FINE_TUNED = Quantity(
    "fine-tuned transfer",
    Unit(_POINTS + "fine-tuned transfer"),
    _transfer("fine_tuned", FRESH),
    {"": ("neurips_table2_finetune", "avg_percent")},
    ("neurips_table2_finetune", "{}_percent"),
)
ROBUST = Quantity(
    "accuracy on shifted test sets",
    ACCURACY.unit,
    _shifted,
    {"": ("neurips_tableC2_robustness", _mean_of_shifts)},
    ("neurips_tableC2_robustness", "imagenet_{}_percent"),
)
RELEARNED = Quantity(
    "relearned heads",
    Unit(_POINTS + "relearned accuracy"),
    _relearned,
    {"": ("iclr_table3_linear", "imagenet_50k_relearned_top1_percent")},
)
GAP = Quantity("what relearned heads lose", RELEARNED.unit, _gap)
ACTIVE = Quantity(
    "penultimate activations that are not zero",
    Unit(_POINTS + "activations"),
    _in_layer("nonzero_share", PENULTIMATE, 100.0),
)
SNAPSHOTS = Quantity("linear transfer in the course of training", LINEAR.unit, _part("snapshots"))
LABELS = Quantity(
    "transfer to images of several labels",
    Unit(_POINTS + "AUC"),
    _part("labels"),
    by_task=("neurips_tableD1_chexpert_iid", "{}_auc_percent"),
)


def trained_here(frame: Frame) -> Frame:
    """Return a frame without networks that were not trained here."""
    return frame.drop(index=UNTRAINED_HERE, errors="ignore")
