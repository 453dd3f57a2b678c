"""The search for learning rates and weight decays of nine objectives, WRN-16-8 on CIFAR-100.

    penultimate tune all --study cifar100_search --data cifar100_tuning=FOLDER

Computed, not measured: 1,344 GPU hours of training on H100s at 2,000 images a second, for the 1,080 trainings
of the coarse grids. Widened as far as it is allowed, and at double density, the search is four times as
large.

It is that of the ICLR version. The coarse grid has six learning rates, 10^-2 to 10^0.5, and four products of
the learning rate and the weight decay, 10^-4.5 to 10^-3, every combination with five seeds. The paper widens
the grid where the best lies on an edge, and then doubles the density around the best (appendix A.1): for one
objective, `--grid recipe.learning_rate=... --grid recipe.rate_times_decay=...` with old and new values does
so, and trains only what is new. The images held out are 5,000 of the 50,000 for training, which the paper
does not state; grids of losses' hyperparameters are not stated either, and these have the values of table
A.2.
"""

import dataclasses

from penultimate.paper.studies.grids import cifar_search
from penultimate.paper.studies.paper import CIFAR

RECIPE = dataclasses.replace(CIFAR, batch_size=256, decay_batch_norm=True)

STUDY = cifar_search("cifar100", "wrn16_8", "WRN-16-8 on CIFAR-100", RECIPE)
