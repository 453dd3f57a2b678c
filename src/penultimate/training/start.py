"""Where a training run starts, if not at first weights of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.files import digest_arrays
from penultimate.networks.trained import TrainedNetwork
from penultimate.objectives.objective import Objective


@dataclass(frozen=True)
class Start:
    """A network that a run starts from: its backbone's weights, and how its images were normalised.

    The final layer is fresh, from the run's seed, unless `head` gives its weight [k m] and bias [k].
    """

    network: TrainedNetwork
    head: tuple[Float[Tensor, "k m"], Float[Tensor, " k"]] | None = None

    def copy_to(self, backbone: str, body: nn.Module, head: Objective) -> str:
        """Copy the weights into a run's modules; returns the sha256 of all that it then starts from.

        Raises RequestError where they do not fit, with what differs.
        """
        theirs = self.network.backbone.state_dict()
        asked = (
            f"the network to start from is a {self.network.card['backbone']}, and a {backbone} is asked for"
        )
        _expect_fitting(asked, theirs, body.state_dict())
        body.load_state_dict(theirs)
        if self.head is not None:
            layer = dict(zip(("weight", "bias"), self.head, strict=True))
            _expect_fitting("the final layer to start from has another shape", layer, head.head.state_dict())
            head.head.load_state_dict(layer)
        states = (body.state_dict(), head.state_dict())
        return digest_arrays(*(value.numpy() for state in states for value in state.values()))


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
