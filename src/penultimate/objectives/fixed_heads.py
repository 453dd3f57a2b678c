"""Fixed heads: final layers whose weight is constructed, not trained; the logits are W x + b.

A plug-in is a function `f(num_classes, num_features, generator, *, hyperparameter=default)` that returns the
weight [k m]. Whatever it draws comes from the generator, which follows from the network's seed.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.errors import RequestError


def simplex_etf(
    num_classes: int, num_features: int, generator: torch.Generator, *, scale: float = 1.0
) -> Float[Tensor, "k m"]:
    """Return a simplex equiangular tight frame: rows of length `scale` with cosines of -1/(K - 1).

    W = scale sqrt(K / (K - 1)) Q R,   Q [k k-1]: orthonormal columns that sum to 0,   R [k-1 m]: orthonormal
    rows, drawn at random

    K vectors in fewer than K - 1 dimensions cannot be as far apart, so M >= K - 1 is needed: raise
    RequestError for fewer features.

    >>> weight = simplex_etf(3, 4, torch.Generator().manual_seed(0))
    >>> (weight @ weight.T).round(decimals=4).tolist()
    [[1.0, -0.5, -0.5], [-0.5, 1.0, -0.5], [-0.5, -0.5, 1.0]]

    Zhu et al., NeurIPS 2021.
    """
    least = num_classes - 1
    if num_features < least:
        raise RequestError(
            f"simplex_etf: {num_classes} classes need {least} features or more, and the head is given"
            f" {num_features}; a projector widens them: simplex_etf + projector(depth=1, width={least})"
        )
    drawn = torch.randn(num_features, least, generator=generator, dtype=torch.float64)
    basis, upper = torch.linalg.qr(drawn)
    rows = (basis * upper.diagonal().sign()).T  # the signs of a factorisation are the library's choice
    # Helmert's contrasts: column j sets class j + 1 against all before it.
    contrasts = torch.ones(num_classes, least, dtype=torch.float64).triu()
    places = torch.arange(least)
    contrasts[places + 1, places] = -(places + 1.0).double()
    columns = contrasts / contrasts.square().sum(0).sqrt()
    frame: Tensor = scale * (num_classes / least) ** 0.5 * columns @ rows
    return frame.float()
