"""Features of image files from several networks in one pass: streamed to disk, and resumed after a kill."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.passes import REFUSALS, message_of
from penultimate.checks import one_of, whole_number
from penultimate.data.disk.loading import Decoded, decoded
from penultimate.data.listing import Listing
from penultimate.errors import RequestError, expect_apart
from penultimate.features.bank import FeatureBank
from penultimate.features.writing import BankWriter, Precision
from penultimate.files import file_name, given_path, make_folder
from penultimate.locks import BusyError, locked
from penultimate.networks.protocol import Network
from penultimate.networks.state import digest_of_modules
from penultimate.progress import Advance

LOCK = ".lock"
PIXELS = 1 << 20
"""The number of pixels that go through a network on the CPU at once. The outputs of its layers then fit into
memory that is reused; with more pixels, the system clears new pages at every layer (a fifth of a ViT-tiny's
time)."""


def extract_files(
    networks: Mapping[str, Network],
    listing: Listing,
    folder: Path | str,
    *,
    batch_size: int = 64,
    workers: int | None = None,
    precision: Precision = "float32",
    upright: bool = True,
    identities: Mapping[str, str] | None = None,
    images: str = "",
) -> dict[str, FeatureBank]:
    """Return the features of a listing's images as banks on disk, from all networks in one decoding pass.

    Each bank is a folder FOLDER/NAME, memory-mapped when it is read (`FeatureBank.load`), so no more than a
    few batches are ever in memory. A call that was killed resumes where it stopped, to within seconds. A
    complete bank is read back at once. A bank whose images, network or settings have changed is made again,
    with a warning. Networks with the same resizing share the resized images too.

    Rows are in the order of the listing, with its labels and ids. An image that cannot be read has no row; a
    warning and `provenance["left_out"]` count and name such images. The number of `workers` (None: one for
    each core; 0: this process decodes) does not affect the results. Rotations in EXIF data are applied,
    unless `upright` is False. `identities` identify each network, by default by the sha256 of its
    architecture and weights. `images` identifies the listing, by default by its digest, for which every file
    is read.

    A network whose features are not finite is given up, and the others continue; at the end RequestError
    names it and the first such images. Raise RequestError also if no image can be read, and PenultimateError
    if a worker is killed.
    """
    whole_number(batch_size, "batch_size", 1)
    one_of(precision, "precision", ("float32", "float16"))
    if not networks or not len(listing):
        raise RequestError(f"{len(networks)} networks and {len(listing)} images; at least one of each")
    expect_apart("networks", networks)
    root = given_path(folder, "folder")
    places = {name: root / file_name(name) for name in networks}
    common = {
        "images": images or listing.digest,
        "precision": precision,
        "batch_size": batch_size,
        "upright": upright,
    }
    with _locked(root), contextlib.ExitStack() as stack:
        writers: dict[str, BankWriter] = {}
        for name, network in networks.items():
            preparation = json.loads(json.dumps(dataclasses.asdict(network.preparation)))
            weights = identities[name] if identities else weights_digest(network)
            identity = {**common, "network": weights, "preparation": preparation}
            writers[name] = BankWriter(places[name], identity, precision)
            stack.callback(writers[name].close)
            if writers[name].changed:
                warnings.warn(
                    f"the bank of '{name}' in '{root}' is made again: {writers[name].changed}",
                    UserWarning,
                    stacklevel=2,
                )
        with torch.inference_mode():
            failed = _pass(networks, writers, listing, batch_size, workers, upright)
        banks = {
            name: _finished(writer, listing, {"network": name, **writer.identity})
            for name, writer in writers.items()
            if name not in failed
        }
    if failed:
        finished = f"; the banks of {', '.join(banks)} are kept in '{root}'" if banks else ""
        raise RequestError("; ".join(failed.values()) + finished)
    _warn_of_images(listing, next(iter(banks.values())).provenance)
    return banks


def weights_digest(network: Network) -> str:
    """Return the sha256 of a network's printed architecture and of the weights of its body and head."""
    others = [part for part in vars(network).values() if isinstance(part, nn.Module)]
    modules = [network.body, *(part for part in others if part is not network.body)]
    return digest_of_modules(modules, others={"head": network.head_weight} if network.class_names else {})


