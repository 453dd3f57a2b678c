"""Parts shared by the studies of the paper's own size: recipes, hyperparameters and tasks, from its tables.

    Kornblith et al., NeurIPS 2021 (tables A.1, C.4 to C.6) and its ICLR version (table A.2), as they are kept
    in `penultimate.paper.published`

Whatever the paper does not state is chosen here, once: batch-norm moments over 32 images (4,096 over 128
cores), a smooth decay of the learning rate, no decay of biases, 200 epochs and shifts of up to four pixels
for CIFAR.

The hours in the headers are the images shown in training, divided by the rate of an H100. That rate is 2,500
images a second for ResNet-50 at 224 pixels, which is 61 TFLOP/s (4.09 G multiply-adds an image, and twice
that backward, in bfloat16), and for Inception v3, which is 43 TFLOP/s; it is 15,000 for ResNet-50 at 64
pixels, half of what its operations allow; in float32 at 20 TFLOP/s it is 12,000 for All-CNN-C (0.27 G) and
2,000 for WRN-16-8 (1.55 G). The bytes are those of `penultimate plan`. Measurements of finished networks, in
float32 at 2,400 images a second for ResNet-50, add one to four per cent, and more where a header says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penultimate.data.augmentation.settings import Augmentation
from penultimate.paper.published import Value, table
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.training.recipe import Recipe

TARGETS = ("food101", "cifar10", "cifar100", "birdsnap", "sun397", "cars", "pets", "flowers102")
SHIFTED = ("imagenet_v2", "imagenet_a", "imagenet_r", "imagenet_sketch", "imagenet_c")
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
    return {
        "epochs": epochs,
        "warmup": WARMUP / epochs,
        "final_fraction": decay ** (epochs - WARMUP),
    }


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
    return {
        spec(
            name,
            [(row["hyperparameter"], row["chosen_value"]) for row in rows if row["objective"] == name],
        ): int(next(row["epochs"] for row in rows if row["objective"] == name) or 0)
        for name in dict.fromkeys(row["objective"] for row in rows)
    }


NINE = _of_table_a1()
"""{objective: the epoch at which training stops}."""
BY_SLUG = {text.partition("(")[0]: text for text in NINE}


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


def cifar_choices(dataset: str) -> dict[str, dict[str, Any]]:
    """Return {objective: its learning rate and weight decay} on a CIFAR set: table A.2 of the ICLR version.

    The table names no scale of squared error, and equation 10 of the same paper has none, so the scale is 1.
    """
    changes: dict[str, dict[str, Any]] = {}
    for row in table("iclr_tableA2_cifar_hyperparameters"):
        if row["dataset"] == dataset:
            settings = [(row[f"hyperparameter_{n}"], row[f"hyperparameter_{n}_value"]) for n in (1, 2)]
            scale = [("scale", 1)] if row["objective"] == "squared_error" else []
            changes[spec(row["objective"], [*settings, *scale])] = {
                "learning_rate": row["learning_rate"],
                "weight_decay": row["weight_decay_derived"],
            }
    return changes


def cifar(dataset: str, backbone: str, recipe: Recipe) -> tuple[Runs, ...]:
    """Return the nine objectives on a CIFAR set with 25 seeds, each with its own learning rate and decay."""
    changes = cifar_choices(dataset)
    seeds = tuple(range(25))
    return runs_by_recipe(tuple(changes), recipe, changes, backbones=(backbone,), seeds=seeds, draws=0)


CIFAR = Recipe(
    epochs=200,
    warmup=0.0,
    schedule="cosine",
    final_fraction=0.0,
    averaging_window=0.0,
    augmentation=Augmentation(shift=4, flip=True),
    size=32,
    resize=32,
)
"""The recipe for CIFAR, except for batches and decay: appendix A.1 of the ICLR version."""

FINE_TUNING_RATES = tuple(round(10 ** (-5.5 + 4.5 * place / 7), 10) for place in range(8))
FINE_TUNING_DECAYS = (0.0, *(round(10 ** (-6.5 + 3.5 * place / 7), 11) for place in range(8)))
"""The decays of appendix A.3: none, and eight that are evenly spaced on a logarithmic scale."""
