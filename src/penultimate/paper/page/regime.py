"""The settings of a study beside the paper's, which a careful reader needs first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from penultimate.data.catalog import card
from penultimate.paper import BASELINE
from penultimate.results import escape
from penultimate.results.means import printed
from penultimate.results.rows import Run, seeds
from penultimate.results.table import MISSING
from penultimate.results.text import counted, fixed, listed
from penultimate.training.recipe import Recipe
from penultimate.training.regime import IMAGENET, regime, weight_decay

OF_SOFTMAX = (
    ("Softmax accuracy, training images", "top1", "train", "tableC1_train_accuracy", "train_top1_percent"),
    ("Softmax accuracy, test images", "top1", "test", "table3_class_separation", "imagenet_top1_percent"),
    ("Softmax R²", "class_separation", "train", "table3_class_separation", "class_separation_r2"),
)


def regime_table(run: Run) -> str:
    """Return the settings of a run, or of the first of several, and of the paper, as an HTML table."""
    lines = [
        f'<tr><th scope="row">{what}</th><td>{ours}</td><td>{paper}</td></tr>'
        for what, ours, paper in (map(escape.html, row) for row in settings((*run.parts, run)[0]))
    ]
    heads = "<tr><th>Property</th><th>This study</th><th>The paper</th></tr>"
    return (
        '<div class="table-box"><div class="scroll" role="region" aria-label="This study beside the paper"'
        f' tabindex="0"><table class="words"><thead>{heads}</thead><tbody>{"".join(lines)}</tbody></table>'
        "</div></div>"
    )


def settings(run: Run) -> Iterator[tuple[str, str, str]]:
    """Yield each property with our value and the paper's."""
    source, width = card(run.source), run.description.get("num_features")
    images = int(source.sizes.get("train", source.images))
    ratio = f"{source.classes} / {width} = {fixed(source.classes / width, 2)}" if width else MISSING
    yield "Pretraining data", f"{source.title}: {images:,} images", "ImageNet: 1,281,167 photographs"
    yield "Classes K / penultimate features M", ratio, "1000 / 2048 = 0.49"
    yield "Architecture", listed(run.backbones) if run.backbones else MISSING, "ResNet-50"
    epochs = printed("neurips_tableA1_hyperparameters")["epochs"].astype(int)
    theirs = (
        f"{epochs.min()} to {epochs.max()}, chosen per objective",
        "4,096",
        f"1.6 at its peak, × 0.975 an epoch, to {_share(IMAGENET.final_fraction)} of it",
        f"{_share(IMAGENET.averaging_window)} (momentum 0.9999)",
        f"8e-05; {fixed(IMAGENET.exposure, 1)}",
        "crops of 10 to 100 % of the area, aspect 0.75 to 1.33, and mirror images",
    )
    names = (
        "Epochs",
        "Batch size",
        "Learning rate",
        "Horizon of the weights' average",
        "Weight decay; its exposure: decay × Σ learning rates / (1 − momentum)",
        "Augmentation",
    )
    yield from zip(names, _training(run, images), theirs, strict=True)
    counts = seeds(run, "top1").count()
    ends = dict.fromkeys((int(counts.min()), int(counts.max()))) if len(counts) else {}
    yield "Runs per objective", " to ".join(map(str, ends)) or MISSING, "8"
    for what, metric, split, table, column in OF_SOFTMAX:
        scale, digits, unit = (100, 1, " %") if metric == "top1" else (1, 3, "")
        runs = seeds(run, metric, split, scale=scale).get(BASELINE)
        ours = MISSING if runs is None else f"{fixed(float(runs.mean()), digits)}{unit}"
        yield what, ours, f"{printed(f'neurips_{table}', numbers=False).at[BASELINE, column]}{unit}"
    tasks = [card(name).title for name in (*run.targets, *run.several_labels)]
    of_paper = "8: Food-101, CIFAR-10, CIFAR-100, Birdsnap, SUN397, Stanford Cars, Pets and Flowers"
    yield "Transfer tasks", f"{len(tasks)}: {listed(tasks)}" if tasks else "none", of_paper


def _training(run: Run, images: int) -> list[str]:
    """Return how softmax is trained: epochs, batch, schedule, averaging, weight decay, augmentation."""
    blocks = [block for block in run.grids() if "recipe" in block]
    blocks = [block for block in blocks if BASELINE in block.get("objectives", ())] or blocks
    if not blocks:
        return [MISSING] * 6
    known = {field.name for field in fields(Recipe)}
    recipe = Recipe(**{name: value for name, value in blocks[0]["recipe"].items() if name in known})
    steps, moves = recipe.steps_on(images), recipe.augmentation
    own = regime(recipe, steps)
    kinds = [f"shifts of up to {counted(moves.shift, 'pixel')}"] * (moves.shift > 0)
    kinds += ["mirror images"] * moves.flip + ["AutoAugment"] * moves.autoaugment
    kinds += [f"Mixup (α = {moves.mixup:g})"] * (moves.mixup > 0)
    to = "" if recipe.schedule == "constant" else f" to {_share(own.final_fraction)} of it"
    apart = "" if recipe.head_decay is None else f"; of the final layer {recipe.head_decay:.2g}"
    averages = recipe.momentum_of_average(steps) > 0
    return [
        f"{recipe.epochs}",
        f"{recipe.batch_size:,}",
        f"{recipe.learning_rate:g} at its peak, {recipe.schedule}{to}",
        f"{_share(own.averaging_window)} of all steps" if averages else "no average",
        f"{weight_decay(recipe, steps):.2g}; {fixed(own.exposure, 1)}{apart}",
        listed(kinds) if kinds else "none",
    ]


def _share(value: float) -> str:
    """Return a share in per cent, without a zero decimal.

    >>> _share(0.2), _share(10 / 146)
    ('20 %', '6.8 %')
    """
    return f"{fixed(100 * value, 1).removesuffix('.0')} %"
