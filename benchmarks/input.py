"""Images on disk for training: decoding and random crops beside torchvision's and timm's, and a whole step.

`python -m benchmarks input [--quick] [--json=FILE] [--timm-script=train.py]`. JPEGs of 500 x 375, quality 90;
every pipeline gives batches of 64 normalised float32 images of 224 x 224, from random crops of 10-100 % of
the area, and flips; that the pixels are torchvision's is tested. One process each, by processor time,
interleaved; ratios are medians over rounds. The step is ResNet-50 at batch 16, float32 and bfloat16,
channels-last, beside a plain loop over a DataLoader with torchvision's transforms on the same images; and
beside timm's own training script, of a checkout of its repository, on the same images with the same crops: by
the clock, which its log gives of every step, a run of it after a run of ours. A machine that is slow to hand
out memory times that instead: MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1000000000000 keeps it, for all.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from benchmarks.extraction import photographs
from benchmarks.training import plain_loop
from timm.data.transforms_factory import create_transform
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.models import resnet50
from torchvision.transforms import v2

from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.disk.listed import ListedImages
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.training.feed import DiskFeed, feed
from penultimate.training.recipe import Recipe
from penultimate.training.run import Run

BATCH, STEP_BATCH, SIZE = 64, 16, 224
USUAL = ChannelStatistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PREPARATION = Preparation(256, SIZE, "bilinear", USUAL)
RECIPE = Recipe(
    batch_size=BATCH, precision="float32", augmentation=Augmentation(shift=0, flip=True, crop=(0.1, 1.0))
)
CPU = torch.device("cpu")


def torchvisions() -> v2.Compose:
    return v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, scale=(0.1, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(list(USUAL.mean), list(USUAL.std)),
        ]
    )


def timms() -> Any:
    return create_transform(
        SIZE, is_training=True, scale=(0.1, 1.0), interpolation="bilinear", color_jitter=0.0
    )


def plain(root: Path, transform: Any, batch: int = BATCH) -> Iterator[tuple[Tensor, Tensor]]:
    loader = DataLoader(ImageFolder(root, transform), batch, shuffle=True, drop_last=True)
    while True:
        for images, labels in loader:
            yield images.contiguous(memory_format=torch.channels_last), labels


def ours(images: ListedImages, recipe: Recipe = RECIPE) -> Iterator[tuple[Tensor, Tensor]]:
    fed = feed(images, USUAL, recipe, 0, CPU)
    assert isinstance(fed, DiskFeed)
    epoch = 0
    while True:
        yield from fed.batches(epoch, 0, fed.steps_per_epoch)
        epoch += 1


def our_step(images: ListedImages, precision: str, folder: Path) -> Callable[[], None]:
    recipe = replace(RECIPE, epochs=10_000, batch_size=STEP_BATCH, learning_rate=0.1, precision=precision)
    run = Run("softmax", "resnet50", images, None, recipe, 0, folder, "cpu")

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            yield from run.batches()
            run.epoch += 1

    given = batches()
    return lambda: run.advance(next(given))


def compared(what: str, each: int, ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The ways interleaved: images a second of processor time, and the median ratio of the first to each."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for work in ways.values():
        work()
    for _ in range(rounds):
        for name, work in ways.items():
            began = time.process_time()
            work()
            took[name].append(time.process_time() - began)
    first, found = next(iter(ways)), {}
    for name, seconds in took.items():
        found[name] = statistics.median(b / a for a, b in zip(took[first], seconds, strict=True))
        rate = each / statistics.median(seconds)
        print(f"  {what:<22} {name:<30} {rate:8.1f} images/s   ours {found[name]:5.2f} x", flush=True)
    return found


def timms_script(script: Path, root: Path, precision: str, steps: int, scratch: Path) -> list[float]:
    """Seconds of each step of timm's training script, without the first two."""
    given = {
        "data-dir": root,
        "output": scratch,
        "val-split": "",
        "device": "cpu",
        "model": "resnet50",
        "num-classes": 10,
        "batch-size": STEP_BATCH,
        "workers": 0,
        "epochs": 1,
        "log-interval": 1,
        "opt": "sgd",
        "lr": 0.1,
        "scale": "0.1 1.0",
        "train-interpolation": "bilinear",
        "color-jitter": 0,
    }
    command = [sys.executable, str(script), "--channels-last", "--model-ema", "--no-prefetcher"]
    command += [] if precision == "float32" else ["--amp", "--amp-dtype", "bfloat16"]
    for name, value in given.items():
        command += [f"--{name}", *(str(value).split(" "))]
    log, seconds = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            log.append(line)
            seconds += map(float, re.findall(r"^Train: .* Time: ([\d.]+)s,", line))
            if len(seconds) == steps:
                process.kill()
    if len(seconds) < steps:
        raise RuntimeError(f"timm's script took {len(seconds)} steps of {steps}:\n{''.join(log[-20:])}")
    return seconds[2:]


def beside_timms_script(script: Path, root: Path, images: ListedImages, rounds: int) -> dict[str, float]:
    found = {}
    for precision in ("float32", "bfloat16"):
        with tempfile.TemporaryDirectory() as scratch:
            step, took = our_step(images, precision, Path(scratch)), []
            step()
            for _ in range(rounds):
                theirs = timms_script(script, root, precision, 6, Path(scratch))
                ours = []
                for _ in theirs:
                    began = time.perf_counter()
                    step()
                    ours.append(time.perf_counter() - began)
                took.append((statistics.median(ours), statistics.median(theirs)))
        found[precision] = statistics.median(theirs / ours for ours, theirs in took)
        rates = (f"{STEP_BATCH / statistics.median(side):.1f}" for side in zip(*took, strict=True))
        print(
            f"  ResNet-50, {precision}: {' / '.join(rates)} images/s, {found[precision]:.2f} x timm's script"
        )
    return found


def measure(count: int, rounds: int, steps: int, script: Path | None) -> dict[str, object]:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        root, folder = Path(scratch) / "photographs", Path(scratch) / "run"
        folder.mkdir()
        images = ListedImages(photographs(root, count), PREPARATION)
        decoding = {
            "ours": ours(images),
            "torchvision": plain(root, torchvisions()),
            "timm": plain(root, timms()),
        }
        result: dict[str, object] = {
            "decoding and crops": compared(
                "decoding and crops",
                BATCH,
                {name: (lambda batches=batches: next(batches)) for name, batches in decoding.items()},  # type: ignore[misc]
                rounds,
            )
        }
        for precision in ("float32", "bfloat16"):
            result[precision] = compared(
                f"ResNet-50, {precision}",
                STEP_BATCH,
                {
                    "ours": our_step(images, precision, folder),
                    "plain loop": plain_loop(
                        resnet50(num_classes=10), plain(root, torchvisions(), STEP_BATCH), precision
                    ),
                },
                steps,
            )
        if script:
            result["timm's script"] = beside_timms_script(script, root, images, max(3, steps // 2))
    return result


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--timm-script", type=Path, help="train.py of a checkout of pytorch-image-models")
    options = parser.parse_args(arguments)
    result = measure(256, *((9, 3) if options.quick else (25, 12)), options.timm_script)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
