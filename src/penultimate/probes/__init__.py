"""Probes: simple classifiers that measure how useful a fixed network's features are for a task.

This file imports no tensor library: it only declares the probes.
"""

from __future__ import annotations

from penultimate.registry import declare

declare(
    "probe",
    "linear",
    "penultimate.probes.linear:LinearProbe",
    "L2-regularised logistic regression; lambda chosen on validation, every optimum certified.",
    "Kornblith et al., 2021, section 3.1 and appendix A.2",
)
declare(
    "probe",
    "knn",
    "penultimate.probes.knn:KNNProbe",
    "k nearest neighbours; k chosen by leave-one-out over 1..max_k in one exact search.",
    "Kornblith et al., 2021, section 3.1",
)
