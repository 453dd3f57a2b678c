"""CKA of two ResNet-18s at 64 px (16 layers each, batch 256), and of nine at once, beside the peers.

`python -m benchmarks cka [--quick] [--json=FILE]`; OMP_NUM_THREADS sets the threads. The peers are those of
`requirements-bench.lock` that can be imported; missing ones are reported. Install them into a separate
folder: `pip install --no-deps --target FOLDER -r requirements-bench.lock`, then set PYTHONPATH=FOLDER. All
get the same networks (initialised, with batch-norm moments set on the data), one batch of synthetic images
and the same layers, and are called as documented, one after another in every round; ratios are medians over
rounds. Seconds are the process's CPU seconds, which other load on the machine disturbs least.

Errors are the largest over all pairs of layers, relative to eq. 10 computed literally in float64 networks.
All peers document that estimator; cka-pytorch's has an epsilon under its root, and so has its reference here.
They are measured on two sets of layers: the sixteen 3 x 3 convolutions, which nothing overwrites, and bn2 and
the block itself of every block, where the sum and the ReLU after bn2 overwrite its output in place.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import io
import itertools
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from operator import truediv
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from penultimate import compare_networks
from penultimate.backbones.taps import tapped, taps
from penultimate.layers.comparison import settle_batch_norm

SIDE, NETWORKS = 64, 9
BLOCKS = [f"layer{stage}.{block}" for stage in range(1, 5) for block in range(2)]
CONVOLUTIONS = [f"{block}.conv{number}" for block in BLOCKS for number in (1, 2)]
OVERWRITTEN = [name for block in BLOCKS for name in (f"{block}.bn2", block)]
EPSILON = {"cka-pytorch": 1e-4}

Loader = DataLoader[tuple[Tensor, ...]]
Compare = Callable[[nn.Module, nn.Module, Loader, list[str]], np.ndarray]


def ours(one: nn.Module, other: nn.Module, loader: Loader, layers: list[str]) -> np.ndarray:
    return compare_networks([one, other], loader, layers).between("0", "1")


def pytorch_cka(peer: Any, one: nn.Module, other: nn.Module, loader: Loader, layers: list[str]) -> np.ndarray:
    return peer.compute_cka(one, other, loader, layers=layers, device="cpu", progress=False)[0].numpy()


def cka_pytorch(peer: Any, one: nn.Module, other: nn.Module, loader: Loader, layers: list[str]) -> np.ndarray:
    calculator = peer.CKACalculator(one, other, layers, layers, verbose=False)
    matrix = calculator.calculate_cka_matrix(loader, num_epochs=1)
    rows = [calculator.hook_manager1.module_names.index(layer) for layer in layers]
    calculator.reset()
    return matrix.numpy()[np.ix_(rows, rows)]


def torch_cka(peer: Any, one: nn.Module, other: nn.Module, loader: Loader, layers: list[str]) -> np.ndarray:
    comparison = peer.CKA(one, other, "one", "other", layers, layers)
    comparison.compare(loader)
    result = comparison.export()
    rows = [result["model1_layers"].index(layer) for layer in layers]
    return result["CKA"].detach().numpy()[np.ix_(rows, rows)]


PEERS = {
    "pytorch-cka": ("cka", pytorch_cka),
    "cka-pytorch": ("cka_pytorch", cka_pytorch),
    "torch-cka": ("torch_cka", torch_cka),
}


def contenders() -> dict[str, Compare]:
    contestants: dict[str, Compare] = {"penultimate": ours}
    for name, (module, adapter) in PEERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                peer = importlib.import_module(module)
        except ImportError as error:
            print(
                f"  {name} is not measured: {error}; see the head of benchmarks/cka.py for how to install it"
            )
            continue
        contestants[name] = quiet(adapter, peer)
    return contestants


def quiet(adapter: Callable[..., np.ndarray], peer: Any) -> Compare:
    """The adapter without progress bars and warnings; hooks left behind are cleared afterwards."""

    def call(one: nn.Module, other: nn.Module, loader: Loader, layers: list[str]) -> np.ndarray:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            matrix = adapter(peer, one, other, loader, layers)
        for module in itertools.chain(one.modules(), other.modules()):
            module._forward_hooks.clear()
        return matrix

    return call


def literal_hsic(nets: list[nn.Module], images: Tensor, layers: list[str]) -> list[Tensor]:
    """HSIC_1 of one with other, one with itself, other with itself, [l l] each; networks in float64."""
    n, grams = len(images), []
    for net in nets:
        taken: dict[str, Tensor] = {}
        handles = [
            net.get_submodule(layer).register_forward_hook(
                lambda module, inputs, out, layer=layer, taken=taken: taken.update({layer: out.clone()})
            )
            for layer in layers
        ]
        with torch.no_grad():
            net.double()(images.double())
        for handle in handles:
            handle.remove()
        net.float()
        flat = [taken[layer].flatten(1) for layer in layers]
        grams.append(torch.stack([(x @ x.T).fill_diagonal_(0) for x in flat]))

    def hsic(a: Tensor, b: Tensor) -> Tensor:
        trace = torch.einsum("aij,bji->ab", a, b)
        sums = torch.outer(a.sum((1, 2)), b.sum((1, 2))) / ((n - 1) * (n - 2))
        chain = torch.einsum("ai,bi->ab", a.sum(1), b.sum(2))
        return (trace + sums - 2 * chain / (n - 2)) / (n * (n - 3))

    one, other = grams
    return [hsic(one, other), hsic(one, one), hsic(other, other)]


def error(matrix: np.ndarray, hsic: list[Tensor], epsilon: float) -> float:
    cross, one, other = hsic
    truth = cross / (torch.outer(one.diagonal(), other.diagonal()) + epsilon).sqrt()
    return float(np.abs(matrix - truth.numpy()).max())


def loader_of(images: Tensor) -> Loader:
    return DataLoader(TensorDataset(images, torch.zeros(len(images))), batch_size=len(images))


def forward(nets: list[nn.Module], images: Tensor) -> None:
    with torch.no_grad():
        for net in nets:
            net(images)


def hold_all(nets: list[nn.Module], images: Tensor) -> None:
    """What an analysis after the forward pass must hold: a copy of each layer's output."""
    held: list[Tensor] = []
    for net in nets:
        with torch.no_grad(), tapped(taps(net, CONVOLUTIONS), lambda _, output: held.append(output.clone())):
            net(images)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_mebibytes(work: Callable[[], object]) -> float | None:
    """The peak memory of the process during the work, above what it held before (Linux only)."""
    ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def resident(field: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def synthetic_images(count: int) -> Tensor:
    """Images that differ like photographs, mostly in their coarsest structure: noise at every scale."""
    generator = torch.Generator().manual_seed(0)
    scales = [torch.randn(count, 3, side, side, generator=generator) for side in (1, 2, 4, 8, 16, 32, 64)]
    return (
        sum((nn.functional.interpolate(scale, SIDE, mode="nearest") for scale in scales), torch.zeros(())) / 2
    )


def networks(images: Tensor, count: int) -> Iterator[nn.Module]:
    for seed in range(count):
        torch.manual_seed(seed)
        yield settle_batch_norm(torchvision.models.resnet18(), [images]).eval()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks cka", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="batch 64, three rounds, four networks at once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    options = parser.parse_args(arguments)
    batch, rounds, many = (64, 3, 4) if options.quick else (256, 7, NETWORKS)

    images = synthetic_images(batch)
    loader, small = loader_of(images), loader_of(images[:64])
    nets = list(networks(images[:64], many))
    one, other = nets[:2]
    compares = contenders()
    threads = torch.get_num_threads()
    numbers: dict[str, Any] = {"benchmark": "cka", "threads": threads, "batch": batch, "rounds": rounds}
    print(
        f"two ResNet-18s, {SIDE} px, {len(CONVOLUTIONS)} layers each, batch {batch}, {threads} thread(s),"
        f" {rounds} rounds"
    )

    times: dict[str, list[float]] = {name: [] for name in compares}
    matrices: dict[str, np.ndarray] = {}
    for _ in range(rounds):
        for name, compare in compares.items():
            start = time.process_time()
            matrices[name] = compare(one, other, loader, CONVOLUTIONS)
            times[name].append(time.process_time() - start)
    plain = literal_hsic([one, other], images, CONVOLUTIONS)
    overwritten = literal_hsic([one, other], images, OVERWRITTEN)
    for name, compare in compares.items():
        epsilon = EPSILON.get(name, 0.0)
        numbers[name] = row = {
            "seconds": statistics.median(times[name]),
            "our_ratio": statistics.median(map(truediv, times["penultimate"], times[name])),
            "error": error(matrices[name], plain, epsilon),
            "error_overwritten": error(compare(one, other, loader, OVERWRITTEN), overwritten, epsilon),
            "peak_mebibytes": peak_mebibytes(lambda: compare(one, other, loader, CONVOLUTIONS)),  # noqa: B023
        }
        peak = "?" if row["peak_mebibytes"] is None else f"{row['peak_mebibytes']:.0f}"
        print(
            f"  {name:<12}{row['seconds']:7.2f} s   ours / its {row['our_ratio']:5.2f}"
            f"   error {row['error']:.0e}, of overwritten layers {row['error_overwritten']:.0e}"
            f"   peak + {peak} MiB"
        )
    for what, work in (("two forward passes alone", forward), ("copies of all activations", hold_all)):
        numbers[what] = held = peak_mebibytes(lambda: work([one, other], images))  # noqa: B023
        print(f"  {what:<82}   peak + {'?' if held is None else f'{held:.0f}'} MiB")

    peers = [name for name in compares if name != "penultimate"]
    if peers:
        fastest = min(peers, key=lambda name: statistics.median(times[name]))
        pairs = list(itertools.combinations(nets, 2))
        at_once = seconds(lambda: compare_networks(nets, small, CONVOLUTIONS))
        apart = seconds(lambda: [compares[fastest](a, b, small, CONVOLUTIONS) for a, b in pairs])
        numbers["at_once"] = {"networks": many, "seconds": at_once, "peer": fastest, "peer_seconds": apart}
        print(
            f"{many} networks at once, batch 64: {at_once:.1f} s; {fastest}, the fastest peer, for all"
            f" {len(pairs)} pairs: {apart:.1f} s = {apart / at_once:.1f} x"
        )
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
