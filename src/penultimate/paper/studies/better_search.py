"""Seven candidates beside softmax: which may beat it in both pretraining accuracy and transfer?

    penultimate run better_search

The first half of a search whose rules (`penultimate.paper.claims.both`) came before any of these networks:
candidates are compared with softmax by test accuracy and by four of the eight transfer tasks. The study
`better` tries the chosen one on the other four tasks, with seeds of its own. Five more candidates are in
the first three seeds of `sweep`.

The recipe is that of `matched_search`. A projector stands between the features and the head while a network
is trained; the features that are transferred are those before it, as always.
"""

from penultimate.paper.claims.both import CHOOSING, NEW_CANDIDATES
from penultimate.paper.studies import matched_search
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study

SEEDS = (220, 221)

STUDY = Study(
    name="better_search",
    title="Seven candidates beside softmax, on four tasks of the embedded image world",
    question="Which objective may be better than softmax in both pretraining accuracy and transfer?",
    source="glyphs",
    targets=CHOOSING,
    networks=(Runs(("softmax", *NEW_CANDIDATES), matched_search.RECIPE, seeds=SEEDS),),
    measure=("accuracy", "class_separation", "linear", "knn"),
    tuned_by=("matched_search",),
    expected_seconds={"train": 176.0},
)
