"""The checks of a backbone and of a projector: features of the promised size, with no hidden state."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from penultimate.checking.examination import Check, Examined, WrongError, kind_of, signature
from penultimate.checking.parts import as_objective
from penultimate.checks import is_whole

EXAMPLES = 6
SIDE = 24
"""The side of the embedded world's images; images and weights are channels-last, as in training."""
WIDTH = 16
"""The number of features that a projector is given."""


def _build(examined: Examined, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    sizes = (WIDTH,) if examined.kind == "projector" else ()
    examined.given = f"{WIDTH} features" if sizes else "no arguments"
    built: Any = examined.function(*sizes)
    if not isinstance(built, nn.Module):
        raise WrongError(f"builds {kind_of(built)}; build a torch.nn.Module")
    return built.to(memory_format=torch.channels_last)


def _inputs(examined: Examined, seed: int = 0) -> Tensor:
    """Return images or, for a projector, features."""
    generator = torch.Generator().manual_seed(seed)
    if examined.kind == "projector":
        return torch.rand(EXAMPLES, WIDTH, generator=generator)
    images = torch.randn(EXAMPLES, 3, SIDE, SIDE, generator=generator)
    return images.contiguous(memory_format=torch.channels_last)


def _features(examined: Examined, built: nn.Module, given: Tensor) -> Tensor:
    kind = "float features" if examined.kind == "projector" else "channels-last float images"
    examined.given = f"{kind} [{' '.join(map(str, given.shape))}]"
    features: Tensor = built(given)
    return features


def module(examined: Examined) -> str:
    """Check that a module is built, and that it says its size."""
    size = getattr(_build(examined), "num_features", None)
    if not is_whole(size, 1):
        raise WrongError(f"has num_features of {size!r}; set it to the number of features that it returns")
    return f"It builds a module of {size} features"


def features(examined: Examined) -> None:
    """It returns finite features [n num_features], in training and in evaluation."""
    built = _build(examined)
    expected = [EXAMPLES, built.num_features]
    for mode in (True, False):
        found = _features(examined, built.train(mode), _inputs(examined))
        shape = list(found.shape) if isinstance(found, Tensor) else kind_of(found)
        if shape != expected:
            hint = "; pool and flatten it: .mean((2, 3))" if len(shape) == 4 else ""
            raise WrongError(f"returns {shape}; features [n num_features] = {expected} are expected{hint}")
        if not found.isfinite().all():
            raise WrongError("returns features that are not finite")


def parameters(examined: Examined) -> str:
    """Check that a training step reaches every parameter, and leaves the images as they are."""
    built, given = _build(examined).train(), _inputs(examined)
    weights = dict(built.named_parameters())
    if not weights and examined.kind == "backbone":
        raise WrongError("has no parameters; are its layers in a plain list? Use nn.ModuleList")
    found = _features(examined, built, given)
    if found.requires_grad:
        found.square().mean().backward()  # type: ignore[no-untyped-call]
    if not torch.equal(given, _inputs(examined)):
        raise WrongError("changes its input in place, but others read it later")
    unused = [name for name, each in weights.items() if each.requires_grad and each.grad is None]
    if unused:
        raise WrongError(
            f"has {len(unused)} of {len(weights)} parameters that take no part in the features (the first:"
            f" {unused[0]}); a classifier on top belongs to the objective: leave it out"
        )
    return f"All of its {sum(each.numel() for each in weights.values()):,} weights take part"


def state(examined: Examined) -> None:
    """It gives the same features after being saved and loaded."""
    trained = _build(examined, seed=1).train()
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
        for batch in range(2):
            _features(examined, trained, _inputs(examined, batch))
        restored = _build(examined, seed=2)
        restored.load_state_dict(trained.state_dict())
        first, second = (_features(examined, net.eval(), _inputs(examined)) for net in (trained, restored))
    if not torch.equal(first, second):
        raise WrongError(
            "is not the same after its state_dict has been saved and loaded; register what it learns as"
            " parameters or buffers, and draw nothing at random in eval()"
        )


def batch(examined: Examined) -> None:
    """It treats each example alone in eval()."""
    built, given = _build(examined).eval(), _inputs(examined)
    with torch.no_grad():
        whole = _features(examined, built, given)
        alone = torch.cat([_features(examined, built, each) for each in given[:, None]])
    if not torch.allclose(alone, whole, rtol=1e-3, atol=1e-4):
        raise WrongError(
            "gives one example features that depend on the others of its batch in eval(); normalise by"
            " running moments there"
        )


FIRST: tuple[Check, ...] = (signature, module, features)
THEN: tuple[Check, ...] = (parameters, state, batch)
CHECKS = {"backbone": (FIRST, THEN), "projector": (FIRST, (*THEN, as_objective))}
"""The checks of each kind: those whose failure ends the examination, and the others."""
