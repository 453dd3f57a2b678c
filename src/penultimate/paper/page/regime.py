"""The settings of a study beside the paper's, which a careful reader needs first."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.data.catalog import card
from penultimate.paper.claims.evidence import BASELINE
from penultimate.results import escape
from penultimate.results.means import printed
from penultimate.results.rows import Run, seeds
from penultimate.results.table import MISSING
from penultimate.results.text import counted, fixed, listed
from penultimate.training.recipe import Recipe
from penultimate.training.regime import IMAGENET, regime, weight_decay


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
    source = card(run.source)
    images = int(source.sizes.get("train", source.images))
    width = run.description.get("num_features")
    ratio = f"{source.classes} / {width} = {fixed(source.classes / width, 2)}" if width else MISSING
    yield "Pretraining data", f"{source.title}: {images:,} images", "ImageNet: 1,281,167 photographs"
    yield "Classes K / penultimate features M", ratio, "1000 / 2048 = 0.49"
    yield "Architecture", listed(run.backbones) if run.backbones else MISSING, "ResNet-50"
    epochs = printed("neurips_tableA1_hyperparameters")["epochs"]
    blocks = [block for block in run.grids() if "recipe" in block]
    of_softmax = [block for block in blocks if BASELINE in block.get("objectives", ())] or blocks
    given = of_softmax[0]["recipe"] if of_softmax else {}
    recipe = Recipe.of_record(given) if given else None
    span = f"{int(epochs.min())} to {int(epochs.max())}, chosen per objective"
    yield "Epochs", f"{recipe.epochs}" if recipe else MISSING, span
    yield "Batch size", f"{recipe.batch_size:,}" if recipe else MISSING, "4,096"
    yield from _training(recipe, images)
    yield "Runs per objective", _runs(run), "8"
    for what, metric, split, scale, table, column in SOFTMAX:
        paper = printed(f"neurips_{table}", numbers=False).loc[BASELINE, column]
        frame = seeds(run, metric, split, scale=scale)
        mean = fixed(float(frame[BASELINE].mean()), 1 if scale > 1 else 3) if BASELINE in frame else MISSING
        unit = " %" if scale > 1 else ""
        yield what, f"{mean}{unit if mean != MISSING else ''}", f"{paper}{unit}"
    tasks = [card(name).title for name in (*run.targets, *run.several_labels)]
    theirs = "8: Food-101, CIFAR-10, CIFAR-100, Birdsnap, SUN397, Stanford Cars, Pets and Flowers"
    yield "Transfer tasks", f"{len(tasks)}: {listed(tasks)}" if tasks else "none", theirs


SOFTMAX = (
    (
        "Softmax accuracy, training images",
        "top1",
        "train",
        100,
        "tableC1_train_accuracy",
        "train_top1_percent",
    ),
    (
        "Softmax accuracy, test images",
        "top1",
        "test",
        100,
        "table3_class_separation",
        "imagenet_top1_percent",
    ),
    ("Softmax R²", "class_separation", "train", 1, "table3_class_separation", "class_separation_r2"),
)


def _training(recipe: Recipe | None, images: int) -> Iterator[tuple[str, str, str]]:
    """Yield the training of softmax: schedule, averaging, weight decay, augmentation."""
    theirs = (
        f"1.6 at its peak, × 0.975 an epoch, to {_share(IMAGENET.final_fraction)} of it",
        f"{_share(IMAGENET.averaging_window)} (momentum 0.9999)",
        f"8e-05; {fixed(IMAGENET.exposure, 1)}",
        "crops of 10 to 100 % of the area, aspect 0.75 to 1.33, and mirror images",
    )
    ours = [MISSING] * len(theirs)
    if recipe:
        steps = recipe.steps_on(images)
        own, moves = regime(recipe, steps), recipe.augmentation
        kinds = [f"shifts of up to {counted(moves.shift, 'pixel')}"] * (moves.shift > 0)
        kinds += ["mirror images"] * moves.flip + ["AutoAugment"] * moves.autoaugment
        kinds += [f"Mixup (α = {moves.mixup:g})"] * (moves.mixup > 0)
        to = "" if recipe.schedule == "constant" else f" to {_share(own.final_fraction)} of it"
        apart = "" if recipe.head_decay is None else f"; of the final layer {recipe.head_decay:.2g}"
        averages = recipe.momentum_of_average(steps) > 0
        ours = [
            f"{recipe.learning_rate:g} at its peak, {recipe.schedule}{to}",
            f"{_share(own.averaging_window)} of all steps" if averages else "no average",
            f"{weight_decay(recipe, steps):.2g}; {fixed(own.exposure, 1)}{apart}",
            listed(kinds) if kinds else "none",
        ]
    names = (
        "Learning rate",
        "Horizon of the weights' average",
        "Weight decay; its exposure: decay × Σ learning rates / (1 − momentum)",
        "Augmentation",
    )
    yield from zip(names, ours, theirs, strict=True)


def _share(value: float) -> str:
    """Return a share in per cent, without a zero decimal.

    >>> _share(0.2), _share(10 / 146)
    ('20 %', '6.8 %')
    """
    return f"{fixed(100 * value, 1).removesuffix('.0')} %"


def _runs(run: Run) -> str:
    counts = seeds(run, "top1").count()
    ends = dict.fromkeys((int(counts.min()), int(counts.max()))) if len(counts) else {}
    return " to ".join(map(str, ends)) or MISSING
