"""The nine objectives of the paper as data, and the algebra that combines them with `+` (no tensor library).

An objective is a head x a loss x penalties, with dropout on the features and a scale of the data loss, and
it may have a projector before the head and regularisers of the features (`objectives.parts`). A preset names
only the slots that it changes; the defaults are a linear head, softmax cross-entropy, no projector, no
penalty, no regulariser, no dropout and scale 1. `+` combines the slots of several terms, in any order. Each
slot may be set at most once, because `+` does not add losses up; each penalty and each regulariser has a slot
of its own. A slot set to its default value counts as unset, so `cosine_softmax(scale=1)` leaves the scale to
other terms. A term that sets nothing but defaults is refused if another term sets the same slot
(`softmax + sigmoid`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penultimate import registry, shipped, specs
from penultimate.errors import RequestError, unknown
from penultimate.objectives.hyperparameters import Hyperparameter, Interval, bind, of_function, stated
from penultimate.objectives.parts import PARTS
from penultimate.specs import Spec

COMPONENT_KINDS = ("head", "fixed_head", "loss", "penalty", "projector", "regulariser")
ADDED_UP = ("penalty", "regulariser")
"""The kinds of which an objective may have several."""
SUM = (
    "+ joins one projector, one head, one loss, any penalties and regularisers, dropout and a scale; it does"
    " not add losses up"
)
"""The explanation of a sum of objectives, which help texts and errors repeat."""


@dataclass(frozen=True)
class Component:
    """A registered function of one of COMPONENT_KINDS, with a value for each of its hyperparameters."""

    kind: str
    name: str
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self.arguments)

    def resolve(self) -> Any:
        """Return the function itself; this imports it, and the tensor library with it."""
        return registry.entry(self.kind, self.name).resolve()


DEFAULTS: dict[str, Any] = {
    "head": Component("head", "linear"),
    "loss": Component("loss", "softmax_cross_entropy", (("smoothing", 0),)),
    "dropout": 1,
    "scale": 1,
    "projector": None,
}


@dataclass(frozen=True)
class Preset:
    """An objective of the paper: the slots that it sets, and the hyperparameters that fill them.

    `head`, `loss` and `penalty` are (function, {argument of the function: hyperparameter of the preset, or a
    fixed number}). `keep` and `scale` name the hyperparameters for dropout's keep probability and for the
    scale of the loss. `label` is the paper's name for it, and `equation` is its number in the NeurIPS text.
    """

    name: str
    label: str
    equation: int
    summary: str
    hyperparameters: tuple[Hyperparameter, ...] = ()
    head: tuple[str, Mapping[str, str]] | None = None
    loss: tuple[str, Mapping[str, str | int]] | None = None
    penalty: tuple[str, Mapping[str, str]] | None = None
    keep: str | None = None
    scale: str | None = None

    @property
    def paper(self) -> str:
        return f"Kornblith et al., NeurIPS 2021, eq. {self.equation}"

    def slots(self, values: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the content of each slot that this preset sets, for these values of its hyperparameters."""
        slots: dict[str, Any] = {}
        for kind, part in (("head", self.head), ("loss", self.loss), ("penalty", self.penalty)):
            if part is not None:
                name, sources = part
                arguments = {argument: values.get(source, source) for argument, source in sources.items()}
                if values.get("form") == RELEASED:
                    arguments["form"] = RELEASED
                slots[_slot(kind, name)] = Component(kind, name, tuple(sorted(arguments.items())))
        if self.keep is not None:
            slots["dropout"] = values[self.keep]
        if self.scale is not None:
            slots["scale"] = values[self.scale]
        return slots


RELEASED = "released"
FORM = Hyperparameter(
    "form", "text", "the paper's text, or the authors' released code", "form", choices=("text", RELEASED)
)
"""Which of the two an objective follows where they differ."""
_POSITIVE = Interval(low=0)
_NOT_NEGATIVE = Interval(low=0, closed="left")

