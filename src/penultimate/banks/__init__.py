"""Feature banks written by other programs: reading them, and how features are organised by their labels."""

from penultimate.lazy import attributes

__getattr__, __dir__ = attributes(
    __name__, {"files": "ForeignBank LabelColumn read_bank", "organisation": "Organised organisation"}
)
