"""penultimate: which training objective gives features that transfer, and what does it do to the network?

Names are resolved when first used, so that `import penultimate` imports no tensor library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import penultimate.plugins  # noqa: F401  (has the registry look into installed packages for unknown names)
from penultimate.errors import PenultimateError, RequestError
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.banks.organisation import organisation
    from penultimate.banks.reading import read_bank
    from penultimate.engine.run import plan, run
    from penultimate.evaluation import evaluate
    from penultimate.features.bank import FeatureBank
    from penultimate.features.extraction import extract
    from penultimate.features.files import extract_files
    from penultimate.layers.comparison import compare_networks
    from penultimate.layers.profiles import profile_layers
    from penultimate.metrics.agreement import agreement
    from penultimate.metrics.auc import auc, auc_interval
    from penultimate.metrics.calibration import expected_calibration_error, negative_log_likelihood
    from penultimate.metrics.collapse import neural_collapse
    from penultimate.metrics.hardness import angular_visual_hardness
    from penultimate.metrics.separation import class_separation
    from penultimate.metrics.similarity import minibatch_cka
    from penultimate.metrics.source_classes import assignment_accuracy, leep, nce
    from penultimate.metrics.temperature import fit_temperature
    from penultimate.metrics.transferability import h_score, logme, transrate
    from penultimate.objectives.objective import objective
    from penultimate.probes.knn import KNNProbe
    from penultimate.probes.linear import LinearProbe
    from penultimate.probes.multilabel import MultiLabelProbe
    from penultimate.records.reading import results
    from penultimate.report import exhibit

__version__ = "0.1.0"

_LOCATIONS = {
    "objective": "penultimate.objectives.objective",
    "class_separation": "penultimate.metrics.separation",
    "minibatch_cka": "penultimate.metrics.similarity",
    "compare_networks": "penultimate.layers.comparison",
    "profile_layers": "penultimate.layers.profiles",
    "neural_collapse": "penultimate.metrics.collapse",
    "angular_visual_hardness": "penultimate.metrics.hardness",
    "agreement": "penultimate.metrics.agreement",
    "auc": "penultimate.metrics.auc",
    "auc_interval": "penultimate.metrics.auc",
    "expected_calibration_error": "penultimate.metrics.calibration",
    "negative_log_likelihood": "penultimate.metrics.calibration",
    "fit_temperature": "penultimate.metrics.temperature",
    "logme": "penultimate.metrics.transferability",
    "h_score": "penultimate.metrics.transferability",
    "transrate": "penultimate.metrics.transferability",
    "leep": "penultimate.metrics.source_classes",
    "nce": "penultimate.metrics.source_classes",
    "assignment_accuracy": "penultimate.metrics.source_classes",
    "LinearProbe": "penultimate.probes.linear",
    "MultiLabelProbe": "penultimate.probes.multilabel",
    "KNNProbe": "penultimate.probes.knn",
    "extract": "penultimate.features.extraction",
    "extract_files": "penultimate.features.files",
    "read_bank": "penultimate.banks.reading",
    "organisation": "penultimate.banks.organisation",
    "FeatureBank": "penultimate.features.bank",
    "evaluate": "penultimate.evaluation",
    "plan": "penultimate.engine.run",
    "run": "penultimate.engine.run",
    "results": "penultimate.records.reading",
    "exhibit": "penultimate.report",
}

__all__ = [
    "FeatureBank",
    "KNNProbe",
    "LinearProbe",
    "MultiLabelProbe",
    "PenultimateError",
    "RequestError",
    "__version__",
    "agreement",
    "angular_visual_hardness",
    "assignment_accuracy",
    "auc",
    "auc_interval",
    "class_separation",
    "compare_networks",
    "evaluate",
    "exhibit",
    "expected_calibration_error",
    "extract",
    "extract_files",
    "fit_temperature",
    "h_score",
    "leep",
    "logme",
    "minibatch_cka",
    "nce",
    "negative_log_likelihood",
    "neural_collapse",
    "objective",
    "organisation",
    "plan",
    "profile_layers",
    "read_bank",
    "register",
    "results",
    "run",
    "transrate",
]


def __getattr__(name: str) -> Any:
    if name in _LOCATIONS:
        return getattr(importlib.import_module(_LOCATIONS[name]), name)
    raise AttributeError(f"module 'penultimate' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
