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
        "imagenet64": "a hundred of ImageNet's classes at 64 pixels: one GPU, a night (--data"
        " imagenet100=FOLDER)",
        "imagenet_resnet50": "the paper's: nine objectives, eight seeds, ResNet-50 on all of ImageNet",
        "imagenet_inception_v3": "the paper's second architecture, three seeds, and its linear transfer",
        "imagenet_transfer": "those ResNet-50s on eight tasks and CheXpert: probes and fine-tuning",
        "imagenet_robustness": "the same on ImageNet-V2, -A, -R, -Sketch and -C",
        "imagenet_relearning": "the same with their heads learned again",
        "imagenet_temperature": "cosine softmax at eight temperatures",
        "imagenet_temperature_unscaled": "its four higher temperatures with a loss that is not scaled",
        "imagenet_combinations": "pairs of objectives, with images held out",
        "imagenet_calibration": "eight objectives, with images held out on which temperatures are fitted",
        "imagenet_augmentation": "four objectives under AutoAugment and under Mixup",
        "imagenet_long": "twice as long, under AutoAugment and Mixup",
        "imagenet_dynamics": "transfer and class separation through training",
        "imagenet_curves": "nine objectives, eight seeds, their accuracies through training",
        "imagenet_search": "where table A.1's hyperparameters and epochs are chosen (penultimate tune)",
        "imagenet_inception_v3_search": "where the epochs of the second architecture are, at 299 pixels",
        "imagenet_autoaugment_search": "where those of four objectives under AutoAugment are",
        "imagenet_mixup_search": "where Mixup's alpha for four objectives is, with the epochs",
    },
    "cifar": {
        "cifar10_allcnnc": "the paper's ICLR version: nine objectives, 25 seeds, All-CNN-C on CIFAR-10",
        "cifar100_wrn16_8": "the same with WRN-16-8 on CIFAR-100",
        "cifar10_search": "where learning rates and decays of the paper's ICLR version are, on CIFAR-10",
        "cifar100_search": "the same on CIFAR-100",
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
        "certainty": "nine objectives, three seeds: calibration, selective classification, outside images",
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

for _group in (LISTED, FOLDED):
    for _module, _studies in _group.items():
        for _name, _summary in _studies.items():
            _attribute = "STUDY" if _name == _module else _name.upper()
            _place = f"{__name__}.{_module}:{_attribute}"
            declare("study", _name, _place, _summary, folded=_group is FOLDED)
