"""Remarks on a study's runs that are specific to this paper: the meaning of a seed, and what is not shown."""

from __future__ import annotations

from penultimate.paper.arms import SWEEP
from penultimate.report.measurements import Measurements
from penultimate.report.text import counted, plain

OF_DRAWS = (
    "Here another seed is another draw of the images, other initial weights and another order; in the paper"
    " it is other initial weights and another order alone."
)
OF_ONE_DRAW = (
    "Here, as in the paper, another seed is other initial weights and another order: all networks saw one"
    " draw of the images."
)


def remarks(
    measurements: Measurements, is_measured: bool, of_one_arm: bool, of_another: bool
) -> tuple[str, ...]:
    """Return the remarks on an exhibit: the meaning of a seed if it `is_measured`, and what it does not show.

    It does not show other architectures, unless it is `of_another` and says so itself, nor other arms if it
    is `of_one_arm`. An architecture that was measured only for Figure B.1 is not mentioned.
    """
    said = [seed_in_words(measurements)] if is_measured else []
    others = "" if of_another else ", ".join(map(plain, _measured_as_whole(measurements)))
    if others:
        said.append(
            f"Only the first architecture, {plain(measurements.backbone)}, is shown; also measured: {others}"
            " (Table B.1, Figure B.1)."
        )
    further = len(measurements.in_arm(SWEEP).objectives) if of_one_arm and not measurements.arm else 0
    if further:
        count = counted(further, "further temperature")
        said.append(f"Cosine softmax at {count} is compared in Table 4, not here.")
    return tuple(said)


def _measured_as_whole(measurements: Measurements) -> list[str]:
    """Return the other measured architectures that have every objective of this one."""
    arm, networks = measurements.arm, measurements.networks
    measured = set(measurements.results.table.where(arm=arm or None).column("backbone"))
    specs = networks.specs(arm, measurements.backbone)
    others = (name for name in measurements.backbones if name != measurements.backbone and name in measured)
    return [name for name in others if networks.specs(arm, name) >= specs]


def is_embedded(source: str) -> bool:
    """Return whether a data set is from the embedded world, whose pretraining images differ between draws."""
    return source.startswith("glyphs")


def seed_in_words(measurements: Measurements) -> str:
    """Return a sentence on what the seeds of this arm decide, if it has several in a drawn world; else ""."""
    every = measurements.networks.grids(measurements.arm, measurements.backbone)
    grids = [block for block in every if "seeds" in block]
    if len({seed for block in grids for seed in block["seeds"]}) < 2 or not is_embedded(measurements.source):
        return ""
    return OF_DRAWS if all(block["draws"] == "seed" for block in grids) else OF_ONE_DRAW
