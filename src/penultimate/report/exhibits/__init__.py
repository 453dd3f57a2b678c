"""Exhibits that belong to no paper, as data: the measurements of plug-ins."""

from penultimate.report.spec import declare_exhibits

declare_exhibits(__name__, __path__)
