"""The paper's own studies on ImageNet: recipes, hyperparameters and tasks from its tables.

    penultimate run imagenet_resnet50 --data imagenet=FOLDER
    penultimate tune all --study imagenet_search --data imagenet_tuning=FOLDER

    Kornblith et al., NeurIPS 2021 (tables A.1, 4 and C.4 to C.6), as kept in `penultimate.paper.published`

What the paper does not state is chosen here, once: batch-norm moments over 32 images (4,096 over 128 cores),
a smooth decay of the learning rate, no decay of biases, fine-tuning in batches of 256 by softmax, Mixup's
alpha of 0.2, searches of 240 epochs. `docs/howto/cost.md` has the GPU hours. Studies of the same networks
share them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.readers.counterparts import imagenet_counterparts
from penultimate.networks.released.catalogue import BACKBONE, LOSSES
from penultimate.paper import arms
from penultimate.paper.published import Value, table
from penultimate.paper.studies import headings
from penultimate.study.blocks import Runs, Search, runs_by_recipe
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.training.regime import matched
from penultimate.tuning.axes import hyperparameters_of

TARGETS = ("food101", "cifar10", "cifar100", "birdsnap", "sun397", "cars", "pets", "flowers102")
EIGHT_SEEDS, THREE_SEEDS = tuple(range(8)), tuple(range(3))
WARMUP = 10
"""The number of epochs in which the learning rate rises to 1.6."""
KEYWORDS = {
    "keep_probability_rho": "keep",
    "temperature_tau": "temperature",
    "target_magnitude_m": "target",
    "loss_scale": "scale",
}
"""The tables' names for hyperparameters that have other names here."""
RECIPE = Recipe(
    batch_size=4096,
    ghost_batch=32,
    at_once=512,
    learning_rate=1.6,
    schedule="exponential",
    weight_decay=8e-5,
    averaging_momentum=0.9999,
    precision="bfloat16",
    augmentation=Augmentation(shift=0, flip=True, crop=(0.1, 1.0)),
)
"""The recipe for ImageNet, except for its length: appendix A.1."""


def lasting(epochs: int, decay: float = 0.975) -> dict[str, Any]:
    """Return the settings of a recipe of that many epochs: ten of warm-up, then a factor of `decay` in each.

    >>> lasting(146)["epochs"], round(1.6 * lasting(146)["final_fraction"], 3)
    (146, 0.051)
    """
    return {"epochs": epochs, "warmup": WARMUP / epochs, "final_fraction": decay ** (epochs - WARMUP)}


def spec(objective: Value, settings: Iterable[tuple[Value, Value]] = ()) -> str:
    """Return the spec of an objective whose hyperparameters have the names of a table.

    >>> spec("dropout", [("keep_probability_rho", 0.7)]), spec("sigmoid", [("none", None)])
    ('dropout(keep=0.7)', 'sigmoid')
    """
    told = ", ".join(
        f"{KEYWORDS.get(str(name), name)}={value}" for name, value in settings if value is not None
    )
    return f"{objective}({told})" if told else str(objective)


def _of_table_a1() -> dict[str, int]:
    """Return {objective with its chosen hyperparameters: epochs} of table A.1, ResNet-50 on ImageNet."""
    rows = table("neurips_tableA1_hyperparameters")
    epochs = {str(row["objective"]): int(row["epochs"] or 0) for row in rows}
    chosen = {
        name: [(row["hyperparameter"], row["chosen_value"]) for row in rows if row["objective"] == name]
        for name in epochs
    }
    return {spec(name, settings): epochs[name] for name, settings in chosen.items()}


NINE = _of_table_a1()
"""{objective: the epoch at which training stops}."""
BY_SLUG = {text.partition("(")[0]: text for text in NINE}
SQUARED_ERROR = BY_SLUG["squared_error"]
EIGHT = {text: epochs for text, epochs in NINE.items() if text != SQUARED_ERROR}


def runs(
    epochs: Mapping[str, int],
    seeds: Sequence[int],
    backbone: str = "resnet50",
    decay: float = 0.975,
    recipe: Recipe = RECIPE,
    **settings: Any,
) -> tuple[Runs, ...]:
    """Return grids of objectives on ImageNet, each trained for its own number of epochs."""
    changes = {text: lasting(length, decay) for text, length in epochs.items()}
    common = {"backbones": (backbone,), "seeds": tuple(seeds), "draws": 0}
    return runs_by_recipe(tuple(epochs), recipe, changes, **common, **settings)


