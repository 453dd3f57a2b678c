"""Trains a network in two processes of a group, with a monitor in both or in none, and saves it.

python tests/monitoring/two_processes.py RANK FILE OUT [monitored]
"""

from __future__ import annotations

import sys

import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import penultimate as pu


def main() -> None:
    """Train as one of the two processes."""
    rank, file, out, monitored = int(sys.argv[1]), sys.argv[2], sys.argv[3], len(sys.argv) > 4
    torch.distributed.init_process_group("gloo", f"file://{file}", rank=rank, world_size=2)
    images = torch.randn(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(40) % 4
    torch.manual_seed(1)
    layers = [
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
    ]
    network = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(6, 4)))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    monitor = pu.Monitor(network, (images, labels)) if monitored else None
    for _ in range(4):
        nn.functional.cross_entropy(network(images[rank::2]), labels[rank::2]).backward()
        optimizer.step()
        optimizer.zero_grad()
        if monitor is not None:
            monitor.step()
    measured = [] if monitor is None else monitor.history
    torch.save({"state": network.state_dict(), "history": measured}, f"{out}.{rank}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
