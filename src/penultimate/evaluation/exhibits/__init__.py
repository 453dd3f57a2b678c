"""The exhibits of an evaluation as data: the ranking and its basis."""

from penultimate.report.spec import declare_exhibits

declare_exhibits(__name__, __path__)
