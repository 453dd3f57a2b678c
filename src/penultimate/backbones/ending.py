"""The end of a network: its penultimate features are the input of its final layer.

The final layer is found by running the network: it is the last linear layer (or convolution, or head of an
objective) on which the network's own output depends. `FORMS` lists what may lie between them.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from penultimate.backbones.final import ENTANGLED, Final, Form, side_by_side
from penultimate.backbones.follows import TracedLayer, behind, depends, features_of, is_normalised, parts_of
from penultimate.backbones.outputs import (
    OUTPUT,
    described,
    entries,
    entry_of_features,
    of_one_pixel,
    tensors_of,
)
from penultimate.backbones.passes import as_written
from penultimate.backbones.products import is_layer
from penultimate.backbones.trace import Observing, Trace, storages
from penultimate.errors import RequestError

Doubt: TypeAlias = Literal["", "declared", "scores", "embedding", "made", "unseen"]
MAY_BE_SCORES: frozenset[Doubt] = frozenset(("declared", "scores", "made"))
"""The doubts about an output that comes from a known layer in an unknown way, or says that it is scores."""
MOST_LAYERS = 4
"""The largest number of final layers; no known network has more."""
SAY = "layer='NAME'"
LISTED = 5
"""The largest number of layers in an error message."""
HEADS = ("fc", "classifier", "head", "heads", "last_linear", "logits", "classification_head", "final_conv")
"""Names that networks give to their final layer, or to the part that contains it."""
NO_HEAD = re.compile(r"act|drop|flat|norm|soft|pool|sigmoid|linearity|squash|scale|temp|quant|post|pre", re.I)
"""Names of an Identity that does not stand for a removed final layer."""
EMBEDDING = re.compile(r"emb|proj|neck|latent", re.I)
"""Names of layers whose output may be the features themselves."""
MAY_EMBED = (
    "its output is taken for class scores, and what {} is given for its features; if the output itself is the"
    " features, say layer='output'"
)
SCORES = re.compile(r"logit|score|prob|predict", re.I)
"""Names of output entries that are class scores."""


class Ending(NamedTuple):
    """The penultimate features [n ...] of a forward pass, and the logits [n k] if it has a final layer.

    `calls` gives the positions of the layers among all that ran, for `ending(..., among)`. `unclear` says why
    the features may be wrong. An output that is taken for the features may be class scores: the module
    "declared" as many classes as it has numbers, its name says "scores", it is "made" of a linear layer's
    output in an unknown way, or its origin was "unseen". The output of a final layer may be an "embedding".
    `unsure` names the layers, and `entry` names the tensor of the output that is the features.
    """

    features: Tensor
    logits: Tensor | None
    final: Final | None = None
    calls: tuple[int, ...] = ()
    unclear: Doubt = ""
    unsure: str = ""
    entry: str = OUTPUT


def ending(module: nn.Module, run: Callable[[], Any], among: Collection[int] = ()) -> Ending | None:
    """Return how a forward pass of a module ends, or None without a tensor; `run` returns the pass's output.

    If an output [n k] depends on a final layer in one of the FORMS, the layer's input, averaged over
    positions, is the features; the inputs of several layers are concatenated. The output is the logits; for
    probabilities, the logits are the input of the softmax or sigmoid. Any other output is itself the
    features, as for a lone layer and for a network whose final layer is an Identity or missing. In a tuple or
    mapping, the first tensor from a final layer counts, or else the one that is [n m].

    `among` holds the `calls` of an earlier batch: then only the inputs of those layers are kept, which is
    cheaper.

    >>> net = nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Linear(6, 2))
    >>> images = torch.ones(5, 2, 3)
    >>> found = ending(net, lambda: net(images))
    >>> found.features.shape, found.logits.shape, found.final.layers
    (torch.Size([5, 6]), torch.Size([5, 2]), ('2',))
    >>> ending(net[:2], lambda: net[:2](images)).logits is None
    True
    """
    trace = Trace(storages(module), among or None)
    with _hooked(module, trace), Observing(trace), as_written():
        output = run()
    known = has_classifier(module)
    for tensor in tensors_of(output) if known else ():
        node, values = trace.of(tensor), of_one_pixel(tensor)
        if node is None or values.ndim != 2 or not values.is_floating_point():
            continue
        parts = parts_of(node, trace.ended)
        found = _found(module, values, parts) if parts else None
        if found is not None:
            if any(part.call.given is None for part in parts):  # this pass took another path
                return ending(module, run)
            return found
    name = entry_of_features(output)
    if not name:
        return None
    features = entries(output)[name]
    unclear, layers = _unclear(module, features, trace, name) if known else ("", "")
    return Ending(of_one_pixel(features), None, unclear=unclear, unsure=layers, entry=name)


@contextlib.contextmanager
def _hooked(module: nn.Module, trace: Trace) -> Iterator[None]:
    """Tell a trace the module's input, when layers that may be final run, and the input of a removed head."""

    def begin(part: nn.Module, inputs: Any, named: Any) -> None:
        if part is module and not trace.started:
            trace.start((inputs, named))

    def enter(name: str) -> Callable[[nn.Module, Any], None]:
        return lambda layer, inputs: trace.enter(name)

    def leave(name: str) -> Callable[[nn.Module, Any, Any], None]:
        return lambda layer, inputs, output: trace.leave(name, layer, inputs[0] if inputs else None, output)

    def passed(part: nn.Module, inputs: Any, output: Any) -> None:
        given = inputs[0] if inputs else None
        if not isinstance(given, Tensor) or not isinstance(output, Tensor) or given.numel() != output.numel():
            return
        node = trace.of(output)
        if node is not None and torch.equal(given.flatten(), output.flatten()):
            trace.ended.add(node)

    if isinstance(module, torch.jit.ScriptModule):  # this one accepts no hooks
        handles = [register_module_forward_pre_hook(lambda part, inputs: begin(part, inputs, {}))]
    else:
        handles = [module.register_forward_pre_hook(begin, with_kwargs=True, prepend=True)]
    try:
        for name, layer in module.named_modules():
            if name and is_layer(layer):
                handles += [
                    layer.register_forward_pre_hook(enter(name)),
                    layer.register_forward_hook(leave(name)),
                ]
            elif name and _is_removed(name, layer):
                handles.append(layer.register_forward_hook(passed))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _is_removed(name: str, layer: nn.Module) -> bool:
    """Return whether a layer stands in the place of a removed head.

    That is an Identity, an empty Sequential, or a part of HEADS without parameters. Its output must also
    equal its input.
    """
    own = name.rpartition(".")[2]
    if NO_HEAD.search(own):
        return False
    empty = isinstance(layer, nn.Identity) or (isinstance(layer, nn.Sequential) and not len(layer))
    return empty or (own in HEADS and not any(True for _ in layer.parameters()))


