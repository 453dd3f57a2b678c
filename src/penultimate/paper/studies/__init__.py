"""The studies that come with the package, as data: declared here, and made in the modules of this folder."""

from penultimate.registry import declare

LISTED = {
    "smoke": {
        "smoke": "three objectives on a tiny world: every step once, in seconds; no evidence",
    },
    "world": {
        "quickstart": "three objectives, three draws, a rule fixed beforehand: minutes on a laptop",
        "nine": "nine objectives, one seed, eight transfer tasks on the embedded world: minutes on a laptop",
        "glyphs": "nine objectives, nine seeds, one draw with five, eight temperatures: hours on a laptop",
        "glyphs_512": "nine objectives, ten seeds, 512 classes of the embedded world: a GPU",
        "class_counts": "three objectives on 16, 32, 64 and 128 classes, three draws; comes with the package",
    },
    "full": {
        "full": "all 42 tables and figures, one seed or two: three hours on a laptop",
        "evidence": "all 42 with what the claims need: glyphs, and four hours more on a laptop",
    },
    "sweep": {
        "sweep": "eleven families of objectives, each at several strengths, five seeds; comes with the"
        " package",
    },
    "imagenet": {
        "kornblith2021": "the authors' own 72 networks on every task of the paper (--networks)",
        "imagenet64": "nine objectives, three seeds, ResNet-50 on ImageNet-100 at 64 pixels",
        "imagenet_resnet50": "nine objectives, eight seeds, ResNet-50 on ImageNet",
        "imagenet_inception_v3": "nine objectives, three seeds, Inception v3 on ImageNet",
        "imagenet_transfer": "ResNet-50 of nine objectives on eight tasks and CheXpert",
        "imagenet_robustness": "ResNet-50 of nine objectives on shifted and corrupted images",
        "imagenet_relearning": "ResNet-50 of nine objectives, their heads learned again",
        "imagenet_temperature": "cosine softmax at eight temperatures, ResNet-50 on ImageNet",
        "imagenet_temperature_unscaled": "cosine softmax at four temperatures, its loss not scaled",
        "imagenet_combinations": "pairs of objectives, three seeds, ResNet-50 on ImageNet",
        "imagenet_calibration": "eight objectives trained with a holdout, three seeds, ResNet-50 on ImageNet",
        "imagenet_augmentation": "four objectives under three augmentations, ResNet-50 on ImageNet",
        "imagenet_long": "long training under AutoAugment and Mixup, ResNet-50 on ImageNet",
        "imagenet_dynamics": "ResNet-50 of nine objectives through training on ImageNet",
        "imagenet_curves": "ResNet-50 of nine objectives, eight seeds, through training on ImageNet",
        "imagenet_search": "the search of table A.1: nine objectives, three runs a cell, ResNet-50",
        "imagenet_inception_v3_search": "the search for the epochs of nine objectives, Inception v3",
        "imagenet_autoaugment_search": "the search for the epochs of four objectives under AutoAugment",
        "imagenet_mixup_search": "the search for Mixup's alpha for four objectives, ResNet-50 on ImageNet",
    },
    "cifar": {
        "cifar10_allcnnc": "nine objectives, 25 seeds, All-CNN-C on CIFAR-10 (the paper's ICLR version)",
        "cifar100_wrn16_8": "nine objectives, 25 seeds, WRN-16-8 on CIFAR-100 (the paper's ICLR version)",
        "cifar10_search": "the search for nine objectives' learning rates and decays, All-CNN-C on CIFAR-10",
        "cifar100_search": "the search for nine objectives' learning rates and decays, WRN-16-8 on CIFAR-100",
    },
}
"""A summary of each study, by its module."""
FOLDED = {
    "world": {
        "shared_classes": "networks of glyphs_first on five tasks that share none to all classes with"
        " pretraining",
        "few_labels": "networks of glyphs_first on one to twenty images a class of eight tasks",
        "alike": "nine objectives, two seeds on one draw: CKA and four other measures of likeness",
        "head_decay": "nine objectives whose final layer has the paper's weight decay; comes with the"
        " package",
        "certainty": "nine objectives, three seeds: calibration, outside images",
        "better_search": "softmax and seven candidates that may beat it in both accuracy and transfer, two"
        " draws",
        "better": "softmax and the chosen one of twelve candidates, eight draws; comes with the package",
        "glyphs_first": "a part of glyphs: nine objectives, the first three seeds; an hour on a laptop",
        "glyphs_second": "a part of glyphs: the second three seeds",
        "glyphs_third": "a part of glyphs: the last three seeds",
        "glyphs_one_draw": "a part of glyphs: five seeds on one draw of the world; networks side by side",
        "glyphs_temperatures": "a part of glyphs: cosine softmax at eight temperatures",
    },
    "sweep": {
        "sweep_smallest": "a part of sweep: 19 networks a seed, three seeds; an hour and a half on a laptop",
    },
    "searches": {
        "matched_search": "where the hyperparameters of seven objectives are chosen (penultimate tune): three"
        " seeds",
        "matched_search_scaled": "where those of cosine softmax and squared error are, with their learning"
        " rates",
        "matched_sweep_search": "where the learning rate of the temperature sweep is chosen",
    },
    "full": {
        "full_objectives": "a part of full: nine objectives, and all that is measured of them",
        "full_changed": "a part of full: temperatures, augmentation, combinations, architectures",
        "evidence_measured": "a part of evidence: fine-tuning, scores, overlap, labels, of glyphs_first",
        "evidence_otherwise": "a part of evidence: augmentation, combinations and long training",
        "evidence_backbones": "a part of evidence: three more architectures",
    },
}
"""Parts and variants of the studies of a laptop, and the searches behind them: listed with --all."""

QUESTION = "Do objectives that separate classes further give features that transfer worse?"


def headings(name: str) -> tuple[str, str]:
    """Return the title and the question of a study of the paper's size, whose title is its summary."""
    summary = next(studies[name] for studies in LISTED.values() if name in studies)
    return summary[0].upper() + summary[1:], QUESTION


for _group in (LISTED, FOLDED):
    for _module, _studies in _group.items():
        for _name, _summary in _studies.items():
            _attribute = "STUDY" if _name == _module else _name.upper()
            _place = f"{__name__}.{_module}:{_attribute}"
            declare("study", _name, _place, _summary, folded=_group is FOLDED)
