"""Training glyphnet as the studies do, batch 128: our loop, two plain ones and the machine's matrix product.

`python -m benchmarks training [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. All three loops
train the same network in float32 (the same modules, in the plain loops run by PyTorch itself, channels-last)
on softmax over 128 classes: SGD, Nesterov momentum, an exponential moving average of the weights, shifts of
up to two pixels. Rounds are interleaved; ratios are medians over rounds. The share of the product counts the
multiply-adds of convolutions and head (forward, gradient by weights, gradient by inputs except the images),
two operations each, relative to a 1024^3 float32 product measured in the same round.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from penultimate.backbones import build
from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.augmentation.transforms import augment, normalise
from penultimate.data.images import ChannelStatistics, ImageSet
from penultimate.training.recipe import Recipe
from penultimate.training.run import Run

BATCH, CLASSES, IMAGES, SIDE = 128, 128, 12_800, 24
Step = Callable[[], None]


def world() -> ImageSet:
    """Noise: the content of the images does not affect the time."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (IMAGES, SIDE, SIDE, 3), dtype=np.uint8)
    labels = np.arange(IMAGES) % CLASSES
    return ImageSet(images, labels, np.arange(IMAGES), tuple(f"class {label}" for label in range(CLASSES)))


class PlainNet(nn.Module):
    """The same modules, run by PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone: Any = build("glyphnet", seed=0)
        self.head = nn.Linear(self.backbone.num_features, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.backbone.body(images).mean((2, 3)))
        return logits


def multiply_adds() -> tuple[int, int]:
    """Multiply-adds per image of one forward pass, and of one whole step."""
    network, forward, step = PlainNet(), 0, 0

    def count(module: nn.Module, _: object, output: Tensor) -> None:
        nonlocal forward, step
        inner = module.weight[0].numel() if isinstance(module.weight, Tensor) else 0
        forward += output[0].numel() * inner
        step += output[0].numel() * inner * (2 if module is network.backbone.stem.convolution else 3)

    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(count)
    with torch.no_grad():
        network.eval()(torch.zeros(1, 3, SIDE, SIDE))
    return forward, step


def our_loop(images: ImageSet, folder: Path) -> Step:
    recipe = Recipe(epochs=10_000, batch_size=BATCH, learning_rate=0.1)
    run = Run("softmax", "glyphnet", images, images.subset(slice(0, BATCH)), recipe, 0, folder, "cpu")
    batches = itertools.cycle(run.batches())
    return lambda: run.advance(next(batches))


def plain_loop(
    network: nn.Module, batches: Iterator[tuple[Tensor, Tensor]], precision: str = "float32"
) -> Step:
    network = network.to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(
        network.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=8e-5, fused=True
    )
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.998), use_buffers=True)  # type: ignore[no-untyped-call]

    def step() -> None:
        images, labels = next(batches)
        optimiser.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = network(images)
        torch.autograd.backward(nn.functional.cross_entropy(logits.float(), labels))
        optimiser.step()
        average.update_parameters(network)

    return step


def resident_batches(images: ImageSet) -> Iterator[tuple[Tensor, Tensor]]:
    pixels, labels = torch.from_numpy(images.images), torch.from_numpy(images.labels)
    statistics_of, generator = ChannelStatistics.of(images.images), torch.Generator().manual_seed(0)
    while True:
        for batch in torch.split(torch.randperm(IMAGES, generator=generator), BATCH):
            moved = augment(pixels[batch], Augmentation(shift=2), generator)
            yield normalise(moved, statistics_of), labels[batch]


class Images(Dataset[tuple[Tensor, int]]):
    """As in a tutorial: one image at a time through torchvision's transforms."""

    def __init__(self, images: ImageSet) -> None:
        self.images = images
        measured = ChannelStatistics.of(images.images)
        self.transform = v2.Compose(
            [
                v2.ToImage(),
                v2.RandomCrop(SIDE, padding=2, padding_mode="reflect"),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(list(measured.mean), list(measured.std)),
            ]
        )

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.transform(self.images.images[index]), int(self.images.labels[index])


def loader_batches(images: ImageSet) -> Iterator[tuple[Tensor, Tensor]]:
    loader = DataLoader(Images(images), batch_size=BATCH, shuffle=True, drop_last=True)
    while True:
        for pixels, labels in loader:
            yield pixels.to(memory_format=torch.channels_last), labels


def rate(step: Step, steps: int) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return steps * BATCH / (time.perf_counter() - start)


def matrix_product_rate(side: int = 1024, times: int = 5) -> float:
    """Operations per second of a float32 product, the best of a few."""
    a, b = torch.randn(side, side), torch.randn(side, side)
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - start)
    return 2 * side**3 / best


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks training", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    rounds, steps = (4, 8) if options.quick else (24, 20)

    images = world()
    forward, whole = multiply_adds()
    with tempfile.TemporaryDirectory() as folder:
        loops = {
            "penultimate": our_loop(images, Path(folder)),
            "plain loop, resident tensors": plain_loop(PlainNet(), resident_batches(images)),
            "plain loop, DataLoader + torchvision": plain_loop(PlainNet(), loader_batches(images)),
        }
        for step in loops.values():
            rate(step, 5)
        peaks: list[float] = []
        rates: dict[str, list[float]] = {name: [] for name in loops}
        for _ in range(rounds):
            peaks.append(matrix_product_rate())
            for name, step in loops.items():
                rates[name].append(rate(step, steps))

    ours = rates["penultimate"]
    print(
        f"glyphnet, batch {BATCH}, float32, {torch.get_num_threads()} thread(s);"
        f" {forward / 1e6:.2f} M multiply-adds forward, {whole / 1e6:.2f} M a step, per image;"
        f" matrix product {statistics.median(peaks) / 1e9:.0f} GFLOP/s; {rounds} rounds of {steps} steps"
    )
    numbers: dict[str, Any] = {"benchmark": "training", "threads": torch.get_num_threads(), "rounds": rounds}
    numbers["matrix_product_flops"] = statistics.median(peaks)
    for name, measured in rates.items():
        shares = [2 * whole * speed / peak for speed, peak in zip(measured, peaks, strict=True)]
        ratio = statistics.median(our / other for our, other in zip(ours, measured, strict=True))
        numbers[name] = {
            "images_per_second": statistics.median(measured),
            "best_images_per_second": max(measured),
            "share_of_matrix_product": statistics.median(shares),
            "our_ratio": ratio,
        }
        print(
            f"  {name:<38}{statistics.median(measured):8.0f} img/s (best {max(measured):6.0f})"
            f" {statistics.median(shares):6.1%} of the product   ours: {ratio:.2f} x"
        )
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
