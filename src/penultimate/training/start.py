"""The starting point of a training run that does not begin at random weights."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError
from penultimate.files import digest_arrays
from penultimate.networks.given import GivenNetwork
from penultimate.networks.trained import TrainedNetwork
from penultimate.objectives.objective import Objective


@dataclass(frozen=True)
class Start:
    """A network that a run starts from: its backbone's weights, and how its images were normalised.

    The final layer is initialised from the run's seed, unless `head` gives its weight [k m] and bias [k]. If
    the network was not trained here, a copy of its body is trained further, on images of the size it expects.
    """

    network: TrainedNetwork | GivenNetwork
    head: tuple[Float[Tensor, "k m"], Float[Tensor, " k"]] | None = None

    @property
    def backbone(self) -> str:
        """The spec of the network's architecture; empty for a network that was not trained here."""
        return "" if isinstance(self.network, GivenNetwork) else str(self.network.card["backbone"])

    @property
    def statistics(self) -> ChannelStatistics:
        """The channel statistics with which the network's images are normalised."""
        return self.network.preparation.statistics

    def body(self) -> GivenBody | None:
        """Return a trainable copy of the body of a network that was not trained here; None for others."""
        return GivenBody(self.network) if isinstance(self.network, GivenNetwork) else None

    def copy_to(self, backbone: str, body: nn.Module, head: Objective) -> str:
        """Copy the weights into a run's modules, and return the sha256 of all weights that it starts from.

        Raise RequestError if they do not fit; the error says what differs.
        """
        if isinstance(self.network, TrainedNetwork):
            theirs = self.network.backbone.state_dict()
            asked = f"the network to start from is a {self.backbone}, and a {backbone} is asked for"
            _expect_fitting(asked, theirs, body.state_dict())
            body.load_state_dict(theirs)
        if self.head is not None:
            layer = dict(zip(("weight", "bias"), self.head, strict=True))
            _expect_fitting("the final layer to start from has another shape", layer, head.head.state_dict())
            head.head.load_state_dict(layer)
        states = (body.state_dict(), head.state_dict())
        return digest_arrays(*(value.numpy(force=True) for state in states for value in state.values()))


class GivenBody(nn.Module):
    """The body of a network that was not trained here, as a backbone: images -> features [n num_features]."""

    def __init__(self, network: GivenNetwork) -> None:
        super().__init__()
        self.body = copy.deepcopy(network.body).requires_grad_(True)
        prepared = network.preparation
        side, channels = prepared.crop, len(prepared.statistics.mean)
        empty = torch.zeros(1, side, side, channels, dtype=torch.uint8)
        self.num_features = network.features(empty).shape[1]

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.body(images)
        return features.flatten(1).float()


def _expect_fitting(what: str, theirs: Mapping[str, Tensor], ours: Mapping[str, Tensor]) -> None:
    there, here = ({name: list(value.shape) for name, value in state.items()} for state in (theirs, ours))
    differing = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    if differing:
        first, *others = differing
        more = f" (and {len(others)} more differ)" if others else ""
        raise RequestError(
            f"{what}: {first} is {there.get(first, 'missing')} there and {here.get(first, 'missing')}"
            f" here{more}; start from a network of the same architecture"
        )
