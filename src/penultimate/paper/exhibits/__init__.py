"""The tables and figures of the paper as data: every `Exhibit` that a module of this package defines."""

from penultimate.paper.published import PAPER
from penultimate.report.spec import declare_exhibits

declare_exhibits(__name__, __path__, PAPER)
