"""A network of a user's own with an objective in the place of its final layer."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.ending import Final, read
from penultimate.backbones.outputs import OUTPUT, described, entry, of_one_pixel
from penultimate.backbones.passes import REFUSALS, aside, plainly
from penultimate.backbones.taps import unwrapped
from penultimate.errors import RequestError
from penultimate.networks.building import noise
from penultimate.networks.given import end_of
from penultimate.networks.model import Model
from penultimate.networks.sources import LIVE, Source
from penultimate.networks.state import copied, in_single
from penultimate.objectives.objective import Objective
from penultimate.objectives.objective import objective as make_objective

NOT_A_TENSOR = (
    "in training the body gives {}; a tensor is expected, so build it without its auxiliary classifiers"
    " (torchvision: aux_logits=False; timm: aux_head=None, distilled_training=False)"
)


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
            raise RequestError(NOT_A_TENSOR.format(described(features)))
        found: Tensor = self.objective(of_one_pixel(features), targets)
        return found

    def no_weight_decay(self) -> set[str]:
        """Return the parameters that timm's optimisers do not decay: those that the body names."""
        names: Any = getattr(self.body, "no_weight_decay", set)
        return {f"body.{name}" for name in names()}


def replace_head(
    model: nn.Module | Model, objective: Objective | str, num_classes: int | None = None, seed: int = 0
) -> HeadedNetwork:
    """Return a classifier with an objective in the place of its final layer, for a training loop of yours.

    `objective` is a spec such as "label_smoothing(alpha=0.1)", with the number of classes, for as many
    features as the classifier has, and initial weights drawn from `seed`; or it is made already, by
    `pu.objective`.

    The final layer is found as by `pu.extract`, on two images of noise; `pu.Model(module, size=64)` says how
    large they are, and `pu.Model(module, layer="output")` that the module has no final layer and gives
    features. In the module itself an `nn.Identity` takes the layer's place; several final layers of the same
    features are replaced together. The head is the objective's own, with its initial weights: optimise
    `network.parameters()`. With a projector, the penultimate features are still what the body gives; the
    final layer is on the projector's output.

    Raises RequestError where the final layer is not one module whose input the rest of the network would give
    unchanged, where the module gives more than a tensor in training mode (auxiliary classifiers), and where
    features and objective are of different widths.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 10))
    >>> import penultimate as pu
    >>> network = pu.replace_head(pu.Model(net, size=2), "cosine_softmax(temperature=0.05)", num_classes=3)
    >>> images, targets = torch.rand(4, 3, 2, 2), torch.tensor([0, 2, 1, 0])
    >>> network(images).shape, network(images, targets).shape, net(images).shape
    (torch.Size([4, 3]), torch.Size([4]), torch.Size([4, 5]))
    """
    if not isinstance(model, nn.Module | Model) or not isinstance(objective, Objective | str):
        raise RequestError(
            "the network comes first, and then the objective, or its spec: pu.replace_head(network,"
            f" pu.objective(...)); got a {type(model).__name__} and a {type(objective).__name__}"
        )
    if (num_classes is None) == isinstance(objective, str):
        raise RequestError(
            "num_classes goes with the spec of an objective, which one made by pu.objective has already:"
            " pu.replace_head(network, 'softmax', num_classes=10)"
        )
    model = model if isinstance(model, Model) else Model(model)
    module = unwrapped(model.module)
    trial = copied(module).eval()
    prepared = model.preparation_of(trial)
    images = noise(prepared).to(device_of(trial))
    in_single(trial, images)
    end = end_of(f"{LIVE}:{type(module).__name__}", Source(LIVE, "", dict(model.settings)), trial, prepared)
    layers = end.layers if isinstance(end, Final) else ()
    if isinstance(end, Final):
        features = _without(trial, end, images)
    elif end == OUTPUT:
        with plainly():
            features = entry(trial(images))
    else:
        raise RequestError("a head goes behind the output of a module, not behind a layer or pooled tokens")
    _expect_tensor_in_training(trial, images)
    width = features.shape[1]
    if isinstance(objective, str):
        objective = make_objective(objective, width, num_classes or 0, seed).to(images.device)
    if width != objective.num_features:
        raise RequestError(
            f"the objective is on {objective.num_features} features, and {type(module).__name__} gives"
            f" {width}: pu.objective(..., num_features={width})"
        )
    for name in layers:
        _remove(module, name)
    return HeadedNetwork(module, objective)


def _without(module: nn.Module, final: Final, images: Tensor) -> Tensor:
    """Return what a module gives once its final layers are removed; raise RequestError unless features."""
    output: Any = None
    with plainly():
        wanted, _ = read(module, final, lambda: module(images.clone()))
        for name in final.layers:
            _remove(module, name)
        with contextlib.suppress(*REFUSALS):  # what comes behind the layer takes class scores alone
            output = module(images.clone())
    values = of_one_pixel(output) if isinstance(output, Tensor) else None
    if values is None or values.shape != wanted.shape or not torch.allclose(values, wanted, 1e-4, 1e-5):
        raise RequestError(
            f"without its final layer ({', '.join(map(repr, final.layers))}) {type(module).__name__} does not"
            f" give what the layer is given, but {described(output)}: it may end in a softmax, return more"
            " than a tensor, or have layers of different features (a distilled transformer). Give a module"
            " that returns class scores from one final layer, or pu.Model(module, layer='output') of one"
            " that returns the features"
        )
    return values


def _expect_tensor_in_training(module: nn.Module, images: Tensor) -> None:
    """Raise RequestError if a body gives several tensors in training mode, as with auxiliary classifiers."""
    with plainly(), aside(images.device):
        try:
            output = module.train()(images.clone())
        except REFUSALS:  # images of another size may be what it is trained on
            return
    if not isinstance(output, Tensor):
        raise RequestError(NOT_A_TENSOR.format(described(output)))


def _remove(module: nn.Module, name: str) -> None:
    parent, _, own = name.rpartition(".")
    setattr(module.get_submodule(parent), own, nn.Identity())
