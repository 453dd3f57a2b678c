"""The evaluation of the user's own networks and data: the study, its exhibits, its page and its command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penultimate.lazy import attributes
from penultimate.registry import declare

if TYPE_CHECKING:
    from penultimate.evaluation.evaluating import Evaluation as Evaluation
    from penultimate.evaluation.evaluating import evaluate as evaluate

__getattr__, __dir__ = attributes(__name__, {"evaluating": "Evaluation evaluate"})
__all__ = __dir__()

declare("page", "evaluation", "penultimate.evaluation.page:PAGE", "networks and data of your own")
