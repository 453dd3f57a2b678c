"""Features of 2,000 photograph-like JPEGs (500 x 375) beside a plain DataLoader loop and timm's own loop.

    python -m benchmarks.extraction [--quick] [--images N] [--rounds N] [--json FILE]

Networks: timm's resnet18 and vit_tiny_patch16_224 with initial weights; 224 x 224, one thread, two workers on
either side. The peers' outputs are compared with ours before anything is timed.

one network      `extract_files` (digests, journal and files included) against a loop over a DataLoader of
                 torchvision's ImageFolder with timm's transform; and against timm's `create_loader`, as its
                 inference.py uses it
two networks     one pass of `extract_files` against two: where decoding takes d seconds, and the networks r
                 and v, that gains (2 d + r + v) / (d + r + v) at most
two cheap ones   the same of two that cost no more than decoding (lcnet_050, mobilenetv3_small_050)
decoding         images a second of one core: our reader against ImageFolder's `__getitem__`, the same pixels
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_dataset, create_loader, create_transform, resolve_model_data_config
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

from penultimate.data.augmentation.transforms import normalise
from penultimate.data.disk.loading import decoded
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.data.listing import Files, Listing
from penultimate.features.files import extract_files
from penultimate.networks.protocol import Network

NAMES = ("resnet18", "vit_tiny_patch16_224")
CHEAP = ("lcnet_050", "mobilenetv3_small_050")
WORKERS = 2
BATCH = 64


@dataclass
class Plain:
    """A timm network without its classifier, as a `Network`."""

    body: nn.Module
    preparation: Preparation
    class_names: tuple[str, ...] = ()
    head_weight: Tensor | None = None

    def prepared(self, images: Tensor) -> Tensor:
        return normalise(images, self.preparation.statistics)

    def features(self, images: Tensor) -> Tensor:
        features: Tensor = self.body(self.prepared(images))
        return features

    def logits(self, features: Tensor) -> Tensor:
        return features

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(1)


def network(name: str) -> tuple[Plain, dict[str, object]]:
    """With initial weights, and timm's configuration of how images are prepared for it."""
    torch.manual_seed(0)
    body = timm.create_model(name, num_classes=0).eval()
    config = resolve_model_data_config(body)
    side = config["input_size"][-1]
    statistics = ChannelStatistics(config["mean"], config["std"])
    resize = int(side / config["crop_pct"])
    return Plain(body, Preparation(resize, side, config["interpolation"], statistics)), config