def augmented(**augmentation: bool | float) -> Recipe:
    """Return the recipe with more augmentation: autoaugment=True, mixup=0.2."""
    more = dataclasses.replace(RECIPE.augmentation, **augmentation)  # type: ignore[arg-type]
    return dataclasses.replace(RECIPE, augmentation=more)


def _study(name: str, networks: tuple[Runs, ...], measure: tuple[str, ...], **more: Any) -> Study:
    settings: dict[str, Any] = {"source": "imagenet", "targets": (), "threads": 8, "gpus": 1.0, **more}
    return Study(name, *headings(name), networks=networks, measure=measure, **settings)


MAIN = runs(NINE, EIGHT_SEEDS)
SIMILARITY = "similarity(images=50000, batch_size=1500, passes=10)"
FROM_TRAINING = "relearning_from_training(shots=50)"
IMAGENET_RESNET50 = _study(
    "imagenet_resnet50",
    MAIN,
    (
        *("accuracy", "class_separation", "collapse", "hardness", "spectra", "distances(count=10000)"),
        *("agreement", "layers", "layers_on_training", SIMILARITY),
    ),
)
IMAGENET_INCEPTION_V3 = _study(
    "imagenet_inception_v3",
    runs(NINE, THREE_SEEDS, "inception_v3"),
    ("accuracy", "class_separation", SIMILARITY, "linear"),
    targets=TARGETS,
)
"""The epochs are those of ResNet-50, and images have 224 pixels, as the ICLR version says in appendix A.1."""

FINE_TUNING_RATES = tuple(round(10 ** (-5.5 + 4.5 * place / 7), 10) for place in range(8))
FINE_TUNING_DECAYS = (0.0, *(round(10 ** (-6.5 + 3.5 * place / 7), 11) for place in range(8)))
"""The decays of appendix A.3: none, and eight that are evenly spaced on a logarithmic scale."""
OF_FEATURES = ("accuracy", "class_separation", "linear", "knn", "multilabel", "overlap")
FINE_TUNING = (
    f"fine_tuning(head='fresh', learning_rate={FINE_TUNING_RATES}, decay={FINE_TUNING_DECAYS}, steps=20000,"
    " batch_size=256, seeds=3, images=50000, compared=1500, passes=10)"
)
IMAGENET_TRANSFER = _study(
    "imagenet_transfer",
    (
        *runs(NINE, THREE_SEEDS, measure=(*OF_FEATURES, FINE_TUNING)),
        *runs(NINE, EIGHT_SEEDS[3:], measure=OF_FEATURES),
    ),
    OF_FEATURES,
    targets=(*TARGETS, "chexpert"),
    counterparts={target: told for target in TARGETS if (told := imagenet_counterparts(target))},
)
IMAGENET_ROBUSTNESS = _study("imagenet_robustness", MAIN, ("accuracy", "published_robustness"))
IMAGENET_RELEARNING = _study(
    "imagenet_relearning",
    MAIN,
    ("accuracy", "class_separation", "relearning_from_test(shots=40)", FROM_TRAINING),
)

RELEASED = {text: NINE[BY_SLUG[text.partition("(")[0]]] for text in LOSSES.values()}
OF_RELEASED = (
    *(*IMAGENET_RESNET50.measure, "linear", "knn", "multilabel", "overlap", "published_robustness"),
    *("relearning_from_test(shots=40)", FROM_TRAINING),
)
KORNBLITH2021 = _study(
    "kornblith2021",
    (
        *runs(RELEASED, THREE_SEEDS, BACKBONE, measure=(*OF_RELEASED, FINE_TUNING)),
        *runs(RELEASED, EIGHT_SEEDS[3:], BACKBONE, measure=OF_RELEASED),
    ),
    OF_RELEASED,
    targets=IMAGENET_TRANSFER.targets,
    counterparts=IMAGENET_TRANSFER.counterparts,
)
"""The authors' own networks, which `--networks` gives; the epochs are those of table A.1."""