def has_classifier(module: nn.Module) -> bool:
    """Return whether a module may end in a classifier, that is, unless it declares or shows that it has none.

    Modules of timm declare it by `num_classes` 0 or by `get_classifier()`. A module shows it by an attribute
    of HEADS that is None (in a scripted module also an Identity) if no other attribute of HEADS holds a
    layer.
    """
    classes: Any = getattr(module, "num_classes", None)
    get: Any = getattr(module, "get_classifier", None)
    if callable(get):
        with contextlib.suppress(Exception):  # a user's method may require arguments
            heads = get()
            listed = heads if isinstance(heads, list | tuple) else [heads]
            return not all(one is None or isinstance(one, nn.Identity) for one in listed)
    if isinstance(classes, int) and not isinstance(classes, bool) and classes == 0:
        return False
    found = [getattr(module, name) for name in HEADS if hasattr(module, name)]
    removed = [head is None or getattr(head, "original_name", "") == "Identity" for head in found]
    return not found or not all(removed)


def not_found(module: nn.Module, output: Any, say: str = SAY) -> RequestError:
    """Return the error for a network without a known final layer: its output, and where it was searched.

    `say` is how the caller can name another layer.
    """
    looked = [name for name, layer in module.named_modules() if name and is_layer(layer)]
    names = ", ".join(
        f"'{name}' ({type(module.get_submodule(name)).__name__})" for name in looked[: -LISTED - 1 : -1]
    )
    more = f" and {len(looked) - LISTED} before them" if len(looked) > LISTED else ""
    own = say.replace("NAME", OUTPUT)
    return RequestError(
        f"the final layer of {type(module).__name__} was not found: its output ({described(output)}) does not"
        f" follow from its layers in a known way. Searched from the end: {names or 'no layer'}{more}. Name"
        f" the layer whose output is to be the features: {say}, or {own} for the network's own output"
    )