def photographs(root: Path, count: int) -> Listing:
    """JPEGs of 500 x 375, quality 90, with detail on every scale."""
    generator = np.random.default_rng(0)
    paths = tuple(f"{i % 10}/{i:05}.jpg" for i in range(count))
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        total = np.zeros((375, 500, 3))
        for scale, weight in ((100, 0.5), (30, 0.25), (8, 0.15), (2, 0.1)):
            coarse = generator.integers(0, 256, (375 // scale + 2, 500 // scale + 2, 3), np.uint8)
            total += weight * np.asarray(Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC))
        Image.fromarray(total.astype(np.uint8)).save(root / path, quality=90)
    ordered = tuple(sorted(paths))
    labels = np.array([int(path[0]) for path in ordered])
    return Listing(Files(root, ordered), np.arange(count), labels, np.arange(count), tuple("0123456789"))


def plain_loop(root: Path, name: str) -> Tensor:
    model, config = network(name)
    loader = DataLoader(ImageFolder(root, create_transform(**config)), BATCH, num_workers=WORKERS)
    with torch.inference_mode():
        return torch.cat([model.body(images) for images, _ in loader])


def timm_loop(root: Path, name: str) -> Tensor:
    """What timm's inference.py does: its dataset, its loader without prefetching to a device, its model."""
    model, config = network(name)
    loader = create_loader(
        create_dataset("", root),
        batch_size=BATCH,
        use_prefetcher=False,
        num_workers=WORKERS,
        device=torch.device("cpu"),
        **{key: config[key] for key in ("input_size", "interpolation", "mean", "std", "crop_pct")},
    )
    with torch.inference_mode():
        return torch.cat([model.body(images) for images, _ in loader])


def ours(listing: Listing, names: tuple[str, ...], workers: int = WORKERS) -> Tensor:
    """The features of the last network; every call begins with an empty folder."""
    networks: dict[str, Network] = {name: network(name)[0] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        banks = extract_files(networks, listing, folder, batch_size=BATCH, workers=workers)
        return torch.tensor(np.array(banks[names[-1]].features))


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of processors, those of worker processes among them."""
    began, used = time.perf_counter(), sum(os.times()[:4])
    work()
    return time.perf_counter() - began, sum(os.times()[:4]) - used


def compared(what: str, images: int, ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The ways interleaved: images a second of each, and the median ratio of the first to each other."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            times[name].append(seconds(work))
    first = next(iter(ways))
    found = {}
    for name, taken in times.items():
        clock, processors = (
            statistics.median(other[by] / mine[by] for mine, other in zip(times[first], taken, strict=True))
            for by in (0, 1)
        )
        found[name] = clock
        rate = images / statistics.median(by_clock for by_clock, _ in taken)
        print(
            f"  {what:<20} {name:<18} {rate:8.1f} images/s   ours {clock:5.2f} x by the clock,"
            f" {processors:5.2f} x of processors' time",
            flush=True,
        )
    return found


def measure(count: int, rounds: int) -> dict[str, object]:
    torch.set_num_threads(1)
    result: dict[str, object] = {"images": count}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        listing = photographs(root, count)
        for name in NAMES:
            reference = plain_loop(root, name)
            for way, features in (("ours", ours(listing, (name,))), ("timm", timm_loop(root, name))):
                distance = float((features - reference).abs().max() / reference.abs().max())
                print(f"  {name}: {way} differs from the plain loop by {distance:.1e} of the largest feature")
                assert distance < 1e-5
            result[name] = compared(
                name,
                count,
                {
                    "ours": lambda name=name: ours(listing, (name,)),  # type: ignore[misc]
                    "plain DataLoader": lambda name=name: plain_loop(root, name),  # type: ignore[misc]
                    "timm's loader": lambda name=name: timm_loop(root, name),  # type: ignore[misc]
                },
                rounds,
            )
        for what, names in (("two networks", NAMES), ("two cheap ones", CHEAP)):
            result[what] = compared(
                what,
                count,
                {
                    "ours, one pass": lambda names=names: ours(listing, names),  # type: ignore[misc]
                    "ours, two passes": lambda names=names: [ours(listing, (name,)) for name in names],  # type: ignore[misc]
                    "plain, two passes": lambda names=names: [plain_loop(root, name) for name in names],  # type: ignore[misc]
                },
                rounds,
            )
        result["decoding"] = decoding(root, listing, min(count, 500), rounds)
    return result


def decoding(root: Path, listing: Listing, count: int, rounds: int) -> dict[str, float]:
    """One core, with normalising: a float batch on either side."""
    model, config = network(NAMES[0])
    folder = ImageFolder(root, create_transform(**config))
    chosen = listing.subset(np.arange(count))
    other = network(NAMES[1])[0].preparation

    def plain() -> Tensor:
        return torch.stack([folder[i][0] for i in range(count)])

    def mine(*preparations: Preparation) -> Tensor:
        parts = [
            [normalise(batch.prepared(each), each.statistics) for each in preparations]
            for batch in decoded(chosen, preparations, BATCH, workers=0)
        ]
        return torch.cat([part[0] for part in parts])

    torch.testing.assert_close(mine(model.preparation), plain(), rtol=0, atol=1e-6)
    compared(
        "decoding for two",
        count,
        {
            "ours, one pass": lambda: mine(model.preparation, other),
            "two passes": lambda: [mine(model.preparation), mine(other)],
        },
        rounds,
    )
    return compared(
        "decoding, one core", count, {"ours": lambda: mine(model.preparation), "ImageFolder": plain}, rounds
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="100 images, one round")
    parser.add_argument("--images", type=int, help="how many (default: 2000)")
    parser.add_argument("--rounds", type=int, help="how often each way is timed, in turn (default: 3)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    result = measure(
        options.images or (100 if options.quick else 2000), options.rounds or (1 if options.quick else 3)
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
