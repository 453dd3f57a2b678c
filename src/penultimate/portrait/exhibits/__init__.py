"""The exhibits of a portrait as data."""

from penultimate.report.spec import declare_exhibits

declare_exhibits(__name__, __path__)
