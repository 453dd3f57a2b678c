"""Training on a target by one protocol, from any start: the code that its stages share.

The loss is softmax cross-entropy, whatever the network was trained with. Batch normalisation and biases have
no weight decay, as in training here. The paper states neither of these, nor the batch size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Yield, accuracies
from penultimate.measures.inputs import Fact, Inputs, Number, Setting
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval

if TYPE_CHECKING:
    import numpy as np

    from penultimate.networks.trained import TrainedNetwork
    from penultimate.training import Start
    from penultimate.training.feed import Examples

OBJECTIVE = "softmax"
LEARNING_RATES = (0.01, 0.03, 0.1, 0.3)
DECAYS = (0.0, 1e-4, 1e-3)
"""The decays relative to the learning rate: the weight decay is decay / learning rate."""
STEPS, BATCH_SIZE, SEEDS = 400, 64, 3
POSITIVE, WHOLE = Interval(0), Interval(1, closed="left")
OF_CELL = {
    "learning_rate": POSITIVE,
    "decay": Interval(0, closed="left"),
    "steps": WHOLE,
    "batch_size": Interval(2, closed="left"),
}
OF_CHOICE = {
    "validation_accuracy": "fraction",
    "learning_rate": "learning rate",
    "decay": "decay",
    "edges": "count",
    "cells": "count",
}
"""The quantities reported about the chosen cell (`edges`: how many settings lie at an edge), with units."""
FRESH, PROBE = "fresh", "probe"
"""The start of the final layer: the seed's initial weights, or the optimum of the linear probe."""
AT_ONCE = 2**23
"""The largest number of values in the images that are classified at once."""
RUN, SCORE, CHOSEN = "checkpoints", "score.json", "chosen.json"
"""The temporary folder of a training run, and the files that a cell and a choice leave."""


def validating(images: Examples, seed: int) -> np.ndarray:
    """Return a mask of the validation images: about a fifth of each class."""
    from penultimate.probes.validation import split_off

    return split_off(images.labels, seed=seed)


def _start(inputs: Inputs, head: str, classes: int, of: np.ndarray | slice) -> Start:
    """Return the network to start from, with the linear probe of some images as final layer if requested.

    A class without any of these images gets zero weights, and a bias below all others.
    """
    import torch

    from penultimate.probes.linear import LinearProbe
    from penultimate.training import Start

    network: Any = inputs.network
    if head == FRESH:
        return Start(network)
    bank = inputs.features("train")
    probe = LinearProbe(metric=inputs.accuracy, seed=inputs.seed).fit(bank.features[of], bank.labels[of])
    weight = torch.zeros(classes, bank.features.shape[1])
    bias = torch.full((classes,), float(probe.intercept_.min()) - 1)
    seen = torch.from_numpy(probe.classes_)
    weight[seen] = torch.from_numpy(probe.coef_).float()
    bias[seen] = torch.from_numpy(probe.intercept_).float()
    return Start(network, (weight, bias))


def train_on(
    inputs: Inputs,
    images: Examples,
    head: str,
    rates: Mapping[str, Any],
    of: np.ndarray | slice = slice(None),
) -> TrainedNetwork:
    """Train a network on some images in the folder RUN and return it; raise UndefinedError if it diverges.

    `head` is the start of the final layer, or "" for random weights throughout. `rates` holds `decay` and
    fields of the recipe. The augmentation and the precision are by default those with which the network was
    trained.
    """
    import numpy as np

    from penultimate.networks.trained import load_network
    from penultimate.training import Recipe, train

    start = _start(inputs, head, len(images.class_names), of) if head else None
    fields = {"augmentation": inputs.augmentation, "precision": inputs.precision, **rates}
    recipe = Recipe(
        weight_decay=fields.pop("decay") / fields["learning_rate"],
        warmup=0.0,
        schedule="cosine",
        final_fraction=0.0,
        nesterov=False,
        averaging_window=0.0,
        **fields,
    )
    folder = inputs.folder / RUN
    folder.mkdir(exist_ok=True)
    result = train(
        OBJECTIVE,
        start.backbone if start else inputs.backbone,
        images.subset(of) if isinstance(of, np.ndarray) else images,
        None,
        recipe,
        inputs.seed,
        folder,
        inputs.progress,
        inputs.checkpoint_seconds,
        inputs.device,
        start,
    )
    if result.status != "done":
        raise UndefinedError(f"training on '{inputs.target}' diverged: {result.reason}")
    return load_network(folder, start.body() if start else None).to(inputs.device)


def validated(inputs: Inputs, images: Examples, head: str, rates: Mapping[str, Any]) -> Iterator[Fact]:
    """Train on four fifths of the images, and write the accuracy on the rest unless training diverges."""
    validation = validating(images, inputs.seed)
    network = train_on(inputs, images, head, rates, ~validation)
    score = accuracy_on(inputs, images.subset(validation), network)
    (inputs.folder / SCORE).write_text(json.dumps(score), "utf-8")
    yield Fact("validation_accuracy", score)