TEMPERATURES = [row["temperature"] for row in table("neurips_table4_temperature")]
OF_TEMPERATURE = ("accuracy", "class_separation", FROM_TRAINING, "linear")


def _sweep(scale_of: Mapping[Value, Value]) -> tuple[Runs, ...]:
    """Return cosine softmax at some temperatures, each with the scale of its loss, for its usual epochs."""
    settings = ([("temperature", one), ("scale", scale)] for one, scale in scale_of.items())
    epochs = dict.fromkeys((spec("cosine_softmax", of) for of in settings), NINE[BY_SLUG["cosine_softmax"]])
    return runs(epochs, (0,), arm=arms.SWEEP)


IMAGENET_TEMPERATURE = _study(
    "imagenet_temperature", _sweep({one: one for one in TEMPERATURES}), OF_TEMPERATURE, targets=TARGETS
)
IMAGENET_TEMPERATURE_UNSCALED = _study(
    "imagenet_temperature_unscaled",
    _sweep({one: 1 for one in TEMPERATURES if float(one or 0) >= 0.05}),
    OF_TEMPERATURE,
    targets=TARGETS,
)
"""The paper trains without scaling the loss from a temperature of 0.05 on (a footnote to section 3.4)."""

KEEPING = dataclasses.replace(RECIPE, snapshot_every=2)
DYNAMICS = "dynamics(images=50000, unbiased=True, every=8)"
IMAGENET_DYNAMICS = _study(
    "imagenet_dynamics",
    (
        *runs(EIGHT, (0,), recipe=KEEPING, measure=(DYNAMICS, "transfer_dynamics(every=6)")),
        *runs({SQUARED_ERROR: NINE[SQUARED_ERROR]}, (0,), recipe=KEEPING, measure=(DYNAMICS,)),
    ),
    (DYNAMICS,),
    targets=TARGETS,
)
"""Squared error is left out of transfer, as in the paper."""
IMAGENET_CURVES = _study(
    "imagenet_curves",
    runs(NINE, EIGHT_SEEDS, recipe=KEEPING),
    ("accuracy", "dynamics(images=50000, every=2)"),
)
IMAGENET_CALIBRATION = _study(
    "imagenet_calibration", runs(EIGHT, THREE_SEEDS), ("calibration",), source="imagenet_tuning"
)


def _combined(row: dict[str, Value]) -> str:
    """Return the objective of a row of table C.4; softmax with a regulariser is that regulariser."""
    base = spec(row["objective"], [(row["objective_hyperparameter"], row["objective_hyperparameter_value"])])
    if row["added_regularizer"] == "none":
        return base
    added = spec(row["added_regularizer"], [(row["regularizer_hyperparameter"], row["regularizer_value"])])
    return added if base == "softmax" else f"{base} + {added}"


CELLS = dict.fromkeys(map(_combined, table("neurips_tableC4_combinations")), max(NINE.values()))
"""Each cell is a maximum over training, so that all networks train as long as the longest of table A.1."""
IMAGENET_COMBINATIONS = _study(
    "imagenet_combinations",
    (
        *runs({text: CELLS[text] for text in CELLS if " + " not in text}, THREE_SEEDS),
        *runs({text: CELLS[text] for text in CELLS if " + " in text}, THREE_SEEDS, arm=arms.COMBINATIONS),
    ),
    (),
    source="imagenet_tuning",
)

AUGMENTATIONS = table("neurips_tableC5_augmentation")
RUNS = {row["augmentation"]: range(int(row["n_runs"] or 3)) for row in AUGMENTATIONS}
FOUR = {text: NINE[text] for row in AUGMENTATIONS for text in [BY_SLUG[str(row["objective"])]]}
AUTOAUGMENT, MIXUP = augmented(autoaugment=True), augmented(mixup=0.2)
BOTH = augmented(autoaugment=True, mixup=0.2)
IMAGENET_AUGMENTATION = _study(
    "imagenet_augmentation",
    (
        *runs(FOUR, RUNS["standard"]),
        *runs(FOUR, RUNS["autoaugment"], recipe=AUTOAUGMENT, arm=arms.AUTOAUGMENT),
        *runs(FOUR, RUNS["mixup"], recipe=MIXUP, arm=arms.MIXUP),
    ),
    ("accuracy", "class_separation"),
)
LONG, LONG_MIXUP = (
    {
        BY_SLUG[str(row["objective"])]: int(row["epochs"] or 0)
        for row in table("neurips_tableC6_sota")
        if (row["source"], row["augmentation"]) == ("this_paper", name)
    }
    for name in ("autoaugment", "autoaugment+mixup")
)
IMAGENET_LONG = _study(
    "imagenet_long",
    (
        *runs(LONG, THREE_SEEDS, decay=0.985, recipe=AUTOAUGMENT, arm=arms.LONG),
        *runs(LONG_MIXUP, THREE_SEEDS, decay=0.985, recipe=BOTH, arm=arms.LONG_MIXUP),
    ),
    ("accuracy", "class_separation"),
)


