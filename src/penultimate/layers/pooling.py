"""The pooled output of every layer of a network on some images, written to files as it comes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from penultimate.backbones.taps import pooled, tapped
from penultimate.data.images import Images
from penultimate.errors import RequestError
from penultimate.layers.observed import ObservedNetwork, evaluating
from penultimate.networks.protocol import Network


def pooled_layers(network: Network, images: Images, stem: Path, batch_size: int = 256) -> dict[str, Path]:
    """Files [n c] of numbers (.npy), float32, of every residual block or stage, in running order.

    One pass over the images. A block's map is pooled as soon as the block has run (`backbones.taps.pooled`)
    and written to the file STEM-NUMBER.tmp, so the memory is that of one batch, however many images and
    blocks there are. Raises RequestError where there are no images.
    """
    watched = ObservedNetwork.of("0", network, None)
    files: dict[str, np.memmap] = {}
    paths: dict[str, Path] = {}
    with torch.inference_mode(), evaluating(watched.module):
        for batch, rows in images.batches(batch_size):

            def write(layer: str, output: Tensor, rows: np.ndarray = rows) -> None:
                features = pooled(output).cpu().numpy()
                if layer not in files:
                    paths[layer] = stem.with_name(f"{stem.name}-{len(files)}.tmp")
                    shape = (len(images), features.shape[1])
                    files[layer] = np.lib.format.open_memmap(paths[layer], "w+", np.float32, shape)
                files[layer][rows] = features

            with tapped(watched.layers, write):
                watched.run(batch)
    if not files:
        raise RequestError("no image to take the layers of a network on")
    for file in files.values():
        file.flush()
    return paths
