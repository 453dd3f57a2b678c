"""The search of the matched regime for the two objectives whose loss has a scale, with their learning rates.

    penultimate tune all --study matched_search_scaled

It takes three and a half hours on two CPU cores with AVX-512 (2,800 images a second each). The scale of a
loss acts as a learning rate, so these two objectives get a learning rate of their own, and every combination
of it and their strength is tried (the search that was kept tried the learning rates at the best strength
alone); exposure to weight decay stays the same. The grids hold the paper's temperature, .05, and its
translation to 128 classes, .07; and the paper's magnitude of 60 at its scale of 10, translated by K (1.28).
"""

from penultimate.paper.studies.matched_search import RECIPE, SEEDS
from penultimate.study.blocks import Runs, Search
from penultimate.study.spec import Study

START = (
    "cosine_softmax(temperature=0.07, scale=1)",
    "squared_error(kappa=9, target=30, scale=1.28)",
)

STUDY = Study(
    name="matched_search_scaled",
    title="The search for hyperparameters of scaled losses in the matched regime",
    question="Which strengths and learning rates do best on held-out pretraining images?",
    source="glyphs_tuning",
    targets=(),
    networks=(Runs(START, RECIPE, seeds=SEEDS),),
    search=Search(
        grids={
            "temperature": (0.035, 0.05, 0.07, 0.1, 0.14),
            "cosine_softmax.scale": (1,),
            "kappa": (9,),
            "target": (1.88, 3.75, 7.5, 15, 30, 60, 120),
            "squared_error.scale": (1.28,),
            "recipe.learning_rate": (0.3, 0.6, 1.2, 2.4),
        },
        product=True,
    ),
    expected_seconds={"train": 176.0},
)