def fixed(objectives: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """Return a grid of one value for every hyperparameter of some objectives: the value that it has.

    >>> fixed(["dropout(keep=0.8)"])
    {'dropout.keep': (0.8,)}
    """
    return {
        f"{term}.{name}": (value,)
        for objective in objectives
        for (term, name), (_, value) in hyperparameters_of(objective).items()
    }


def grids_of_table_a1() -> dict[str, tuple[float, ...]]:
    """Return the grids of table A.1; where it prints none, the value that it prints."""
    return {
        f"{row['objective']}.{KEYWORDS.get(str(row['hyperparameter']), row['hyperparameter'])}": tuple(
            float(value) for value in str(row["grid"] or row["chosen_value"]).split(";")
        )
        for row in table("neurips_tableA1_hyperparameters")
        if row["hyperparameter"] != "none"
    }


def _search(
    name: str,
    objectives: Iterable[str],
    grids: Mapping[str, tuple[float, ...]],
    backbone: str = "resnet50",
    recipe: Recipe = RECIPE,
) -> Study:
    """Return a search with 50,046 images held out, for the highest mean over three runs in any epoch."""
    recipe = dataclasses.replace(recipe, evaluate_every=2)
    networks = runs(dict.fromkeys(objectives, 240), (100, 101, 102), backbone, recipe=recipe)
    search = Search(grids, stops=True, by_mean=True)
    return _study(name, networks, ("accuracy",), source="imagenet_tuning", search=search)


IMAGENET_SEARCH = _search("imagenet_search", NINE, grids_of_table_a1() | {"cosine_softmax.scale": (1,)})
IMAGENET_INCEPTION_V3_SEARCH = _search(
    "imagenet_inception_v3_search",
    NINE,
    fixed(NINE),
    "inception_v3",
    dataclasses.replace(RECIPE, size=299, resize=342),
)
IMAGENET_AUTOAUGMENT_SEARCH = _search("imagenet_autoaugment_search", FOUR, fixed(FOUR), recipe=AUTOAUGMENT)
IMAGENET_MIXUP_SEARCH = _search(
    "imagenet_mixup_search", FOUR, fixed(FOUR) | {"recipe.mixup": (0.1, 0.2, 0.3, 0.4)}, recipe=MIXUP
)

# A hundred classes at 64 pixels: the regime of the paper's softmax, strengths translated as in `searches`.
AT_64_PIXELS = matched(
    Recipe(
        epochs=92,
        batch_size=256,
        ghost_batch=32,
        learning_rate=0.1,
        precision="bfloat16",
        augmentation=RECIPE.augmentation,
        size=64,
        resize=73,
    )
)
IMAGENET64 = _study(
    "imagenet64",
    (
        Runs(
            (
                "softmax",
                "label_smoothing(alpha=0.1)",
                "sigmoid",
                "final_layer_l2(lambda_final=0.0128)",
                "dropout(keep=0.7)",
                "logit_penalty(beta=0.006)",
                "logit_norm(temperature=0.06)",
                "cosine_softmax(temperature=0.075)",
                "squared_error(kappa=9, target=60, scale=1)",
            ),
            AT_64_PIXELS,
            ("resnet50",),
            THREE_SEEDS,
            draws=0,
        ),
    ),
    ("accuracy", "class_separation", "collapse", "agreement", "layers", "linear", "knn"),
    source="imagenet100",
    targets=("cifar10", "cifar100", "pets", "flowers102"),
)
