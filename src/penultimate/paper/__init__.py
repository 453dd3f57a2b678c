"""Kornblith et al. (2021) as a client of the machine: what it registers, as a paper of one's own would."""

from importlib import resources
from pathlib import Path

from penultimate.registry import declare

REFERENCE = Path(str(resources.files(__name__))) / "reference"
"""The folder of the runs that come with the package, each in a folder of its name."""

declare("page", "usual", "penultimate.paper.page:PAGE", "a study beside the paper")
declare("reference", "kornblith2021", f"{__name__}:REFERENCE", "the runs that come with the package")
