"""Networks: how they are named, what they must offer, and where they come from: trained here or given."""

from penultimate.lazy import attributes

__getattr__, __dir__ = attributes(
    __name__,
    {
        "key": "NetworkKey",
        "protocol": "Network",
        "trained": "TrainedNetwork load_network",
        "given": "GivenNetwork",
    },
)
