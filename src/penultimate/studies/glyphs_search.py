"""Where the hyperparameters of `glyphs` are chosen: the nine objectives with its recipe, two of its seeds.

    penultimate tune all --study glyphs_search --budget 4

Nothing is measured on a test set or a transfer task. The networks that are chosen are networks of `glyphs`:
it finds them done.
"""

from penultimate.studies.glyphs import RECIPE
from penultimate.studies.quickstart import TARGETS
from penultimate.studies.rehearsal import START
from penultimate.study.spec import Study

STUDY = Study(
    name="glyphs_search",
    title="The search for the hyperparameters of glyphs, on the embedded image world",
    question="Which hyperparameters of each objective do best on held-out images after long training?",
    objectives=START,
    source="glyphs",
    targets=TARGETS,
    recipe=RECIPE,
    seeds=(0, 1),
)
