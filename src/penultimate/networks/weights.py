"""Weights loaded into a network, whatever prefix a trainer put before the names of the tensors.

Tensors that do not fit are named. Nothing in a file is executed: see `networks.checkpoints`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from penultimate.errors import RequestError, legible, shortened
from penultimate.networks.checkpoints import WITHIN, boundaries, is_averaged, listed, read_weights
from penultimate.networks.state import EXTRA, is_computable, is_unsized, kind_of, restore

__all__ = ["load_weights", "read_weights"]

INSIDE = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "module")
"""Parts that compiling a module, or distributing it across devices, adds to the names of its tensors."""
OF_LOSS = re.compile(
    r"(?:^|[._])(?:loss|losses|loss_fn|criterion|criteria|class_weights?|pos_weight)(?:[._]|$)"
)
"""The pattern of names of a loss's own tensors among those of a network."""
LISTED_PARTS = 3
"""The largest number of places in an error message."""
COUNTERS = ("n_averaged", "num_batches_tracked")
"""Entries that count steps, which have no influence on a network's output."""


def load_weights(module: nn.Module, tensors: Mapping[str, Any], path: Path) -> str:
    """Load tensors into a module; return which others were left out, as a clause or an empty string.

    The names fit if each of the network's tensors is found after the same prefix is removed: that of a
    wrapper, of a dictionary in the file, or of a part of a larger network. Tensors elsewhere are left out.

    Raises RequestError with the tensors that are missing, left over, or of another shape or type; if several
    parts of the file fit, it states how to choose one.
    """
    state = module.state_dict()
    if unsized := [name for name, value in state.items() if is_unsized(value)]:
        raise RequestError(
            f"the network has parameters without a size yet ({listed(unsized)}): run it once on images"
            " where it is built, or say the sizes"
        )
    own = {name: value for name, value in state.items() if isinstance(value, Tensor)}
    needed = {name: value for name, value in own.items() if not name.endswith((*COUNTERS, EXTRA))}
    named = _without_wrappers(tensors, own)
    prefix, inner = _place(named, needed, path)
    under = {f"{inner}{name.removeprefix(prefix)}": name for name in named if name.startswith(prefix)}
    taken = {name: named[of] for name, of in under.items() if name in state}
    for name in own.keys() - needed.keys():
        if name in taken and not name.endswith(EXTRA) and taken[name].numel() != own[name].numel():
            del taken[name]
    beyond = [
        of.removeprefix(prefix)
        for name, of in under.items()
        if name not in state and not name.endswith((*COUNTERS, EXTRA)) and not _switched_off(module, name)
    ]
    extra = [name for name in beyond if WITHIN not in name and not OF_LOSS.search(name)]
    missing = [name for name in needed if name not in taken]
    shapes = [name for name in needed if name in taken and needed[name].shape != taken[name].shape]
    if missing or extra or shapes:
        raise RequestError(_misfit(module, path, prefix, own, taken, missing, extra, shapes))
    for name, value in taken.items():
        if name in own and (why := _unfit(value, own[name])):
            raise RequestError(f"'{path}' does not hold weights of this network: '{name}' {why}")
    masks = {name: value.clone() for name, value in needed.items() if not value.isfinite().all()}
    try:
        restore(module, taken)
    except Exception as error:  # a user's set_extra_state can raise anything
        why = shortened(legible(" ".join(f"{type(error).__name__}: {error}".split())), 300)
        raise RequestError(
            f"'{path}' does not hold weights of this network, which refuses them ({why})"
        ) from None
    loaded = module.state_dict()
    for name in needed:
        is_as_built = name in masks and torch.equal(loaded[name], masks[name])  # such as a mask of -inf
        if not is_as_built and (wrong := _impossible(name, loaded[name], taken[name])):
            raise RequestError(f"'{path}': '{name}' holds {wrong}")
    others = [name for name in named if not name.startswith(prefix)] + [prefix + name for name in beyond]
    return _left_out(path, prefix, [name for name in others if not name.endswith((*COUNTERS, EXTRA))])


