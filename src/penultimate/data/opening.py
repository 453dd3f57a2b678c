"""The place from which scripts import `open_dataset`, whichever room its readers are in."""

from penultimate.data.readers.opening import OpenedDataset, open_dataset

__all__ = ["OpenedDataset", "open_dataset"]
