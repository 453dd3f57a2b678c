"""The checks of a backbone and of a projector: features of the promised size, with no hidden state."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from penultimate.checking.examination import Check, Examined, kind_of, signature_of
from penultimate.checking.parts import as_objective
from penultimate.checking.report import require
from penultimate.checks import is_whole

IMAGES = 6
SIDE = 24
"""The side of the embedded world's images; images and weights are channels-last, as in training."""
WIDTH = 16
"""The number of features that a projector is given."""


def _is_projector(examined: Examined) -> bool:
    return examined.entry.kind == "projector"


def _build(examined: Examined, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    sizes = (WIDTH,) if _is_projector(examined) else ()
    given = f"{WIDTH} features" if sizes else "no arguments"
    built: Any = examined.call(examined.function, *sizes, given=given)
    require(
        isinstance(built, nn.Module),
        f"{examined.name} builds {kind_of(built)}; build a torch.nn.Module.",
    )
    network: nn.Module = built.to(memory_format=torch.channels_last)
    return network


def _inputs(examined: Examined, seed: int = 0) -> Tensor:
    """Return images or, for a projector, features."""
    generator = torch.Generator().manual_seed(seed)
    if _is_projector(examined):
        return torch.rand(IMAGES, WIDTH, generator=generator)
    images = torch.randn(IMAGES, 3, SIDE, SIDE, generator=generator)
    return images.contiguous(memory_format=torch.channels_last)


def _features(examined: Examined, built: nn.Module, images: Tensor) -> Tensor:
    kind = "float features" if _is_projector(examined) else "channels-last float images"
    given = f"{kind} [{' '.join(map(str, images.shape))}]"
    features: Tensor = examined.call(built, images, given=given)
    return features


def ask_module(examined: Examined) -> str:
    size = getattr(_build(examined), "num_features", None)
    require(
        is_whole(size, 1),
        f"{examined.name}.num_features is {size!r}; set it to the number of features that it returns.",
    )
    return f"builds a module of {size} features"


def ask_features(examined: Examined) -> str:
    built = _build(examined)
    expected = [IMAGES, built.num_features]
    for mode in (True, False):
        features = _features(examined, built.train(mode), _inputs(examined))
        shape = list(features.shape) if isinstance(features, Tensor) else kind_of(features)
        hint = "; pool and flatten it: .mean((2, 3))" if len(shape) == 4 else ""
        require(
            shape == expected,
            f"{examined.name} returns {shape}; features [n num_features] = {expected} are expected{hint}.",
        )
        require(features.isfinite().all(), f"{examined.name} returns features that are not finite.")
    return f"returns features [n {built.num_features}]"


def ask_parameters(examined: Examined) -> str:
    """Check that a training step reaches every parameter, and leaves the images as they are."""
    built = _build(examined).train()
    parameters = dict(built.named_parameters())
    require(
        parameters or _is_projector(examined),
        f"{examined.name} has no parameters; are its layers in a plain list? Use nn.ModuleList.",
    )
    given = _inputs(examined)
    features = _features(examined, built, given)
    if features.requires_grad:
        features.square().mean().backward()  # type: ignore[no-untyped-call]
    require(
        torch.equal(given, _inputs(examined)),
        f"{examined.name} changes its {'features' if _is_projector(examined) else 'images'} in place, but"
        " others read them later.",
    )
    unused = [name for name, values in parameters.items() if values.requires_grad and values.grad is None]
    require(
        not unused,
        f"{examined.name}: {len(unused)} of {len(parameters)} parameters take no part in the features (the"
        f" first: {', '.join(unused[:1])}); a classifier on top belongs to the objective: leave it out.",
    )
    return f"all of its {sum(values.numel() for values in parameters.values()):,} weights take part"


def ask_seed(examined: Examined) -> str:
    first, second = (_build(examined).state_dict() for _ in range(2))
    for name, values in first.items():
        require(
            torch.equal(values, second[name]),
            f"{examined.name} starts with different weights ({name}) at the same seed; draw them from torch's"
            " default generator alone.",
        )
    return "the same initial weights at the same seed"


def ask_state(examined: Examined) -> str:
    """Check that what was learnt is in the state_dict: a copy that loads it gives equal features."""
    trained = _build(examined, seed=1).train()
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
        for batch in range(2):
            _features(examined, trained, _inputs(examined, batch))
        restored = _build(examined, seed=2)
        restored.load_state_dict(trained.state_dict())
        first, second = (_features(examined, net.eval(), _inputs(examined)) for net in (trained, restored))
    require(
        torch.equal(first, second),
        f"{examined.name} is not the same after its state_dict has been saved and loaded; register what it"
        " learns as parameters or buffers, and draw nothing at random in eval().",
    )
    return "gives the same features after being saved and loaded"


def ask_images(examined: Examined) -> str:
    built, images = _build(examined).eval(), _inputs(examined)
    with torch.no_grad():
        whole = _features(examined, built, images)
        alone = torch.cat([_features(examined, built, image) for image in images[:, None]])
    noun = "examples" if _is_projector(examined) else "images"
    require(
        torch.allclose(alone, whole, rtol=1e-3, atol=1e-4),
        f"the features that {examined.name} gives one of its {noun} depend on the others of its batch in"
        " eval(); normalise by running moments there.",
    )
    return f"in eval() each of the {noun} is treated alone"


MODULE_CHECKS = (
    Check("module", ask_module, essential=True),
    Check("features", ask_features, essential=True),
    Check("parameters", ask_parameters),
    Check("seed", ask_seed),
    Check("state", ask_state),
    Check("images", ask_images),
)
BACKBONE_CHECKS = (signature_of((), keyword_only=False), *MODULE_CHECKS)
PROJECTOR_CHECKS = (signature_of(("num_features",)), *MODULE_CHECKS, Check("objective", as_objective))
