"""The authors' TensorFlow checkpoints as safetensors and a table: `penultimate data get kornblith2021`.

A checkpoint names its variables by the order in which the network was built (`conv2d`, `conv2d_1`, ...). That
order, with the average of the weights that the authors evaluated, is all that the conversion knows.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import safetensors
import torch
from safetensors.torch import save

from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import atomic_write, given_path, make_folder
from penultimate.networks.released.catalogue import (
    BACKBONE,
    GIGABYTES,
    INTERPOLATION,
    LOSSES,
    MEAN,
    OUTPUTS,
    STD,
    Release,
    download_command,
    releases,
)

BLOCKS = (3, 4, 6, 3)
"""The blocks of ResNet-50's four groups."""
AVERAGE = "/ExponentialMovingAverage"
NORM = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
SOURCE = "source_sha256"
COLUMNS = ("file", "objective", "seed", "backbone", "mean", "std", "interpolation")
Say = Callable[[str], None]


class Reader(Protocol):
    """What `tf.train.load_checkpoint` returns."""

    def get_variable_to_shape_map(self) -> Mapping[str, Any]: ...

    def get_tensor(self, name: str) -> np.ndarray: ...


def get(folder: Path | str, say: Say, outputs: int = OUTPUTS) -> Path:
    """Convert every checkpoint below a folder that is not converted yet; return the table `networks.csv`.

    The checkpoints are expected as the bucket has them, `checkpoints/LOSS/seedN/model.ckpt*`, and are left as
    they are. A network that is missing is named, and the table has the others. Raise RequestError if none is
    there (the message has the command that downloads them), without TensorFlow, and for SavedModels; raise
    DamagedFileError for a file that is incomplete, once all others are converted.
    """
    folder = given_path(folder, "--to", home=True)
    checkpoints, networks = folder / "checkpoints", folder / "networks"
    present = [release for release in releases() if _files(checkpoints / release.checkpoint)]
    if not present:
        raise RequestError(_nothing_there(folder))
    make_folder(networks, "--to")
    converted: list[Release] = []
    damaged: list[str] = []
    for release in present:
        prefix, target = checkpoints / release.checkpoint, networks / release.file
        try:
            if not _is_converted(prefix, target):
                _convert(release, prefix, target, outputs)
                say(f"{release.loss}, seed {release.seed}: converted")
            converted.append(release)
        except DamagedFileError as error:
            damaged.append(str(error))
            say(str(error))
    table = folder / "networks.csv"
    atomic_write(table, _table(converted).encode())
    for loss in LOSSES:
        missing = [str(one.seed) for one in releases() if one.loss == loss and one not in converted]
        if missing:
            say(f"{loss}: no network of seed {', '.join(missing)}; a study runs with the others")
    say(f"{len(converted)} of {len(list(releases()))} networks are in '{table}'")
    if damaged:
        raise DamagedFileError(damaged[0])
    return table


def convert(
    reader: Reader, loss: str, place: str = "the checkpoint", outputs: int = OUTPUTS
) -> dict[str, torch.Tensor]:
    """Return the weights of a checkpoint under this package's names: the average that the authors evaluated.

    Kernels [h w in out] become [out in h w]. Output 0, a background class that no image has, is dropped. For
    `logit_normalization` it is kept apart, because the norm of the logits counts it. For `sigmoid` the
    released outputs are z - log K with the K of all outputs, so log K is taken off the bias.

    Raise RequestError if a variable or its average is missing, and for another number of outputs; raise
    DamagedFileError if a variable cannot be read.
    """
    shapes = reader.get_variable_to_shape_map()
    if "dense/bias" in shapes and not any(name.endswith(AVERAGE) for name in shapes):
        raise RequestError(
            f"{place} holds no average of the weights (no variable ends with {AVERAGE}), which is what the"
            " authors evaluated: take the checkpoint of their bucket"
        )

    def variable(name: str) -> torch.Tensor:
        if name + AVERAGE not in shapes:
            raise RequestError(f"{place} has no variable {name + AVERAGE}, as the authors' ResNet-50s have")
        try:
            values = reader.get_tensor(name + AVERAGE)
        except Exception as error:  # TensorFlow has a class of its own for each kind of damage
            raise DamagedFileError(
                f"{place} is incomplete, {name + AVERAGE} cannot be read ({error}): download it again"
            ) from None
        return torch.from_numpy(np.array(values, np.float32))

    tensors: dict[str, torch.Tensor] = {}
    for number, (conv, norm) in enumerate(layers_in_order()):
        suffix = f"_{number}" if number else ""
        kernel = variable(f"conv2d{suffix}/kernel")
        tensors[f"backbone.{conv}.weight"] = kernel.permute(3, 2, 0, 1).contiguous()
        for theirs, ours in NORM.items():
            tensors[f"backbone.{norm}.{ours}"] = variable(f"batch_normalization{suffix}/{theirs}")
        tensors[f"backbone.{norm}.num_batches_tracked"] = torch.tensor(0)
    kernel_name = "dense/normalized_kernel" if loss == "cosine_softmax" else "dense/kernel"
    weight, bias = variable(kernel_name).T.contiguous(), variable("dense/bias")
    if len(weight) != outputs or len(bias) != outputs:
        raise RequestError(
            f"{place} has {len(weight):,} outputs; {outputs:,} are expected, a background class before the"
            f" {outputs - 1:,} classes"
        )
    if loss == "logit_normalization":
        tensors["objective.head.background"] = torch.cat([weight[0], bias[:1]])
    if loss == "sigmoid":
        bias = bias - math.log(outputs)
    tensors["objective.head.weight"], tensors["objective.head.bias"] = weight[1:].clone(), bias[1:].clone()
    return tensors


