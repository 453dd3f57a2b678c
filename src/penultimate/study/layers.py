"""The steps that look at every layer: of one network (layers), and of all networks at once (similarity)."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.study.context import Context, Outcome, sample
from penultimate.table import Row

if TYPE_CHECKING:
    from penultimate.metrics.comparison import Comparison
    from penultimate.training.network import Network

PENULTIMATE = "penultimate"
"""The layer of the pooled features, after the last block."""
INITIAL, EARLIER = "at initialisation", "earlier"
FINISHED = -1
"""In place of the epoch of a network that is still in training."""
Trained = tuple[str, int]
"""A trained network's objective (its canonical spec) and seed."""


def layers(context: Context) -> Outcome:
    """Sparsity and class separation of every block of a network; of its features, as its bank holds them.

    A separation that has no value (constant activations) leaves no row, and its reason behind.
    """
    from penultimate.bank import FeatureBank
    from penultimate.data.images import load_images
    from penultimate.metrics import UndefinedError
    from penultimate.metrics.activations import sparsity
    from penultimate.metrics.separation import class_separation
    from penultimate.profiles import LayerProfile, profile_layers
    from penultimate.training import load_network

    network = load_network(context.parents["train"])
    rows: list[Row] = []
    undefined: list[str] = []
    names: list[str] = []
    for split in context.config["splits"]:
        found = profile_layers(network, load_images(context.parents["data"], split))
        bank = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
        share = sparsity(bank.features)
        try:
            own = LayerProfile(
                PENULTIMATE, bank.features.shape[1], share, class_separation(bank.features, bank.labels)
            )
        except UndefinedError as error:
            own = LayerProfile(PENULTIMATE, bank.features.shape[1], share, None, str(error))
        names = [one.layer for one in (*found, own)]
        for one in (*found, own):
            about: dict[str, Any] = {"split": split, "layer": one.layer}
            rows.append(context.row("sparsity", one.sparsity, "fraction", **about))
            if one.class_separation is None:
                undefined.append(f"{one.layer}, {split} images: {one.undefined}")
            else:
                rows.append(context.row("class_separation", one.class_separation, "ratio", **about))
    facts: dict[str, Any] = {"layers": names}
    return Outcome(rows, facts={**facts, "undefined": "; ".join(undefined)} if undefined else facts)


def similarity(context: Context) -> Outcome:
    """CKA of all layers of all networks but those whose run diverged, and of two states of the first of them.

    These are the first network at initialisation, and after the epoch of its first snapshot, if it has any.
    Rows hold corresponding layers of every pair of networks; the whole matrix, with its standard errors and
    the names of its rows, is left as arrays.
    """
    import numpy as np

    from penultimate.data.images import load_images
    from penultimate.instruments import at_initialisation, compare_networks
    from penultimate.training import load_network
    from penultimate.training.network import snapshots

    config = context.config
    networks = _networks(context)
    if not networks:
        return Outcome([])
    data = context.parents["data"]
    first = next(iter(networks.values()))
    compared = load_images(data, config["split"])
    compared = compared.subset(sample(len(compared), config["images"]))
    control = at_initialisation(first, load_images(data, "train"), config["initial_seed"])
    named = {_name(trained): network for trained, network in networks.items()} | {INITIAL: control}
    told = {_name(trained): (*trained, FINISHED) for trained in networks} | {INITIAL: ("", -1, 0)}
    kept = snapshots(_folders(context)[next(iter(networks))])
    if kept:
        epoch, folder = next(iter(kept.items()))
        named[EARLIER] = load_network(folder)
        told[EARLIER] = (*next(iter(networks)), epoch)
    comparison = compare_networks(
        named,
        compared,
        passes=config["passes"],
        batch_size=config["batch_size"],
        output=PENULTIMATE,
    )
    np.savez(context.folder / "layer_cka.npz", **_arrays(comparison, told))
    rows = _corresponding(context, comparison, list(networks))
    rows.append(context.row("layer_cka", len(comparison.names), "points", split=config["split"]))
    undefined = [note for note in comparison.notes if "undefined" in note]
    facts: dict[str, Any] = {"notes": comparison.notes}
    return Outcome(rows, facts={**facts, "undefined": "; ".join(undefined)} if undefined else facts)


def _networks(context: Context) -> dict[Trained, Network]:
    from penultimate.training import load_network

    return {trained: load_network(folder) for trained, folder in _folders(context).items()}


def _folders(context: Context) -> dict[Trained, Path]:
    """Where the networks that are there lie."""
    _, *trainings = context.step.parents
    folders = iter([folder for name, folder in context.parents.items() if name != "data"])
    return {
        (str(spec), int(seed)): next(folders)
        for parent, (spec, seed) in zip(trainings, context.config["models"], strict=True)
        if parent not in context.step.absent
    }


def _name(trained: Trained) -> str:
    return f"{trained[0]}, seed {trained[1]}"


def _corresponding(context: Context, comparison: Comparison, networks: list[Trained]) -> list[Row]:
    """A row for each layer of each pair of networks, where CKA is defined."""
    split, rows = context.config["split"], []
    for one, other in itertools.combinations(networks, 2):
        across = comparison.between(_name(one), _name(other))
        pair: dict[str, Any] = {"objective": one[0], "seed": one[1], "split": split}
        pair |= {"objective_b": other[0], "seed_b": other[1]}
        for layer, value in zip(comparison.layers(_name(one)), across.diagonal(), strict=True):
            if math.isfinite(value):
                rows.append(context.row("cka", value, "ratio", layer=layer, layer_b=layer, **pair))
    for one in networks:
        across = comparison.between(_name(one), INITIAL)
        about: dict[str, Any] = {"objective": one[0], "seed": one[1], "split": split}
        for layer, value in zip(comparison.layers(_name(one)), across.diagonal(), strict=True):
            if math.isfinite(value):
                rows.append(context.row("cka_initial", value, "ratio", layer=layer, layer_b=layer, **about))
    return rows


def _arrays(comparison: Comparison, told: dict[str, tuple[str, int, int]]) -> dict[str, Any]:
    """The matrix [l l], its standard errors; of each row objective, seed (-1: untrained), epoch and layer."""
    import numpy as np

    of_rows = [told[network] for network, _ in comparison.names]
    return {
        "matrix": comparison.matrix,
        "standard_error": comparison.standard_error,
        "objectives": np.array([spec for spec, _, _ in of_rows]),
        "seeds": np.array([seed for _, seed, _ in of_rows]),
        "epochs": np.array([epoch for _, _, epoch in of_rows]),
        "layers": np.array([layer for _, layer in comparison.names]),
        "sizes": comparison.sizes,
        "passes": comparison.passes,
    }
