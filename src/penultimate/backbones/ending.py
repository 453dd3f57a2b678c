"""The end of a network: its penultimate features are what its final layer is given.

The final layer is the last linear layer or convolution from whose output the network's own output follows, by
one of FORMS. This is proved with numbers: forward hooks record what the layers give for a few images, and the
forms are compared with the output. timm says itself which layer its classifier is.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from penultimate.backbones.outputs import (
    described,
    described_with_advice,
    entries,
    entry,
    entry_of_features,
    is_entry,
    logits_first,
    of_one_pixel,
)
from penultimate.backbones.taps import ACTIVATIONS, tapped, taps
from penultimate.errors import RequestError
from penultimate.objectives.heads import Head
from penultimate.objectives.objective import Objective

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
FORMS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "logits": lambda z: z,
    "probabilities": lambda z: z.softmax(-1),
    "log-probabilities": lambda z: z.log_softmax(-1),
    "independent": lambda z: z.sigmoid(),
}
"""How an output follows from that of a final layer, averaged over its positions and times a number."""
HEADS = ("fc", "classifier", "head", "heads", "last_linear", "logits", "classification_head", "final_conv")
"""Names that networks give to their final layer, or to the part that contains it."""
ENTANGLED = ("independent", "rectified", "assisted")
"""Forms in which no linear layer maps the features to the logits of a softmax."""
SCORES = ("logits", "scores", "probs", "probabilities", "predictions")
"""Names of output entries that are class scores."""
LISTED = 5
"""The largest number of layers in an error message."""
NEAR = 1e-4
"""The largest difference, as a share of the largest value, of numbers that are the same up to rounding."""


class NoHeadError(RequestError):
    """Raised if it cannot be proved which layer of a network is its final one; the user names it."""


@dataclass(frozen=True)
class Final:
    """The final layers of a module, by name, and the form in which its output follows from theirs.

    `form` is one of FORMS; "average" or "sum" of several layers (distilled transformers); "rectified", the
    average after a ReLU (SqueezeNet); or "assisted", where timm's own classifier is one part of the output
    (VOLO). `shared` is true if several layers are given the same features, which then count once. The output
    is `factor` times what the form says.
    """

    layers: tuple[str, ...]
    form: str
    shared: bool = False
    factor: float = 1.0


class Call(NamedTuple):
    """A layer in a forward pass: its features and output, [n m] and [n k], and the output rectified.

    They are averages over positions, and copies: the network may overwrite its tensors.
    """

    name: str
    features: Tensor
    output: Tensor
    rectified: Tensor


def final_of(module: nn.Module, run: Callable[[], Any], head: str = "") -> Final | str:
    """Return the final layers of a module, or the entry of its output that is its features.

    `run` makes a forward pass over a few images and returns its output. `head` is the name of the final layer
    if the user says it; its input is then taken for the features. The output is the features if the module
    declares that it has no classifier, or if it ends in a normalisation, an activation or a pooling.

    Raises NoHeadError, which says how `layer` or `head` is named, if neither can be shown.

    >>> net, images = nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Linear(6, 2)), torch.randn(5, 2, 3)
    >>> final_of(net, lambda: net(images)).layers
    ('2',)
    >>> final_of(net[:2], lambda: net[:2](images))
    'output'
    """
    if head and head not in dict(module.named_modules()):
        raise RequestError(f"head='{head}' is no layer of {type(module).__name__}")
    calls: list[Call] = []
    leaves: list[tuple[str, nn.Module, Tensor | None]] = []
    with _all_recorded(module, head, calls, leaves):
        output = run()
    if head:
        return _named_final(module, head, calls, output)
    name = entry_of_features(output)
    if has_classifier(module):
        for tensor in logits_first(entries(output)):
            values = of_one_pixel(tensor)
            is_possible = values.ndim == 2 and values.is_floating_point()
            if is_possible and not _ends_a_trunk(values, leaves) and (found := _final(module, values, calls)):
                return found
        if name and (doubt := _doubt(module, of_one_pixel(entries(output)[name]), name, calls, leaves)):
            raise _not_found(module, output, calls, doubt)
    if not name or of_one_pixel(entries(output)[name]).ndim != 2:
        raise NoHeadError(f"features are [n m]; its output is {described_with_advice(output)}")
    return name


def has_classifier(module: nn.Module) -> bool:
    """Return whether a module may end in a classifier, that is, unless it declares that it has none.

    A module of timm declares it by `get_classifier()`, another by `num_classes` 0, or by an attribute of
    HEADS that is None or an Identity while no other attribute of HEADS holds a layer.
    """
    get = getattr(module, "get_classifier", None)
    if callable(get):
        with contextlib.suppress(Exception):  # a user's method may require arguments
            heads = get()
            listed = heads if isinstance(heads, list | tuple) else [heads]
            return not all(one is None or isinstance(one, nn.Identity) for one in listed)
    if (classes := getattr(module, "num_classes", None)) == 0 and classes is not False:
        return False
    found = [getattr(module, name) for name in HEADS if hasattr(module, name)]
    removed = [
        head is None
        or isinstance(head, nn.Identity)
        or (isinstance(head, nn.Sequential) and not any(True for _ in head.parameters()))
        for head in found
    ]
    return not found or not all(removed)


def read(module: nn.Module, final: Final | str, run: Callable[[], Any]) -> tuple[Tensor, Tensor | None]:
    """Return the features [n m] of a forward pass, and its logits [n k] or None, where `final_of` found them.

    `run` makes the pass and returns its output.
    """
    if isinstance(final, str):
        return of_one_pixel(entries(run())[final]), None
    calls: list[Call] = []
    handles = [handle for name in final.layers for handle in _record(module.get_submodule(name), name, calls)]
    try:
        named = entries(run())
    finally:
        for handle in handles:
            handle.remove()
    features = _joined(calls, final)
    if final.form in ("probabilities", "log-probabilities", "independent"):
        return features, calls[0].output
    outputs = [of_one_pixel(tensor) for tensor in logits_first(named)]
    classes = calls[0].output.shape[1]
    return features, next((one for one in outputs if one.shape[1:] == (classes,)), calls[0].output)


def cut(module: nn.Module, final: Final) -> nn.Module:
    """Make the module return its penultimate features, and return it; its layers keep their names."""
    calls: list[Call] = []
    for name in final.layers:
        _record(module.get_submodule(name), name, calls)

    def features(module: nn.Module, inputs: Any, output: Any) -> Tensor:
        found = _joined(calls, final)
        calls.clear()
        return found

    module.register_forward_hook(features)
    return module


def read_at(module: nn.Module, layer: str, run: Callable[[], Any]) -> Tensor:
    """Return the output of a layer, or an entry of the module's own, in the forward pass that `run` makes."""
    if is_entry(module, layer):
        return entry(run(), layer)
    outputs: list[Tensor] = []
    with tapped(_one_layer(module, layer), lambda name, output: outputs.append(output.clone())):
        run()
    return of_one_pixel(outputs[0])


