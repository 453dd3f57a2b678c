"""A stand-in for Lightning, of the parts that the pages use, for machines on which it is not installed.

`module()` is Lightning itself where it is installed; its trainer calls a callback's hooks in the same order.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest
from torch import nn

IS_INSTALLED = importlib.util.find_spec("lightning") is not None
WARNINGS = ("ignore::FutureWarning", "ignore::UserWarning") if IS_INSTALLED else ()
"""Filters of what Lightning itself warns of: progress, workers, GPUs, names that torch will drop."""


class Callback:
    """Hooks that do nothing, and no state."""

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Do nothing."""

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Do nothing."""


class LightningModule(nn.Module):
    """A module that logs into its trainer's `callback_metrics`."""

    trainer: Any = None

    def log_dict(self, numbers: dict[str, float], *, rank_zero_only: bool = False) -> None:
        self.trainer.callback_metrics |= numbers


class Trainer:
    """Plain epochs over a loader."""

    def __init__(self, max_epochs: int = 1, callbacks: Iterable[Any] = (), **quiet: bool) -> None:
        self.max_epochs, self.callbacks = max_epochs, [*callbacks]
        self.callback_metrics: dict[str, float] = {}

    def fit(self, module: Any, loader: Iterable[Any]) -> None:
        module.trainer = self
        optimizer = module.configure_optimizers()
        module.train()
        for _ in range(self.max_epochs):
            for index, batch in enumerate(loader):
                loss = module.training_step(batch, index)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                for each in self.callbacks:
                    each.on_train_batch_end(self, module, loss, batch, index)
            for each in self.callbacks:
                each.on_train_epoch_end(self, module)


def module(monkeypatch: pytest.MonkeyPatch, real: bool = True) -> Any:
    """Lightning if it is installed and asked for; otherwise this stand-in, under its name for one test."""
    if real and IS_INSTALLED:
        return importlib.import_module("lightning")
    made = ModuleType("lightning")
    vars(made).update(Callback=Callback, LightningModule=LightningModule, Trainer=Trainer)
    monkeypatch.setitem(sys.modules, "lightning", made)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", made)
    return made
