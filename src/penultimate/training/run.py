"""A training run: its state, which checkpoints hold, and the steps that change it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from penultimate.data.augmentation.transforms import normalise
from penultimate.data.disk.listed import ListedImages
from penultimate.data.seeding import derived_generator
from penultimate.errors import RequestError
from penultimate.files import canonical_json
from penultimate.networks.given import GivenNetwork
from penultimate.networks.trained import build, save_network, snapshot
from penultimate.objectives.objective import Objective
from penultimate.training.averaging import WeightAverage
from penultimate.training.checkpoints import Checkpoints
from penultimate.training.decay import parameter_groups
from penultimate.training.feed import DTYPES, Examples, feed, on_device, shape_of, statistics_of
from penultimate.training.ghost import by_ghost_batches, slow_moments
from penultimate.training.ranks import Ranks
from penultimate.training.recipe import Recipe
from penultimate.training.regime import weight_decay
from penultimate.training.schedules import learning_rate
from penultimate.training.start import Start

CHECK_EVERY = 50
"""The number of steps between checks of the loss; each check makes an accelerator wait."""


class _Whole(nn.Module):
    """The backbone and the objective as one module, which is optimised, averaged and saved."""

    def __init__(self, backbone: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.backbone = backbone
        self.objective = objective


class Run:
    """A training run: its state, which checkpoints hold, and the steps that change it."""

    def __init__(
        self,
        objective: str,
        backbone: str,
        train: Examples,
        holdout: Examples | None,
        recipe: Recipe,
        seed: int,
        folder: Path,
        device: str,
        start: Start | None = None,
    ) -> None:
        self.recipe, self.seed, self.folder, self.device = recipe, seed, folder, torch.device(device)
        self.ranks = Ranks()
        self.statistics = start.statistics if start else statistics_of(train)
        num_classes = len(train.class_names)
        self.card = {
            "objective": objective,
            "backbone": backbone,
            "num_classes": num_classes,
            "class_names": list(train.class_names),
            "seed": seed,
        }
        if isinstance(train, ListedImages):
            self.card |= {"resize": train.preparation.resize, "crop": train.preparation.crop}
        # A class without an image counts as if it had one, so that no logarithm of a count is infinite.
        counted = train.labels.ndim == 1
        counts = np.bincount(train.labels, minlength=num_classes).clip(1) if counted else None
        body, head = build(objective, backbone, num_classes, seed, start.body() if start else None, counts)
        self.card["num_features"] = head.num_features
        if start is not None:
            self.card["start"] = start.copy_to(backbone, body, head)
        _expect_trainable(head, recipe, start)
        self.network = _Whole(body, head)
        if recipe.ghost_batch is not None:
            by_ghost_batches(self.network, recipe.ghost_batch)
        self.ranks.expect_shareable(self.network)
        self.ranks.expect_examples_alone(head)
        self.network.to(self.device)
        self.feed = feed(train, self.statistics, recipe, seed, self.device, self.ranks)
        if recipe.at_once is not None:
            slow_moments(self.network, math.ceil(self.feed.batch_size / recipe.at_once))
        self.held_out = 0 if holdout is None else len(holdout)
        if holdout is not None and self.ranks.count > 1:
            holdout = holdout.subset(slice(self.ranks.index, None, self.ranks.count))
        self.train_shape, self.holdout = shape_of(train), holdout
        self.steps = recipe.steps or self.feed.steps_per_epoch * recipe.epochs
        self.epochs = math.ceil(self.steps / self.feed.steps_per_epoch)
        self.optimiser = torch.optim.SGD(
            parameter_groups(self.network, recipe, weight_decay(recipe, self.steps)),
            lr=recipe.learning_rate,
            momentum=recipe.momentum,
            nesterov=recipe.nesterov,
            fused=True,
        )
        self.scaler = torch.amp.GradScaler(device, enabled=recipe.precision == "float16")
        if self.scaler.is_enabled():  # if the first step is skipped, they would stay uninitialised
            for parameter in self.network.parameters():
                self.optimiser.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        self.average = WeightAverage(self.network, recipe.momentum_of_average(self.steps))
        if recipe.compile:
            body.compile()
        self.network.train()
        self.average.module.eval()
        self.checkpoints = Checkpoints(folder)
        self.step = 0
        self.epoch = 0
        self.reason = ""
        self.curves: list[dict[str, Any]] = []
        self.best: dict[str, Any] | None = None
        self.stale = 0
        self.news: dict[str, Any] = {}
        self._open_sums()

    @property
    def ended(self) -> bool:
        """Whether the holdout accuracy has not improved within the recipe's patience."""
        return 0 < self.recipe.patience <= self.stale

    def _open_sums(self) -> None:
        self.loss_sum = torch.zeros((), device=self.device)
        self.seen = 0

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Return the remaining batches of this epoch."""
        before = self.epoch * self.feed.steps_per_epoch
        end = min(self.feed.steps_per_epoch, self.steps - before)
        return self.feed.batches(self.epoch, self.step - before, end)

    def advance(self, batch: tuple[Tensor, Tensor]) -> None:
        """Take one training step: forward, backward, update, average."""
        rate = learning_rate(self.recipe, self.step, self.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        body, head = self.network.backbone, self.network.objective
        head.reseed(self.seed, self.epoch, self.step, (self.ranks.index, self.ranks.count))
        for number, (images, labels) in enumerate(self._parts(*batch)):
            with self._drawing(number), self._autocast():
                features = body(images)
            losses = head.loss(features, labels, validate=False)
            loss = losses.mean() * (len(labels) / len(batch[1]))
            torch.autograd.backward(self.scaler.scale(loss))
            self.loss_sum += losses.detach().sum()
        self.ranks.average(self.network.parameters())
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad(set_to_none=True)
        self.average.update(self.step)
        self.seen += self.feed.batch_size
        self.step += 1
        if self.step % CHECK_EVERY == 0:
            self._check_loss()

    def _parts(self, images: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Return the parts of a batch that go through the network together, `at_once` over all processes."""
        size = self.recipe.at_once // self.ranks.count if self.recipe.at_once else len(labels)
        return zip(torch.split(images, size), torch.split(labels, size), strict=True)

    def _check_loss(self) -> None:
        if not math.isfinite(float(self.ranks.total(self.loss_sum))):
            self.reason = f"the loss was no longer a number by step {self.step}, epoch {self.epoch + 1}"

    @torch.inference_mode()
    def _check_features(self) -> None:
        """Set `reason` if features are not finite, which shows divergence long before the loss does."""
        images, _ = next(self.feed.batches(0, 0, 1))
        finite = bool(self.average.module.backbone(images.float()).square().sum().isfinite())
        if self.ranks.any(not finite):
            self.reason = f"the features were no longer numbers by step {self.step}, epoch {self.epoch}"

    @contextlib.contextmanager
    def _drawing(self, part: int) -> Iterator[None]:
        """Seed the body's random draws (dropout, dropped paths) by the place in the run and the process."""
        generators = [torch.default_generator]
        gpus = [torch.cuda.current_device()] if self.device.type == "cuda" else []
        generators += [torch.cuda.default_generators[gpu] for gpu in gpus]
        of_part = (self.ranks.index, part) if self.ranks.index or part else ()
        place = derived_generator("body", self.seed, self.epoch, self.step, *of_part).initial_seed()
        with torch.random.fork_rng(gpus):
            for generator in generators:
                generator.manual_seed(place)
            yield

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.recipe.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, DTYPES[self.recipe.precision])

    def close_epoch(self) -> None:
        """Evaluate, keep the best weights, and record the epoch in the curves."""
        self._check_loss()
        if self.reason:
            return
        self.epoch += 1
        mean_loss = float(self.ranks.total(self.loss_sum)) / max(1, self.seen)
        self._note("mean_loss", "train", mean_loss)
        self.news = {"epoch": self.epoch, "epochs": self.epochs, "loss": mean_loss}
        due = self.epoch % self.recipe.evaluate_every == 0 or self.epoch == self.epochs
        if self.holdout is not None and due:
            accuracy = self._evaluate(self.holdout)
            self._note("top1", "holdout", accuracy)
            self.news["top1"] = accuracy
            if self.best is None or accuracy > self.best["accuracy"]:
                self.best = {"accuracy": accuracy, "epoch": self.epoch}
                self.stale = 0
                if self.recipe.stopping == "best":
                    self.best["state"] = _copied(self.average.module.state_dict())
            else:
                self.stale += 1
        every = self.recipe.snapshot_every
        if every and self.epoch % every == 0 and self.epoch < self.epochs:
            self._settle()
            self._write(snapshot(self.folder, self.epoch), self.epoch)
        self._open_sums()

    def _note(self, metric: str, split: str, value: float) -> None:
        self.curves.append({"epoch": self.epoch, "metric": metric, "split": split, "value": value})

    @torch.inference_mode()
    def _evaluate(self, holdout: Examples) -> float:
        """Return the top-1 accuracy of the averaged weights on the holdout."""
        self._settle()
        body, head = self.average.module.backbone, self.average.module.objective
        correct = torch.zeros((), dtype=torch.int64, device=self.device)
        for images, places in holdout.batches(256):
            pixels = on_device(images, self.device)
            with self._autocast():
                features = body(normalise(pixels, self.statistics, DTYPES[self.recipe.precision]))
            labels = torch.from_numpy(holdout.labels[places]).to(self.device)
            correct += (head(features).argmax(1) == labels).sum()
        return int(self.ranks.total(correct)) / self.held_out

    def _settle(self) -> None:
        """Prepare the averaged weights for reading: copy the counts, and average moments over processes."""
        self.average.synchronise()
        self.ranks.settle(self.average.module)

    def finish(self) -> int:
        """Write the network that the recipe keeps, and return its epoch."""
        self._settle()
        kept = self.epoch
        if self.recipe.stopping == "best" and self.best is not None:
            self.average.module.load_state_dict(self.best["state"])
            kept = self.best["epoch"]
        self._check_features()
        if not self.reason:
            self._write(self.folder, kept)
        return kept

    def _write(self, folder: Path, epoch: int) -> None:
        if not self.ranks.is_first:
            return
        body, head = self.average.module.backbone, self.average.module.objective
        save_network(folder, body, head, self.statistics, {**self.card, "epoch": epoch})

    def _identity(self) -> str:
        sizes = [self.train_shape, self.held_out]
        return canonical_json([self.card, asdict(self.recipe), sizes, self.device.type])

    def save(self, wait: bool = True) -> None:
        """Save the joint state of all processes, from which any number of processes can resume."""
        self.ranks.settle(self.network, self.average.module)
        loss_sum = self.ranks.total(self.loss_sum)
        if not self.ranks.is_first:
            return
        self.checkpoints.save(
            {
                "identity": self._identity(),
                "step": self.step,
                "epoch": self.epoch,
                "loss_sum": loss_sum,
                "seen": self.seen,
                "network": self.network.state_dict(),
                "average": self.average.module.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "scaler": self.scaler.state_dict(),
                "curves": self.curves,
                "best": self.best,
                "stale": self.stale,
            },
            wait,
        )

    def resume(self) -> bool:
        """Continue from the newest checkpoint, if there is one, and return True.

        Return False if it does not fit and was set aside; this run may then be half changed.
        """
        state = self.ranks.of_first(self.checkpoints.load)
        if state is None:
            return True
        if state.get("identity") != self._identity():
            self._refuse("is of another run")
            return False
        try:
            self._restore(state)
        except (RuntimeError, LookupError, TypeError, ValueError, AttributeError):
            self._refuse("does not fit this run")
            return False
        return True

    def _refuse(self, reason: str) -> None:
        if self.ranks.is_first:
            self.checkpoints.refuse(reason)

    def _restore(self, state: dict[str, Any]) -> None:
        if state["best"] is not None and "state" in state["best"]:
            self.average.module.load_state_dict(state["best"]["state"])  # to see whether it fits
        self.network.load_state_dict(state["network"])
        self.average.module.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        for parameter, held in self.optimiser.state.items():
            if held["momentum_buffer"].shape != parameter.shape:
                raise ValueError("a momentum of another shape")
        self.scaler.load_state_dict(state["scaler"])
        self.step, self.epoch, self.seen = state["step"], state["epoch"], state["seen"]
        self.loss_sum = state["loss_sum"].to(self.device)
        if not self.ranks.is_first:
            self.loss_sum.zero_()
        self.curves, self.best, self.stale = state["curves"], state["best"], state["stale"]


def _expect_trainable(head: Objective, recipe: Recipe, start: Start | None) -> None:
    """Raise RequestError for an objective that this recipe, or this start, leaves without a meaning."""
    recipe.expect_head(head.composition.has_fixed_head, head.spec)
    if head.projector is not None and start is not None and isinstance(start.network, GivenNetwork):
        raise RequestError(
            f"'{head.spec}' has a projector, and the network to start from was not trained here: a projector"
            " is trained with its body from the start; leave it out"
        )


def _copied(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in state.items()}
