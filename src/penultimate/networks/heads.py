"""A network of a user's own with an objective in the place of its final layer."""

from __future__ import annotations

import copy
from warnings import warn

import torch
from torch import Tensor, nn

from penultimate.backbones.ending import ending
from penultimate.backbones.final import Final
from penultimate.backbones.outputs import OUTPUT, described, of_one_pixel
from penultimate.backbones.passes import plainly
from penultimate.backbones.taps import unwrapped
from penultimate.errors import RequestError
from penultimate.networks.architectures import preparation
from penultimate.networks.built import noise
from penultimate.networks.given import end_of
from penultimate.networks.model import Model
from penultimate.networks.sources import LIVE, Source
from penultimate.objectives.objective import Objective


class HeadedNetwork(nn.Module):
    """A body that gives features [n m], and an objective on them: what `replace_head` returns.

    `network(images)` returns the logits [n k], and `network(images, targets)` the loss of every example [n],
    also from within DataParallel and DistributedDataParallel.
    """

    def __init__(self, body: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.body, self.objective = body, objective

    def forward(self, images: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return the logits, or the loss of every example if targets are given."""
        features = self.body(images)
        if not isinstance(features, Tensor):
            raise RequestError(
                f"the body gives {described(features)}; a tensor is expected, so an auxiliary classifier is"
                " to be switched off"
            )
        found: Tensor = self.objective(of_one_pixel(features), targets)
        return found


def replace_head(model: nn.Module | Model, objective: Objective) -> HeadedNetwork:
    """Return a classifier with an objective in the place of its final layer, for a training loop of yours.

    The final layer is found as by `pu.extract`, on two images of noise; `pu.Model(module, size=64)` says how
    large they are, and `pu.Model(module, layer="output")` that the module has no final layer and gives
    features. In the module itself an `nn.Identity` takes the layer's place. The head is the objective's own,
    with its first weights: optimise `network.parameters()`. With a projector, the penultimate features stay
    what the body gives, `pu.Model(network, layer="body")`; the final layer is on the projector's output.

    Raises RequestError where the final layer is not one module whose input the rest of the network would give
    unchanged, and where features and objective are of different widths.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 10))
    >>> import penultimate as pu
    >>> objective = pu.objective("cosine_softmax(temperature=0.05)", num_features=5, num_classes=3)
    >>> network = replace_head(pu.Model(net, size=2), objective)
    >>> images, targets = torch.rand(4, 3, 2, 2), torch.tensor([0, 2, 1, 0])
    >>> network(images).shape, network(images, targets).shape, net(images).shape
    (torch.Size([4, 3]), torch.Size([4]), torch.Size([4, 5]))
    """
    if not isinstance(objective, Objective):
        raise RequestError(
            f"the head is that of an objective, pu.objective(...), not of a {type(objective).__name__}"
        )
    said = model if isinstance(model, Model) else Model(model)
    if said.settings.get("pooling"):
        raise RequestError("a head goes behind the output of a module, not behind a pooling of its tokens")
    module = unwrapped(said.module)
    source = Source(LIVE, "the module", dict(said.settings))
    tried = copy.deepcopy(module).eval()
    prepared, _ = preparation(source, tried)
    end, doubt = end_of(f"{LIVE}:{type(module).__name__}", source, tried, prepared)
    if doubt:
        warn(f"whether the model ends in a classifier is not certain: {doubt}", stacklevel=2)
    images = noise(prepared).to(next(tried.parameters(), torch.empty(0)).device)
    if isinstance(end, Final):
        features = _without(tried, end, images)
    elif end == OUTPUT:
        with plainly():
            features = of_one_pixel(tried(images))
    else:
        raise RequestError(f"a head goes behind the output of a module, not behind '{end}'")
    if features.shape[1] != objective.num_features:
        raise RequestError(
            f"the objective is on {objective.num_features} features, and {type(module).__name__} gives"
            f" {features.shape[1]}: pu.objective(..., num_features={features.shape[1]})"
        )
    if isinstance(end, Final):
        _remove(module, end.layers[0])
    return HeadedNetwork(module, objective)


def _without(module: nn.Module, final: Final, images: Tensor) -> Tensor:
    """Return what a module gives once its final layer is removed; raise RequestError unless features."""
    name = f"the final layer of {type(module).__name__}"
    if len(final.layers) > 1:
        listed = ", ".join(map(repr, final.layers))
        raise RequestError(f"{name} is {len(final.layers)} layers ({listed}), and a head replaces one")
    with plainly():
        found = ending(module, lambda: module(images.clone()))
        _remove(module, final.layers[0])
        output = module(images.clone())
    values = of_one_pixel(output) if isinstance(output, Tensor) else None
    same = found is not None and values is not None and values.shape == found.features.shape
    if values is None or found is None or not same or not torch.allclose(values, found.features, 1e-4, 1e-5):
        raise RequestError(
            f"{name} is '{final.layers[0]}', and without it the module does not give what the layer is given,"
            f" but {described(output)}: it may end in a softmax, or return more than a tensor. Give a module"
            " that returns class scores"
        )
    return values


def _remove(module: nn.Module, name: str) -> None:
    parent, _, own = name.rpartition(".")
    setattr(module.get_submodule(parent), own, nn.Identity())
