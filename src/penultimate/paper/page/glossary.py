"""The nine objectives and the terms of the study, each with a sentence and an equation in MathML."""

from __future__ import annotations

import json
from importlib import resources

from penultimate.measures.catalogue import built_in_yields
from penultimate.report.page.form import Explained

EQUATIONS: dict[str, str] = json.loads((resources.files(__package__) / "equations.json").read_text("utf-8"))
"""The equations by name, with the words that a screen reader says; browsers need no library for them."""


def _measured(metric: str) -> str:
    """Return a measurement's own description of one of its numbers."""
    return built_in_yields()[metric].words


_OBJECTIVES = {
    "softmax": (
        "The usual choice and the baseline: the scores z of the classes become probabilities that sum to"
        " one, and that of the right class should be high."
    ),
    "label_smoothing": (
        "Softmax with hedged targets: a share α of the certainty is spread evenly over all classes."
    ),
    "sigmoid": (
        "Every class is its own yes-or-no question; the classes no longer compete for one probability."
    ),
    "final_layer_l2": "Softmax, with the weights of the final layer kept small.",
    "dropout": (
        "Softmax, while random features are switched off in training: each is kept with probability ρ."
    ),
    "logit_penalty": "Softmax, with large scores made costly.",
    "logit_norm": "Softmax of scores that always have the same overall length: only their pattern counts.",
    "cosine_softmax": (
        "Softmax of angles: a class's score is the cosine between the image's features and the class's"
        " weights, so that lengths do not count."
    ),
    "squared_error": (
        "Scores should hit fixed values: M for the right class, counted κ times, and zero for all others."
    ),
}
_TERMS = {
    "Objective (loss function)": (
        "The number that training makes small. Different objectives ask for different things."
    ),
    "Penultimate features": (
        "The list of numbers x that a network computes from an image just before its final layer, which"
        " turns them into one score per class, z = Wx + b."
    ),
    "Transfer": (
        "How well a finished network serves another task. Unless fine-tuning is named, the network is"
        " frozen, and only a simple classifier on its features learns the new task."
    ),
    "Linear transfer": _measured("linear_top1"),
    "kNN transfer": _measured("knn_top1"),
    "Fine-tuning": _measured("fine_tuned_top1"),
    "Class separation R²": _measured("class_separation"),
    "Layer, block": (
        "A network computes its features in steps. A block is a group of them with a shortcut past it; its"
        " output, a stack of maps, is what is measured of it."
    ),
    "Non-zero activations": _measured("nonzero_share"),
    "CKA": _measured("cka"),
    "Shifted test set": (
        "Images of the classes that a network was trained on, unlike those it was trained with: drawn"
        " otherwise, chosen to be hard, or only drawn again. The network is used as it is."
    ),
    "Mean corruption error (mCE)": (
        "How badly a network does on spoilt images (noise, blur, weather, compression: c) of five"
        " severities s: its errors E as a share of a reference's errors R, corruption by corruption. 100 is"
        " as many errors as the reference makes."
    ),
    "Calibration (ECE)": _measured("ece"),
    "AUC": _measured("multilabel_auc"),
    "Spearman's ρ": (
        "Whether two rankings agree: 1 for the same order, −1 for the opposite one, 0 for no relation. p is"
        " the chance of a value this far from 0 if there were no relation. Its range with any two of the"
        " objectives left out shows how much it rests on single ones."
    ),
    "Beyond chance": (
        "p is below 0.05, corrected for the number of comparisons: runs with other seeds would rarely"
        " differ as much if there were no difference."
    ),
    "Run, seed, standard error": (
        "A run is one training from scratch; the seed decides its random choices. ± is the standard error"
        " of the mean over seeds: about how far it would move if all were run again."
    ),
}

OBJECTIVES = {name: Explained(text, EQUATIONS.get(name, "")) for name, text in _OBJECTIVES.items()}
TERMS = {name: Explained(text, EQUATIONS.get(name, "")) for name, text in _TERMS.items()}