def classified(network: TrainedNetwork, images: Examples) -> np.ndarray:
    """Return the classes [n] that a network predicts for images."""
    from penultimate.features.extraction import predicted

    ((first, _), *_) = images.subset(slice(1)).batches(1)
    return predicted(network, images, min(256, 1 + AT_ONCE // first.numel()))


def accuracy_on(inputs: Inputs, images: Examples, network: TrainedNetwork) -> float:
    """Return the network's accuracy, of the kind that is official for the target."""
    from penultimate.probes.estimator import accuracy_of

    return accuracy_of(inputs.accuracy)(classified(network, images), images.labels)


def choose(inputs: Inputs, stage: str) -> Fact:
    """Write the cell with the best mean over all networks, excluding cells in which any network diverged."""
    scores: dict[tuple[float, float], list[float]] = {}
    diverged = set()
    for supply, folder in inputs.all_made(stage):
        cell = supply.settings["learning_rate"], supply.settings["decay"]
        of_cell = scores.setdefault(cell, [])
        if (folder / SCORE).exists():
            of_cell.append(json.loads((folder / SCORE).read_text("utf-8")))
        else:
            diverged.add(cell)
    means = {cell: math.fsum(of) / len(of) for cell, of in scores.items() if cell not in diverged}
    if not means:
        raise UndefinedError(f"all of {len(scores)} learning rates and decays diverged")
    best = min(means, key=lambda cell: (-means[cell], cell[0], -cell[1]))
    rates = dict(zip(("learning_rate", "decay"), best, strict=True))
    grid = zip(*scores, strict=True)
    edges = sum(at_edge(value, values) for value, values in zip(best, grid, strict=True))
    chosen = {"rates": rates, "mean": means[best], "edges": edges, "cells": len(scores)}
    (inputs.folder / CHOSEN).write_text(json.dumps(chosen), "utf-8")
    return Fact("cells", [[*cell, means.get(cell)] for cell in sorted(scores)])


def at_edge(value: float, values: Sequence[float]) -> bool:
    """Return whether a value is the first or last of several, so that a value beyond it might be better.

    The value 0 is not an edge, because there are no values below it.

    >>> at_edge(0.1, (0.1, 1.0)), at_edge(0.0, (0.0, 1.0)), at_edge(0.1, (0.1,))
    (True, False, False)
    """
    return min(values) < max(values) and (value == max(values) or value == min(values) > 0)


def chosen_in(inputs: Inputs, stage: str) -> dict[str, Any]:
    """Return what a stage chose, with the learning rate and the decay under "rates"."""
    folder = inputs.made(stage)
    if folder is None or not (folder / CHOSEN).exists():
        raise UndefinedError("training diverged at every learning rate and decay")
    chosen: dict[str, Any] = json.loads((folder / CHOSEN).read_text("utf-8"))
    return chosen


def yields_of(what: str, called: str) -> tuple[Yield, ...]:
    """Return the declarations of what `numbers_of` yields."""
    return *accuracies(what, called), *(Yield(f"{what}_{name}", unit) for name, unit in OF_CHOICE.items())


def numbers_of(
    what: str,
    inputs: Inputs,
    train: Examples,
    score: float,
    chosen: Mapping[str, Any],
    setting: Setting | None = None,
) -> Iterator[Number | Fact]:
    """Yield the test accuracy, how the learning rate and decay were chosen, and the classes not validated."""
    setting = setting or {}
    yield Number(f"{what}_{inputs.accuracy}", score, "fraction", "test", setting=setting)
    of_choice = {**chosen, **chosen["rates"], "validation_accuracy": chosen["mean"]}
    for name, unit in OF_CHOICE.items():
        yield Number(f"{what}_{name}", float(of_choice[name]), unit, "train", setting=setting)
    validation = train.labels[validating(train, inputs.seed)]
    lacking = sorted({*train.labels.tolist()} - {*validation.tolist()})
    if unseen := [train.class_names[label] for label in lacking]:
        inputs.progress({"notice": no_say(str(inputs.target), unseen)})
        yield Fact("classes_not_validated", unseen)


def no_say(target: str, classes: Sequence[str]) -> str:
    """Return the notice that some classes of a target have no validation image.

    >>> no_say("pets", ["Abyssinian"])
    "no validation image of 'pets' is of Abyssinian: they had no say in the choice"
    """
    some = ", ".join(classes[:5]) + (f" and {len(classes) - 5} more classes" if classes[5:] else "")
    return f"no validation image of '{target}' is of {some}: they had no say in the choice"
