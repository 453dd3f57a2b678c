"""Non-zero activations and class separation of every layer of a network."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.class_separation import SEPARATION
from penultimate.measures.declaration import Cost, Features, Layers, Pixels, Yield
from penultimate.measures.inputs import Fact, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

PENULTIMATE = "penultimate"
"""The name of the layer of pooled features, after the last block."""
NONZERO = Yield(
    "nonzero_share",
    "fraction",
    words="The share of the numbers in a layer's output that are not zero, over all images. The"
    " non-linearity of these networks sets what is negative to zero.",
    called="non-zero activations",
)


@register.measurement(
    version=2,
    per="network",
    needs=(Layers(), Pixels("test"), Features("test")),
    yields=(NONZERO, SEPARATION),
    seconds=1.1,
    cost=Cost(passes=1.5),
    paper="Kornblith et al., 2021, figures 3 and 4",
)
def layers(inputs: Inputs) -> Iterator[Number | Undefined | Fact]:
    """The share of non-zero activations and the class separation of every block, on the test images.

    The penultimate features are those of the bank. An undefined separation (constant activations) is left
    out. If the layers of a network cannot be observed, only its penultimate features are measured.
    """
    from penultimate.backbones.taps import UnobservableError
    from penultimate.layers.profiles import LayerProfile, profile_layers
    from penultimate.metrics.activations import nonzero_share
    from penultimate.metrics.separation import class_separation

    try:
        *profiles, _ = profile_layers(inputs.network, inputs.shown("test"))
    except UnobservableError as error:
        profiles = []
        yield Undefined(f"only its penultimate features are measured: {error}")
    bank = inputs.features("test")
    separation, undefined = None, ""
    try:
        separation = class_separation(bank.features, bank.labels)
    except UndefinedError as error:
        undefined = str(error)
    width, share = bank.features.shape[1], nonzero_share(bank.features)
    profiles.append(LayerProfile(PENULTIMATE, width, share, separation, undefined))
    for profile in profiles:
        yield Number("nonzero_share", profile.nonzero_share, "fraction", "test", profile.layer)
        if profile.class_separation is None:
            yield Undefined(f"{profile.layer}, test images: {profile.undefined}")
        else:
            yield Number("class_separation", profile.class_separation, "ratio", "test", profile.layer)
    yield Fact("layers", [profile.layer for profile in profiles])
