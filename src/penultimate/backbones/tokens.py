"""Networks with tokens: where their last tokens are, which of them are of patches, and features made of them.

The tokens [n t c] are the network's last ones: what timm's `norm` gives at the end of `forward_features`, the
`last_hidden_state` of transformers, the output of the encoder of torchvision's vision transformers. Prefix
tokens come first: the class token, if there is one, then those of distillation and registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from penultimate.backbones.outputs import OUTPUT, described
from penultimate.errors import RequestError

CLASS_TOKENS = frozenset(("cls_token", "class_token", "class_embedding"))
"""The parameters of class tokens, by the last part of their names."""
REFUSED = "pooling='{}' is of networks with tokens, vision transformers of timm, transformers or torchvision"


@dataclass(frozen=True)
class Pooling:
    """How the tokens of a network become its features.

    how       cls: the class token; mean: the mean of all tokens, prefix tokens among them; patches:mean: the
              mean of the tokens of patches alone; cls+mean: the class token, then that mean, 2 c features
    layer     the layer whose output the tokens are, "output" for the network itself
    prefix    how many tokens come before those of patches
    norm      the layer that normalises what the network itself pools, if it has one; it is applied to each
              part, so that the network's own pooling gives its own features
    """

    how: str
    layer: str
    prefix: int
    norm: str = ""


def token_pooling(module: nn.Module, images: Tensor, how: str) -> Pooling:
    """Return where a network has its tokens, tried on a few images.

    Raise RequestError for a network without tokens that are known, without patches, or without the class
    token that is asked for.
    """
    layer, norm = _layer_of_tokens(module), ""
    if layer == "norm" and not isinstance(getattr(module, "fc_norm", nn.Identity()), nn.Identity):
        norm = "fc_norm"
    tokens = _tokens(module, layer, images) if layer else None
    if tokens is None or tokens.ndim != 3 or tokens.shape[1] < 2:
        found = "" if tokens is None else f": its last output before pooling is {described(tokens)}"
        raise RequestError(f"{REFUSED.format(how)}; {type(module).__name__} has none{found}")
    prefix = _prefix(module, images, tokens)
    if not 0 <= prefix < tokens.shape[1]:
        raise RequestError(
            f"pooling='{how}': {tokens.shape[1]} tokens of {type(module).__name__} do not fit the patches of"
            f" images of {images.shape[-1]} pixels, so that it is not known which are of patches"
        )
    if how.startswith("cls") and not (prefix and has_class_token(module)):
        raise RequestError(
            f"pooling='{how}': {type(module).__name__} has no class token; mean and patches:mean need none"
        )
    return Pooling(how, layer, prefix, norm)


def has_tokens(module: nn.Module) -> bool:
    """Return whether a network may have tokens, by its attributes alone."""
    return bool(_layer_of_tokens(module)) and (
        hasattr(module, "num_prefix_tokens") or has_class_token(module)
    )


def has_class_token(module: nn.Module) -> bool:
    """Return whether a network has a class token, by the names of its parameters."""
    return any(name.rpartition(".")[2] in CLASS_TOKENS for name, _ in module.named_parameters())


def pooled_tokens(tokens: Tensor, pooling: Pooling, norm: nn.Module | None = None) -> Tensor:
    """Return the features [n c], or [n 2 c], that a pooling makes of tokens [n t c].

    >>> tokens = torch.tensor([[[1.0], [5.0], [2.0], [4.0]]])
    >>> [pooled_tokens(tokens, Pooling(how, "", 2)).tolist()[0] for how in ("cls", "mean", "cls+mean")]
    [[1.0], [3.0], [1.0, 3.0]]
    """
    if pooling.how == "mean":
        parts = [tokens.mean(1)]
    else:
        parts = [tokens[:, 0]] if pooling.how.startswith("cls") else []
        parts += [tokens[:, pooling.prefix :].mean(1)] if pooling.how.endswith("mean") else []
    return torch.cat([part if norm is None else norm(part) for part in parts], 1)


def at_tokens(module: nn.Module, pooling: Pooling) -> nn.Module:
    """Make the module return the features of a pooling of its tokens, and return it."""
    given: list[Tensor] = []

    def remember(part: nn.Module, inputs: Any, output: Any) -> None:
        given[:] = [_tensor_of(output).clone()]  # it may be overwritten

    def features(part: nn.Module, inputs: Any, output: Any) -> Tensor:
        norm = part.get_submodule(pooling.norm) if pooling.norm else None
        return pooled_tokens(given.pop(), pooling, norm)

    layer = module if pooling.layer == OUTPUT else module.get_submodule(pooling.layer)
    layer.register_forward_hook(remember)
    module.register_forward_hook(features)
    return module


def _layer_of_tokens(module: nn.Module) -> str:
    """Return the name of the layer that returns the last tokens in its library, or "" if it has none."""
    if hasattr(module, "num_prefix_tokens") and isinstance(getattr(module, "norm", None), nn.Module):
        return "norm"  # timm
    if isinstance(getattr(module, "class_token", None), Tensor) and isinstance(
        getattr(module, "encoder", None), nn.Module
    ):
        return "encoder"  # torchvision
    return OUTPUT if hasattr(module, "config") else ""  # transformers


def _tokens(module: nn.Module, layer: str, images: Tensor) -> Tensor | None:
    found: list[Any] = []
    part = module if layer == OUTPUT else module.get_submodule(layer)
    handle = part.register_forward_hook(lambda part, inputs, output: found.append(output))
    try:
        module(images.clone())
    finally:
        handle.remove()
    return _tensor_of(found[-1]) if found else None


def _tensor_of(output: Any) -> Any:
    return getattr(output, "last_hidden_state", output if isinstance(output, Tensor) else None)


def _prefix(module: nn.Module, images: Tensor, tokens: Tensor) -> int:
    """Return how many tokens come before those of patches; -1 if that is not known."""
    own = getattr(module, "num_prefix_tokens", None)
    if isinstance(own, int):
        return own
    patches = next(
        (
            part
            for part in module.modules()
            if isinstance(part, nn.Conv2d) and part.kernel_size == part.stride and min(part.stride) > 1
        ),
        None,
    )
    if patches is None:
        return -1
    height, width = (size // step for size, step in zip(images.shape[2:], patches.stride, strict=True))
    return tokens.shape[1] - height * width
