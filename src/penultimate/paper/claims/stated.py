"""The claims as data: a key, a sentence, its place in the paper, and the rule that judges it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from penultimate.objectives.presets import PRESETS
from penultimate.paper.arms import AUTOAUGMENT
from penultimate.paper.claims import rules, strengths
from penultimate.paper.claims.effects import Unit
from penultimate.paper.claims.numbers import (
    ACCURACY,
    ACTIVE,
    ALTERNATIVES,
    ECE,
    FINE_TUNED,
    GAP,
    KNN,
    LABELS,
    LINEAR,
    MATCHED,
    RELEARNED,
    ROBUST,
    SEPARATION,
    SEPARATION_BEFORE,
    SNAPSHOTS,
    TRAIN,
)
from penultimate.paper.claims.rules import (
    Rule,
    best_for_most,
    best_of_all,
    discarded,
    elsewhere,
    narrower,
    on_wide_grids,
    positive,
    ranked,
)


@dataclass(frozen=True)
class Claim:
    """A statement in our words, with its place in the paper and the rule that judges it.

    `ours` says that the paper prints the numbers but does not make the statement, `prints` is the paper's
    evidence if no table of it has the numbers, and `since` the day when its rule was filed. A `pooled` claim
    is judged on the draws of a kept run that repeats the same networks, too.
    """

    key: str
    says: str
    where: str
    rule: Rule
    ours: bool = False
    prints: str = ""
    since: str = "2026-11-22"
    pooled: bool = False


LATER, LAST = "2026-11-26", "2026-11-27"
_later = partial(Claim, since=LATER)
_strengths = partial(
    Claim,
    where="section 3.4, read as a cause; the paper varies no strength but the temperature",
    ours=True,
    since=LATER,
)
_both = partial(
    Claim,
    where="section 3.1, tables 1 and 3; no objective of the paper is better in both",
    ours=True,
    since=LAST,
)
_discarded = partial(
    Claim,
    where="section 3.4, read as a cause; no network of the paper has a projector",
    ours=True,
    since=LAST,
)
_RELEARNED = "section 3.4, figure 6; the numbers: ICLR version, table 3"
_OF_R2 = SEPARATION.unit

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(f"accuracy_{name}",
              f"{PRESETS[name].label} is more accurate than softmax on the classes trained on",
              "table 1; section 3.1 excepts it" if name == "squared_error" else "section 3.1, table 1",
              rules.better(ACCURACY, name), ours=name == "squared_error")
        for name in ALTERNATIVES
    ),
    Claim("train_accuracy",
          "Every alternative but label smoothing fits the training images worse than softmax",
          "appendix C.1, table C.1",
          best_of_all(TRAIN, among=[name for name in ALTERNATIVES if name != "label_smoothing"])),
    Claim("matched_accuracy",
          "At equal accuracy on the training images, every alternative is more accurate than softmax on new"
          " ones",
          "appendix C.1, figure C.3", best_of_all(MATCHED, -1)),
    Claim("calibration", "How well an objective is calibrated has no clear relation to its accuracy",
          "appendix C.2, table C.3", ranked(ACCURACY, ECE, 0)),
    Claim("mistakes",
          "Two networks of one objective make the same mistakes more often than two of different objectives",
          "appendix C.3, figure C.4", positive(rules.kinship, Unit("{} points of agreement"))),
    Claim("most_linear", "Softmax's features are the best for most tasks (linear classifiers)",
          "section 3.1, table 1", best_for_most(LINEAR)),
    Claim("most_knn", "Softmax's features are the best for most tasks (kNN classifiers)",
          "section 3.1, table 1", best_for_most(KNN)),
    Claim("softmax_best", "Softmax's features transfer best (linear classifiers, mean of the tasks)",
          "sections 3.1 and 3.4, table 1", best_of_all(LINEAR)),
    Claim("softmax_best_knn", "Softmax's features transfer best (kNN classifiers, mean of the tasks)",
          "section 3.1, table 1", best_of_all(KNN), ours=True),
    Claim("softmax_unbeaten",
          "No alternative's features transfer better than softmax's (linear classifiers, mean of the tasks)",
          "section 3.1, table 1", rules.unbeaten(LINEAR), ours=True),
    Claim("softmax_unbeaten_knn",
          "No alternative's features transfer better than softmax's (kNN classifiers, mean of the tasks)",
          "section 3.1, table 1", rules.unbeaten(KNN), ours=True),
    Claim("separation_all", "Every alternative separates the classes further than softmax",
          "section 3.3, table 3", best_of_all(SEPARATION, -1)),
    Claim("separation_before",
          "Before the penultimate layer only final layer L², logit penalty and squared error separate the"
          " classes further than softmax",
          "ICLR version, section 3.4, figure 4",
          rules.only(SEPARATION_BEFORE, ("final_layer_l2", "logit_penalty", "squared_error"))),
    Claim("softmax_peaks", "Softmax's class separation peaks in the course of training, then falls",
          "section 3.3, appendix E.4", positive(rules.softmax_falls, _OF_R2),
          prints="the peak is at epoch 32 of 146"),
    Claim("others_rise", "No alternative's class separation falls before the end of training",
          "section 3.3, appendix E.4", rules.none_falls, prints="highest at the last checkpoint, for all"),
    Claim("separation_linear",
          "The further an objective separates the classes, the worse its features transfer (linear"
          " classifiers)",
          "section 3.4, figure 5a", ranked(SEPARATION, LINEAR, -1), pooled=True),
    Claim("separation_knn", "The same holds for kNN classifiers",
          "section 3.1, tables 1 and 3", ranked(SEPARATION, KNN, -1), ours=True, pooled=True),
    Claim("separation_shared",
          "Separation hurts transfer least where the task shares its classes with pretraining",
          "section 3.4, appendix F", positive(rules.shared_slope, Unit("{} of ρ", 3)), since="2026-11-23"),
    Claim("separation_relearned",
          "The further an objective separates the classes, the better its head is relearned from limited"
          " data",
          _RELEARNED, ranked(SEPARATION, RELEARNED, 1)),
    Claim("separation_gap",
          "The further an objective separates the classes, the less the relearned head falls behind the"
          " original",
          _RELEARNED, ranked(SEPARATION, GAP, 1)),
    Claim("temperature_separation", "A higher temperature of cosine softmax separates the classes further",
          "section 3.4, table 4", rules.trend(SEPARATION, 1)),
    Claim("temperature_transfer",
          "A higher temperature of cosine softmax transfers worse (linear classifiers)",
          "section 3.4, figure 5b", rules.trend(LINEAR, -1)),
    Claim("temperature_accuracy",
          "A higher temperature of cosine softmax raises the accuracy on the classes trained on, then"
          " levels off",
          "section 3.4, table 4", rules.levels(ACCURACY)),
    Claim("fine_tuning_erases",
          "Fine-tuning erases most of the differences: the objectives are spread far less than with linear"
          " classifiers",
          "section 3.1, tables 1 and 2", on_wide_grids(narrower(FINE_TUNED, LINEAR))),
    Claim("fine_tuned_alike", "Fine-tuned, no alternative is much better or worse than softmax",
          "section 3.1, table 2", on_wide_grids(rules.alike(FINE_TUNED))),
    Claim("last_layers", "Objectives differ in the last layers, and little in the first",
          "section 3.2, figure 2", rules.last_layers),
    Claim("augmentation",
          "AutoAugment raises the accuracy on the classes trained on without changing class separation",
          "appendix E.3, table E.3", rules.only_accuracy(AUTOAUGMENT)),
    Claim("combinations", "Objectives combined are no more accurate than the better of their parts",
          "appendix C.4, table C.4", rules.no_sum),
    Claim("robustness",
          "On shifted test sets the objectives are spread far less than in transfer (linear classifiers)",
          "section 4, tables 1 and C.2", narrower(ROBUST, LINEAR)),
    _later("thesis",
           "Higher accuracy on the classes trained on is not associated with better transfer (linear"
           " classifiers)",
           "figure 1, table 1", ranked(ACCURACY, LINEAR, 1, denied=True)),
    _later("least_accurate", "Softmax is less accurate on the classes trained on than every alternative",
           "section 3.1, table 1", best_of_all(ACCURACY, -1)),
    _later("second_thesis",
           "In a second architecture, too, higher accuracy is not associated with better transfer",
           "appendix B, table B.1", elsewhere(ranked(ACCURACY, LINEAR, 1, denied=True))),
    _later("second_best",
           "In a second architecture, too, softmax's features transfer best (linear classifiers, mean of"
           " the tasks)",
           "appendix B, table B.1", elsewhere(best_of_all(LINEAR))),
    _later("second_separation",
           "In a second architecture, too, the further an objective separates the classes, the worse its"
           " features transfer",
           "appendix B, table B.1", elsewhere(ranked(SEPARATION, LINEAR, -1))),
    _later("least_sparse", "Softmax leaves more penultimate activations on than every alternative",
           "section 3.2, figure 3", best_of_all(ACTIVE), prints="softmax 92.8 %, the others drawn"),
    _later("sparse",
           "Logit normalization, cosine softmax and squared error leave fewer than a quarter of the"
           " penultimate activations on",
           "section 3.2, figure 3",
           rules.below(ACTIVE, 25.0, ("logit_norm", "cosine_softmax", "squared_error")),
           prints="below 25 % for the three, without their numbers"),
    _later("augmentation_adds",
           "The gains of augmentation add to those of the objectives: with AutoAugment an alternative is"
           " more accurate than softmax with it, and than itself without it",
           "appendix C.4, table C.5", rules.adds(AUTOAUGMENT)),
    _later("best_throughout",
           "Softmax's features transfer best throughout training: at more than half of the snapshots",
           "appendix D.2, figure D.2", best_for_most(SNAPSHOTS, 0.51)),
    _later("later_layers_change", "Fine-tuning changes later layers more than earlier ones (softmax)",
           "section 3.2, appendix D.4, figure D.3", positive(rules.layers_move, rules.CKA)),
    _later("ensembles",
           "Ensembles of two objectives are no more accurate than the better of the ensembles of one",
           "appendix C.3, figure C.7", rules.no_mixture),
    _later("several_labels",
           "On images of several labels softmax's features are better than all others' for four labels of"
           " five",
           "appendix D.3, table D.1", best_for_most(LABELS, 0.8)),
    _later("slightly_more",
           "Where most classes are those of pretraining (Pets), some objective that separates them further"
           " than softmax transfers better (linear classifiers)",
           "section 3.4, tables 1 and F.1", rules.some_better(("pets", "newfaces"))),
    _later("no_single_best", "No single objective is the most accurate on every benchmark",
           "ICLR version, section 3.1, table 1", rules.no_single_best),
    _strengths("dose_reading",
               "Class separation itself costs transfer: at equal accuracy, in no family the other way"
               " round, and at one price for all objectives", rule=strengths.reading),
    _strengths("dose_pairs",
               "Of two strengths of equal accuracy, that which separates the classes further transfers"
               " worse (linear classifiers)", rule=strengths.pairs_fall()),
    _strengths("dose_pairs_knn", "The same holds for kNN classifiers", rule=strengths.pairs_fall("knn")),
    _strengths("dose_slopes",
               "In every family, the further a strength separates the classes, the worse the features"
               " transfer (linear classifiers)", rule=strengths.every_family_falls()),
    _strengths("dose_slopes_knn", "In every family, the same holds for kNN classifiers",
               rule=strengths.every_family_falls("knn")),
    _strengths("dose_window",
               "In every family, it holds among the strengths that cost less than a point of accuracy",
               rule=strengths.every_family_falls(window=True)),
    _strengths("dose_overall",
               "In the mean of the families, separation costs transfer, beyond chance over seeds and over"
               " families", rule=strengths.overall),
    _strengths("dose_one_line", "All families lie on one line of transfer on class separation",
               rule=strengths.one_line),
    _strengths("dose_strengths",
               "At the strengths that the paper prints, the further an objective separates the classes, the"
               " worse its features transfer", rule=strengths.at_papers_strengths),
    _both("better_in_both",
          "The other objective is better than softmax both in test accuracy and in linear transfer",
          rule=rules.better_in_both(LINEAR)),
    _both("better_in_both_knn",
          "The other objective is better than softmax both in test accuracy and in kNN transfer",
          rule=rules.better_in_both(KNN)),
    Claim("head_decay_gains",
          "With the paper's weight decay in the final layer, the alternatives gain on softmax in accuracy"
          " as they do in the paper",
          "section 3.1, table 3; the decay: appendix A.1",
          rules.regained([name for name in ALTERNATIVES if name != "squared_error"]), ours=True, since=LATER),
    _discarded("projector_gain",
               "Features before two hidden layers that are thrown away after training transfer better than"
               " those of a network without (linear classifiers)", rule=discarded("gain")),
    _discarded("projector_gain_knn", "The same holds for kNN classifiers", rule=discarded("gain", KNN)),
    _discarded("projector_spread",
               "With two hidden layers thrown away, the objectives differ less in linear transfer than with"
               " none", rule=discarded("spread")),
    _discarded("projector_accuracy",
               "With two hidden layers thrown away, the objectives are in the mean at least as accurate as"
               " softmax with none", rule=discarded("loss", ACCURACY)),
)
# fmt: on
"""Those of 2026-11-22 came before any study with enough seeds had measured what they judge. Those of the
paper of 2026-11-26 came after the runs of the package, which they describe and do not test. The claims
`dose_*`, `better_*`, `head_decay_*` and `projector_*` came before any network that they judge."""


def claims_of(*prefixes: str) -> list[Claim]:
    """Return the claims whose key begins with one of these words, such as "dose"."""
    return [claim for claim in CLAIMS if claim.key.startswith(prefixes)]


def general_claims() -> list[Claim]:
    """Return the claims that every study is asked."""
    own = claims_of("dose", "better", "head_decay", "projector")
    return [claim for claim in CLAIMS if claim not in own]