SOFTMAX = Preset(
    "softmax",
    "Softmax",
    1,
    "Softmax cross-entropy: the default that every other objective changes.",
    loss=("softmax_cross_entropy", {"smoothing": 0}),
)
LABEL_SMOOTHING = Preset(
    "label_smoothing",
    "Label smoothing",
    2,
    "Softmax cross-entropy against targets mixed with the uniform distribution.",
    (Hyperparameter("alpha", 0.1, "the weight of the uniform distribution", "α", Interval(0, 1, "left")),),
    loss=("softmax_cross_entropy", {"smoothing": "alpha"}),
)
DROPOUT = Preset(
    "dropout",
    "Dropout",
    3,
    "Dropout on the penultimate features, in the training loss only.",
    (Hyperparameter("keep", 0.7, "the probability of keeping a feature", "ρ", Interval(0, 1, "right")),),
    keep="keep",
)
FINAL_LAYER_L2 = Preset(
    "final_layer_l2",
    "More final layer L²",
    4,
    "An extra squared-norm penalty on the final layer's weight.",
    (Hyperparameter("lambda_final", 8e-4, "the weight of the squared norm of W", "λ", _NOT_NEGATIVE), FORM),
    penalty=("squared_weight", {"strength": "lambda_final"}),
)
LOGIT_PENALTY = Preset(
    "logit_penalty",
    "Logit penalty",
    5,
    "A squared-norm penalty on the logits.",
    (Hyperparameter("beta", 6e-4, "the weight of the squared norm of the logits", "β", _NOT_NEGATIVE), FORM),
    penalty=("squared_logits", {"strength": "beta"}),
)
LOGIT_NORM = Preset(
    "logit_norm",
    "Logit normalization",
    6,
    "Logits divided by their norm and a temperature.",
    (Hyperparameter("temperature", 0.04, "what the unit-norm logits are divided by", "τ", _POSITIVE), FORM),
    head=("normalised_logits", {"temperature": "temperature"}),
)
COSINE_SOFTMAX = Preset(
    "cosine_softmax",
    "Cosine softmax",
    7,
    "Cosines of features and class weights, divided by a temperature, as logits.",
    (
        Hyperparameter("temperature", 0.05, "what the cosines are divided by", "τ", _POSITIVE),
        Hyperparameter("scale", 1, "what the loss is multiplied by", "scale", _POSITIVE),
        FORM,
    ),
    head=("cosine", {"temperature": "temperature"}),
    scale="scale",
)
SIGMOID = Preset(
    "sigmoid",
    "Sigmoid",
    8,
    "Binary cross-entropy of every class; the bias starts at -log K.",
    loss=("sigmoid_cross_entropy", {}),
)
SQUARED_ERROR = Preset(
    "squared_error",
    "Squared error",
    9,
    "Weighted squared error of the logits against a large target for the right class.",
    (
        Hyperparameter("kappa", 9, "the weight of the right class", "κ", _POSITIVE),
        Hyperparameter("target", 60, "the logit aimed at for the right class", "M", _POSITIVE),
        Hyperparameter("scale", 10, "what the loss is multiplied by", "scale", _POSITIVE),
        FORM,
    ),
    loss=("weighted_squared_error", {"kappa": "kappa", "target": "target"}),
    scale="scale",
)

# The presets are in the order of the paper's tables.
PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        SOFTMAX,
        LABEL_SMOOTHING,
        SIGMOID,
        FINAL_LAYER_L2,
        DROPOUT,
        LOGIT_PENALTY,
        LOGIT_NORM,
        COSINE_SOFTMAX,
        SQUARED_ERROR,
    )
}


