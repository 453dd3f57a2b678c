"""Ghost batches: batch normalisation by the moments of parts of a batch, as if it were spread over cores."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from penultimate.errors import RequestError


class GhostMoments(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation that computes its moments over parts of `size` consecutive images of a batch.

    y = g (x - mean_j) / sqrt(var_j + eps) + b for x in part j. The running moments move towards the mean of
    the parts' moments, once per batch. The last part may be smaller, and then has less weight. In evaluation
    mode, and for a batch of at most `size` images, this is ordinary batch normalisation.

    Hoffer, Hubara and Soudry, NeurIPS 2017.

    >>> layer = GhostBatchNorm2d.of(nn.BatchNorm2d(1), size=2)
    >>> layer(torch.tensor([0.0, 2, 10, 12]).view(4, 1, 1, 1)).flatten().round().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    >>> round(layer.running_mean.item(), 6)  # a tenth of the way to 6
    0.6
    """

    size: int

    @classmethod
    def of(cls, layer: nn.modules.batchnorm._BatchNorm, size: int) -> GhostMoments:
        """Return a ghost layer with parts of `size` images that shares a layer's parameters and moments."""
        made = cls(layer.num_features, layer.eps, layer.momentum, layer.affine, layer.track_running_stats)
        made._parameters, made._buffers = layer._parameters, layer._buffers
        made.size = size
        return made.train(layer.training)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or len(x) <= self.size:
            return super().forward(x)
        parts = torch.split(x, self.size)
        outputs, means, variances = [], [], []
        for part in parts:
            output, mean, inverse = torch.native_batch_norm(
                part, self.weight, self.bias, None, None, True, 0.0, self.eps
            )
            count = part.numel() // part.shape[1]
            outputs.append(output)
            means.append(mean.detach())
            variances.append((inverse.detach() ** -2 - self.eps) * (count / max(1, count - 1)))
        if self.running_mean is not None and self.running_var is not None:
            shares = means[0].new_tensor([len(part) / len(x) for part in parts])
            momentum = self._advance()
            self.running_mean.lerp_(shares @ torch.stack(means), momentum)
            self.running_var.lerp_(shares @ torch.stack(variances), momentum)
        return torch.cat(outputs)

    def _advance(self) -> float:
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        return 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum


class GhostBatchNorm1d(GhostMoments, nn.BatchNorm1d):
    """Ghost batches of vectors [n c], as a projector has them."""


class GhostBatchNorm2d(GhostMoments, nn.BatchNorm2d):
    """Ghost batches of images [n c h w]."""


GHOSTS: Mapping[type[nn.Module], type[GhostMoments]] = {
    nn.BatchNorm1d: GhostBatchNorm1d,
    nn.BatchNorm2d: GhostBatchNorm2d,
}


def by_ghost_batches(network: nn.Module, size: int) -> None:
    """Make all batch normalisation of a network, of images and of vectors, by parts of `size` images.

    Raise RequestError for other kinds of batch normalisation, which would still use the whole batch.
    """
    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child) in GHOSTS and isinstance(child, nn.modules.batchnorm._BatchNorm):
                setattr(module, name, GHOSTS[type(child)].of(child, size))
            elif isinstance(child, nn.modules.batchnorm._BatchNorm):
                raise RequestError(
                    "ghost batches are of nn.BatchNorm1d and nn.BatchNorm2d, and this network has a"
                    f" {type(child).__name__} ('{name}'); give ghost_batch=None"
                )


def slow_moments(module: nn.Module, parts: int) -> None:
    """Slow the running moments of every batch-norm layer, so that `parts` updates forget as much as one did.

    momentum <- 1 - (1 - momentum)^(1 / parts)
    """
    for layer in module.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.momentum is not None:
            layer.momentum = 1 - (1 - layer.momentum) ** (1 / parts)
