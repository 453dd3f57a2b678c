"""What every exhibit must say of the study's runs: which diverged, which are not shown, what a seed is."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import SWEEP
from penultimate.report.sets import is_embedded
from penultimate.report.text import counted, plain

OF_DRAWS = (
    "Here another seed is another draw of the images, other first weights and another order; in the paper it"
    " is other first weights and another order alone."
)
OF_ONE_DRAW = (
    "Here, as in the paper, another seed is other first weights and another order: all networks saw one draw"
    " of the images."
)


def remarks(measurements: Measurements, of_one_arm: bool, of_another: bool) -> tuple[str, ...]:
    """Runs that diverged, and what is not shown: other architectures, and, if it is `of_one_arm`, other arms.

    `of_another`: it is of another architecture, and says so itself. An architecture that was measured for
    Figure B.1 alone goes without saying.
    """
    said = [f"Diverged, and left out of every mean: {run}." for run in measurements.diverged]
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
    """The other architectures that were measured, and have every objective that this one has."""
    arm, networks = measurements.arm, measurements.networks
    measured = set(measurements.results.table.where(arm=arm or None).column("backbone"))
    specs = networks.specs(arm, measurements.backbone)
    others = (name for name in measurements.backbones if name != measurements.backbone and name in measured)
    return [name for name in others if networks.specs(arm, name) >= specs]


def seed_in_words(measurements: Measurements) -> str:
    """What the seeds of this arm decide, where it has several in a world that is drawn; else ""."""
    every = measurements.networks.grids(measurements.arm, measurements.backbone)
    grids = [block for block in every if "seeds" in block]
    if len({seed for block in grids for seed in block["seeds"]}) < 2 or not is_embedded(measurements.source):
        return ""
    return OF_DRAWS if all(block["draws"] == "seed" for block in grids) else OF_ONE_DRAW


def not_validated(measurements: Measurements) -> list[str]:
    """Return a sentence for each task that names the classes of which no image validates."""
    from penultimate.measures.further_training import had_no_say

    lacking = measurements.results.provenance.get("classes_not_validated", {})
    every = [plain(had_no_say(card(target).title, classes)) for target, classes in sorted(lacking.items())]
    return [f"{told[0].upper()}{told[1:]}." for told in every]
