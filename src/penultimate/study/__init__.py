"""Studies: what they are, how they are chosen and changed, how they unfold into steps."""

from penultimate.lazy import attributes

__getattr__, __dir__ = attributes(
    __name__, {"spec": "Given Runs Search Study runs_by_recipe", "selection": "load_study"}
)