def cut_at(module: nn.Module, layer: str) -> nn.Module:
    """Make the module return the output of a layer, or an entry of its own, and return it."""
    if is_entry(module, layer):
        module.register_forward_hook(lambda part, inputs, output: entry(output, layer))
        return module
    ((name, part),) = _one_layer(module, layer).items()
    outputs: list[Tensor] = []

    def remember(part: nn.Module, inputs: Any, output: Any) -> None:
        outputs[:] = [entry(output).clone()]  # it may be overwritten

    def features(part: nn.Module, inputs: Any, output: Any) -> Tensor:
        if not outputs:
            raise RequestError(f"layer '{name}' takes no part in the forward pass of {type(module).__name__}")
        return outputs.pop()

    part.register_forward_hook(remember)
    module.register_forward_hook(features)
    return module


def classifier(module: nn.Module, final: Final) -> nn.Module | None:
    """Return the layer that maps the features to the logits, or an equal one; None if ENTANGLED."""
    layers: list[Any] = [module.get_submodule(name) for name in final.layers]
    if final.form in ENTANGLED:
        return None
    if len(layers) == 1 and not isinstance(layers[0], CONVOLUTIONS) and final.factor == 1:
        return layers[0]  # type: ignore[no-any-return]
    if not all(isinstance(getattr(layer, "weight", None), Tensor) for layer in layers):
        return None
    share = final.factor / len(layers) if final.form == "average" else final.factor
    weights = [share * layer.weight.detach().flatten(1) for layer in layers]
    weight = torch.stack(weights).sum(0) if final.shared else torch.cat(weights, 1)
    biases = [share * layer.bias.detach() for layer in layers if isinstance(layer.bias, Tensor)]
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bool(biases))
    linear.weight = nn.Parameter(weight, requires_grad=False)
    if biases:
        linear.bias = nn.Parameter(torch.stack(biases).sum(0), requires_grad=False)
    return linear


