"""Where the hyperparameters of `glyphs` are chosen: the nine objectives with its recipe, two of its seeds.

    penultimate tune all --study glyphs_search

About an hour and a half on two CPU cores. Expect 79 to 81 % on the holdout. Nothing is measured on a test set
or a transfer task. The networks that are chosen are networks of `glyphs`: it finds them done.
"""

from penultimate.studies.glyphs import RECIPE
from penultimate.studies.rehearsal import START
from penultimate.study.blocks import Runs, Search
from penultimate.study.spec import Study

STUDY = Study(
    name="glyphs_search",
    title="The search for the hyperparameters of glyphs, on the embedded image world",
    question="Which hyperparameters of each objective do best on held-out images after long training?",
    source="glyphs",
    targets=(),
    networks=(Runs(START, RECIPE, seeds=(0, 1)),),
    search=Search(
        grids={
            "alpha": (0.05, 0.1, 0.2),
            "lambda_final": (3e-5, 1e-4, 3e-4),
            "keep": (0.9, 0.95, 0.975),
            "beta": (1e-3, 2e-3, 4e-3),
            "logit_norm.temperature": (0.03, 0.045, 0.07),
            "cosine_softmax.temperature": (0.06,),
            "cosine_softmax.scale": (0.5, 1, 2),
            "kappa": (9,),
            "target": (10,),
            "squared_error.scale": (0.25, 0.5, 1),
        },
        budget=3,
    ),
)
