"""The study on which the claims are judged: `glyphs`, and whatever else the paper shows, with three seeds.

    penultimate run evidence

This reference run is read if none is named (`penultimate report --reference`). The plan says nine hours on
two CPU cores with AVX-512 (2,800 images a second each). Half of these are those of `glyphs`, whose networks
and measurements are not repeated in a store that holds them; the rest can be run as three parts
(`penultimate.paper.studies.parts`). The kept run took about seven hours beyond `glyphs` on two cores without
AVX-512. `full` shows as much with one seed or two; this study has

- three seeds, each with its own draw of the world, for AutoAugment, Mixup, combinations and the three further
  architectures, for fine-tuning, class overlap, scores of transferability and images of several labels. Long
  training, transfer through training and transfer from every block stay with one;
- a final layer trained first (`head="probe"`) for three objectives, those that transfer best and worst in
  the paper: softmax, cosine softmax and squared error; training from scratch on six learning rates x three
  decays.
"""

from __future__ import annotations

from penultimate.paper.studies import full, glyphs
from penultimate.paper.studies.full import FOUR, FURTHER, GRID
from penultimate.paper.studies.glyphs import RECIPE
from penultimate.paper.studies.nine import CHANGES, NINE
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study

ENDS = tuple(text for text in NINE if text.startswith(("softmax", "cosine_softmax", "squared_error")))
SEEDS = (0, 1, 2)
FROM_SCRATCH = "learning_rate=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0), decay=(0.0, 0.001, 0.01), seeds=1"


def _measured_runs(objectives: tuple[str, ...], seeds: tuple[int, ...], *measure: str) -> tuple[Runs, ...]:
    """Return networks of `glyphs`, with further measurements."""
    return runs_by_recipe(objectives, RECIPE, CHANGES, seeds=seeds, measure=measure)


MEASURED = (
    *_measured_runs(
        tuple(text for text in NINE if text not in ENDS),
        SEEDS,
        *FURTHER,
        f"fine_tuning({GRID}, head=('fresh',))",
    ),
    *_measured_runs(ENDS, SEEDS, *FURTHER, f"fine_tuning({GRID})", f"from_scratch({FROM_SCRATCH})"),
    *_measured_runs(NINE, SEEDS[:1], "depth"),
    *_measured_runs(FOUR, SEEDS[:1], "transfer_dynamics"),
)
OTHERWISE = full.other_arms(SEEDS, "seed")
BACKBONES = full.backbones(SEEDS, "seed")

STUDY = Study(
    name="evidence",
    title="All tables and figures of the paper, on the embedded image world",
    question=full.STUDY.question,
    source=full.STUDY.source,
    targets=full.STUDY.targets,
    networks=(*glyphs.STUDY.networks, *MEASURED, *OTHERWISE, *BACKBONES),
    measure=glyphs.STUDY.measure,
    tuned_by=full.STUDY.tuned_by,
    expected_seconds=full.STUDY.expected_seconds,
)
