"""Augmentation and long training: their effect on accuracy and on class separation (C.5 and E.3)."""

from __future__ import annotations

from dataclasses import replace

from penultimate.paper import printed
from penultimate.paper.arms import AUTOAUGMENT, LONG, LONG_MIXUP, MIXUP
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.shapes import findings
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.findings import Change
from penultimate.report.shapes.table import Printed, PrintedTable, TableOfRuns
from penultimate.report.spec import Exhibit
from penultimate.report.text import counted

GROUPS = {"": "Standard", AUTOAUGMENT: "AutoAugment", MIXUP: "Mixup"}
LONG_GROUPS = {LONG: "AutoAugment", LONG_MIXUP: "AutoAugment + Mixup"}
PAPERS = {"": "standard", LONG: "autoaugment", LONG_MIXUP: "autoaugment+mixup"}
"""The names of augmentations in the paper's tables, if they are not those of the arms."""

TOP1 = Quantity("top1", label="Top-1, %", key="top1_percent", bold=True, with_error=True)
TOP5 = Quantity("top5", label="Top-5, %", key="top5_percent", bold=True, with_error=True, decimals=2)
R2 = Quantity("class_separation", "train", label="R²", key="class_separation_r2", with_error=True)


def _columns(quantities: tuple[Quantity, ...], groups: dict[str, str]) -> tuple[Quantity, ...]:
    """Return these quantities under each augmentation, side by side."""
    return tuple(
        replace(shown, arm=arm, group=group, key=_key(arm, shown.key))
        for arm, group in groups.items()
        for shown in quantities
    )


def _key(arm: str, key: str) -> str:
    return f"{(arm or 'standard').replace(' ', '_')}_{key}"


def _printed(keys: dict[str, str], groups: dict[str, str], **where: str) -> tuple[Printed, ...]:
    """Return the paper's columns {key: label} under each augmentation."""
    return tuple(
        Printed(key, label, group, where={"augmentation": PAPERS.get(arm, arm), **where})
        for arm, group in groups.items()
        for key, label in keys.items()
    )


def _needs(columns: tuple[Quantity, ...]) -> tuple[str, ...]:
    return tuple(shown.key for shown in columns if shown.arm)


def _accuracy(arm: str, words: str, table: str = "neurips_tableC5_augmentation", **where: str) -> Asked:
    """Return the test accuracy under an augmentation, here and in one of the paper's tables."""
    where = {"augmentation": PAPERS.get(arm, arm), **where}
    return Asked(words, replace(printed.TEST.quantity, arm=arm), (table, "top1_percent"), where)


STANDARD = _accuracy("", "test accuracy under the standard augmentation")
IN_TABLE_C5 = _columns((TOP1, TOP5), GROUPS)
TABLE_C5 = Exhibit(
    name="tableC5",
    title="Do the objectives differ less under stronger augmentation?",
    caption="Test accuracy on the classes trained on, with the main augmentation (standard), with AutoAugment"
    " added to it, and with Mixup added to it. ± is the standard error over runs.",
    parts=(
        TableOfRuns(
            "tableC5",
            "Accuracy on {source}, by augmentation",
            IN_TABLE_C5,
            missing="Accuracy under AutoAugment or Mixup",
            needs=_needs(IN_TABLE_C5),
        ),
        PrintedTable(
            "tableC5",
            "neurips_tableC5_augmentation",
            "The paper's Table C.5: ResNet-50, ImageNet",
            _printed({"top1_percent": TOP1.label, "top5_percent": TOP5.label}, GROUPS),
        ),
    ),
    findings=(
        findings.apart(
            STANDARD, *(_accuracy(arm, f"that under {GROUPS[arm]}") for arm in (AUTOAUGMENT, MIXUP))
        ),
    ),
    section="C.5",
    of_same_runs=True,
    place=1,
    measured_by="full",
    summary="Accuracy under AutoAugment and Mixup",
    short="Augmentation",
)


