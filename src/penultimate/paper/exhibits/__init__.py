"""The tables and figures of the paper as data: every `Exhibit` that a module of this package defines."""

from penultimate.report.spec import PAPER, declare_exhibits

declare_exhibits(__name__, __path__, PAPER)
