"""The quantities that exhibits name: what some measurement yields, and how its numbers are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from penultimate.data.catalog import card, shifted
from penultimate.errors import PenultimateError

if TYPE_CHECKING:
    from penultimate.measures.declaration import Yield
    from penultimate.records.table import Row

Best: TypeAlias = Literal["", "high", "low"]
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
    label       the heading of its column or axis, under the heading `group`; `unit` belongs to the number
    key         its column in a CSV file
    scale       what a number is multiplied by before it is shown
    digits      how many decimals are shown
    best        which is better, "high" or "low", if the values that none in their column beats are bold
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
    unit: str = ""
    scale: float = 1
    digits: int = 3
    best: Best = ""
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
        return in_snapshots == (self.over == "epochs") and any(
            item.metric in metrics for item in what.yields or ()
        )

    @property
    def declared(self) -> Yield:
        """The yield that its measurement declares; top-1 stands for any official accuracy."""
        from penultimate.measures.catalogue import built_in_yields

        return built_in_yields()[self.metric.replace("{accuracy}", "top1")]

    def of_arm(self, arm: str) -> Quantity:
        """Return the same quantity of the networks of another arm."""
        return replace(self, arm=arm)

    def of_arms(self, arms: Sequence[str]) -> tuple[Quantity, ...]:
        """Return the same quantity of each of these arms, or only itself if it already has an arm."""
        return (self,) if self.arm else tuple(self.of_arm(arm) for arm in arms)


def percent(metric: str, label: str = "", key: str = "", **others: Any) -> Quantity:
    """Return an accuracy or another fraction, by default shown in per cent with one decimal."""
    return replace(Quantity(metric, label=label, key=key, unit="%", scale=100, digits=1), **others)
