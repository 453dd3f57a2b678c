"""The interface of a network, wherever it comes from."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from penultimate.data.disk.preparation import Preparation


@runtime_checkable
class Network(Protocol):
    """A finished classifier in evaluation mode: uint8 images [n h w c] -> features [n m] -> logits [n k].

    class_names   names of the classes of its logits; empty if it has no usable final layer
    body          the module whose layers are observed; it returns the penultimate features, which every
                  measurement of features sees: class separation, transfer, CKA; a projector comes after them
    head_weight   the weight of the final layer [k m]; None without one, and with a projector before it
    preparation   how image files are resized and cropped for it; it normalises them itself

    Images may be on any device; the results are on the network's own device.
    """

    @property
    def class_names(self) -> tuple[str, ...]: ...
    @property
    def body(self) -> nn.Module: ...
    @property
    def head_weight(self) -> Tensor | None: ...
    @property
    def preparation(self) -> Preparation: ...
    def prepared(self, images: Tensor) -> Tensor:
        """Return images as the body expects them, float [n c h w]."""

    def features(self, images: Tensor) -> Tensor:
        """Return the penultimate features, float32 [n m]."""

    def logits(self, features: Tensor) -> Tensor:
        """Return the logits [n k] of features [n m]."""

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """Return the logarithms of the class probabilities [n k]."""
