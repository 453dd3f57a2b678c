"""The step that follows a network through its training: the snapshots beside the last, each measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penultimate.study.context import Context, Outcome, sample
from penultimate.table import Row

if TYPE_CHECKING:
    from penultimate.bank import FeatureBank


def dynamics(context: Context) -> Outcome:
    """Top-1, top-5 and class separation of every snapshot, on some images of the source's splits, by epoch.

    The images are the same for all snapshots and networks of a draw. The kept network's own numbers come
    from its bank, at its epoch. A separation that has no value yet (an epoch in which features are still
    constant) leaves no row.
    """
    from penultimate.bank import FeatureBank
    from penultimate.data.images import load_images
    from penultimate.extraction import extract
    from penultimate.training import load_network
    from penultimate.training.network import CARD, snapshots

    splits = context.config["splits"]
    images, places = {}, {}
    for split in splits:
        every = load_images(context.parents["data"], split)
        places[split] = sample(len(every), context.config["images"])
        images[split] = every.subset(places[split])
    kept = snapshots(context.parents["train"])
    rows: list[Row] = []
    for epoch, folder in kept.items():
        network = load_network(folder)
        for split in splits:
            rows += _measured(context, extract(network, images[split]), split, epoch)
    last = json.loads((context.parents["train"] / CARD).read_text())["epoch"]
    for split in splits if last not in kept else ():
        whole = FeatureBank.load(context.parents["extract"] / f"{split}.npz")
        assert whole.logits is not None
        own = places[split]
        bank = FeatureBank(whole.features[own], whole.labels[own], whole.logits[own], whole.ids[own])
        rows += _measured(context, bank, split, last)
    return Outcome(rows)


def _measured(context: Context, bank: FeatureBank, split: str, epoch: int) -> list[Row]:
    from penultimate.metrics import UndefinedError
    from penultimate.metrics.accuracy import top_k
    from penultimate.metrics.separation import class_separation

    assert bank.logits is not None
    rows = [
        context.row(f"top{k}", top_k(bank.logits, bank.labels, k), "fraction", split=split, epoch=epoch)
        for k in (1, 5)
    ]
    try:
        value = class_separation(bank.features, bank.labels)
    except UndefinedError:
        return rows
    return [*rows, context.row("class_separation", value, "ratio", split=split, epoch=epoch)]