def _found(module: nn.Module, output: Tensor, parts: list[TracedLayer]) -> Ending | None:
    """Return how an output [n k] depends on the layers that it is made of, or None if in no known way."""
    calls = [part.call for part in parts]
    classes = output.shape[1]
    if len({*calls}) < len(calls) or not 1 <= len(calls) <= MOST_LAYERS:
        return None
    if any(call.outputs != classes for call in calls) or any(depends(call.operand, calls) for call in calls):
        return None
    strongest = [part for part in parts if "strongest" in part.through]
    if strongest:
        parts = [part for part in parts if part not in strongest]
        form: Form | None = "assisted" if len(parts) == len(strongest) == 1 else None
    elif len(parts) == 1:
        form = _form(module, parts[0], classes)
    elif any(call.members for call in calls):
        form = None
    else:
        form = _form_of_several(parts)
    if form is None:
        return None
    parts.sort(key=lambda part: part.call.name)
    given = [features_of(part.call) for part in parts]
    values = [features for features, _ in given if features is not None and len(features) == len(output)]
    layers = tuple(call.name for of in parts for call in of.call.members or (of.call,))
    beside = len(layers) > len(parts)
    shared = beside or (len(parts) > 1 and len({node for _, node in given}) == 1)
    logits = parts[0].logits
    if logits is None or logits.shape != output.shape or form == "capped":
        logits = output
    share = parts[0].factor * (len(parts) if form == "average" else 1)
    factor = 1.0 if form in ENTANGLED or math.isclose(share, 1) else share
    final = Final(layers, form, shared, factor, beside)
    numbers = tuple(call.number for call in calls)
    embeds = len(parts) == 1 and _may_embed(module, parts[0], classes)
    doubt: Doubt = "embedding" if embeds else ""
    name = f"'{parts[0].call.name or parts[0].call.weight}'" if embeds else ""
    if len(values) < len(parts):  # none was kept, or those of other examples
        return (
            Ending(output, None, final, numbers, doubt, name)
            if any(call.given is None for call in calls)
            else None
        )
    return Ending(side_by_side(values, shared), logits, final, numbers, doubt, name)


def _form(module: nn.Module, part: TracedLayer, classes: int) -> Form | None:
    through = {*part.through} - {"average"}
    shown = _declares(module, classes) or _is_head(part.call.name)
    squashed = "average" in part.through and part.through[-1] not in ("average", "softmax")
    if part.call.convolves and squashed and not shown:
        return None  # the averaged values were squashed at every position, as in many trunks without a head
    if through == {"relu"}:  # the end of SqueezeNet
        averages = "average" in part.through[: part.through.index("relu")]
        return "rectified" if part.call.convolves and averages and shown else None
    if "relu" in through or ("tanh" in through and not _declares(module, classes)):
        return None
    if through & {"tanh", "cap"}:
        return "capped"
    if "increasing" in through:
        return "independent"
    if "scaled" in through or ("softmax" in through and part.logits is None):
        return "mixed"
    return "probabilities" if "softmax" in through else "logits"


def _form_of_several(parts: list[TracedLayer]) -> Form | None:
    through = {past for part in parts for past in part.through} - {"average"}
    if through & {"relu", "tanh"}:
        return None
    factors = {round(part.factor, 9) for part in parts}
    if through or len(factors) > 1:
        return "mixed"
    return "average" if math.isclose(parts[0].factor * len(parts), 1) else "sum"


def _declares(module: nn.Module, classes: int) -> bool:
    """Return whether a module declares this number of classes."""
    return type(said := getattr(module, "num_classes", None)) is int and said == classes > 0


def _unclear(module: nn.Module, output: Tensor, trace: Trace, name: str) -> tuple[Doubt, str]:
    """Return why an output that is taken for the features may be class scores, and from which layers."""
    node = trace.of(output)
    if SCORES.search(name.removeprefix(OUTPUT)):
        return "scores", ""
    if node is None:
        return "unseen", ""
    calls = behind(node, trace.ended)
    if calls is None:
        return "", ""
    if _declares(module, of_one_pixel(output).shape[-1]):
        return "declared", ""
    if calls and not any(depends(call.operand, calls) for call in calls):
        shown = any(_is_head(call.name) for call in calls)
        if shown or (all(call.is_of_vectors() for call in calls) and not is_normalised(node)):
            return "made", " and ".join(dict.fromkeys(f"'{call.name or call.weight}'" for call in calls))
    return "", ""


def _may_embed(module: nn.Module, part: TracedLayer, classes: int) -> bool:
    """Return whether a final layer's output may be the features.

    Its name may say so, or another of HEADS may be None.
    """
    name = part.call.name or part.call.weight
    if _declares(module, classes):
        return False
    if _is_head(name):
        return any(getattr(module, other, name) is None for other in HEADS)
    return bool(EMBEDDING.search(name.rpartition(".")[2]))


def _is_head(name: str) -> bool:
    return bool({*name.split(".")} & {*HEADS})