def layers_in_order() -> Iterator[tuple[str, str]]:
    """Yield the convolution and the norm of every layer, by torchvision's names, as TensorFlow built them.

    In the first block of a group the projection of the shortcut comes before the block's three convolutions.
    """
    yield "conv1", "bn1"
    for group, blocks in enumerate(BLOCKS, 1):
        for block in range(blocks):
            place = f"layer{group}.{block}"
            if block == 0:
                yield f"{place}.downsample.0", f"{place}.downsample.1"
            for number in (1, 2, 3):
                yield f"{place}.conv{number}", f"{place}.bn{number}"


def open_checkpoint(prefix: Path) -> Reader:
    """Return a reader of a TensorFlow checkpoint; raise RequestError without TensorFlow."""
    with contextlib.suppress(ImportError):
        import torchvision  # noqa: F401  (loaded after TensorFlow, its copy of LLVM ends the process)
    try:
        import tensorflow
    except ImportError:
        raise RequestError(
            "the authors' checkpoints are read by TensorFlow: pip install 'penultimate[kornblith2021]'"
        ) from None
    try:
        reader: Reader = tensorflow.train.load_checkpoint(str(prefix))
    except Exception as error:  # TensorFlow has a class of its own for each kind of damage
        raise DamagedFileError(f"'{prefix}' is no complete checkpoint ({error}): download it again") from None
    return reader


def _convert(release: Release, prefix: Path, target: Path, outputs: int) -> None:
    """Write the converted weights of a checkpoint, with the sha256 of its files."""
    digest = hashlib.sha256()
    for file in _files(prefix):
        with file.open("rb") as content:
            while part := content.read(1 << 24):
                digest.update(part)
    tensors = convert(open_checkpoint(prefix), release.loss, f"'{prefix}'", outputs)
    atomic_write(target, save(tensors, {SOURCE: digest.hexdigest()}))


def _is_converted(prefix: Path, target: Path) -> bool:
    """Return whether a file was converted from a checkpoint since the checkpoint was written."""
    try:
        newest = max(file.stat().st_mtime for file in _files(prefix))
        with safetensors.safe_open(target, "pt") as file:
            return SOURCE in (file.metadata() or {}) and target.stat().st_mtime >= newest
    except (OSError, safetensors.SafetensorError):
        return False


def _files(prefix: Path) -> list[Path]:
    """Return the files of a checkpoint, or none if its index is missing."""
    files = sorted(prefix.parent.glob(f"{prefix.name}.*"))
    return files if prefix.with_name(f"{prefix.name}.index") in files else []


def _table(releases: Iterable[Release]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    mean, std = (" ".join(map(str, values)) for values in (MEAN, STD))
    for release in releases:
        file = f"networks/{release.file}"
        writer.writerow([file, release.objective, release.seed, BACKBONE, mean, std, INTERPOLATION])
    return text.getvalue()


def _nothing_there(folder: Path) -> str:
    command = download_command(folder)
    if next(folder.rglob("saved_model.pb"), None) is not None:
        return (
            f"'{folder}' holds SavedModels, whose variables have no names to go by; the checkpoints are"
            f" needed (at least {GIGABYTES:.0f} GB): {command}"
        )
    return (
        f"there are no checkpoints of the authors in '{folder / 'checkpoints'}'. All 72 take"
        f" at least {GIGABYTES:.0f} GB, and Google's client downloads them: {command}"
    )
