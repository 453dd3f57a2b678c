"""Two more small networks, trained as the ICLR version of the paper trains on CIFAR (its table 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penultimate.paper.arms import COSINE_DECAY
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import table_of_means, table_of_printed
from penultimate.results.rows import Run, seeds
from penultimate.results.table import Column
from penultimate.results.text import plain


@exhibit(
    "iclr_table1", "Do two more small networks, trained otherwise, rank the objectives alike?", section="B"
)
def iclr_table1(run: Run) -> Iterator[Part]:
    """Test accuracy of networks of two more architectures, trained with a cosine decay of the learning
    rate and without averaging of the weights. ± is the standard error over runs. The paper's ICLR
    version trains All-CNN-C on CIFAR-10 and WRN-16-8 on CIFAR-100 so, 25 runs an objective."""
    arm = COSINE_DECAY if COSINE_DECAY in run.arms else ""
    recipe: Mapping[str, Any] = next((block["recipe"] for block in run.grids(arm) if "recipe" in block), {})
    averaged = recipe.get("averaging_window") or recipe.get("averaging_momentum")
    columns = {}
    if recipe.get("schedule") == "cosine" and not averaged:
        for backbone in run.further:
            top1 = seeds(run, "top1", scale=100, arm=arm, backbone=backbone)
            name = f"{backbone}_top1_percent"
            if not top1.empty:
                columns[Column(name, "Top-1, %", plain(backbone), better="high", with_error=True)] = top1
        title = f"Test accuracy on {run.title} under cosine decay, without averaging"
        yield table_of_means(run, "iclr_table1", title, columns, rows=run.labels(arm))
        yield (
            f"Trained here for {recipe['epochs']} epochs, with a cosine schedule down to"
            f" {100 * recipe['final_fraction']:.0f} % of the learning rate and no averaging of the weights."
        )
    yield table_of_printed(
        "iclr_table1",
        "Table 1 of the paper's ICLR version: ResNet-50; All-CNN-C; WRN-16-8",
        "iclr_table1_accuracy",
        {
            Column(f"{key}_percent", f"{label}, %", group): f"{key}_percent"
            for key, label, group in (
                ("imagenet_top1", "Top-1", "ImageNet"),
                ("imagenet_top5", "Top-5", "ImageNet"),
                ("cifar10_top1", "Top-1", "CIFAR-10"),
                ("cifar100_top1", "Top-1", "CIFAR-100"),
            )
        },
    )
