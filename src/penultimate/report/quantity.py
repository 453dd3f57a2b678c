"""The quantities that exhibits name: what some measurement yields, and how its numbers are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from penultimate.data.catalog import card, shifted
from penultimate.errors import PenultimateError

if TYPE_CHECKING:
    from penultimate.measures.declaration import Direction, Yield
    from penultimate.records.table import Row

Along: TypeAlias = Literal["", "layers", "epochs"]

SOURCE, TARGETS = "source", "targets"


@dataclass(frozen=True)
class Quantity:
    """One quantity of every network: which rows hold it, and how its column or axis is shown.

    metric      the metric of its rows; "{accuracy}" in it stands for the official accuracy of the target
    split       the split of its rows
    target      "source"; "targets" (each of them, and their mean); a shifted test set of the source ("v2",
                "a", "r", "sketch"); or the name of a data set
    arm         the condition of the study whose networks are meant; "" is the main one
    setting     the condition under which a number was taken: "" for none, "shots=5" for that one; "shots" or
                "corruption, severity" for every value of these
    over        "layers" or "epochs": the value in each of them; "" for the one of the finished network
    arrays      the names of the arrays that are read where its rows point to arrays
    label       the heading of its column or axis, under the heading `group`
    key         its column in a CSV file
    sign        the sign beside its numbers, if it is not the one that its measurement declares
    factor      what a number is multiplied by before it is shown, if not by the declared scale
    decimals    how many decimals are shown, if not the declared number
    bold        whether the values that none in their column beats are bold
    with_error  whether the standard error stands beside the mean
    optional    whether an exhibit is complete without it, and leaves it out if nothing measured it
    or_arm      the arm whose networks are meant instead, if a study has it
    """

    metric: str
    split: str = "test"
    target: str = SOURCE
    arm: str = ""
    setting: str = ""
    over: Along = ""
    arrays: tuple[str, ...] = ()
    label: str = ""
    group: str = ""
    key: str = ""
    sign: str | None = None
    factor: float | None = None
    decimals: int | None = None
    bold: bool = False
    with_error: bool = False
    optional: bool = False
    or_arm: str = ""

    @property
    def is_of_several(self) -> bool:
        """Whether the quantity has a number for every value of its setting."""
        return bool(self.setting) and "=" not in self.setting

    def covers(self, row: Row) -> bool:
        """Return whether a row of a study holds this quantity, for any network."""
        if row.metric != self.metric and "{accuracy}" not in self.metric:
            return False
        along = "epochs" if row.epoch is not None else "layers" if row.layer is not None else ""
        if (row.split or "test", row.arm or "", along) != (self.split, self.arm, self.over):
            return False
        if (", ".join(row.settings) if self.is_of_several else row.setting or "") != self.setting:
            return False
        source = row.source or row.target or ""
        target = row.target or source
        return row.metric == self.metric_on(target) and self._is_about(target, source)

    def _is_about(self, target: str, source: str) -> bool:
        shifts = shifted(source)
        if self.target == TARGETS:
            return target != source and target not in shifts.values()
        return target == {SOURCE: source, **shifts}.get(self.target, self.target)

    def metric_on(self, target: str) -> str:
        """Return the metric of the rows about a data set, with the accuracy that is official there."""
        if "{accuracy}" not in self.metric:
            return self.metric
        return self.metric.replace("{accuracy}", str(card(target).accuracy))

    def is_yielded_by(self, kind: str) -> bool:
        """Return whether steps of a kind are declared to yield this quantity."""
        from penultimate.measures import Snapshots, measurement

        try:
            what = measurement(kind)
        except PenultimateError:
            return kind == "train" and self.over == "epochs" and self.split == "holdout"
        in_snapshots = any(isinstance(need, Snapshots) for need in what.needs)
        metrics = {self.metric.replace("{accuracy}", accuracy) for accuracy in ("top1", "mean_per_class")}
        return in_snapshots == (self.over == "epochs") and any(item.metric in metrics for item in what.yields)

    @cached_property
    def declared(self) -> Yield:
        """The yield that its measurement declares; top-1 stands for any official accuracy."""
        from penultimate.measures.catalogue import declared_yield

        return declared_yield(self.metric.replace("{accuracy}", "top1"))

    @property
    def unit(self) -> str:
        """The sign that is shown beside its numbers."""
        return self.declared.sign if self.sign is None else self.sign

    @property
    def scale(self) -> float:
        """The factor by which a number is multiplied before it is shown."""
        return self.declared.scale if self.factor is None else self.factor

    @property
    def digits(self) -> int:
        """The number of decimals that are shown."""
        return self.declared.digits if self.decimals is None else self.decimals

    @property
    def best(self) -> Direction:
        """Whether high or low values are bold if none in their column beats them; empty if neither is."""
        return self.declared.better if self.bold else ""

    def of_arm(self, arm: str) -> Quantity:
        """Return the same quantity of the networks of another arm."""
        return replace(self, arm=arm)

    def of_arms(self, arms: Sequence[str]) -> tuple[Quantity, ...]:
        """Return the same quantity of each of these arms, or only itself if it already has an arm."""
        return (self,) if self.arm else tuple(self.of_arm(arm) for arm in arms)
