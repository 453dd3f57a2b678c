"""A monitor: class separation, sparsity, rank and nearest neighbours on held-out images during training."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.passes import FEW, aside
from penultimate.backbones.taps import unwrapped
from penultimate.checks import whole_number
from penultimate.data.images import Images
from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.features.extraction import extract, extract_again
from penultimate.metrics.inputs import as_tensor
from penultimate.monitoring.logs import Row, callback_of, recorders_of
from penultimate.monitoring.numbers import USUAL, measures_of
from penultimate.networks.model import Model

if TYPE_CHECKING:
    import pandas as pd

SHARDED = "DTensor"
"""The type of a parameter that is split over processes (FSDP, tensor parallelism)."""


class Monitor:
    """Measures a network's penultimate features on held-out images while a loop of yours trains it.

    Call `monitor.step()` at the end of every step, or of every epoch; each `every`-th call measures and
    returns the numbers, and the others only count. `monitor.measure()` measures at once. All numbers are in
    `monitor.history`, a list of {"step": ..., NAME: ..., "seconds": ...}, and in `monitor.frame()`.

    network   any classifier; its final layer is found as `pu.extract` finds it. `pu.Model(network, ...)` says
              more about it
    data      held-out (images [n c h w], labels [n]), a DataLoader or another iterable of such batches that
              can be read again, or an ImageSet for a `pu.Model`
    measure   names of metrics of a feature bank, with settings if need be ("class_separation(unbiased=True)",
              "top_k(k=5)"), "knn", functions of a bank, or {NAME: any of these}. Usual are class separation
              R^2, the share of features that are not 0, the effective rank (RankMe), and the leave-one-out
              accuracy of the nearest neighbours among the held-out images, with the best k up to 20
    every     at how many calls of `step` one measures
    log       where the numbers go as well: a function of a row, a list, a logging.Logger, TensorBoard's
              writer, a logger or module of Lightning, a run of wandb; a tuple has several
    prefix    what precedes the names of numbers in loggers

    Training is the same to the bit with a monitor and without: the modes of all layers and the states of
    random generators are restored, and evaluation mode moves no moments of batch normalisation. The network
    is computed in float32, without gradients, autocast and compilation. In a process group the process of
    rank 0 measures, and the others only count.

    The constructor runs the network on a few images and raises RequestError where its features are not found,
    and for arguments that are wrong. Later nothing is raised: a number that cannot be measured (one class,
    features that are NaN) is recorded as NaN, and a warning says why, once.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 3))
    >>> images, labels = torch.rand(30, 3, 2, 2), torch.arange(30) % 3
    >>> import penultimate as pu
    >>> monitor = pu.Monitor(net, (images, labels), every=2)
    >>> for epoch in range(4):
    ...     row = monitor.step()
    >>> [row["step"] for row in monitor.history], sorted(row)
    ([2, 4], ['class_separation', 'knn', 'nonzero_share', 'rankme', 'seconds', 'step'])
    """

    def __init__(
        self,
        network: nn.Module | Model,
        data: Any,
        *,
        measure: Any = USUAL,
        every: int = 1,
        log: Any = None,
        prefix: str = "features/",
        batch_size: int = 256,
    ) -> None:
        module = network.module if isinstance(network, Model) else network
        self.network, self.prefix = network, prefix
        self.every = whole_number(every, "every", 1)
        self.batch_size = whole_number(batch_size, "batch_size", 1)
        self.measures = measures_of(measure)
        self.steps = 0
        self.history: list[Row] = []
        self._module, self._data = module, _readable(data)
        self._recorders = recorders_of(log, prefix)
        self._warned: set[tuple[str, str]] = set()
        if _is_first():
            with self._undisturbed():
                extract(network, self._few())

    def step(self) -> Row | None:
        """Count a step or an epoch of the loop; return the numbers if this one is measured, else None."""
        self.steps += 1
        return self.measure() if self.steps % self.every == 0 else None

    def measure(self) -> Row | None:
        """Measure now, record the numbers and return them; None in a process that is not of rank 0.

        A training is worth more than a measurement: what fails is NaN, and a warning says why.
        """
        if not _is_first():
            return None
        began = time.perf_counter()
        bank: FeatureBank | None = None
        moved: Any = None
        row: Row = {"step": self.steps, **dict.fromkeys(self.measures, math.nan)}
        with self._undisturbed():
            try:
                bank = self._bank()
                moved = self._moved(bank)
            except Exception as error:
                self._warn("features", error, f"nothing was measured at step {self.steps}")
            for name, measure in () if moved is None else self.measures.items():
                try:
                    row[name] = float(measure(moved if isinstance(measure, partial) else bank))
                except Exception as error:
                    self._warn(name, error, f"{name} at step {self.steps} is recorded as NaN")
        row["seconds"] = time.perf_counter() - began
        self.history.append(row)
        for record in self._recorders:
            try:
                record(row)
            except Exception as error:
                what = f"the numbers of step {self.steps} could not be logged, and are in monitor.history"
                self._warn("log", error, what)
        return row

    def _warn(self, about: str, error: Exception, consequence: str) -> None:
        key = about, type(error).__name__
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(f"{consequence}: {type(error).__name__}: {error} (said once)", stacklevel=4)

    def frame(self) -> pd.DataFrame:
        """Return the history as a pandas DataFrame, a row for each measurement."""
        import pandas as pd

        return pd.DataFrame(self.history, columns=["step", *self.measures, "seconds"])

    def lightning(self, per: str = "epoch") -> Any:
        """Return a callback for Lightning's Trainer that calls `step` after every "epoch" or "batch".

        The module logs the numbers (`log_dict`), and checkpoints hold the history. Raises RequestError if
        neither lightning nor pytorch_lightning is installed.
        """
        return callback_of(self, per)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and the history, for a checkpoint."""
        return {"steps": self.steps, "history": [dict(row) for row in self.history]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self.steps, self.history = state["steps"], [dict(row) for row in state["history"]]

    def __repr__(self) -> str:
        last = "" if not self.history else f", the last at step {self.history[-1]['step']}"
        return f"Monitor({', '.join(self.measures)}; {len(self.history)} measurements{last})"

    def _bank(self) -> FeatureBank:
        if any(type(parameter).__name__ == SHARDED for parameter in self._module.parameters()):
            raise RequestError("the weights are shared out among processes; give a copy that has them all")
        return extract_again(self.network, self._batches(), self.batch_size)

    def _batches(self) -> Any:
        if not isinstance(self._data, tuple):
            return self._data
        images, labels = self._data
        places = range(0, len(labels), self.batch_size)
        return [(images[at : at + self.batch_size], labels[at : at + self.batch_size]) for at in places]

    def _few(self) -> Any:
        """Return the first few images, on which the constructor tries the network."""
        if isinstance(self._data, Images):
            return self._data.subset(slice(FEW))
        for first in self._batches():
            return [tuple(part[:FEW] for part in first)] if isinstance(first, tuple | list) else [first]
        return []

    def _moved(self, bank: FeatureBank) -> Any:
        """Return a feature bank as tensors on the network's GPU, where metrics are faster."""
        device = device_of(self._module)
        if device.type != "cuda":
            return bank
        features, labels = (torch.from_numpy(each).to(device) for each in (bank.features, bank.labels))
        logits = None if bank.logits is None else torch.from_numpy(bank.logits).to(device)
        return SimpleNamespace(features=features, labels=labels, logits=logits)

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Restore all generators of random numbers from which the held-out images or the network may draw."""
        device = device_of(unwrapped(self._module))
        places = (self._data, *(getattr(self._data, name, None) for name in ("sampler", "batch_sampler")))
        own = [getattr(place, "generator", None) for place in places]
        states = [(each, each.get_state()) for each in own if isinstance(each, torch.Generator)]
        try:
            with aside(device):
                yield
        finally:
            for generator, state in states:
                generator.set_state(state)


def _is_first() -> bool:
    """Return whether this process is the one that measures: alone, or of rank 0 in a process group."""
    group = torch.distributed
    return not (group.is_available() and group.is_initialized()) or group.get_rank() == 0


def _readable(data: Any) -> Any:
    """Return held-out data: a pair of tensors, or what gives batches each time that it is read."""
    if isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], tuple | list):
        images, labels = as_tensor(data[0], "images"), as_tensor(data[1], "labels")
        if len(images) != len(labels):
            raise RequestError(f"there are {len(images)} held-out images and {len(labels)} labels")
        return images, labels
    if isinstance(data, Iterator):
        raise RequestError(
            "held-out data are read at each measurement, and an iterator can be read once: give tensors, a"
            " list of batches or a DataLoader"
        )
    return data
