"""The study with statistics: nine objectives, a sweep of cosine softmax's temperature, five seeds, 44 epochs.

    penultimate run glyphs

Every seed has its own draw of the world. 44 epochs, not 20, because the paper's pattern needs long training:
there softmax fits its training images almost completely. The hyperparameters are the quickstart's, chosen on
the holdout at 20 epochs; in the sweep the loss is scaled by the temperature at every temperature, as in the
paper's table 4.
"""

from penultimate.studies.quickstart import START, TARGETS
from penultimate.study.spec import INSTRUMENTS, Study
from penultimate.training.recipe import Recipe

TEMPERATURES = (0.03, 0.04, 0.05, 0.06, 0.08, 0.1)

STUDY = Study(
    name="glyphs",
    title="Nine objectives and six temperatures, five seeds, on the embedded image world",
    question="Which training objective gives features that transfer, and how sure can one be?",
    objectives=(*START, *(f"cosine_softmax(temperature={tau}, scale={tau})" for tau in TEMPERATURES)),
    source="glyphs",
    targets=TARGETS,
    recipe=Recipe(epochs=44, evaluate_every=4),
    seeds=(0, 1, 2, 3, 4),
    relearning=(5, 10, 40),
    instruments=tuple(INSTRUMENTS),
)
