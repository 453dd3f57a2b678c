"""The processes that share a training run: each computes a part of every batch, with the same weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.objectives.objective import Objective
from penultimate.training.ghost import GhostMoments
from penultimate.training.recipe import Recipe

T = TypeVar("T")


class Ranks:
    """This process, number `index` of the `count` that share a training run; alone if it has joined no group.

    The group is that of torch.distributed, as torchrun or `penultimate run --gpus 4` makes it. Gradients are
    averaged in every step, so weights, optimiser and curves are the same in all processes. The running
    moments of batch normalisation differ, because each process updates them from its own part. These updates
    are linear, so their mean over the processes is what a single process would have. `settle` computes this
    mean before anything reads the moments.

    >>> Ranks().count
    1
    """

    def __init__(self) -> None:
        shared = dist.is_available() and dist.is_initialized()
        self.index, self.count = (dist.get_rank(), dist.get_world_size()) if shared else (0, 1)
        # Messages between the processes have a separate group, so that they do not wait for the GPUs.
        self._talk: Any = dist.new_group(backend="gloo") if self.count > 1 else None

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files and reports the progress."""
        return self.index == 0

    def rows(self, batch: int, recipe: Recipe) -> Tensor:
        """Return the rows of a batch that belong to this process.

        They are an equal share of every part of the batch that goes through the network together. Raise
        RequestError if the parts cannot be shared evenly, in whole ghost batches if there are any.
        """
        recipe.expect_shared_by(self.count, batch)
        stretches = torch.split(torch.arange(batch), recipe.at_once or batch)
        return torch.cat([stretch.chunk(self.count)[self.index] for stretch in stretches])

    def expect_shareable(self, body: nn.Module) -> None:
        """Raise RequestError if several processes cannot share the body, because it needs the whole batch.

        Batch normalisation needs it, unless it computes its moments over ghost batches.
        """
        for name, layer in body.named_modules():
            whole = isinstance(layer, nn.modules.batchnorm._BatchNorm)
            if self.count > 1 and whole and not isinstance(layer, GhostMoments):
                raise RequestError(
                    f"layer '{name}' is normalised over the whole batch, which {self.count} processes share:"
                    " give recipe.ghost_batch, the number of images that are normalised together, or one GPU"
                )

    def expect_examples_alone(self, objective: Objective) -> None:
        """Raise RequestError if several processes cannot share an objective, because it compares examples."""
        if self.count > 1 and objective.compares_examples:
            raise RequestError(
                f"'{objective.spec}' compares the examples of a batch, which {self.count} processes share:"
                " train on one GPU (--gpus 1)"
            )

    @torch.no_grad()
    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace the gradients, which are means over each process's part, by those of the whole batch."""
        if self.count == 1:
            return
        gradients = [each.grad for each in parameters if each.grad is not None]
        together = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(together)
        parts = torch.split(together.div_(self.count), [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def total(self, value: Tensor) -> Tensor:
        """Return the sum of a value over the processes."""
        if self.count > 1:
            value = value.clone()
            dist.all_reduce(value)
        return value

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any of the processes."""
        if self.count == 1:
            return flag
        said = torch.tensor(int(flag))
        dist.all_reduce(said, dist.ReduceOp.MAX, self._talk)
        return bool(said)

    def of_first(self, make: Callable[[], T]) -> T:
        """Return to every process the value that `make` returns in the first process."""
        if self.count == 1:
            return make()
        made = [make() if self.is_first else None]
        dist.broadcast_object_list(made, 0, self._talk)
        return made[0]  # type: ignore[return-value]

    def settle(self, *modules: nn.Module) -> None:
        """Replace the running moments in every process by their mean over the processes."""
        if self.count == 1:
            return
        moments = [value for module in modules for value in module.buffers() if value.is_floating_point()]
        for value in moments:
            dist.all_reduce(value)
            value.div_(self.count)

    def whole(self, part: Tensor, rows: Tensor) -> Tensor:
        """Return the whole batch, assembled from the `rows` of every process."""
        if self.count == 1:
            return part
        parts = [torch.empty_like(part) for _ in range(self.count)]
        dist.all_gather(parts, part.contiguous())
        places = [torch.empty_like(rows) for _ in range(self.count)]
        dist.all_gather(places, rows, self._talk)
        whole = part.new_empty((self.count * len(part), *part.shape[1:]))
        return whole.index_copy_(0, torch.cat(places).to(part.device), torch.cat(parts))
