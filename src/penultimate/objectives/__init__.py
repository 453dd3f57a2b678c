"""Training objectives as head x loss x penalties: nine presets, their sums, and plug-ins of the same form.

A projector, a fixed head and regularisers are further parts that a sum may have (`parts`).

`presets.resolve` reads a spec string (no tensor library); `objective.objective` builds the module from it.
"""

from __future__ import annotations

from penultimate.objectives.parts import PARTS
from penultimate.objectives.presets import PRESETS
from penultimate.registry import declare

_PAPER = "Kornblith et al., NeurIPS 2021, eq. {}"

for _preset in PRESETS.values():
    _location = f"penultimate.objectives.presets:{_preset.name.upper()}"
    declare("objective", _preset.name, _location, _preset.summary, _preset.paper)

for _kind, _module, _name, _equation, _summary in (
    ("head", "heads", "linear", 1, "Logits W x + b."),
    ("head", "heads", "normalised_logits", 6, "Logits W x + b divided by their norm and a temperature."),
    ("head", "heads", "cosine", 7, "Cosines of x and the rows of W divided by a temperature, plus b."),
    ("loss", "losses", "softmax_cross_entropy", 2, "Softmax cross-entropy, with label smoothing."),
    ("loss", "losses", "sigmoid_cross_entropy", 8, "Binary cross-entropy summed over the classes."),
    ("loss", "losses", "weighted_squared_error", 9, "Squared error, the right class weighted by kappa."),
    ("penalty", "penalties", "squared_weight", 4, "strength times the squared norm of W."),
    ("penalty", "penalties", "squared_logits", 5, "strength times the squared norm of the logits."),
):
    declare(_kind, _name, f"penultimate.objectives.{_module}:{_name}", _summary, _PAPER.format(_equation))

for _part in PARTS.values():
    declare(_part.kind, _part.name, _part.location, _part.summary, _part.paper)
