"""What a library says when it cannot load a network, as an error of ours."""

from __future__ import annotations

import re

from penultimate.errors import RequestError, legible, shortened
from penultimate.userfile import first_line


def said_by(error: Exception, what: str) -> RequestError:
    """Return the error of a library as ours, with a hint where a hub or a server could not be reached."""
    said = shortened(legible(first_line(error) or type(error).__name__), 300)
    kinds = " ".join(type(each).__name__ for each in (error, error.__cause__, error.__context__))
    offline = isinstance(error, OSError) or re.search("Connect|Timeout|URLError|Offline", kinds)
    hint = (
        "; offline, HF_HUB_OFFLINE=1 takes what was downloaded before, weights='FILE' a file, and"
        " pretrained=False draws the weights"
    )
    return RequestError(f"{what} cannot be loaded: {said}{hint if offline else ''}")
