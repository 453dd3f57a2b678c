"""The studies that come with the package, as data."""

from penultimate.registry import declare

for _name, _summary in (
    ("smoke", "three objectives on a tiny world: every step once, in seconds; no evidence"),
    (
        "quickstart",
        "nine objectives, one seed, eight transfer tasks on the embedded world: minutes on a laptop",
    ),
    (
        "glyphs",
        "nine objectives, a temperature sweep, five seeds, relearning: more than an hour on a laptop",
    ),
    (
        "rehearsal",
        "where the quickstart's hyperparameters are chosen (penultimate tune): two seeds, ten epochs",
    ),
    ("full", "all 42 tables and figures: glyphs, and two to three hours more on a laptop"),
    (
        "shared_classes",
        "the networks of glyphs on five tasks that share none to all classes with pretraining",
    ),
    ("glyphs_search", "where those of glyphs are chosen: two of its seeds, its own recipe"),
    ("glyphs_sweep_search", "where the learning rate of glyphs' temperature sweep is chosen"),
    (
        "matched_search",
        "where seven objectives' hyperparameters are chosen in the paper's regime: three seeds",
    ),
    (
        "matched_search_scaled",
        "where those of cosine softmax and squared error are, with their learning rates",
    ),
    ("matched_sweep_search", "where the learning rate of a temperature sweep is chosen in that regime"),
    ("glyphs_512", "nine objectives, ten seeds, 512 classes of the embedded world: a GPU"),
    (
        "imagenet64",
        "a hundred of ImageNet's classes at 64 pixels: one GPU, a night (--data imagenet100=FOLDER)",
    ),
    ("cifar10_allcnnc", "the paper's ICLR version: nine objectives, 25 seeds, All-CNN-C on CIFAR-10"),
    ("cifar100_wrn16_8", "the same with WRN-16-8 on CIFAR-100"),
    ("imagenet_resnet50", "the paper's: nine objectives, eight seeds, ResNet-50 on all of ImageNet"),
    ("imagenet_inception_v3", "the paper's second architecture, three seeds, and its linear transfer"),
    ("imagenet_transfer", "those ResNet-50s on eight tasks and CheXpert: probes and fine-tuning"),
    ("imagenet_robustness", "the same on ImageNet-V2, -A, -R, -Sketch and -C"),
    ("imagenet_relearning", "the same with their heads learned anew"),
    ("imagenet_temperature", "cosine softmax at eight temperatures"),
    ("imagenet_combinations", "pairs of objectives, with images held out"),
    ("imagenet_calibration", "eight objectives, with images held out on which temperatures are fitted"),
    ("imagenet_augmentation", "four objectives under AutoAugment and under Mixup"),
    ("imagenet_long", "twice as long, under AutoAugment and Mixup"),
    ("imagenet_dynamics", "transfer and class separation through training"),
):
    declare("study", _name, f"penultimate.studies.{_name}:STUDY", _summary)
