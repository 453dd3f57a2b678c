"""Non-zero activations and class separation of every layer of a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.class_separation import SEPARATION
from penultimate.measures.declaration import Features, Layers, Pixels, Yield
from penultimate.measures.inputs import Fact, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.layers.profiles import LayerProfile

PENULTIMATE = "penultimate"
"""The name of the layer of pooled features, after the last block."""
NONZERO = Yield("nonzero_share", "fraction", called="non-zero activations")


@register.measurement(
    version=2,
    per="network",
    needs=(Layers(), Pixels("test"), Features("test")),
    yields=(NONZERO, SEPARATION),
    seconds=1.1,
    paper="Kornblith et al., 2021, figures 3 and 4",
)
def layers(inputs: Inputs) -> Iterator[Number | Undefined | Fact]:
    """The share of non-zero activations and the class separation of every block, on the test images.

    The penultimate features are those of the bank. An undefined separation (constant activations) is left
    out. If the layers of a network cannot be observed, only its penultimate features are measured.
    """
    profiles, why_not = _profiles(inputs, "test")
    if why_not:
        yield Undefined(why_not)
    for profile in profiles:
        yield Number("nonzero_share", profile.nonzero_share, "fraction", "test", profile.layer)
        yield _separation(profile, "test")
    yield Fact("layers", [profile.layer for profile in profiles])


@register.measurement(
    version=1,
    per="network",
    needs=(Layers(), Pixels("train"), Features("train")),
    yields=(SEPARATION,),
    seconds=2.4,
    paper="Kornblith et al., 2021, figure 4",
)
def layers_on_training(inputs: Inputs) -> Iterator[Number | Undefined]:
    """The class separation of every block, on the training images, which are not augmented.

    The rest is as for `layers`.
    """
    profiles, why_not = _profiles(inputs, "train")
    if why_not:
        yield Undefined(why_not)
    for profile in profiles:
        yield _separation(profile, "train")


def _profiles(inputs: Inputs, split: str) -> tuple[list[LayerProfile], str]:
    """Return the profiles of all layers, and why there are none of blocks, if there are none."""
    from penultimate.backbones.taps import UnobservableError
    from penultimate.layers.profiles import LayerProfile, profile_layers
    from penultimate.metrics.activations import nonzero_share
    from penultimate.metrics.separation import class_separation

    profiles, why_not = [], ""
    try:
        *profiles, _ = profile_layers(inputs.network, inputs.shown(split))
    except UnobservableError as error:
        why_not = f"only its penultimate features are measured: {error}"
    bank, separation, undefined = inputs.features(split), None, ""
    try:
        separation = class_separation(bank)
    except UndefinedError as error:
        undefined = str(error)
    width = bank.features.shape[1]
    profiles.append(LayerProfile(PENULTIMATE, width, nonzero_share(bank), separation, undefined))
    return profiles, why_not


def _separation(profile: LayerProfile, split: str) -> Number | Undefined:
    if profile.class_separation is None:
        return Undefined(f"{profile.layer} ({split}): {profile.undefined}")
    return Number("class_separation", profile.class_separation, "ratio", split, profile.layer)
