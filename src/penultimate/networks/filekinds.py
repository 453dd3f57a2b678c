"""The actual kind of a file given as weights, found from its first bytes, and how a user can convert it."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

from penultimate.errors import legible, shortened

HEAD = 4096
"""The number of bytes at the start of a file that are examined."""
PICKLE = b"\x80"
"""The first bytes of a pickle (protocol 2 or later, as torch.save writes it), and so of an old checkpoint."""
ZIP = b"PK\x03\x04"
COMPRESSED = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ": ("xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x"),
    b"Rar!": ("RAR", "unrar x"),
}
"""Compressed files: their first bytes, and the program that unpacks them."""
KNOWN = {
    b"\x93NUMPY": "it is a NumPy array",
    b"\x89HDF": "it is HDF5, in which Keras and TensorFlow keep weights",
    b"GGUF": "it is a GGUF file of llama.cpp",
    b"\x89PNG": "it is a picture (PNG)",
    b"\xff\xd8\xff": "it is a picture (JPEG)",
    b"%PDF": "it is a PDF",
}
IN_PYTORCH = (
    "weights are read as torch.save(model.state_dict(), FILE) of PyTorch writes them, or as safetensors"
)
AGAIN = "copy or download it again"


def is_safetensors(head: bytes) -> bool:
    """Return whether a file begins like safetensors: with the length of a header, and a header in JSON."""
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 2**40


def is_checkpoint(head: bytes) -> bool:
    """Return whether a file begins like those that torch.save writes."""
    return head.startswith((PICKLE, ZIP))


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file."""
    with path.open("rb") as file:
        return file.read(HEAD)


def described(path: Path, head: bytes) -> str:
    """Return what a file that is not a checkpoint is, and how to obtain one, or an empty string.

    >>> described(Path("w.pth"), b"<!DOCTYPE html><html><body>Not found")
    'it is an HTML page, as after a failed download; copy or download it again'
    """
    if not head:
        return f"it is empty (0 bytes); {AGAIN}"
    if not any(head):
        return f"it begins with only zeros, as after an interrupted download; {AGAIN}"
    if head.startswith(ZIP):
        return _of_zip(path)
    for start, (kind, unpacking) in COMPRESSED.items():
        if head.startswith(start):
            return f"it is compressed ({kind}): unpack it with {unpacking}, and name the file that comes out"
    if head[257:262] == b"ustar" or _is_tar(path):
        return "it is a tar archive: unpack it with tar -xf, and name the checkpoint that comes out"
    for start, what in KNOWN.items():
        if head.startswith(start):
            return f"{what}; {IN_PYTORCH}"
    if head[4:8] == b"TFL3":
        return f"it is a network of TensorFlow Lite; {IN_PYTORCH}"
    if _is_onnx(path, head):
        return "it is an ONNX network, with its weights inside: give the network itself as onnx:FILE.onnx"
    if path.suffix == ".pb" or ".data-0000" in path.name or path.suffix == ".index":
        return f"it is a file of TensorFlow; {IN_PYTORCH}"
    return _of_text(head)


def _of_zip(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return f"it is cut short: the end of the archive is missing; {AGAIN}"
    inner = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inner and any(name.startswith("code/") for name in inner):
        return (
            "it is a TorchScript archive, which holds code: save its weights alone,"
            " torch.save(torch.jit.load(FILE).state_dict(), OTHER)"
        )
    if any(name.startswith(("models/", "serialized_exported_program")) for name in {*inner, *names}):
        return (
            "it is an exported program: save its weights alone,"
            " torch.save(torch.export.load(FILE).state_dict, OTHER)"
        )
    if "data.pkl" in inner:
        return ""  # a checkpoint; its reader reports any fault
    if names and all(name.endswith(".npy") for name in names):
        return f"it is an archive of NumPy arrays; {IN_PYTORCH}"
    if any(name.endswith(".weights.h5") for name in names):
        return f"it is a network of Keras; {IN_PYTORCH}"
    held = ", ".join(legible(name) for name in names[:4]) or "nothing"
    more = ", ..." if len(names) > 4 else ""
    return f"it is a zip archive of {held}{more}, not a checkpoint: unpack it first"


def _is_tar(path: Path) -> bool:
    try:
        return tarfile.is_tarfile(path)
    except (OSError, EOFError, tarfile.TarError):
        return False


def _is_onnx(path: Path, head: bytes) -> bool:
    """Return whether a file begins like a serialised ONNX model, with its version and producer."""
    return path.suffix == ".onnx" or (head[:1] == b"\x08" and 0 < head[1] < 32 and head[2:3] in b'\x12\x1a":')


def _of_text(head: bytes) -> str:
    try:
        text = head.decode().lstrip("\ufeff \t\r\n")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return ""
        text = head[: error.start].decode().lstrip("\ufeff \t\r\n")
    if "\0" in text:
        return ""
    lower = text.lower()
    if text.startswith("version http") and "oid sha256:" in text:
        return (
            "it is a pointer of Git LFS, which stands for the file: fetch the file itself with git lfs pull"
        )
    if "/annex/objects/" in text.partition("\n")[0]:
        return "it is a pointer of git-annex, which stands for the file: fetch it with git annex get"
    if lower.startswith(("<!doctype html", "<html", "<head", "<body")):
        return f"it is an HTML page, as after a failed download; {AGAIN}"
    if lower.startswith("<?xml"):
        return f"it is XML, as after a failed download; {AGAIN}"
    first = shortened(legible(text.partition("\n")[0]), 60)
    if text.startswith(("{", "[")):
        if '"weight_map"' in text:
            return (
                "it is the index of weights that lie in several files; join them in one, as"
                " model.state_dict() of the loaded network has them"
            )
        return f"it is JSON ({_json(text) or first}); {IN_PYTORCH}"
    return f"it is text that begins with '{first}'; {IN_PYTORCH}"


def _json(text: str) -> str:
    """Return the error message in a JSON response."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    said = content.get("error") or content.get("message") if isinstance(content, dict) else None
    return shortened(legible(said), 100) if isinstance(said, str) else ""
