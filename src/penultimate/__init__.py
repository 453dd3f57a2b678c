"""penultimate: which training objective gives features that transfer, and what does it do to the network?

Names are resolved when first used, so that `import penultimate` imports no tensor library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penultimate.errors import PenultimateError as PenultimateError
from penultimate.errors import RequestError as RequestError
from penultimate.lazy import attributes
from penultimate.registry import register as register

if TYPE_CHECKING:
    from penultimate.banks.files import read_bank as read_bank
    from penultimate.banks.organisation import organisation as organisation
    from penultimate.data.readers.opening import labelled as labelled
    from penultimate.engine.plan import plan as plan
    from penultimate.engine.run import run as run
    from penultimate.evaluation import evaluate as evaluate
    from penultimate.features.bank import FeatureBank as FeatureBank
    from penultimate.features.extraction import extract as extract
    from penultimate.features.files import extract_files as extract_files
    from penultimate.layers.comparison import compare_networks as compare_networks
    from penultimate.layers.profiles import profile_layers as profile_layers
    from penultimate.metrics.agreement import agreement as agreement
    from penultimate.metrics.auc import auc as auc
    from penultimate.metrics.auc import auc_interval as auc_interval
    from penultimate.metrics.calibration import expected_calibration_error as expected_calibration_error
    from penultimate.metrics.calibration import negative_log_likelihood as negative_log_likelihood
    from penultimate.metrics.collapse import neural_collapse as neural_collapse
    from penultimate.metrics.hardness import angular_visual_hardness as angular_visual_hardness
    from penultimate.metrics.separation import class_separation as class_separation
    from penultimate.metrics.similarity import minibatch_cka as minibatch_cka
    from penultimate.metrics.source_classes import assignment_accuracy as assignment_accuracy
    from penultimate.metrics.source_classes import leep as leep
    from penultimate.metrics.source_classes import nce as nce
    from penultimate.metrics.temperature import fit_temperature as fit_temperature
    from penultimate.metrics.transferability import h_score as h_score
    from penultimate.metrics.transferability import logme as logme
    from penultimate.metrics.transferability import transrate as transrate
    from penultimate.monitoring.monitor import Monitor as Monitor
    from penultimate.networks.heads import replace_head as replace_head
    from penultimate.networks.model import Model as Model
    from penultimate.networks.store import load as load
    from penultimate.objectives.objective import objective as objective
    from penultimate.probes.knn import KNNProbe as KNNProbe
    from penultimate.probes.linear import LinearProbe as LinearProbe
    from penultimate.probes.multilabel import MultiLabelProbe as MultiLabelProbe
    from penultimate.records.reading import results as results
    from penultimate.results.exhibit import show

    exhibit = show

__version__ = "0.1.0"

__getattr__, __dir__ = attributes(
    __name__,
    {
        "banks.organisation": "organisation",
        "banks.files": "read_bank",
        "data.readers.opening": "labelled",
        "engine.plan": "plan",
        "engine.run": "run",
        "evaluation": "evaluate",
        "features.bank": "FeatureBank",
        "features.extraction": "extract",
        "features.files": "extract_files",
        "layers.comparison": "compare_networks",
        "layers.profiles": "profile_layers",
        "metrics.agreement": "agreement",
        "metrics.auc": "auc auc_interval",
        "metrics.calibration": "expected_calibration_error negative_log_likelihood",
        "metrics.collapse": "neural_collapse",
        "metrics.hardness": "angular_visual_hardness",
        "metrics.separation": "class_separation",
        "metrics.similarity": "minibatch_cka",
        "metrics.source_classes": "assignment_accuracy leep nce",
        "metrics.temperature": "fit_temperature",
        "metrics.transferability": "h_score logme transrate",
        "monitoring.monitor": "Monitor",
        "networks.heads": "replace_head",
        "networks.model": "Model",
        "networks.store": "load",
        "objectives.objective": "objective",
        "probes.knn": "KNNProbe",
        "probes.linear": "LinearProbe",
        "probes.multilabel": "MultiLabelProbe",
        "records.reading": "results",
        "results.exhibit": "exhibit=show",
    },
    "PenultimateError RequestError __version__ register",
)
__all__ = __dir__()
