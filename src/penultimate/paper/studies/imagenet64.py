"""Between the laptop and the paper: a hundred of ImageNet's classes at 64 pixels, on one GPU in a night.

    penultimate run imagenet64 --data imagenet100=FOLDER --root FOLDER

Computed, not measured: 6 GPU hours of training on H100s at 15,000 images a second, and 68.8 GB of files.

The regime is that of the paper's softmax (`training.regime`): the same number of steps, the same warm-up,
decay and averaging as shares of the steps, and the same exposure to weight decay. Hyperparameters are the
paper's, translated to a hundred classes and not searched: beta scales with 1000 / K, 1 / tau with log K and
squared error's scale with K, and the final layer's decay is ten times the weight decay. So there are no
published numbers to expect.

Exhibits: table1, table3, tableC1, tableE1, tableE2, figure3, figure4, figureC2, figureC3, figureD1.
"""

from penultimate.data.augmentation.settings import Augmentation
from penultimate.paper.studies.paper import THREE_SEEDS
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.training.regime import matched

NINE = (
    "softmax",
    "label_smoothing(alpha=0.1)",
    "sigmoid",
    "final_layer_l2(lambda_final=0.0128)",
    "dropout(keep=0.7)",
    "logit_penalty(beta=0.006)",
    "logit_norm(temperature=0.06)",
    "cosine_softmax(temperature=0.075)",
    "squared_error(kappa=9, target=60, scale=1)",
)
RECIPE = matched(
    Recipe(
        epochs=92,
        batch_size=256,
        ghost_batch=32,
        learning_rate=0.1,
        precision="bfloat16",
        augmentation=Augmentation(shift=0, flip=True, crop=(0.1, 1.0)),
        size=64,
        resize=73,
    )
)

STUDY = Study(
    name="imagenet64",
    title="Nine objectives, three seeds, ResNet-50 on ImageNet-100 at 64 pixels",
    question="Do objectives that separate classes further give features that transfer worse?",
    source="imagenet100",
    targets=("cifar10", "cifar100", "pets", "flowers102"),
    networks=(Runs(NINE, RECIPE, ("resnet50",), THREE_SEEDS, draws=0),),
    measure=("accuracy", "class_separation", "collapse", "agreement", "layers", "linear", "knn"),
    threads=8,
    gpus=1.0,
)