def _without_wrappers(tensors: Mapping[str, Any], own: Iterable[str]) -> dict[str, Any]:
    """Return the tensors by names without the parts that wrappers added, unless names would then coincide."""
    known = {part for name in own for part in name.split(".")}
    inside = "|".join(part for part in INSIDE if part not in known)
    shorter = {name: re.sub(rf"(?:(?<=^)|(?<=\.)|(?<={WITHIN}))(?:{inside})\.", "", name) for name in tensors}
    if len(set(shorter.values())) < len(shorter):
        return dict(tensors)
    return {shorter[name]: value for name, value in tensors.items()}


def _place(named: Mapping[str, Any], needed: Mapping[str, Tensor], path: Path) -> tuple[str, str]:
    """Return the prefix of the file's names and that of the network's own names without which they agree.

    If no prefix fits, return the one with the most matching names.
    """
    inners = [""]
    first = next(iter(needed), "")
    for end, _ in boundaries(first):
        if all(name.startswith(f"{first[:end]}.") and "." in name[end + 1 :] for name in needed):
            inners.append(f"{first[:end]}.")
    for inner in inners:
        wanted = {name.removeprefix(inner): value for name, value in needed.items()}
        fitting, alike = Counter[str](), Counter[str]()
        for name, value in named.items():
            for start in (0, *(stop for _, stop in boundaries(name))):
                if name[start:] in wanted and isinstance(value, Tensor):
                    alike[name[:start]] += 1
                    fitting[name[:start]] += wanted[name[start:]].shape == value.shape
        whole = [prefix for prefix in fitting if fitting[prefix] == len(needed)]
        if whole:
            return _chosen(whole, named, wanted, path), inner
        if not inner:
            best = max(alike, key=lambda prefix: (fitting[prefix], alike[prefix]), default="")
    return best, ""


def _chosen(whole: list[str], named: Mapping[str, Any], wanted: Iterable[str], path: Path) -> str:
    """Return the prefix to use among those that fit; averaged weights never do, and several must be equal."""
    plain = [prefix for prefix in whole if not is_averaged(prefix)]
    if not plain:
        raise RequestError(
            f"'{path}' holds no weights of this network but averaged ones ('{legible(whole[0])}');"
            " ema=True takes them"
        )
    names = list(wanted)
    different = [plain[0]]
    for prefix in plain[1:]:
        if not any(all(_same(named[one + n], named[prefix + n]) for n in names) for one in different):
            different.append(prefix)
    if len(different) > 1:
        parts = " and ".join(f"'{legible(prefix) or 'its own names'}'" for prefix in different[:LISTED_PARTS])
        name = next(prefix for prefix in different if prefix).replace(WITHIN, ".").strip(".")
        raise RequestError(
            f"'{path}' holds weights of this network {len(different)} times, under {parts}; say which:"
            f" part='{legible(name)}'"
        )
    return plain[0]


def _same(one: Tensor, other: Tensor) -> bool:
    if one is other:
        return True
    odd = any(value.is_meta or value.layout != torch.strided or value.is_quantized for value in (one, other))
    return not odd and one.dtype == other.dtype and torch.equal(one, other)


def _unfit(value: Any, own: Tensor) -> str:
    """Return why a tensor of the right shape cannot be loaded, or an empty string if it can."""
    if not isinstance(value, Tensor):
        return f"is a {type(value).__name__}, not a tensor"
    for tensor, whose in ((value, ""), (own, " in the network itself")):
        if tensor.is_meta:
            return f"has a shape and no values{whose}: it is on the meta device"
        if tensor.layout != torch.strided:
            return f"is a sparse tensor{whose}; save its to_dense()"
        if tensor.is_quantized:
            return f"is quantised{whose} ({kind_of(tensor)}); save its dequantize()"
        if not is_computable(tensor.dtype):
            return f"is {kind_of(tensor)}{whose}, with which torch does not compute; keep it in float32"
    both = f"is {kind_of(value)}, where the network has {kind_of(own)}"
    if value.is_complex() and not own.is_complex():
        return f"{both}: its imaginary part would be lost"
    if own.is_complex() or value.dtype == own.dtype:
        return ""
    if own.is_floating_point():
        hint = "weights that were quantised need their scale; save them as floating-point numbers"
        return "" if value.is_floating_point() else f"{both}; {hint}"
    changed = (value.to(own.dtype).to(value.dtype) != value).any()
    return f"{both}, which does not hold its values" if changed else ""


