"""Measurements of a network's features while it is trained in a user's own loop."""

from penultimate.lazy import attributes

__getattr__, __dir__ = attributes(__name__, {"monitor": "Monitor"})