def _lengths(measurements: Measurements) -> str:
    """Return a sentence on the length of the long runs, beside that of the main arm."""
    lengths = {arm: int(measurements.in_arm(arm).recipe.get("epochs", 0)) for arm in ("", *LONG_GROUPS)}
    told = [
        f"{counted(lengths[arm], 'epoch')} with {words}" for arm, words in LONG_GROUPS.items() if lengths[arm]
    ]
    if not told or not lengths[""]:
        return ""
    main = counted(lengths[""], "epoch")
    return f"Here long training is {', '.join(told)}, where the main runs have {main}."


IN_TABLE_C6 = _columns((TOP1, TOP5), LONG_GROUPS)
TABLE_C6 = Exhibit(
    name="tableC6",
    title="How far does long training with strong augmentation go?",
    caption="Test accuracy on the classes trained on after long training with AutoAugment, and with"
    " AutoAugment and Mixup. ± is the standard error over runs.",
    parts=(
        TableOfRuns(
            "tableC6",
            "Accuracy on {source} after long training",
            IN_TABLE_C6,
            missing="Accuracy after long training",
        ),
        PrintedTable(
            "tableC6",
            "neurips_tableC6_sota",
            "The paper's Table C.6: ResNet-50, ImageNet",
            _printed(
                {"epochs": "Epochs", "top1_percent": TOP1.label, "top5_percent": TOP5.label},
                LONG_GROUPS,
                source="this_paper",
            ),
            (
                "Quoted there from other papers, with AutoAugment: softmax after 270 epochs, 77.6 top-1 and"
                " 93.8 top-5 (Cubuk et al., 2019); supervised contrastive learning after 700 epochs, 78.8 and"
                " 93.9 (Khosla et al., 2020).",
            ),
        ),
    ),
    findings=(
        findings.changes(
            *(
                Change(
                    f"after long training with {words} test accuracy",
                    STANDARD,
                    _accuracy(arm, "", "neurips_tableC6_sota", source="this_paper"),
                )
                for arm, words in LONG_GROUPS.items()
            )
        ),
        _lengths,
    ),
    section="C.5",
    place=2,
    measured_by="full",
    summary="Accuracy after long training",
    short="Long training",
)

SHOWN_IN_E3 = {"": "Standard", AUTOAUGMENT: "AutoAugment"}
IN_TABLE_E3 = _columns((TOP1, R2), SHOWN_IN_E3)


def _in_e3(one: Asked, key: str, arm: str) -> Asked:
    """Return a quantity under an augmentation, here and in the paper's Table E.3."""
    table, where = "neurips_tableE3_autoaugment_separation", {"augmentation": PAPERS.get(arm, arm)}
    return replace(one, quantity=one.quantity.of_arm(arm), printed=(table, key), where=where)


TABLE_E3 = Exhibit(
    name="tableE3",
    title="Does augmentation that raises accuracy also pull the classes apart?",
    caption="Test accuracy on the classes trained on, and class separation R² on the training images (seen"
    " without augmentation), with the main augmentation (standard) and with AutoAugment added to it."
    " ± is the standard error over runs.",
    parts=(
        TableOfRuns(
            "tableE3",
            "Accuracy and class separation on {source}, by augmentation",
            IN_TABLE_E3,
            missing="Class separation under AutoAugment",
            needs=(_key(AUTOAUGMENT, R2.key),),
        ),
        PrintedTable(
            "tableE3",
            "neurips_tableE3_autoaugment_separation",
            "The paper's Table E.3: ResNet-50, ImageNet",
            _printed({"imagenet_top1_percent": TOP1.label, R2.key: R2.label}, SHOWN_IN_E3),
        ),
    ),
    findings=(
        findings.changes(
            *(
                Change(f"under AutoAugment {words}", *(_in_e3(shown, key, arm) for arm in ("", AUTOAUGMENT)))
                for words, shown, key in (
                    ("test accuracy", printed.TEST, "imagenet_top1_percent"),
                    ("class separation R²", printed.SEPARATION, "class_separation_r2"),
                )
            )
        ),
    ),
    paper_says="The paper's title says that augmentation does not raise class separation. Its numbers for"
    " softmax and sigmoid do rise, by 0.004 and 0.005: little beside the differences between objectives.",
    section="E.3",
    of_same_runs=True,
    measured_by="full",
    summary="AutoAugment, accuracy and class separation",
    short="Separation and AutoAugment",
)
