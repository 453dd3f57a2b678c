"""The nine objectives and the terms of the study: a sentence each, and an equation."""

from __future__ import annotations

from penultimate.measures.catalogue import built_in_yields
from penultimate.paper.page.mathml import (
    above,
    below,
    both,
    bracket,
    fraction,
    math,
    norm,
    number,
    operator,
    row,
    total,
    variable,
    word,
)
from penultimate.report.page.form import Explained

x, z, t, w = (variable(letter, bold=True) for letter in "xztw")
W, X, Y = (variable(letter, bold=True) for letter in "WXY")
K, M, k = variable("K"), variable("M"), variable("k")
alpha, beta, tau, kappa, rho, xi = (variable(letter) for letter in "αβτκρξ")
plus, minus, equals, dot = (operator(sign) for sign in "+−=·")
z_k, t_k, b_k = (below(variable(letter), k) for letter in "ztb")
w_k = below(w, k)
mu_k = below(variable("μ", bold=True), k)
L = variable("ℒ")
LOSS = row(L, equals)


def measured(metric: str, equation: str = "") -> Explained:
    """Return a measurement's own description of one of its numbers, with an equation."""
    return Explained(built_in_yields()[metric].words, equation)


def _softmax_of(*parts: str) -> str:
    return row(below(L, word("softmax")), bracket(*parts))


def _exp(*parts: str) -> str:
    return above(variable("e"), row(*parts))


OBJECTIVES: dict[str, Explained] = {
    "softmax": Explained(
        "The usual choice and the baseline: the scores z of the classes become probabilities that sum to one,"
        " and that of the right class should be high.",
        math(
            LOSS,
            minus,
            total("k"),
            t_k,
            z_k,
            plus,
            word("log"),
            total("k"),
            _exp(z_k),
            spoken="minus the sum over k of t k z k, plus the logarithm of the sum of e to the z k",
        ),
    ),
    "label_smoothing": Explained(
        "Softmax with hedged targets: a share α of the certainty is spread evenly over all classes.",
        math(
            LOSS,
            fraction(number(1), row(number(1), minus, alpha)),
            _softmax_of(z, operator(","), bracket(number(1), minus, alpha), t, plus, fraction(alpha, K)),
            spoken="softmax loss against one minus alpha times t plus alpha over K, over one minus alpha",
        ),
    ),
    "sigmoid": Explained(
        "Every class is its own yes-or-no question; the classes no longer compete for one probability.",
        math(
            LOSS,
            minus,
            total("k"),
            t_k,
            z_k,
            plus,
            total("k"),
            word("log"),
            bracket(number(1), plus, _exp(z_k)),
            spoken="minus the sum of t k z k, plus the sum of log of one plus e to the z k",
        ),
    ),
    "final_layer_l2": Explained(
        "Softmax, with the weights of the final layer kept small.",
        math(
            LOSS,
            _softmax_of(z),
            plus,
            variable("λ"),
            both(norm(W), variable("F"), number(2)),
            spoken="softmax loss plus lambda times the squared norm of W",
        ),
    ),
    "dropout": Explained(
        "Softmax, while random features are switched off in training: each is kept with probability ρ.",
        math(
            LOSS,
            _softmax_of(W, bracket(x, operator("⊙"), fraction(xi, rho)), plus, variable("b", bold=True)),
            operator(","),
            below(xi, variable("i")),
            operator("∼"),
            word("Bernoulli"),
            bracket(rho),
            spoken="softmax loss of W times the features with random ones dropped, plus b",
        ),
    ),
    "logit_penalty": Explained(
        "Softmax, with large scores made costly.",
        math(
            LOSS,
            _softmax_of(z),
            plus,
            beta,
            above(norm(z), number(2)),
            spoken="softmax loss plus beta times the squared norm of z",
        ),
    ),
    "logit_norm": Explained(
        "Softmax of scores that always have the same overall length: only their pattern counts.",
        math(
            LOSS,
            _softmax_of(fraction(z, row(tau, norm(z)))),
            spoken="softmax loss of z divided by tau times the norm of z",
        ),
    ),
    "cosine_softmax": Explained(
        "Softmax of angles: a class's score is the cosine between the image's features and the class's"
        " weights, so that lengths do not count.",
        math(
            LOSS,
            _softmax_of(z),
            operator(","),
            z_k,
            equals,
            fraction(number(1), tau),
            fraction(row(w_k, dot, x), row(norm(w_k), norm(x))),
            plus,
            b_k,
            spoken="softmax loss of the cosines of w k and x divided by tau, plus b k",
        ),
    ),
    "squared_error": Explained(
        "Scores should hit fixed values: M for the right class, counted κ times, and zero for all others.",
        math(
            LOSS,
            fraction(number(1), K),
            total("k"),
            bracket(
                kappa,
                t_k,
                above(bracket(z_k, minus, M), number(2)),
                plus,
                bracket(number(1), minus, t_k),
                both(variable("z"), k, number(2)),
                left="[",
                right="]",
            ),
            spoken="mean over k of kappa t k times z k minus M squared, plus one minus t k times z k squared",
        ),
    ),
}

