"""Where the learning rate of `glyphs`' temperature sweep is chosen, at one temperature.

    penultimate tune all --study glyphs_sweep_search

About twenty minutes on two CPU cores. Expect 81.6 % on the holdout at a learning rate of 1.7.
"""

from penultimate.studies.glyphs import RECIPE
from penultimate.study.blocks import Runs, Search
from penultimate.study.spec import Study

STUDY = Study(
    name="glyphs_sweep_search",
    title="The search for the learning rate of the temperature sweep, on the embedded image world",
    question="Which learning rate suits cosine softmax when its loss is scaled by the temperature?",
    source="glyphs",
    targets=(),
    networks=(Runs(("cosine_softmax(temperature=0.05, scale=0.05)",), RECIPE, seeds=(0, 1)),),
    search=Search(
        grids={"temperature": (0.05,), "scale": (0.05,), "recipe.learning_rate": (1.2, 2.4, 4.8)}, budget=4
    ),
)
