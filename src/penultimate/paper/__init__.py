"""Kornblith et al. (2021) as a client of the machine; another paper would register the same things."""

from importlib import resources
from pathlib import Path

from penultimate.registry import declare

REFERENCE = Path(str(resources.files(__name__))) / "reference"
"""The folder of the reference runs in the package; each run has a folder of its name there."""

FIRST_STUDY, BASELINE = "nine", "softmax"
"""The smallest study that measures most of what exhibits show, and the objective that others are compared
with."""

declare(
    "page",
    "usual",
    "penultimate.paper.page:PAGE",
    "a study beside the paper",
    first=FIRST_STUDY,
    baseline=BASELINE,
    further=("inception_v3", "allcnnc", "wrn16_8"),
)
declare(
    "reference",
    "kornblith2021",
    f"{__name__}:REFERENCE",
    "the runs that come with the package",
    main="evidence",
)
