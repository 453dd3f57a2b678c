"""Networks with tokens, evaluated once for each way in which their tokens become features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from penultimate.backbones.tokens import has_class_token, has_tokens
from penultimate.errors import RequestError, unknown
from penultimate.networks.architectures import create, expect_known, hub_of, options
from penultimate.networks.building import kept
from penultimate.networks.sources import LIVE, POOLINGS, Source, read_source, with_settings


def with_poolings(sources: Mapping[str, str], poolings: str | Sequence[str]) -> dict[str, str]:
    """Return the sources by name, each with tokens followed by one for each pooling that it can have.

    A network that has a pooling or a layer of its own, and one without tokens, is there once. Raise
    RequestError for an unknown pooling, and if no network has tokens.

    >>> found = with_poolings({"vit": "timm:test_vit", "net": "timm:test_resnet"}, ("cls", "patches:mean"))
    >>> list(found), found["vit cls"]
    (['vit', 'vit cls', 'vit patches:mean', 'net'], "timm:test_vit(pooling='cls')")
    """
    asked = POOLINGS if poolings == "all" else (poolings,) if isinstance(poolings, str) else tuple(poolings)
    for how in asked:
        if how not in POOLINGS:
            raise unknown("pooling", how, (*POOLINGS, "all"))
    found: dict[str, str] = {}
    for name, text in sources.items():
        found[name] = text
        source = read_source(text)
        possible = (
            () if source.settings.keys() & {"layer", "pooling"} else _possible(_without_weights(source))
        )
        found |= {f"{name} {how}": with_settings(text, pooling=how) for how in asked if how in possible}
    if len(found) == len(sources):
        raise RequestError(
            f"--poolings is of networks with tokens, such as timm:vit_tiny_patch16_224, and none of"
            f" {', '.join(sources)} is known to have any; of a network from a file, say its pooling:"
            " 'FILE.py:FUNCTION(pooling='mean')'"
        )
    return found


def expect_pooling(source: Source, how: str) -> None:
    """Raise RequestError for a network of a library without the tokens that a pooling needs."""
    possible = _possible(_without_weights(source))
    if how not in possible:
        raise RequestError(
            f"pooling='{how}' is of networks with tokens, such as timm:vit_tiny_patch16_224, and 'cls' of"
            f" those with a class token; {source.kind}:{source.name} has"
            f" {'none' if not possible else 'no class token; mean and patches:mean need none'}"
        )


def _possible(module: nn.Module | None) -> tuple[str, ...]:
    if module is None or not has_tokens(module):
        return ()
    return POOLINGS if has_class_token(module) else tuple(how for how in POOLINGS if "cls" not in how)


def _without_weights(source: Source) -> nn.Module | None:
    """Return a network without its weights, as far as it can be had without running a user's file."""
    if source.kind == LIVE:
        return kept(source.name)
    if source.kind == "hf":
        hub = hub_of("hf")
        try:
            hub.expect(source)  # imports the library, which computes with numbers while it is imported
            with torch.device("meta"):
                found: nn.Module = hub.load(Source("hf", source.name, {"pretrained": False}))
        except RequestError:
            return None  # its own step says why it cannot be loaded
        return found
    if source.kind not in ("timm", "torchvision"):
        return None
    expect_known(source.kind, source.name)
    try:
        with torch.device("meta"):
            return create(source.kind, source.name, options(source))
    except RequestError:
        raise
    except Exception:  # some networks compute with their initial weights while they are built
        return create(source.kind, source.name, options(source))
