"""Shape aliases and the two kinds of arrays that every public function takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

    Array: TypeAlias = "torch.Tensor | npt.NDArray[np.generic]"
