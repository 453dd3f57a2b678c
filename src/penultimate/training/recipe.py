"""How a network is trained, as data: the training loop reads it, and it is part of a step's identity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from penultimate.checks import is_number, is_whole
from penultimate.data.augmentation.settings import Augmentation
from penultimate.errors import RequestError, unknown

SCHEDULES = ("exponential", "cosine", "constant")
PRECISIONS = ("float32", "bfloat16", "float16")
STOPPING = ("last", "best")


@dataclass(frozen=True)
class Recipe:
    """SGD with momentum, warm-up, schedule, weight decay and averaging; the defaults suit the glyph world.

    epochs, batch_size          a short last batch of an epoch is dropped; if there are fewer images than a
                                batch holds, a batch is all of them
    ghost_batch                 the number of images over which batch normalisation computes its moments (the
                                paper's batch of 4,096 was spread over 128 cores: 32); None: the whole batch
    steps                       the length of the run instead of `epochs`; the last epoch may then be short
    learning_rate               the peak, reached linearly during `warmup`, a share of all steps
    schedule, final_fraction    the decay from the peak to this fraction of it, step by step: "exponential"
                                (a constant factor per step), "cosine" or "constant"
    momentum, nesterov          the settings of SGD
    weight_decay                for conv kernels and W; also for batch-norm gains and shifts if
                                `decay_batch_norm`, and for biases if `decay_biases`. `exposure` over the
                                whole run may be given instead (`training.regime`)
    head_decay                  the weight decay of the final layer alone: of W, and of b if `decay_biases`;
                                None: as that of all other weights, from `weight_decay` or `exposure`
    averaging_window            an exponential moving average of the weights over this share of all steps
                                (momentum 1 - 1 / steps in the window). `averaging_momentum` may be given
                                instead (the paper's 0.9999). 0 and None: no average
    at_once                     the number of images of a batch that go through the network together, for
                                limited memory (None: all). Their gradients are added up; with ghost batches
                                the step is the same up to rounding and the draws of dropout
    size, resize                for images on disk: the side in pixels of the network's input; in tests this
                                is the centre, after the shorter side is resized to `resize` pixels
    precision                   of the backbone: "float32", or by autocast "bfloat16" or "float16" (with a
                                scaled loss), which are fast on GPUs and on processors with matrix units
                                (AMX). From the features onwards all is float32
    compile                     whether the backbone is compiled (torch.compile), which takes a minute
    augmentation                an `Augmentation`, or its fields as a mapping
    stopping, patience          whether the "last" weights are kept or those with the "best" holdout accuracy
                                (the first of equals). Training ends `patience` evaluations after the best
                                one; 0: it never ends early
    evaluate_every              epochs between evaluations on the holdout; the last epoch is always evaluated
    snapshot_every              epochs between snapshots of the averaged weights that are kept besides the
                                final ones; 0: no snapshots

    A value out of range raises RequestError.

    >>> Recipe(epochs=44).averaging_window
    0.15
    >>> Recipe(epochs=0)
    Traceback (most recent call last):
    penultimate.errors.RequestError: recipe: epochs is a whole number, 1 or more, not 0
    """

    epochs: int = 12
    steps: int | None = None
    batch_size: int = 64
    ghost_batch: int | None = None
    learning_rate: float = 0.6
    warmup: float = 0.2
    schedule: str = "exponential"
    final_fraction: float = 0.03
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 8e-5
    exposure: float | None = None
    head_decay: float | None = None
    decay_batch_norm: bool = False
    decay_biases: bool = False
    averaging_window: float = 0.15
    averaging_momentum: float | None = None
    precision: str = "float32"
    augmentation: Augmentation = field(default_factory=Augmentation)
    stopping: str = "last"
    patience: int = 0
    evaluate_every: int = 1
    snapshot_every: int = 0
    size: int = 224
    resize: int = 256
    at_once: int | None = None
    compile: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.augmentation, Mapping):
            object.__setattr__(self, "augmentation", _augmentation(self.augmentation))
        for name, least in (
            ("epochs", 1),
            ("batch_size", 2),
            ("patience", 0),
            ("evaluate_every", 1),
            ("snapshot_every", 0),
            ("size", 1),
            ("resize", 1),
        ):
            self._check(name, is_whole(getattr(self, name), least), f"a whole number, {least} or more")
        fits = self.size <= self.resize
        self._check("size", fits, f"at most resize={self.resize}, of which it is the middle")
        fits = self.steps is None or is_whole(self.steps, 1)
        self._check("steps", fits, "a whole number, 1 or more, or None")
        ghost = self.ghost_batch
        fits = ghost is None or (is_whole(ghost, 2) and self.batch_size % ghost == 0)
        self._check("ghost_batch", fits, f"a divisor of batch_size={self.batch_size}, 2 or more, or None")
        fits = self.at_once is None or (is_whole(self.at_once, 2) and self.at_once % (ghost or 1) == 0)
        self._check("at_once", fits, f"a multiple of ghost_batch={ghost}, 2 or more, or None")
        fits = _is_number(self.learning_rate, 0, 1e30, open_left=True)
        self._check("learning_rate", fits, "a number above 0, at most 1e30")
        self._check("weight_decay", _is_number(self.weight_decay, 0, math.inf), "a number, 0 or more")
        for name in ("exposure", "head_decay"):
            fits = getattr(self, name) is None or _is_number(getattr(self, name), 0, math.inf)
            self._check(name, fits, "a number, 0 or more, or None")
        for name in ("warmup", "averaging_window"):
            self._check(name, _is_number(getattr(self, name), 0, 1), "a share of all steps, from 0 to 1")
        self._check("momentum", _is_number(self.momentum, 0, 1) and self.momentum < 1, "from 0 to below 1")
        fits = _is_number(self.final_fraction, 0, 1, open_left=self.schedule != "cosine")
        self._check("final_fraction", fits, "a share of the peak, above 0 (or 0 for cosine), up to 1")
        if self.averaging_momentum is not None:
            fits = _is_number(self.averaging_momentum, 0, 1) and self.averaging_momentum < 1
            self._check("averaging_momentum", fits, "from 0 to below 1, or None")
        for name in ("compile", "nesterov", "decay_batch_norm", "decay_biases"):
            self._check(name, isinstance(getattr(self, name), bool), "True or False")
        self._check("nesterov", not self.nesterov or self.momentum > 0, "False where momentum is 0")
        self._check("augmentation", isinstance(self.augmentation, Augmentation), "an Augmentation")
        for name, known in (("schedule", SCHEDULES), ("precision", PRECISIONS), ("stopping", STOPPING)):
            if getattr(self, name) not in known:
                raise unknown(f"recipe {name}", str(getattr(self, name)), known)
        for setting in fields(self):  # 1 and 1.0 mean the same recipe
            value = getattr(self, setting.name)
            if str(setting.type).startswith("float") and value is not None:
                object.__setattr__(self, setting.name, float(value))

    @classmethod
    def of_record(cls, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a kept run, without settings that recipes no longer have."""
        known = {setting.name for setting in fields(cls)}
        return cls(**{name: value for name, value in settings.items() if name in known})

    def _check(self, name: str, fits: bool, expected: str) -> None:
        if not fits:
            raise RequestError(f"recipe: {name} is {expected}, not {getattr(self, name)!r}")

    def expect_shared_by(self, processes: int, batch_size: int | None = None) -> None:
        """Raise RequestError if this many processes cannot share a batch evenly, in whole ghost batches."""
        least = processes * (self.ghost_batch or 1)
        batch = batch_size or self.batch_size
        together = min(self.at_once or batch, batch)
        for size in (together, batch % together):
            if processes > 1 and size % least:
                ghosts = f", for ghost batches of {self.ghost_batch}," if self.ghost_batch else ""
                raise RequestError(
                    f"{processes} GPUs cannot share {size} images that go through the network together: give"
                    f" a batch_size (and at_once) of which {least} is a divisor{ghosts} or another --gpus"
                )

    def changed(self, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe with some settings changed; "mixup" is the one of its augmentation.

        Raise RequestError for a setting that a recipe does not have.

        >>> Recipe().changed({"epochs": 3, "mixup": 0.2}).augmentation.mixup
        0.2
        """
        if not isinstance(settings, Mapping):
            raise RequestError(f"changes of a recipe are {{setting: value}}, not {settings!r}")
        changes = dict(settings)
        known = (*(each.name for each in fields(self)), "mixup")
        for name in changes:
            if name not in known:
                raise unknown("setting of the recipe", name, known)
        if "mixup" in changes:
            before = changes.get("augmentation", self.augmentation)
            changes["augmentation"] = replace(before, mixup=changes.pop("mixup"))
        return replace(self, **changes)

    def stopped_after(self, epochs: int) -> dict[str, Any]:
        """Return the settings of a run that ends after that many epochs, and is the same until then.

        Its learning rate, and the horizon of its average, are those of this recipe at every step.

        >>> Recipe(epochs=40, warmup=0.1, final_fraction=0.01, averaging_window=0.2).stopped_after(22)
        {'epochs': 22, 'warmup': 0.181818181818, 'final_fraction': 0.1, 'averaging_window': 0.363636363636}
        """
        longer, warm = self.epochs / epochs, self.warmup * self.epochs
        share = (epochs - warm) / (self.epochs - warm) if self.epochs > warm else 0.0
        settings = {
            "warmup": self.warmup * longer,
            "final_fraction": self.final_fraction**share,
            "averaging_window": self.averaging_window * longer,
        }
        if self.averaging_momentum is not None:
            del settings["averaging_window"]
        return {"epochs": epochs, **{name: float(f"{value:.12g}") for name, value in settings.items()}}

    def first_stop(self) -> float:
        """Return the epoch from which on a run may be stopped: after the warm-up, and the average's window.

        Raises RequestError for a recipe whose steps depend on where it ends.
        """
        for name, fits, expected in (
            ("schedule", self.schedule != "cosine", "exponential or constant"),
            ("steps", self.steps is None, "None"),
            ("stopping", not self.needs_holdout, "last, with a patience of 0"),
        ):
            self._check(name, fits, f"{expected} where the epoch to stop at is chosen")
        window = self.averaging_window if self.averaging_momentum is None else 0.0
        return max(self.warmup, window) * self.epochs

    def expect_head(self, is_fixed: bool, objective: str) -> None:
        """Raise RequestError if the final layer has its own decay and is fixed, so that nothing decays."""
        if is_fixed and self.head_decay is not None:
            raise RequestError(
                f"recipe: head_decay={self.head_decay:g} is the final layer's weight decay, and that of"
                f" '{objective}' is not trained; leave head_decay out"
            )

    @property
    def needs_holdout(self) -> bool:
        """Whether a holdout decides when training ends or which weights are kept."""
        return self.stopping == "best" or self.patience > 0

    def steps_on(self, images: int) -> int:
        """Return the number of steps, of one batch each, that a run on this many images takes.

        >>> Recipe(epochs=3, batch_size=64).steps_on(200), Recipe(steps=7).steps_on(200)
        (9, 7)
        """
        return self.steps or images // min(self.batch_size, images) * self.epochs

    def momentum_of_average(self, steps: int) -> float:
        """Return the momentum of the weight average for a run of `steps` steps; 0 means no averaging.

        >>> Recipe(averaging_window=0.15).momentum_of_average(4000) == 1 - 1 / 600
        True
        """
        if self.averaging_momentum is not None:
            return self.averaging_momentum
        return 1 - 1 / max(1.0, self.averaging_window * steps)


def _augmentation(values: Mapping[str, Any]) -> Augmentation:
    known = [setting.name for setting in fields(Augmentation)]
    for name in values:
        if name not in known:
            raise unknown("augmentation setting", str(name), known)
    return Augmentation(**values)


def _is_number(value: object, least: float, most: float, open_left: bool = False) -> bool:
    if not is_number(value):
        return False
    return least <= value <= most and not (open_left and value == least)
