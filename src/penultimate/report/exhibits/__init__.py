"""The exhibits of no paper, as data: those of networks from elsewhere, and of what plug-ins measure."""

from penultimate.report.spec import declare_exhibits

declare_exhibits(__name__, __path__)