def _pass(
    networks: Mapping[str, Network],
    writers: Mapping[str, BankWriter],
    listing: Listing,
    batch_size: int,
    workers: int | None,
    upright: bool,
) -> dict[str, str]:
    """Bring every incomplete bank to the end of the listing; return the error of each network given up."""
    failed: dict[str, str] = {}
    begun = {name: writer for name, writer in writers.items() if writer.bank is None}
    start = min((writer.position for writer in begun.values()), default=len(listing))
    preparations = [networks[name].preparation for name in begun]
    progress = Advance("features", "images", len(listing) - start)
    with contextlib.closing(decoded(listing, preparations, batch_size, workers, start, upright)) as batches:
        for batch in batches:
            for name, writer in begun.items():
                if writer.position != batch.start or name in failed:
                    continue
                try:
                    _take(networks[name], writer, batch, listing)
                except RequestError as error:
                    failed[name] = f"network '{name}': {error}"
                    writer.save()
            if len(failed) == len(begun):
                break
            progress.to(batch.stop - start)
    return failed


def _take(network: Network, writer: BankWriter, batch: Decoded, listing: Listing) -> None:
    """Add a batch to a bank; raise RequestError for features that are not finite numbers [n m]."""
    arrays: dict[str, np.ndarray] = {}
    if len(batch.rows):
        pictures = batch.prepared(network.preparation)
        on_cpu = device_of(network.body).type == "cpu"
        parts = math.ceil(pictures[..., 0].numel() / PIXELS) if on_cpu else 1
        rows = np.array_split(batch.rows, parts)
        found = [
            _outputs(network, part, [listing.name(row) for row in of_part])
            for part, of_part in zip(pictures.tensor_split(parts), rows, strict=True)
        ]
        arrays = {what: np.concatenate([each[what] for each in found]) for what in found[0]}
    left_out = [(row, listing.name(row), why) for row, why in batch.left_out]
    remarks = [(remark, listing.name(row)) for row, remark in batch.remarks]
    writer.add(batch.stop, arrays, left_out, remarks)


def _outputs(network: Network, images: Tensor, names: list[str]) -> dict[str, np.ndarray]:
    """Return the checked features of images with these names, and the logits if there are any."""
    try:
        outputs = {"features": network.features(images)}
        if network.class_names:
            outputs["logits"] = network.logits(outputs["features"])
    except REFUSALS as error:
        raise RequestError(f"it refused images {list(images.shape)}: {message_of(error)}") from error
    for what, output in outputs.items():
        if not isinstance(output, Tensor) or output.ndim != 2 or len(output) != len(names):
            gave = list(output.shape) if isinstance(output, Tensor) else f"a {type(output).__name__}"
            raise RequestError(f"{what} are [n m], here [{len(names)} m]; it gave {gave}")
        wrong = (~output.isfinite()).any(1).nonzero()[:, 0].tolist()
        if wrong:
            first = ", ".join(f"'{names[place]}'" for place in wrong[:3])
            raise RequestError(f"its {what} are not finite for {len(wrong)} images of a batch ({first})")
    return {what: output.float().cpu().numpy() for what, output in outputs.items()}


def _finished(writer: BankWriter, listing: Listing, provenance: dict[str, Any]) -> FeatureBank:
    if writer.bank is not None:
        return writer.bank
    if not writer.rows:
        _, name, why = writer.left_out[0]
        raise RequestError(f"none of {len(listing)} images can be read; the first is '{name}': {why}")
    present = np.ones(len(listing), bool)
    present[[row for row, _, _ in writer.left_out]] = False
    provenance["class_names"] = list(listing.class_names)
    return writer.finish(listing.labels[present], listing.ids[present], provenance)


def _warn_of_images(listing: Listing, provenance: Mapping[str, Any]) -> None:
    """Warn about the images that were left out, and those of which only a part was read."""
    found = {remark: (count, first) for remark, (count, first) in provenance["remarks"].items()}
    if left_out := provenance["left_out"]:
        _, name, why = left_out[0]
        found["cannot be read and have no row"] = (len(left_out), f"{name}: {why}")
    for what, (count, first) in found.items():
        warnings.warn(
            f"{count} of {len(listing)} images {what}; the first is {first}", UserWarning, stacklevel=3
        )


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Lock a folder against a second process that would write the same banks."""
    make_folder(root, "folder")
    try:
        with locked(root / LOCK):
            yield
    except BusyError:
        raise RequestError(f"another process writes banks to '{root}'; wait for it") from None