TERMS: tuple[tuple[str, Explained], ...] = (
    (
        "Objective (loss function)",
        Explained("The number that training makes small. Different objectives ask for different things."),
    ),
    (
        "Penultimate features",
        Explained(
            "The list of numbers x that a network computes from an image just before its final layer, which"
            " turns them into one score per class, z = Wx + b."
        ),
    ),
    (
        "Transfer",
        Explained(
            "How well a finished network serves another task. Unless fine-tuning is named, the network is"
            " frozen, and only a simple classifier on its features learns the new task."
        ),
    ),
    ("Linear transfer", measured("linear_top1")),
    ("kNN transfer", measured("knn_top1")),
    ("Fine-tuning", measured("fine_tuned_top1")),
    (
        "Class separation R²",
        measured(
            "class_separation",
            math(
                above(variable("R"), number(2)),
                equals,
                number(1),
                minus,
                fraction(
                    row(number(1), minus, below(word("mean"), k), above(norm(mu_k), number(2))),
                    row(number(1), minus, above(norm(below(word("mean"), k), mu_k), number(2))),
                ),
                spoken="one minus the mean cosine distance within classes over the one over all classes",
            ),
        ),
    ),
    (
        "Layer, block",
        Explained(
            "A network computes its features in steps. A block is a group of them with a shortcut past it;"
            " its output, a stack of maps, is what is measured of it."
        ),
    ),
    ("Non-zero activations", measured("nonzero_share")),
    (
        "CKA",
        measured(
            "cka",
            math(
                word("CKA"),
                equals,
                fraction(
                    above(norm(row(above(Y, word("T")), X)), number(2)),
                    row(norm(row(above(X, word("T")), X)), norm(row(above(Y, word("T")), Y))),
                ),
                spoken="squared norm of Y transposed X, over the norms of X transposed X and Y transposed Y",
            ),
        ),
    ),
    (
        "Shifted test set",
        Explained(
            "Images of the classes that a network was trained on, unlike those it was trained with: drawn"
            " otherwise, chosen to be hard, or only drawn again. The network is used as it is."
        ),
    ),
    (
        "Mean corruption error (mCE)",
        Explained(
            "How badly a network does on spoilt images (noise, blur, weather, compression: c) of five"
            " severities s: its errors E as a share of a reference's errors R, corruption by corruption."
            " 100 is as many errors as the reference makes.",
            math(
                word("mCE"),
                equals,
                below(word("mean"), variable("c")),
                fraction(
                    row(total("s"), below(variable("E"), row(variable("c"), variable("s")))),
                    row(total("s"), below(variable("R"), row(variable("c"), variable("s")))),
                ),
                spoken="the mean over c of the sum over s of E c s, over the sum over s of R c s",
            ),
        ),
    ),
    ("Calibration (ECE)", measured("ece")),
    ("AUC", measured("multilabel_auc")),
    (
        "Spearman's ρ",
        Explained(
            "Whether two rankings agree: 1 for the same order, −1 for the opposite one, 0 for no relation."
            " p is the chance of a value this far from 0 if there were no relation. Its range with any two"
            " of the objectives left out shows how much it rests on single ones."
        ),
    ),
    (
        "Beyond chance",
        Explained(
            "p is below 0.05, corrected for the number of comparisons: runs with other seeds would rarely"
            " differ as much if there were no difference."
        ),
    ),
    (
        "Run, seed, standard error",
        Explained(
            "A run is one training from scratch; the seed decides its random choices. ± is the standard"
            " error of the mean over seeds: about how far it would move if all were run again."
        ),
    ),
)
