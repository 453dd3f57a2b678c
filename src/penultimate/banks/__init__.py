"""Banks that were written by others: features and columns of labels from a file, and what they organise."""

from penultimate.lazy import attributes

__getattr__, __dir__ = attributes(
    __name__, {"files": "ForeignBank LabelColumn read_bank", "organisation": "Organised organisation"}
)