@dataclass(frozen=True)
class Composition:
    """An objective with every slot filled and a value for every hyperparameter.

    `terms` are the presets and plug-ins in its spec, sorted; the other fields follow from them.
    """

    terms: tuple[Spec, ...]
    head: Component
    loss: Component
    penalties: tuple[Component, ...]
    keep: float
    scale: float
    projector: Component | None = None
    regularisers: tuple[Component, ...] = ()

    @property
    def canonical(self) -> str:
        """The identity: one string for all ways to write this sum, with all defaults written out."""
        return " + ".join(map(str, self.terms))

    @property
    def preset(self) -> str | None:
        """The preset's name if this is a single preset with any hyperparameters, else None."""
        return self.terms[0].name if len(self.terms) == 1 and self.terms[0].name in PRESETS else None

    @property
    def label(self) -> str:
        """The display name, as in the paper's tables."""
        return " + ".join(_label(term) for term in self.terms)

    @property
    def detailed_label(self) -> str:
        """The label with its hyperparameters in the paper's symbols: "Dropout (ρ = 0.7) + Sigmoid"."""
        details = []
        for term in self.terms:
            known = PRESETS.get(term.name) or PARTS.get(term.name)
            symbols = {item.name: item.symbol for item in known.hyperparameters} if known else {}
            listed = ", ".join(
                f"{symbols.get(name, name)} = {value}" for name, value in term.arguments.items()
            )
            details.append(f"{_label(term)} ({listed})" if listed else _label(term))
        return " + ".join(details)

    @property
    def components(self) -> tuple[Component, ...]:
        projector = () if self.projector is None else (self.projector,)
        return (self.head, self.loss, *self.penalties, *projector, *self.regularisers)

    @property
    def has_fixed_head(self) -> bool:
        """Whether the final layer is constructed, not trained."""
        return self.head.kind == "fixed_head"

    @property
    def gives_log_probabilities(self) -> bool:
        """Whether logits are trained as log-probabilities; squared error fits them to fixed values."""
        return self.loss.name != "weighted_squared_error"

    @property
    def has_plugins(self) -> bool:
        """Whether a part of it comes from a plug-in."""
        return any(registry.entry(part.kind, part.name).is_plugin for part in self.components)


def preset_of(text: str) -> str | None:
    """Return the preset that a spec names; None for any other objective, or if its plug-in is not loaded.

    >>> preset_of("logit_norm(temperature=0.057)"), preset_of("mine(a=1)")
    ('logit_norm', None)
    """
    try:
        return resolve(text).preset
    except RequestError:
        return None


def resolve(text: str) -> Composition:
    """Return the composition that a spec string names: presets and plug-ins, joined with `+` in any order.

    A sum names the parts of one objective: one projector, one head, one loss, any penalties and
    regularisers, dropout and a scale; it does not add losses up. Raise RequestError for an unknown name (it
    suggests the nearest one), for a hyperparameter that is unknown, of the wrong type or out of range, for a
    slot that two terms set (it names the slot and both terms), and for a term that changes nothing when
    another term sets its slot.

    >>> resolve("dropout(keep=0.8) + label_smoothing").canonical
    'dropout(keep=0.8) + label_smoothing(alpha=0.1)'
    >>> resolve("softmax + cosine_softmax").preset
    'cosine_softmax'
    >>> resolve("sigmoid + label_smoothing")
    Traceback (most recent call last):
    penultimate.errors.RequestError: 'sigmoid + label_smoothing': the loss is set twice, by sigmoid and by
    label_smoothing. + joins one projector, one head, one loss, any penalties and regularisers, dropout and a
    scale; it does not add losses up. Leave one of them out.
    """
    if not isinstance(text, str):
        raise RequestError(f"an objective is named by a string such as 'cosine_softmax', got {text!r}")
    filled: dict[str, Any] = {}
    setter: dict[str, str] = {}
    terms: list[Spec] = []
    idle: dict[str, str] = {}
    for written in specs.parse_sum(text):
        term, slots = _contribution(written)
        terms.append(term)
        changed = {slot: value for slot, value in slots.items() if DEFAULTS.get(slot) != value}
        if not changed:
            idle.update(dict.fromkeys(slots, term.name))
        for slot, value in changed.items():
            if slot in filled:
                raise RequestError(
                    f"'{text}': the {slot} is set twice, by {setter[slot]} and by {term.name}. {SUM}. Leave"
                    " one of them out."
                )
            filled[slot] = value
            setter[slot] = term.name
    for slot in sorted(idle.keys() & setter.keys()):
        raise RequestError(
            f"'{text}': {idle[slot]} changes nothing beside {setter[slot]}, which sets the {slot}. {SUM}."
            f" Leave {idle[slot]} out."
        )
    named = [term for term in terms if term.name != SOFTMAX.name] or terms[:1]
    added = {
        kind: [filled[slot] for slot in sorted(filled) if slot.startswith(f"{kind} ")] for kind in ADDED_UP
    }
    made = Composition(
        terms=tuple(sorted(named, key=str)),
        head=filled.get("head", DEFAULTS["head"]),
        loss=filled.get("loss", DEFAULTS["loss"]),
        penalties=tuple(added["penalty"]),
        keep=filled.get("dropout", DEFAULTS["dropout"]),
        scale=filled.get("scale", DEFAULTS["scale"]),
        projector=filled.get("projector"),
        regularisers=tuple(added["regulariser"]),
    )
    on_weight = "penalty squared_weight"
    if made.has_fixed_head and on_weight in setter:
        raise RequestError(
            f"'{text}': {setter[on_weight]} changes nothing beside {setter['head']}, whose weight is not"
            f" trained. Leave {setter[on_weight]} out."
        )
    return made


