"""Weights that a library downloads: whether they are stored here or their host can be reached.

Without this check a library tries for most of a minute, for each network, to reach a host that is
unreachable.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from penultimate.errors import RequestError, legible

PATIENCE = 4.0
"""The timeout in seconds for a connection to a host, which is tried once per process."""


@contextlib.contextmanager
def at_hand(kind: str, name: str, weights: str | bool) -> Iterator[None]:
    """Let a library load stored weights offline, and download others if their host can be reached.

    Raises RequestError, after one short attempt, if the host cannot be reached. The attempt uses the proxy
    and the mirror that the environment names, as the library itself does.
    """
    found = _of_timm(name) if kind == "timm" else _of_torchvision(name, weights)
    if found is not None and found[0]:
        with offline():
            yield
        return
    if found is not None and (why := unreachable(found[1])):
        raise RequestError(
            f"the weights of {kind}:{name} cannot be downloaded: {why}; give a file,"
            f" {kind}:{name}(weights='FILE'), or pretrained=False for random weights"
        )
    yield


def expect_at_hand(what: str, repository: str, config: str, weights: tuple[str, ...]) -> bool:
    """Return whether a repository of Hugging Face's hub is stored here; raise RequestError if it is neither
    stored nor can be reached.

    It is stored if its configuration is, and one of the files of weights, as far as these are asked for.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    def is_here(file: str) -> bool:
        return isinstance(try_to_load_from_cache(repository, file), str)

    if (not config or is_here(config)) and (not weights or any(map(is_here, weights))):
        return True
    where = f"the files of '{repository}' in '{constants.HF_HUB_CACHE}'"
    if constants.HF_HUB_OFFLINE:
        raise RequestError(_not_here(what, "HF_HUB_OFFLINE forbids it", where))
    expect_reachable(what, str(constants.ENDPOINT), where)
    return False


def expect_reachable(what: str, url: str, where: str) -> None:
    """Raise RequestError if the host of an address cannot be reached; `where` says what was looked for."""
    if why := unreachable(url):
        raise RequestError(_not_here(what, why, where))


def _not_here(what: str, why: str, where: str) -> str:
    kind = what.partition(":")[0]
    return (
        f"the weights of {what} cannot be downloaded: {why}. Looked for were {where}, and a folder of this"
        f" name; a folder works without a network: {kind}:FOLDER"
    )


def unreachable(url: str) -> str:
    """Return why the host of an address, or its proxy, cannot be reached, or an empty string if it can."""
    target = urllib.parse.urlsplit(url)
    host = target.hostname or ""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(target.scheme) or proxies.get("all", "")
    through = bool(proxy) and not urllib.request.proxy_bypass(host)
    if through:
        target = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    try:
        port = target.port or (80 if through or target.scheme == "http" else 443)
    except ValueError:
        return f"'{legible(target.netloc)}' has no valid port"
    why = _refused(target.hostname or "", port)
    via = f" (the proxy for {host})" if through else ""
    return f"{legible(target.hostname)}, port {port}{via}, cannot be reached ({why})" if why else ""


@functools.cache
def _refused(host: str, port: int) -> str:
    """Return why no connection is made; name look-up has no time limit of its own, so it is not attempted."""
    said = [f"no answer in {PATIENCE:g} seconds"]

    def connect() -> None:
        try:
            socket.create_connection((host, port), PATIENCE).close()
            said[0] = ""
        except TimeoutError:
            pass
        except (OSError, UnicodeError) as error:
            said[0] = legible(getattr(error, "strerror", None) or error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return said[0]


def _of_timm(name: str) -> tuple[bool, str] | None:
    """Return whether weights of timm are stored here, and their origin; None if nothing is downloaded."""
    try:
        from huggingface_hub import constants, try_to_load_from_cache
        from timm.models import get_pretrained_cfg, parse_model_name

        place, rest = parse_model_name(name)
        known = None if place else get_pretrained_cfg(name)
    except (ImportError, RuntimeError, ValueError):
        return None
    if place not in (None, "", "hf-hub") or (not place and known is None):
        return None
    if known is not None and (known.file or known.state_dict):
        return None
    of_hub = rest if known is None else known.hf_hub_id
    if not of_hub:
        url = str(getattr(known, "url", "") or "")
        return (_is_loaded(url), url) if url else None
    repository, _, revision = str(of_hub).partition("@")
    file = getattr(known, "hf_hub_filename", None)
    files = [file] if file else ["model.safetensors", "pytorch_model.bin"]
    files += [f"{Path(each).stem}.safetensors" for each in files if not each.endswith(".safetensors")]

    def is_here(each: str) -> bool:
        return isinstance(try_to_load_from_cache(repository, each, revision=revision or None), str)

    here = any(map(is_here, files)) and (not place or is_here("config.json"))
    return (True, "") if here or constants.HF_HUB_OFFLINE else (False, str(constants.ENDPOINT))


def _of_torchvision(name: str, weights: str | bool) -> tuple[bool, str] | None:
    try:
        from torchvision import models

        known = models.get_model_weights(name)
        url = str((known.DEFAULT if weights is True else known[str(weights)]).url)
    except (ImportError, KeyError, ValueError, AttributeError):
        return None
    return _is_loaded(url), url


def _is_loaded(url: str) -> bool:
    """Return whether torch.hub has already stored the file from an address."""
    import torch

    return Path(torch.hub.get_dir(), "checkpoints", Path(urllib.parse.urlsplit(url).path).name).is_file()


@contextlib.contextmanager
def offline() -> Iterator[None]:
    """Make huggingface_hub use its stored files without asking whether there is a newer version."""
    try:
        from huggingface_hub import constants
    except ImportError:
        yield
        return
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
