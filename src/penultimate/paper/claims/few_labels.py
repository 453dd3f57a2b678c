"""Two rules of opposite sign: does what separates the classes of pretraining help or harm from few labels?

Kornblith et al. find that objectives which separate their classes further have features that transfer worse,
on whole training sets. Galanti, Gyorgy and Hutter (2022, "On the role of neural collapse in transfer
learning") argue that collapse of the classes of pretraining carries over to new classes, so that these are
learnt from few labels. Both look at how objectives rank by class separation (R², which is the larger the
nearer classes are to collapse) and by transfer from five images a class, one of the sizes of Galanti et al.
They cannot both hold; both may fail.

The rules were written on 2026-11-26, before any network of this package was tried on few labels for a study.
What was known are the rank correlations of R² with transfer from whole training sets. The number of images a
class and the probe (ridge regression, with which Galanti et al. test theirs) were fixed with the rules.
"""

from __future__ import annotations

from penultimate.paper.claims.rules import Claim, Ranked

FEW_LABELS_RULES = "2026-11-26, few labels"
"""The date of these rules."""
_ELSEWHERE = "Galanti, György and Hutter, ICLR 2022"

FEW_LABELS_CLAIMS: tuple[Claim, ...] = (
    Claim(
        "few_labels_helped",
        "The further an objective separates its classes, the better its features transfer from five images a"
        " class",
        _ELSEWHERE,
        Ranked("separation", "few_labels", 1),
        ours=True,
        prints="another paper's claim, on other networks",
        since=FEW_LABELS_RULES,
    ),
    Claim(
        "few_labels_harmed",
        "The further an objective separates its classes, the worse its features transfer, from five images a"
        " class too",
        "section 3.3, of whole training sets",
        Ranked("separation", "few_labels", -1),
        ours=True,
        prints="of whole training sets only",
        since=FEW_LABELS_RULES,
    ),
)


def few_labels_spoken() -> tuple[str, ...]:
    """Return the rules in sentences; those of the first set on level, runs and objectives hold here too."""
    return (
        f"The two rules on few labels are of {FEW_LABELS_RULES.partition(',')[0]},"
        " before any study had measured what they judge. They are of opposite"
        " sign: Galanti et al. (2022) argue that collapse helps from few labels, Kornblith et al. find that"
        " separation harms transfer. Transfer is that of ridge regression from five images a class, the mean"
        " over tasks and episodes.",
    )
