"""Which command measures what an exhibit lacks where a study is of the paper's own size."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from penultimate.paper.claims.aspects import NAMES, Aspect
from penultimate.paper.panels import RIGHT_HALF
from penultimate.report.searches import SEARCH

STUDIES = {
    "imagenet_resnet50": (
        *("table3", "tableC1", "tableE1", "tableE2", "figure2", "figure3", "figure4", "figureC4", "figureC5"),
        *("figureC6", "figureC7", "figureE1", "figureE2", "figureE3"),
    ),
    "imagenet_transfer": (
        *("table1", "table2", "tableD1", "tableF1", "figure1", "figure5", "figureD1", "figureD3"),
    ),
    "imagenet_temperature": ("table4", RIGHT_HALF),
    "imagenet_inception_v3": ("tableB1", "figureB1"),
    "imagenet_curves": ("figureC1", "figureC2", "figureC3"),
    "imagenet_robustness": ("tableC2",),
    "imagenet_calibration": ("tableC3",),
    "imagenet_combinations": ("tableC4",),
    "imagenet_augmentation": ("tableC5", "tableE3"),
    "imagenet_long": ("tableC6",),
    "imagenet_dynamics": ("figureD2", "figureE4"),
    "imagenet_relearning": ("figure6", "iclr_figure5"),
    "cifar10_allcnnc": ("iclr_table1",),
}
"""The exhibits that each study of this size measures, as its header says."""
ASPECTS: Mapping[str, tuple[Aspect, ...]] = {
    "imagenet_resnet50": (
        *("accuracy", "train", "kinship", "ensembles", "separation", "separation_before", "active"),
        "likeness",
    ),
    "imagenet_transfer": ("linear", "knn", "shared", "fine_tuned", "moved", "labels"),
    "imagenet_curves": ("matched",),
    "imagenet_dynamics": ("fall", "snapshots"),
    "imagenet_calibration": ("ece",),
    "imagenet_relearning": ("relearned", "gap"),
    "imagenet_temperature": ("temperature",),
    "imagenet_robustness": ("robust",),
    "imagenet_augmentation": ("augmented",),
    "imagenet_combinations": ("combined",),
    "imagenet_long": ("benchmarks",),
    "few_labels": ("few_labels",),
}
"""What claims ask for, by the study that measures it; few labels are measured in the embedded world alone."""
COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        **{lacking: f"run {study}" for study, exhibits in STUDIES.items() for lacking in exhibits},
        **{
            f"{NAMES[aspect][0].upper()}{NAMES[aspect][1:]}": f"run {study}"
            for study, aspects in ASPECTS.items()
            for aspect in aspects
        },
        "claims": "run imagenet_resnet50",
        SEARCH: "tune all --study imagenet_search",
    }
)
