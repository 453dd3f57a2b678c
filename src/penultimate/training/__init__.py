"""Training: one loop for every objective, with a recipe as data; a run killed anywhere resumes exactly."""

from penultimate.lazy import attributes

__getattr__, __dir__ = attributes(
    __name__, {"recipe": "Recipe", "start": "Start", "loop": "TrainingResult train"}
)