def hyperparameters_of_term(name: str) -> tuple[Hyperparameter, ...]:
    """Return the hyperparameters of a term of a spec: a preset, a built-in part or a plug-in."""
    known = PRESETS.get(name) or PARTS.get(name)
    if known:
        return known.hyperparameters
    kind = next(kind for kind in COMPONENT_KINDS if name in registry.names(kind))
    entry = registry.entry(kind, name)
    return stated(name, of_function(entry.resolve()), entry.facts)


def _contribution(term: Spec) -> tuple[Spec, dict[str, Any]]:
    """Return a term with every hyperparameter filled in, and the slots that it sets."""
    preset = PRESETS.get(term.name)
    kinds = [kind for kind in COMPONENT_KINDS if term.name in registry.names(kind)]
    if preset is None and not kinds:
        registry.open_packages()
        kinds = [kind for kind in COMPONENT_KINDS if term.name in registry.names(kind)]
    if preset is not None:
        values = bind(preset.name, preset.hyperparameters, term.arguments)
        named = {
            item.name: values[item.name]
            for item in preset.hyperparameters
            if not item.choices or values[item.name] != item.default
        }
        return Spec(preset.name, named), preset.slots(values)
    if not kinds:
        if term.name in shipped.every_name():
            raise shipped.not_loaded(term.name)
        plugins = [name for kind in COMPONENT_KINDS for name in registry.names(kind)]
        raise unknown("objective", term.name, [*PRESETS, *plugins])
    values = bind(term.name, hyperparameters_of_term(term.name), term.arguments)
    component = Component(kinds[0], term.name, tuple(sorted(values.items())))
    is_empty = term.name in PARTS and kinds[0] == "projector" and values["depth"] == 0
    slots: dict[str, Any] = {_slot(kinds[0], term.name): None if is_empty else component}
    own_head = registry.entry(kinds[0], term.name).facts.get("head")
    if own_head is not None:
        shared = {of.name: values[of.name] for of in hyperparameters_of_term(own_head) if of.name in values}
        filled = bind(own_head, hyperparameters_of_term(own_head), shared)
        slots["head"] = Component("head", own_head, tuple(sorted(filled.items())))
    return Spec(term.name, values), slots


def _slot(kind: str, name: str) -> str:
    """Return the name of the slot of a component; what adds up has a slot for each name."""
    if kind in ADDED_UP:
        return f"{kind} {name}"
    return "head" if kind == "fixed_head" else kind


def _label(term: Spec) -> str:
    known = PRESETS.get(term.name) or PARTS.get(term.name)
    if known:
        return known.label
    kinds = [kind for kind in COMPONENT_KINDS if term.name in registry.names(kind)]
    said = registry.entry(kinds[0], term.name).facts.get("label") if kinds else ""
    return said or term.name.replace("_", " ").capitalize()
