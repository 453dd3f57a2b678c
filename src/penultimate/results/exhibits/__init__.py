"""Exhibits that belong to no paper."""

from penultimate.results.exhibit import declare_exhibits

declare_exhibits(__name__, {"plugins": {"plugins": "What metrics and probes from plug-ins have measured"}})
