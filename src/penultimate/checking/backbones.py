"""What is asked of a backbone: features of the promised size, from all parameters, nothing hidden."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from penultimate.checking.answers import WrongError, kind_of
from penultimate.checking.examination import Check, Subject, signature_of

IMAGES = 6
SIDE = 24
"""As the embedded world's images; they and the weights are laid out channels-last, as in training."""


def _build(subject: Subject, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    built: Any = subject.call(subject.function, given="no arguments")
    if not isinstance(built, nn.Module):
        raise WrongError(f"{subject.name} builds {kind_of(built)}; build a torch.nn.Module.")
    return built.to(memory_format=torch.channels_last)


def _images(seed: int = 0) -> Tensor:
    images = torch.randn(IMAGES, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
    return images.contiguous(memory_format=torch.channels_last)


def _features(subject: Subject, built: nn.Module, images: Tensor) -> Tensor:
    given = f"channels-last float images [{' '.join(map(str, images.shape))}]"
    features: Tensor = subject.call(built, images, given=given)
    return features


def ask_module(subject: Subject) -> str:
    size = getattr(_build(subject), "num_features", None)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise WrongError(
            f"{subject.name}.num_features is {size!r}; set it to the number of features that it gives."
        )
    return f"builds a module of {size} features"


def ask_features(subject: Subject) -> str:
    built = _build(subject)
    expected = (IMAGES, built.num_features)
    for mode in (True, False):
        features = _features(subject, built.train(mode), _images())
        if not isinstance(features, Tensor):
            raise WrongError(f"{subject.name} returns {kind_of(features)}; return features [n m] alone.")
        if features.shape != expected:
            hint = "; pool and flatten it: .mean((2, 3))" if features.ndim == 4 else ""
            raise WrongError(
                f"{subject.name} returns {list(features.shape)} for {IMAGES} images; features"
                f" [n num_features] = {list(expected)} are expected{hint}."
            )
        if not features.isfinite().all():
            raise WrongError(f"{subject.name} returns features that are not finite for ordinary images.")
    return f"float images [n 3 {SIDE} {SIDE}] to features [n {built.num_features}]"


def ask_parameters(subject: Subject) -> str:
    """A training step reaches every parameter."""
    built = _build(subject).train()
    parameters = dict(built.named_parameters())
    if not parameters:
        raise WrongError(
            f"{subject.name} has no parameters; are its layers in a plain list? Use nn.ModuleList."
        )
    images = _images()
    given = images.clone()
    _features(subject, built, given).square().mean().backward()  # type: ignore[no-untyped-call]
    if not torch.equal(given, images):
        raise WrongError(f"{subject.name} changes its images in place, which others read after it.")
    unused = [name for name, one in parameters.items() if one.requires_grad and one.grad is None]
    if unused:
        raise WrongError(
            f"{subject.name}: {len(unused)} of {len(parameters)} parameters take no part in the features"
            f" (the first: {unused[0]}); a classifier on top belongs to the objective: leave it out."
        )
    return f"all of its {sum(one.numel() for one in parameters.values()):,} weights take part"


def ask_seed(subject: Subject) -> str:
    first, second = (_build(subject).state_dict() for _ in range(2))
    for name, values in first.items():
        if not torch.equal(values, second[name]):
            raise WrongError(
                f"{subject.name} starts with other weights ({name}) at the same seed; draw them from torch's"
                " default generator alone."
            )
    return "the same first weights at the same seed"


def ask_state(subject: Subject) -> str:
    """What was learnt is in the state_dict: a second network that is given it says the same."""
    trained = _build(subject, seed=1).train()
    with torch.no_grad():
        for one in trained.parameters():
            one.add_(0.05 * torch.randn(one.shape))
    for batch in range(2):
        _features(subject, trained, _images(batch))
    restored = _build(subject, seed=2)
    restored.load_state_dict(trained.state_dict())
    with torch.no_grad():
        first, second = (_features(subject, one.eval(), _images()) for one in (trained, restored))
    if not torch.equal(first, second):
        raise WrongError(
            f"{subject.name} is not the same after its state_dict has been saved and loaded; register what it"
            " learns as parameters or buffers, and draw nothing at random in eval()."
        )
    return "saved and loaded, it gives the same features"


def ask_images(subject: Subject) -> str:
    built = _build(subject).eval()
    images = _images()
    with torch.no_grad():
        whole = _features(subject, built, images)
        for position in range(IMAGES):
            alone = _features(subject, built, images[position : position + 1])
            if not torch.allclose(alone, whole[position : position + 1], rtol=1e-3, atol=1e-4):
                raise WrongError(
                    f"the features of an image by {subject.name} depend on the others of its batch in eval();"
                    " normalise by running moments there."
                )
    return "in eval() each image is treated alone"


BACKBONE_CHECKS = (
    signature_of((), keyword_only=False),
    Check("module", ask_module, essential=True),
    Check("features", ask_features, essential=True),
    Check("parameters", ask_parameters),
    Check("seed", ask_seed),
    Check("state", ask_state),
    Check("images", ask_images),
)
