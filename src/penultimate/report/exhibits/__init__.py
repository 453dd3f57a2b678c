"""The exhibits of no paper, as data: what plug-ins measure."""

from penultimate.report.spec import declare_exhibits

declare_exhibits(__name__, __path__)
