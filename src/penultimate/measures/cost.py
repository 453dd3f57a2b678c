"""What a network's features cost: multiply-adds for an image and, if it is asked for, images a second."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Layers, Pixels, Yield
from penultimate.measures.inputs import Fact, Inputs, Number, Undefined
from penultimate.registry import register

BATCH = 32
"""The images in a batch that is timed."""


@register.measurement(
    version=1,
    per="network",
    needs=(Layers(), Pixels("test")),
    yields=(Yield("multiply_adds", "count", called="cost"),),
    seconds=0.3,
)
def cost(inputs: Inputs, *, speed: bool = False) -> Iterator[Number | Undefined | Fact]:
    """Multiply-adds of the features of one image; with `speed`, also how many images a second it takes.

    Speed is that of forward passes over a batch in memory, float32, on the step's own threads and device,
    beside whatever else runs. It depends on the machine, and so is kept in the step's record, not in a row.
    """
    import torch

    from penultimate.backbones.operations import images_a_second, multiply_adds

    network = inputs.network
    ((images, _), *_) = inputs.shown("test").subset(slice(1)).batches(1)
    prepared = network.prepared(images)
    counted = multiply_adds(network.body, prepared)
    if counted:
        yield Number("multiply_adds", counted, "count", "test")
    else:
        yield Undefined("multiply_adds: the network does not run in PyTorch, so that they cannot be counted")
    if speed:
        batch = prepared.expand(BATCH, *prepared.shape[1:]).contiguous()
        told = {"device": inputs.device, "threads": torch.get_num_threads(), "batch": BATCH}
        yield Fact("speed", {"images_a_second": images_a_second(network.body, batch), **told})
