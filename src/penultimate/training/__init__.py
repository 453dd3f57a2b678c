"""Training: one loop for every objective and a recipe as data; interrupted anywhere, resumed exactly."""

from penultimate.lazy import attributes

__getattr__, __dir__ = attributes(
    __name__, {"recipe": "Recipe", "start": "Start", "loop": "TrainingResult train"}
)
