"""The final layer decayed as little as in the paper: do the alternatives then gain on softmax as there?

    penultimate run head_decay

The recipe is that of `matched_search`, but for the final layer's weight decay, which is the paper's 8e-5
(appendix A.1) and not the 1.26e-3 that the paper's exposure comes to in so few steps. The objectives have the
strengths of the paper's table A.1 as printed, but for squared error, which diverges at the paper's target and
has the one that the holdout chose; the cosine softmax has its own learning rate. No other study but the sweep
of strengths uses seeds and draws 200 to 204.

The rule (`penultimate.paper.claims.head_decay`) was laid down on 2026-11-26, before any of these networks was
trained. The kept run was made on H100s: seeds 200 to 202 on 2026-11-26 from main at f9e919d, the commit that
filed the rule (`kept.json` names 751dbe0, the last commit that the copy of the repository on that machine
knew of), and seeds 203 and 204 on 2026-11-27 from b2fc2e0.
"""

import dataclasses

from penultimate.paper.studies import matched_search
from penultimate.paper.studies.nine import CHANGES, TARGETS
from penultimate.paper.studies.nine import NINE as CHOSEN
from penultimate.paper.studies.paper import BY_SLUG
from penultimate.study.blocks import runs_by_recipe
from penultimate.study.spec import Study

NINE = (
    *(text for slug, text in BY_SLUG.items() if slug != "squared_error"),
    *(text for text in CHOSEN if text.startswith("squared_error")),
)
SEEDS = (200, 201, 202, 203, 204)
RECIPE = dataclasses.replace(matched_search.RECIPE, head_decay=8e-5)

STUDY = Study(
    name="head_decay",
    title="Nine objectives, the final layer with the paper's weight decay",
    question="Does the paper's weight decay in the final layer bring back the paper's gains on softmax?",
    source="glyphs",
    targets=TARGETS,
    networks=runs_by_recipe(NINE, RECIPE, CHANGES, seeds=SEEDS),
    measure=("accuracy", "class_separation", "linear", "knn"),
    tuned_by=("matched_search_scaled",),
    expected_seconds={"train": 176.0, "accuracy": 4.5},
)