def _impossible(name: str, value: Tensor, held: Tensor) -> str:
    """Return what a loaded tensor holds that no training leaves, or an empty string.

    `held` is the tensor as the file has it.
    """
    if not value.isfinite().all():
        if held.isfinite().all():
            return f"values that are too large for {kind_of(value)}, which the network has"
        return "values that are not finite; the training diverged?"
    if name.rpartition(".")[2] == "running_var" and value.is_floating_point() and (value.float() < 0).any():
        return (
            f"variances below 0, such as {value.float().min():.3g}: was it made by adding and subtracting"
            " weights? Take the variances of one training"
        )
    return ""


def _switched_off(module: nn.Module, name: str) -> bool:
    """Return whether a tensor belongs to a part that the network omits (the auxiliary heads of GoogLeNet)."""
    part = name.partition(".")[0]
    return hasattr(module, part) and getattr(module, part) is None


def _left_out(path: Path, prefix: str, names: Sequence[str]) -> str:
    """Return which tensors of a file were not loaded, as a clause; a whole dictionary goes by its name."""
    places = [f"all of '{name.split(WITHIN)[0]}'" if WITHIN in name else name for name in names]
    if prefix and WITHIN in prefix:
        outer = prefix.split(WITHIN)[0]
        places = [
            name.removeprefix(f"{outer}{WITHIN}") if name.startswith(f"{outer}{WITHIN}") else place
            for name, place in zip(names, places, strict=True)
        ]
    distinct = list(dict.fromkeys(map(legible, places)))
    if not distinct:
        return ""
    under = f"the tensors under '{legible(prefix)}'" if prefix else "its tensors"
    verb = "was" if len(distinct) == 1 else "were"
    return f"{under} of '{path.name}' were loaded; {listed(distinct)} {verb} left out"


def _misfit(
    module: nn.Module,
    path: Path,
    prefix: str,
    own: Mapping[str, Tensor],
    tensors: Mapping[str, Any],
    missing: list[str],
    extra: list[str],
    shapes: list[str],
) -> str:
    quantised = {
        name: f" of {kind_of(tensors[name])}"
        for name in shapes
        if own[name].is_floating_point()
        and not (tensors[name].is_floating_point() and tensors[name].dtype.itemsize > 1)
    }
    differ = [
        f"{name} is {list(tensors[name].shape)}{quantised.get(name, '')}, not {list(own[name].shape)}"
        for name in shapes
    ]
    fitting = sum(name in tensors and tensors[name].shape == value.shape for name, value in own.items())
    total = fitting + len(missing) + len(shapes)
    under = f"under '{legible(prefix)}', " if prefix else ""
    parts = [f"{under}of its {total} tensors {fitting or 'none'} {'fit' if fitting > 1 else 'fits'}"]
    if fitting == total:
        parts = [f"{under}all {total} of its tensors fit"]
    parts += [
        f"{before}{len(names)}{more} {'is' if len(names) == 1 else 'are'} {what} ({listed(names)})"
        for before, names, more, what in (
            ("", missing, "", "missing"),
            ("", differ, "", "of another shape"),
            ("and ", extra, " more", "there that it does not have"),
        )
        if names
    ]
    text = f"'{path}' does not hold weights of this network ({type(module).__name__}): {', '.join(parts)}"
    rows = {int(tensors[name].shape[0]) for name in shapes if tensors[name].ndim and own[name].ndim}
    if quantised:
        return f"{text}; weights that were quantised need their scale: save them as floating-point numbers"
    if not missing and not extra and len(rows) == 1 and len(shapes) <= 4:
        classes = rows.pop()
        if all(tensors[name].shape[1:] == own[name].shape[1:] for name in shapes):
            return (
                f"{text}; a final layer for {classes} classes? num_classes={classes} makes one, as in"
                f" timm:NAME(num_classes={classes})"
            )
    parents = {name.rpartition(".")[0] for name in missing}
    if fitting and not extra and not shapes and len(parents) == 1 and hasattr(module, "reset_classifier"):
        return f"{text}; if the file has no final layer, timm:NAME(num_classes=0) is a network without one"
    return text if 2 * fitting >= total else f"{text}; is it of another architecture?"