def is_linear(layer: nn.Module) -> bool:
    """Return whether a classifier may end in a layer.

    An objective with a projector is one, so that the features are what it is given, before the projector.
    """
    if isinstance(layer, Objective):
        return layer.projector is not None
    return isinstance(layer, (nn.Linear, Head, *CONVOLUTIONS)) or (
        hasattr(layer, "in_features") and hasattr(layer, "out_features")
    )


@contextlib.contextmanager
def _all_recorded(
    module: nn.Module, head: str, calls: list[Call], leaves: list[tuple[str, nn.Module, Tensor | None]]
) -> Iterator[None]:
    """Record every linear layer of a forward pass, and every leaf (with its output, if [n m]), in order."""

    def note(name: str) -> Callable[..., None]:
        def fire(layer: nn.Module, inputs: Any, output: Any) -> None:
            flat = of_one_pixel(output) if isinstance(output, Tensor) else None
            leaves.append((name, layer, flat.clone() if flat is not None and flat.ndim == 2 else None))

        return fire

    handles: list[Any] = []
    observable = [] if isinstance(module, torch.jit.ScriptModule) else module.named_modules()
    try:
        for name, layer in observable:
            if isinstance(layer, torch.jit.ScriptModule):  # it accepts no hooks
                continue
            if name and (is_linear(layer) or name == head):
                handles += _record(layer, name, calls)
            if not any(True for _ in layer.children()) or is_linear(layer):
                handles.append(layer.register_forward_hook(note(name)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _record(layer: nn.Module, name: str, calls: list[Call]) -> list[Any]:
    """Have a layer add a `Call` each time it runs."""
    inputs: list[Tensor | None] = []

    def before(layer: nn.Module, given: tuple[Any, ...]) -> None:
        tensor = given[0] if given else None
        inputs.append(_averaged_input(layer, tensor).clone() if isinstance(tensor, Tensor) else None)

    def after(layer: nn.Module, given: Any, output: Any) -> None:
        features = inputs.pop()
        if features is None or not isinstance(output, Tensor) or output.ndim < 2:
            return
        calls.append(Call(name, features, _averaged(layer, output).clone(), _averaged(layer, output.relu())))

    return [layer.register_forward_pre_hook(before), layer.register_forward_hook(after)]


def _averaged_input(layer: nn.Module, values: Tensor) -> Tensor:
    """Return what a layer is given, averaged over positions; for a large kernel, the whole map."""
    if isinstance(layer, CONVOLUTIONS):
        return values.flatten(2).mean(2) if set(layer.kernel_size) == {1} else values.flatten(1)
    return values if values.ndim <= 2 else values.flatten(1, -2).mean(1)


def _averaged(layer: nn.Module, output: Tensor) -> Tensor:
    if isinstance(layer, CONVOLUTIONS):
        return output.flatten(2).mean(2)
    return output if output.ndim == 2 else output.flatten(1, -2).mean(1)


def _is_pointwise(layer: nn.Module, call: Call) -> bool:
    """Return whether a layer is linear in its features: a convolution at each position, or over the map."""
    if not isinstance(layer, CONVOLUTIONS):
        return True
    if layer.groups > 1:
        return False
    return set(layer.kernel_size) == {1} or call.features.shape[1] == layer.weight[0].numel()


def _named_final(module: nn.Module, head: str, calls: list[Call], output: Any) -> Final:
    """Return the final layer that the user named, in a known form if its output follows in one."""
    of_head = [call for call in calls if call.name == head]
    if len(of_head) != 1:
        raise RequestError(
            f"head='{head}' runs {len(of_head)} times in a forward pass of {type(module).__name__}"
        )
    flat = (of_one_pixel(tensor) for tensor in logits_first(entries(output)))
    known = (_final(module, values, of_head) for values in flat if values.ndim == 2)
    return next(filter(None, known), Final((head,), "assisted"))


def _final(module: nn.Module, output: Tensor, calls: list[Call]) -> Final | None:
    """Return the final layers from which an output [n k] follows, or None if in no known form."""
    counts = [call.name for call in calls]
    wide = [
        call
        for call in reversed(calls)
        if call.output.shape == output.shape
        and counts.count(call.name) == 1
        and _is_pointwise(module.get_submodule(call.name), call)
    ]
    for call in wide:
        for form, of in FORMS.items():
            factor = _factor(of(call.output), output)
            if factor == 1 or (factor is not None and form == "logits"):
                return Final((call.name,), form, factor=factor)
        if {*call.name.split(".")} & {*HEADS} and _factor(call.rectified, output) == 1:
            return Final((call.name,), "rectified")
    for later, earlier in itertools.pairwise(wide):
        factor = _factor(later.output + earlier.output, output)
        if factor is not None:
            one, other = sorted((later, earlier), key=lambda call: call.name)
            shared = one.features.shape == other.features.shape and torch.equal(one.features, other.features)
            form, factor = ("average", 1.0) if factor == 0.5 else ("sum", factor)
            return Final((one.name, other.name), form, shared, factor)
    return _of_timm(module, wide)


def _of_timm(module: nn.Module, wide: list[Call]) -> Final | None:
    """Return the layer that timm calls a module's classifier, where its features were recorded too."""
    get, size = getattr(module, "get_classifier", None), getattr(module, "head_hidden_size", None)
    if not callable(get) or not callable(getattr(module, "forward_head", None)):
        return None
    own = [call for call in wide if module.get_submodule(call.name) is get()]
    if len(own) == 1 and own[0].features.shape[1] == size:
        return Final((own[0].name,), "assisted")
    return None


def _factor(one: Tensor, other: Tensor) -> float | None:
    """Return the positive number times which one gives the other, or None if there is none.

    1 and 0.5 are returned exactly. Of fewer than six numbers no factor but these is believed.
    """
    one, other = one.detach().double(), other.detach().double()
    if not (one.isfinite().all() and other.isfinite().all()):
        return None
    square = float((one * one).sum())
    fitted = float((one * other).sum()) / square if square else 1.0
    factors = [1.0, 0.5, *([fitted] if one.numel() >= 6 and fitted > 0 else [])]
    scale = float(other.abs().max())
    return next((each for each in factors if float((each * one - other).abs().max()) <= NEAR * scale), None)


def _joined(calls: list[Call], final: Final) -> Tensor:
    """Return the features that the final layers were given, side by side."""
    found = {call.name: call.features for call in calls}
    lacking = [name for name in final.layers if name not in found]
    if lacking:
        raise RequestError(f"the final layer '{lacking[0]}' takes no part in this forward pass")
    parts = [found[name] for name in final.layers]
    return parts[0] if final.shared or len(parts) == 1 else torch.cat(parts, 1)


def _one_layer(module: nn.Module, layer: str) -> dict[str, nn.Module]:
    found = taps(module, layer)
    if len(found) > 1:
        raise RequestError(f"'{layer}' is {len(found)} layers; features are those of one")
    return found


def _ends_a_trunk(output: Tensor, leaves: list[tuple[str, nn.Module, Tensor | None]]) -> bool:
    """Return whether an output is that of an activation or a normalisation, which may change nothing yet."""
    return any(
        values is not None and values.shape == output.shape and torch.equal(values, output)
        for _, layer, values in leaves
        if isinstance(layer, ACTIVATIONS) or "Norm" in type(layer).__name__
    )


def _doubt(
    module: nn.Module,
    output: Tensor,
    name: str,
    calls: list[Call],
    leaves: list[tuple[str, nn.Module, Tensor | None]],
) -> str:
    """Return why an output may be class scores of an unknown final layer, or an empty string."""
    if not output.isfinite().all() or output.ndim != 2:  # refused as features, whatever the final layer is
        return ""
    classes = output.shape[1]
    if name.rpartition(".")[2] in SCORES:
        return f"'{name}' is called scores"
    if getattr(module, "num_classes", None) == classes > 0:
        return f"the module declares {classes} classes"
    if not leaves:
        return "its layers cannot be observed"
    if bare := _bare(module, classes, {id(layer) for _, layer, _ in leaves if layer is not module}):
        return f"the parameter {bare} may be its final layer, without a module"
    last_name, last, _ = leaves[-1]
    if isinstance(last, nn.Softmax | nn.LogSoftmax | nn.Sigmoid | nn.Softmax2d):
        return f"it ends in '{last_name}', {type(last).__name__}"
    is_head = {*last_name.split(".")} & {*HEADS}
    if not is_linear(last) or (isinstance(last, CONVOLUTIONS) and not is_head):
        return ""
    if float((output.double().norm(dim=1) - 1).abs().max()) < NEAR:  # an embedding of unit length
        return ""
    of_last = next((call for call in reversed(calls) if call.name == last_name), None)
    if of_last is not None and _factor(of_last.rectified, output) == 1:
        return ""
    return f"it is made of what '{last_name}' gives in an unknown way"


def _bare(module: nn.Module, classes: int, run: set[int]) -> str:
    """Return a matrix as wide as an output that no layer which ran has applied, or an empty string."""
    for name, value in module.named_parameters():
        owner = module.get_submodule(name.rpartition(".")[0])
        wide = value.shape[:1] if is_linear(owner) else value.shape[:2]
        known = type(owner).__module__.startswith("torch.nn.modules") and not is_linear(owner)
        holds = isinstance(owner, nn.ParameterList | nn.ParameterDict) or type(owner) is nn.Module
        skipped = id(owner) in run or isinstance(owner, CONVOLUTIONS)
        if value.ndim >= 2 and classes in wide and not skipped and (holds or not known):
            return f"'{name}' {list(value.shape)}"
    return ""


def _not_found(module: nn.Module, output: Any, calls: list[Call], doubt: str) -> NoHeadError:
    """Return the error for a network without a known final layer: its output, and where it was searched."""
    looked = list(dict.fromkeys(call.name for call in reversed(calls)))
    names = ", ".join(f"'{name}'" for name in looked[:LISTED]) or "none"
    return NoHeadError(
        f"the final layer of {type(module).__name__} was not found: its output ({described(output)}) does not"
        f" follow from a linear layer's in a known way ({doubt}). Its last linear layers are {names}. Name"
        " the final layer, head='NAME', or the layer whose output is to be the features: layer='NAME', or"
        " layer='output' for the network's own output"
    )
