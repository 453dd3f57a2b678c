"""A protocol in three stages: fitted at every rate, a rate chosen over all seeds, fitted at that one.

The probe is a nearest mean whose class means are drawn towards the mean of all by `rate`.
"""

import json

import numpy as np

from penultimate import register
from penultimate.measures import Fact, Features, Made, Number, Yield
from penultimate.metrics import UndefinedError

CHOSEN = "chosen.json"


def share_right(rate, features, labels, unseen, expected):
    """How many of the unseen are nearest to the drawn mean of their own class."""
    classes = np.unique(labels)
    means = np.stack([features[labels == label].mean(0) for label in classes])
    means = (1 - rate) * means + rate * features.mean(0)
    nearest = np.linalg.norm(unseen[:, None] - means, axis=-1).argmin(1)
    return float((classes[nearest] == expected).mean())


@register.measurement(
    version=1, per="target", needs=(Features("train"),), yields=(), stage=True, each=("rate",)
)
def cell(inputs, *, rate=(0.0, 0.5)):
    """The share right of every second training example, fitted to the others."""
    bank = inputs.features("train")
    score = share_right(rate, bank.features[::2], bank.labels[::2], bank.features[1::2], bank.labels[1::2])
    (inputs.folder / "score.json").write_text(json.dumps(score))
    yield Fact("score", score)


@register.measurement(version=1, per="objective_target", needs=(Made("cell"),), yields=(), stage=True)
def choice(inputs):
    """The rate with the highest mean over all seeds; of equals the smallest."""
    scores = {}
    for supply, folder in inputs.all_made("cell"):
        scores.setdefault(supply.settings["rate"], []).append(json.loads((folder / "score.json").read_text()))
    if not scores:
        raise UndefinedError("every network diverged")
    best = min(scores, key=lambda rate: (-np.mean(scores[rate]), rate))
    (inputs.folder / CHOSEN).write_text(json.dumps(best))
    yield Fact("scores", {str(rate): values for rate, values in scores.items()})


@register.measurement(
    version=1,
    per="target",
    needs=(Features("train"), Features("test"), Made("choice")),
    yields=(Yield("final_top1", "fraction"), Yield("final_rate", "ratio")),
)
def final(inputs, *, rate=(0.0, 0.5)):
    """The share right of the test examples at the rate that was chosen."""
    chosen = json.loads((inputs.made("choice") / CHOSEN).read_text())
    train, test = inputs.features("train"), inputs.features("test")
    score = share_right(chosen, train.features, train.labels, test.features, test.labels)
    yield Number("final_top1", score, "fraction", "test", setting={"rate": chosen})
    yield Number("final_rate", chosen, "ratio", "train")
