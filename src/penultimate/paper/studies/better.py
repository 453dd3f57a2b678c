"""Softmax and the chosen one of twelve candidates: is it better in both pretraining accuracy and transfer?

    penultimate run better

The second half of the search whose rules are `penultimate.paper.claims.both`. The candidates were compared in
`better_search` and three seeds of `sweep`, by test accuracy and by four of the eight transfer tasks; this one
had the highest score. Here it is trained with eight seeds that no other study uses, and its features are
transferred to the other four tasks.

The rules were filed in commit f0b5ead7 on 2026-11-27, before any network of `better_search` was trained, and
the choice in the commit that added this file, before any network of the chosen objective was trained here.
Softmax's networks were being trained already, since they do not depend on the choice.

The projector is one more hidden layer while a network is trained, and test accuracy is that of the network
with it: the two objectives are not compared at equal numbers of parameters.
"""

from penultimate.paper.claims.both import CONFIRMING
from penultimate.paper.studies import better_search, matched_search
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study

CHOSEN = "label_smoothing(alpha=0.2) + projector(depth=1)"
SEEDS = tuple(range(230, 238))

STUDY = Study(
    name="better",
    title="Softmax and the chosen one of twelve candidates, on the four other tasks of the embedded world",
    question="Is this objective better than softmax in both pretraining accuracy and transfer?",
    source="glyphs",
    targets=CONFIRMING,
    networks=(Runs(("softmax", CHOSEN), matched_search.RECIPE, seeds=SEEDS),),
    measure=better_search.STUDY.measure,
    tuned_by=("matched_search",),
    expected_seconds={"train": 176.0},
)
