"""The search for the learning rate of the temperature sweep in the matched regime, at one temperature.

    penultimate tune all --study matched_sweep_search

It takes half an hour on two CPU cores with AVX-512 (2,800 images a second each). In the sweep the loss is
scaled by its temperature, as in the paper's table 4, and with that scale it learns slowly.
"""

from penultimate.paper.studies.matched_search import RECIPE, SEEDS
from penultimate.study.blocks import Runs, Search
from penultimate.study.spec import Study

STUDY = Study(
    name="matched_sweep_search",
    title="The search for the learning rate of the temperature sweep in the matched regime",
    question="Which learning rate suits cosine softmax when its loss is scaled by the temperature?",
    source="glyphs_tuning",
    targets=(),
    networks=(Runs(("cosine_softmax(temperature=0.05, scale=0.05)",), RECIPE, seeds=SEEDS),),
    search=Search(
        grids={
            "temperature": (0.05,),
            "scale": (0.05,),
            "recipe.learning_rate": (1.2, 2.4, 4.8, 9.6, 19.2),
        }
    ),
    expected_seconds={"train": 176.0},
)
