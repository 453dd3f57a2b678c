"""Fine-tuning glyphnet at batch 128, float32: our loop, started from a network, and a plain one.

`python -m benchmarks fine_tuning [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. Both train all
weights of the same network on the same resident images (shifts of up to two pixels): softmax over 128
classes, SGD with momentum, the learning rate to zero as a cosine, no averaging. The plain loop runs the same
modules by PyTorch itself, channels-last, with a fused optimiser. Rounds are interleaved; the ratio is the
median over rounds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import tempfile
from pathlib import Path

import torch
from benchmarks.training import BATCH, CLASSES, PlainNet, Step, rate, resident_batches, world
from torch import nn

from penultimate.data.images import ChannelStatistics, ImageSet
from penultimate.networks.trained import TrainedNetwork, build
from penultimate.training.recipe import Recipe
from penultimate.training.run import Run
from penultimate.training.start import Start

PEAK, DECAY, STEPS = 0.03, 1e-2, 20_000


def our_loop(images: ImageSet, folder: Path) -> Step:
    body, head = build("sigmoid", "glyphnet", CLASSES, seed=1)
    statistics_of = ChannelStatistics.of(images.images)
    start = Start(TrainedNetwork(body, head, statistics_of, (), {"backbone": "glyphnet"}))
    recipe = Recipe(
        steps=STEPS,
        batch_size=BATCH,
        learning_rate=PEAK,
        warmup=0.0,
        schedule="cosine",
        final_fraction=0.0,
        nesterov=False,
        weight_decay=DECAY,
        averaging_window=0.0,
    )
    run = Run("softmax", "glyphnet", images, None, recipe, 0, folder, "cpu", start)
    batches = itertools.cycle(run.batches())
    return lambda: run.advance(next(batches))


def plain_loop(images: ImageSet) -> Step:
    network = PlainNet().to(memory_format=torch.channels_last)
    network.backbone.load_state_dict(build("sigmoid", "glyphnet", CLASSES, seed=1)[0].state_dict())
    optimiser = torch.optim.SGD(network.parameters(), lr=PEAK, momentum=0.9, weight_decay=DECAY, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: (1 + math.cos(math.pi * step / STEPS)) / 2
    )
    batches = resident_batches(images)

    def step() -> None:
        pixels, labels = next(batches)
        optimiser.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(network(pixels), labels))
        optimiser.step()
        schedule.step()

    return step


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks fine_tuning", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    rounds, steps = (4, 8) if options.quick else (24, 20)

    images = world()
    with tempfile.TemporaryDirectory() as folder:
        ours, plain = our_loop(images, Path(folder)), plain_loop(images)
        for step in (ours, plain):
            rate(step, 5)
        pairs = [(rate(ours, steps) / BATCH, rate(plain, steps) / BATCH) for _ in range(rounds)]
    ratio = statistics.median(our / other for our, other in pairs)
    speeds = [statistics.median(of) for of in zip(*pairs, strict=True)]
    threads = torch.get_num_threads()
    print(
        f"glyphnet, all weights fine-tuned, batch {BATCH}, float32, {threads} thread(s);"
        f" {rounds} rounds of {steps} steps\n"
        f"  penultimate                   {speeds[0]:6.1f} steps/s\n"
        f"  plain loop, resident tensors  {speeds[1]:6.1f} steps/s   ours: {ratio:.2f} x"
    )
    if options.json:
        numbers = {"benchmark": "fine_tuning", "threads": threads, "rounds": rounds}
        content = {**numbers, "steps_per_second": speeds, "our_ratio": ratio}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
