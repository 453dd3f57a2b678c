"""Networks with tokens, evaluated once for each way in which their tokens become features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from penultimate.backbones.tokens import has_class_token, has_tokens
from penultimate.errors import RequestError, unknown
from penultimate.networks.architectures import hub_of
from penultimate.networks.building import kept, obtain
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
        has_own = source.settings.keys() & {"layer", "pooling"}
        possible = () if has_own else _possible(source)
        found |= {f"{name} {how}": with_settings(text, pooling=how) for how in asked if how in possible}
    if len(found) == len(sources):
        raise RequestError(
            f"--poolings is of networks with tokens, such as timm:vit_tiny_patch16_224, and none of"
            f" {', '.join(sources)} is known to have any; of a network from a file, say its pooling:"
            " 'FILE.py:FUNCTION(pooling='mean')'"
        )
    return found


def _possible(source: Source) -> tuple[str, ...]:
    """Return the poolings that a network can have, as far as that is known without its weights."""
    module = kept(source.name) if source.kind == LIVE else None
    if source.kind == "hf":
        hub_of("hf").library()  # computes with numbers while it is imported
    for place in ("meta", "cpu") if source.kind in ("timm", "torchvision", "hf") else ():
        try:
            with torch.device(place):
                module, _ = obtain(Source(source.kind, source.name, {"pretrained": False}))
                break
        except RequestError:
            return ()  # its own step says why it cannot be loaded
        except Exception:  # some networks compute with their initial weights while they are built
            continue
    if module is None or not has_tokens(module):
        return ()
    return POOLINGS if has_class_token(module) else tuple(how for how in POOLINGS if "cls" not in how)
