"""Studies: what they contain, how one is selected and changed, and how it unfolds into steps."""

from penultimate.lazy import attributes

__getattr__, __dir__ = attributes(
    __name__,
    {
        "blocks": "Given Runs Search runs_by_recipe",
        "spec": "Study",
        "selection": "load_study",
        "sweeps": "Sweep",
    },
)
