"""Which of ImageNet's classes the classes of eight published data sets are, or are superclasses of.

`counterparts.csv` holds a row for every such class: its data set, the name that its reader gives it, how it
relates to ImageNet's synsets, and these. A class without a row has no counterpart. It was written for this
package from the words and hypernyms of WordNet (Princeton University), by one rule for all eight:

- same: the name is one of a synset's words, ignoring case, spelling, and the view (indoor, outdoor).
- other name: the synset is the same thing under another name (the Japanese chin is its Japanese spaniel).
- superclass: in the sense that the class has, the name is a hypernym of the synsets.
- kind of: the name ends with one of a synset's words, and that of no other class of the data set does. So a
  breakfast burrito stands for burritos, and none of nine hummingbirds for the hummingbird.
- none: a class only shares its name with a synset (CIFAR-100's mouse with the computer's).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def imagenet_counterparts(dataset: str) -> Mapping[str, tuple[str, ...]]:
    """Return {class: the WordNet ids of its counterparts} of a published data set; {} where none is known.

    >>> imagenet_counterparts("flowers102")
    {'artichoke': ('n07718747',)}
    """
    lines = (resources.files(__package__) / "counterparts.csv").read_text(encoding="utf-8").splitlines()
    rows = (row for row in csv.DictReader(lines) if row["dataset"] == dataset)
    return {row["class"]: tuple(row["synsets"].split()) for row in rows}
