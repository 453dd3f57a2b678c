"""The pooled outputs of a network's layers on some images, written to files as they are computed."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from penultimate.backbones.taps import pooled, tapped
from penultimate.data.images import Images
from penultimate.errors import RequestError
from penultimate.layers.observed import ObservedNetwork, evaluating
from penultimate.networks.protocol import Network


def pooled_layers(network: Network, images: Images, stem: Path, batch_size: int = 256) -> dict[str, Path]:
    """Write the pooled outputs of every residual block or stage to files, and return these in running order.

    Each file holds a .npy array [n c] of float32. There is one pass over the images. A block's map is pooled
    as soon as the block has run (`backbones.taps.pooled`) and written to the file STEM-NUMBER.tmp, so only
    one batch is in memory, however many images and blocks there are. Raise RequestError if there are no
    images, and OSError if the disk is full.
    """
    watched = ObservedNetwork.of("0", network, None)
    files: dict[str, tuple[BinaryIO, int]] = {}
    paths: dict[str, Path] = {}
    with contextlib.ExitStack() as opened, torch.inference_mode(), evaluating(watched.module):
        for batch, rows in images.batches(batch_size):

            def write(layer: str, output: Tensor, first: int = int(rows[0])) -> None:
                features = pooled(output).float().cpu().numpy()
                if layer not in files:
                    paths[layer] = stem.with_name(f"{stem.name}-{len(files)}.tmp")
                    made = opened.enter_context(paths[layer].open("wb"))
                    shape = (len(images), features.shape[1])
                    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(made, header)
                    files[layer] = made, made.tell()
                file, start = files[layer]
                file.seek(start + first * features[0].nbytes)
                file.write(features.tobytes())

            with tapped(watched.layers, write):
                watched.run(batch)
    if not files:
        raise RequestError("no image to take the layers of a network on")
    return paths
