"""What the authors released: 72 ResNet-50s in a bucket, and how each of our objectives names theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STUDY = "kornblith2021"
"""The study that measures them, and their name for `penultimate data get`."""
BUCKET = "gs://gresearch/loss_functions_transfer/checkpoints"
SEEDS = range(8)
OUTPUTS = 1001
"""The outputs of a network: a background class that no image has, then the 1,000 classes of ImageNet."""
GIGABYTES = 72 * 2 * 25.6e6 * 4 / 1e9
"""The least size of all checkpoints: 25.6 million weights and their averages, of 4 bytes each."""
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BACKBONE = "resnet50(pool='same')"
INTERPOLATION = "legacy_bicubic"

LOSSES = {
    "softmax": "softmax",
    "label_smoothing": "label_smoothing",
    "sigmoid": "sigmoid",
    "extra_final_layer_l2": "final_layer_l2(form='released')",
    "dropout": "dropout",
    "logit_penalty": "logit_penalty(form='released')",
    "logit_normalization": "logit_norm(form='released')",
    "cosine_softmax": "cosine_softmax(form='released')",
    "squared_error": "squared_error(form='released')",
}
"""The folder of each objective in the bucket, and its spec here, in the order of the paper's tables."""


@dataclass(frozen=True)
class Release:
    """One of the authors' networks: the folder of its loss, its spec here, and its seed."""

    loss: str
    objective: str
    seed: int

    @property
    def checkpoint(self) -> Path:
        """The prefix of its checkpoint's files, relative to the folder of all checkpoints."""
        return Path(self.loss) / f"seed{self.seed}" / "model.ckpt"

    @property
    def file(self) -> str:
        """The name of its converted weights."""
        return f"{self.loss}-{self.seed}.safetensors"


def releases() -> Iterator[Release]:
    """Yield the 72 networks, objective by objective."""
    for loss, objective in LOSSES.items():
        for seed in SEEDS:
            yield Release(loss, objective, seed)


def download_command(folder: Path) -> str:
    """Return the command of Google's client that downloads every checkpoint into a folder."""
    return f"gcloud storage cp -r {BUCKET} '{folder}'"
