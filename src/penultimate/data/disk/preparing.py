"""`penultimate data prepare`: a data set's images resized once, by worker processes; resumed after a kill."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.cores import usable_cores
from penultimate.data.disk.loading import colours_of, in_order
from penultimate.data.disk.shrinking import shrunk
from penultimate.data.listing import Listing
from penultimate.data.readers.entries import ENTRIES
from penultimate.data.readers.opening import open_dataset
from penultimate.data.readers.prepared import MADE, SCHEMA, SHARD, Copy, file_of, read_copy, source_digest
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import (
    OtherVersionError,
    atomic_write,
    digest_bytes,
    digest_file,
    given_path,
    make_folder,
    read_sealed,
    write_sealed,
)
from penultimate.locks import BusyError, locked

QUALITY = 95
"""Of the JPEGs, unless another is asked for."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Packer:
    """Writes a file of images and, beside it, what is in it: what a worker is sent. A whole file is kept."""

    listing: Listing
    folder: Path
    split: str
    side: int
    quality: int
    origin: dict[str, Any]

    def __call__(self, shard: int) -> dict[str, Any]:
        path = self.folder / file_of(self.split, shard)
        beside = path.with_suffix(".json")
        rows = range(shard * SHARD, min((shard + 1) * SHARD, len(self.listing)))
        try:
            facts = read_sealed(beside, SCHEMA)
            is_ours = all(facts.get(key) == self.origin[key] for key in ("of", "side", "quality"))
            if is_ours and path.is_file() and digest_file(path) == facts["digest"]:
                return facts
        except (OSError, DamagedFileError, OtherVersionError):
            pass
        kept: list[int] = []
        sizes: list[tuple[int, int]] = []
        parts: list[bytes] = []
        left_out: list[list[str]] = []
        for row in rows:
            try:
                image = shrunk(colours_of(self.listing, row, upright=True)[0], self.side)
            except (DamagedFileError, RequestError) as error:
                left_out.append([self.listing.name(row), str(error)])
                continue
            kept.append(row)
            sizes.append((image.height, image.width))
            if self.quality:
                buffer = io.BytesIO()
                image.save(buffer, "JPEG", quality=self.quality)
                parts.append(buffer.getvalue())
            else:
                parts.append(image.tobytes())
        content = b"".join(parts)
        atomic_write(path, content)
        facts = {
            **self.origin,
            "digest": digest_bytes(content),
            "bytes": len(content),
            "rows": kept,
            "sizes": sizes,
            "lengths": [len(part) for part in parts],
            "left_out": left_out,
        }
        write_sealed(beside, facts, SCHEMA)
        return {**facts, "is_new": True}


def prepare(
    name: str,
    root: Path | str | None,
    to: Path | str,
    side: int,
    say: Say,
    quality: int = QUALITY,
    progress: Callable[[int], None] | None = None,
    workers: int | None = None,
) -> Copy:
    """Copy every image of a data set, its shorter side at `side` pixels, to a folder; say what came of it.

    A smaller image stays as it is. `quality` is the JPEGs'; 0: the bytes of pixels, several times as large.
    A call that was killed goes on; one on a whole copy checks every file, and mends what is damaged. Images
    that cannot be read are left out and named. Which worker does what changes nothing.

    Raises RequestError for a folder that holds another copy, and what `open_dataset` raises.
    """
    if side < 1:
        raise RequestError(f"--size is the shorter side in pixels, 1 or more, not {side}")
    folder = given_path(to, "--to", home=True)
    make_folder(folder)
    if workers is None:
        workers = usable_cores()
    try:
        with locked(folder / ".lock"):
            return _prepared(name, root, folder, side, quality, say, progress, workers)
    except BusyError:
        raise RequestError(f"another process prepares images in '{folder}'; wait for it") from None


