"""The smallest design of `sweep`, a part of it: 19 networks for each of three seeds.

    penultimate run sweep_smallest

Seven families with three strengths each, of which softmax at strength zero serves three. With three seeds a
family whose slope is -3.6 points for each .1 of R² is found nearly always (power .97 to 1.0, by simulations
with a standard deviation of .45 points among networks within a seed). The strengths that the paper prints are
not all among them, so they are no arm of their own here. Two of the four pairs of equal accuracy are. In a
store that holds these steps, `sweep` trains only the networks that are missing.
"""

import dataclasses

from penultimate.paper.studies.sweep import FAMILIES, SEEDS, SMALLEST, of_strengths
from penultimate.paper.studies.sweep import STUDY as WHOLE

STUDY = dataclasses.replace(
    WHOLE,
    name="sweep_smallest",
    title="Seven families of objectives, each at three strengths, on the embedded image world",
    networks=of_strengths(
        SEEDS[:3],
        tuple(
            dataclasses.replace(one, values=SMALLEST[one.family])
            for one in FAMILIES
            if one.family in SMALLEST
        ),
    ),
)
