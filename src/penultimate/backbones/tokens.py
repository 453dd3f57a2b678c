"""Networks with tokens: where their last tokens are, which of them are of patches, and features made of them.

The tokens [n t c] are the network's last ones: what timm's `forward_features` returns, the
`last_hidden_state` of transformers, the output of the encoder of torchvision's vision transformers. Prefix
tokens come first: the class token, if there is one, then those of distillation and registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from penultimate.backbones.outputs import described
from penultimate.errors import RequestError

CLASS_TOKENS = frozenset(("cls_token", "class_token", "class_embedding"))
"""The parameters of class tokens, by the last part of their names."""


@dataclass(frozen=True)
class Pooling:
    """How the tokens of a network become its features.

    how       cls: the class token; mean: the mean of all tokens, prefix tokens among them; patches:mean: the
              mean of the tokens of patches alone; cls+mean: the class token, then that mean, 2 c features
    layer     the layer whose output the tokens are
    prefix    how many tokens come before those of patches
    norm      the layer that normalises what the network itself pools, if it has one; it is applied to each
              part, so that the network's own pooling gives its own features
    """

    how: str
    layer: str
    prefix: int
    norm: str = ""


def token_pooling(module: nn.Module, images: Tensor, how: str) -> Pooling:
    """Return where a network has its tokens, found with a few images.

    Raise RequestError for a network without tokens that are known, without patches, or without the class
    token that is asked for.
    """
    tokens, outputs, norms = _traced(module, images)
    if not isinstance(tokens, Tensor) or tokens.ndim != 3 or tokens.shape[1] < 2:
        found = "" if tokens is None else f": its last output before pooling is {described(tokens)}"
        raise RequestError(
            f"pooling='{how}' is of networks with tokens, vision transformers of timm, transformers or"
            f" torchvision; {type(module).__name__} has none{found}"
        )
    named = [name for name, output in outputs if torch.equal(output, tokens)]
    if not named:
        raise RequestError(
            f"pooling='{how}': no layer of {type(module).__name__} gives its last tokens,"
            f" {list(tokens.shape)}, as its output"
        )
    prefix = _prefix(module, images, tokens)
    if prefix is None:
        raise RequestError(
            f"pooling='{how}': {tokens.shape[1]} tokens of {type(module).__name__} do not fit the patches of"
            f" images of {images.shape[-1]} pixels, so that it is not known which are of patches"
        )
    if how.startswith("cls") and not (prefix and has_class_token(module)):
        raise RequestError(
            f"pooling='{how}': {type(module).__name__} has no class token; mean and patches:mean need none"
        )
    after = [name for name, width in norms if width == tokens.shape[2] and name != named[-1]]
    return Pooling(how, named[-1], prefix, after[0] if len(after) == 1 else "")


def has_tokens(module: nn.Module) -> bool:
    """Return whether a network may have tokens, by its attributes alone."""
    of_timm = hasattr(module, "num_prefix_tokens") and hasattr(module, "forward_features")
    return of_timm or _is_of_torchvision(module) or has_class_token(module)


def has_class_token(module: nn.Module) -> bool:
    """Return whether a network has a class token, by the names of its parameters."""
    return any(name.rpartition(".")[2] in CLASS_TOKENS for name, _ in module.named_parameters())


def pooled_tokens(tokens: Tensor, pooling: Pooling, norm: Callable[[Tensor], Tensor] | None = None) -> Tensor:
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
    norm = module.get_submodule(pooling.norm) if pooling.norm else None

    def remember(part: nn.Module, inputs: Any, output: Any) -> None:
        tokens = _first(output)
        if tokens is not None:
            given[:] = [tokens.clone()]  # it may be overwritten

    def features(part: nn.Module, inputs: Any, output: Any) -> Tensor:
        if not given:
            raise RequestError(f"layer '{pooling.layer}' gives no tokens in this forward pass")
        tokens = given.pop()
        return pooled_tokens(tokens, pooling, part.get_submodule(pooling.norm) if norm is not None else None)

    module.get_submodule(pooling.layer).register_forward_hook(remember)
    module.register_forward_hook(features)
    return module


def _traced(module: nn.Module, images: Tensor) -> tuple[Any, list[tuple[str, Tensor]], list[tuple[str, int]]]:
    """Return the last tokens, the outputs [n t c] of layers in order, and the norms of vectors after them."""
    outputs: list[tuple[str, Tensor]] = []
    norms: list[tuple[str, int]] = []
    handles = []

    def hook(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def fire(part: nn.Module, inputs: Any, output: Any) -> None:
            found = _first(output)
            if found is None:
                return
            if found.ndim == 3:
                outputs.append((name, found.clone()))
                norms.clear()
            elif found.ndim == 2 and "norm" in type(part).__name__.lower():
                norms.append((name, found.shape[1]))

        return fire

    try:
        for name, part in module.named_modules():
            if name:
                handles.append(part.register_forward_hook(hook(name)))
        output = module(images.clone())
    finally:
        for handle in handles:
            handle.remove()
    tokens = getattr(output, "last_hidden_state", None)
    if _is_of_torchvision(module):
        tokens = next((each for name, each in reversed(outputs) if name == "encoder"), None)
    elif tokens is None and hasattr(module, "num_prefix_tokens") and hasattr(module, "forward_features"):
        of_timm: Callable[[Tensor], Any] = module.forward_features  # type: ignore[assignment]
        tokens = of_timm(images.clone())
    return tokens, outputs, norms


def _prefix(module: nn.Module, images: Tensor, tokens: Tensor) -> int | None:
    """Return how many tokens come before those of patches; None if that is not known."""
    if isinstance(own := getattr(module, "num_prefix_tokens", None), int):
        return own if own < tokens.shape[1] else None
    patches = next(
        (
            part
            for part in module.modules()
            if isinstance(part, nn.Conv2d) and part.kernel_size == part.stride and min(part.stride) > 1
        ),
        None,
    )
    if patches is None:
        return None
    height, width = (size // step for size, step in zip(images.shape[2:], patches.stride, strict=True))
    count = tokens.shape[1] - height * width
    return count if 0 <= count < tokens.shape[1] else None


def _is_of_torchvision(module: nn.Module) -> bool:
    return isinstance(getattr(module, "class_token", None), Tensor) and isinstance(
        getattr(module, "encoder", None), nn.Module
    )


def _first(output: Any) -> Tensor | None:
    """Return an output if it is a tensor, the last hidden state of several, or the first of a tuple."""
    found = getattr(output, "last_hidden_state", output)
    while isinstance(found, tuple | list) and found:
        found = found[0]
    return found if isinstance(found, Tensor) else None