def _prepared(
    name: str,
    root: Path | str | None,
    folder: Path,
    side: int,
    quality: int,
    say: Say,
    progress: Callable[[int], None] | None,
    workers: int,
) -> Copy:
    opened = open_dataset(name, root)
    listings: dict[str, Listing] = {}
    for split in opened.splits:
        try:
            listings[split] = opened.splits[split]
        except RequestError as error:
            say(f"{split}: not there, and not copied ({error})")
    if not listings:
        raise RequestError(f"{opened.title}: none of its splits is there")
    where = str(Path(name if root is None else root).expanduser().absolute())
    called = where if opened.entry is None and opened.name in ENTRIES else opened.name
    sources = {split: source_digest(listing) for split, listing in listings.items()}
    copy = Copy(folder.absolute(), called, where, side, quality, sources, notes=opened.notes)
    found = _found(folder, say)
    if found is not None and any(
        getattr(found, part) != getattr(copy, part) for part in ("name", "side", "quality", "sources")
    ):
        raise RequestError(
            f"'{folder}' holds a prepared copy of '{found.where}' with a shorter side of {found.side}"
            " pixels, of other images, or of another quality: give another folder, or empty it"
        )
    _write(copy)
    files: dict[str, dict[str, dict[str, Any]]] = {}
    left_out: dict[str, list[list[str]]] = {}
    done = 0
    for split, listing in listings.items():
        origin = {"of": sources[split], "name": called, "where": where, "side": side, "quality": quality}
        packer = Packer(listing, folder, split, side, quality, origin)
        shards = -(-len(listing) // SHARD)
        made = []
        for facts in in_order(packer, range(shards), min(workers, shards) if shards > 1 else 0):
            made.append(facts)
            done += len(facts["rows"]) + len(facts["left_out"])
            if progress is not None:
                progress(done)
        index = folder / file_of(split, None)
        before = digest_file(index) if index.is_file() else ""
        files[split] = _indexed(folder, split, listing, made)
        mended = [file_of(split, shard) for shard, facts in enumerate(made) if "is_new" in facts]
        mended += [index.name] if files[split][index.name]["sha256"] != before else []
        left_out[split] = [image for facts in made for image in facts["left_out"]]
        size = sum(facts["bytes"] for facts in made)
        kept = len(listing) - len(left_out[split])
        say(f"{split}: {kept:,} of {len(listing):,} images, {size / 1e9:,.2f} GB")
        for name in mended if found is not None and found.whole else ():
            say(f"  mended: {name}")
        for image, why in left_out[split]:
            say(f"  left out: {image}: {why}")
    classes = next(iter(listings.values())).class_names
    copy = dataclasses.replace(copy, whole=True, files=files, left_out=left_out, class_names=classes)
    _write(copy)
    say(f"Whole in '{folder}', with its digests in {MADE}; give that folder in place of '{where}'")
    return copy


def _found(folder: Path, say: Say) -> Copy | None:
    """Return the copy in a folder; None where there is none, or what it says of itself is damaged or gone."""
    try:
        return read_copy(folder)
    except DamagedFileError as error:
        say(f"{str(error).partition(';')[0]}: it is written again")
        return None


def _indexed(
    folder: Path, split: str, listing: Listing, made: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Write the index of a split; the digests and sizes of all its files, by name."""
    rows = np.array([row for facts in made for row in facts["rows"]], np.int64)
    if not len(rows):
        raise RequestError(f"none of {len(listing)} {split} images can be read")
    lengths = [np.array(facts["lengths"], np.int64) for facts in made]
    stops = np.concatenate([of.cumsum() for of in lengths])
    names = "\0".join(listing.name(int(row)) for row in rows).encode(errors="surrogateescape")
    buffer = io.BytesIO()
    np.savez(
        buffer,
        shards=np.repeat(np.arange(len(made)), [len(of) for of in lengths]),
        starts=stops - np.concatenate(lengths),
        stops=stops,
        sizes=np.array([size for facts in made for size in facts["sizes"]], np.int64),
        labels=listing.labels[rows],
        ids=listing.ids[rows],
        names=np.frombuffer(names, np.uint8),
        cropped=np.array(listing.cropped),
    )
    content = buffer.getvalue()
    atomic_write(folder / file_of(split, None), content)
    index = {file_of(split, None): {"sha256": digest_bytes(content), "bytes": len(content)}}
    return index | {
        file_of(split, shard): {"sha256": facts["digest"], "bytes": facts["bytes"]}
        for shard, facts in enumerate(made)
    }


def _write(copy: Copy) -> None:
    facts = {key: value for key, value in vars(copy).items() if key != "folder"}
    write_sealed(copy.folder / MADE, facts, SCHEMA)
