"""What a monitor adds to a training: an epoch with one measurement at its end, and the same epoch without.

    python -m benchmarks.monitor [--quick] [--json FILE]        about eight minutes; --quick, two

torchvision's ResNet-18 (512 features) is trained on 64 x 64 images by a plain loop on one thread, batch 128.
Held-out images are a thirtieth of the training images. Epochs with and without a monitor alternate, each from
the same weights; the monitor measures R^2, sparsity, rank and nearest neighbours. All is processor time.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torchvision.models import resnet18

import penultimate as pu

CLASSES, BATCH, SHARE, AIM = 10, 128, 30, 0.02


def network() -> nn.Module:
    return resnet18(num_classes=CLASSES).to(memory_format=torch.channels_last)


def epoch(
    net: nn.Module, images: torch.Tensor, labels: torch.Tensor, held_out: Any = None
) -> tuple[float, float]:
    """Seconds of processor time of an epoch, and of the measurement at its end."""
    net = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    monitor = None if held_out is None else pu.Monitor(net, held_out)
    began = time.process_time()
    for at in range(0, len(labels), BATCH):
        loss = nn.functional.cross_entropy(net(images[at : at + BATCH]), labels[at : at + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    trained = time.process_time()
    if monitor is not None:
        monitor.step()
    return time.process_time() - began, time.process_time() - trained


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a short epoch, two rounds")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    count, rounds = (600, 2) if options.quick else (3000, 3)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images = torch.rand(count, 3, 64, 64).to(memory_format=torch.channels_last)
    labels = torch.arange(count) % CLASSES
    held_out = images[: count // SHARE].clone(), labels[: count // SHARE]
    net = network()
    epoch(net, images[:256], labels[:256], held_out)  # what is done once
    pairs = [(epoch(net, images, labels), epoch(net, images, labels, held_out)) for _ in range(rounds)]
    ratio = statistics.median(watched / alone for (alone, _), (watched, _) in pairs)
    share = statistics.median(measured / (watched - measured) for _, (watched, measured) in pairs)
    alone = statistics.median(alone for (alone, _), _ in pairs)
    print(
        f"ResNet-18, {count} training and {count // SHARE} held-out images of 64 x 64, one thread,"
        f" {rounds} rounds: an epoch {alone:.1f} s, with a measurement {ratio:.3f} x;"
        f" the measurement itself {share:.2%} of the epoch (aim {AIM:.0%})"
    )
    if options.json:
        figures = {"epoch_seconds": alone, "ratio": ratio, "measured_share": share, "target": AIM}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
