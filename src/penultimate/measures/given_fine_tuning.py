"""Fine-tuning of a network that was not trained here: its body and a final layer, on a target."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Features, Layers, Pixels, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.data.images import Images
    from penultimate.networks.protocol import Network

MOMENTUM, SCORED = 0.9, 64


@register.measurement(
    version=1,
    per="target",
    needs=(Layers(), Features("train"), Pixels("train"), Pixels("test")),
    yields=(
        Yield("given_fine_tuned_top1", "fraction"),
        Yield("given_fine_tuned_mean_per_class", "fraction"),
        Yield("given_fine_tuned_learning_rate", "learning rate"),
        Yield("given_fine_tuned_validation_accuracy", "fraction"),
    ),
    ranges={
        "learning_rate": Interval(0),
        "steps": Interval(1, closed="left"),
        "batch_size": Interval(2, closed="left"),
    },
    seconds=600.0,
)
def given_fine_tuning(
    inputs: Inputs,
    *,
    learning_rate: tuple[float, ...] = (0.001, 0.01),
    steps: int = 200,
    batch_size: int = 32,
) -> Iterator[Number | Undefined]:
    """Test accuracy of a network whose weights were all trained further on a target, from the linear probe.

    SGD, momentum 0.9, the learning rate to zero as a cosine, no augmentation. The learning rate is the best
    on a fifth of the training images, the smallest of equals; then all of them are used.
    """
    from penultimate.probes.estimator import accuracy_of
    from penultimate.probes.validation import split_off

    images, test = inputs.shown("train"), inputs.shown("test")
    score = accuracy_of(inputs.accuracy)
    held = split_off(images.labels, seed=inputs.seed)
    scores = {}
    for rate in sorted(learning_rate):
        tuned = _tuned(inputs, images, ~held, rate, steps, batch_size)
        scores[rate] = score(_predicted(inputs.network, *tuned, images.subset(held)), images.labels[held])
        inputs.progress({"learning_rate": rate, "validation": scores[rate]})
    best = max(scores, key=lambda rate: (scores[rate], -rate))
    everything = held | True
    tuned = _tuned(inputs, images, everything, best, steps, batch_size)
    value = score(_predicted(inputs.network, *tuned, test), test.labels)
    yield Number(f"given_fine_tuned_{inputs.accuracy}", value, "fraction", "test")
    yield Number("given_fine_tuned_learning_rate", best, "learning rate", "train")
    yield Number("given_fine_tuned_validation_accuracy", scores[best], "fraction", "train")


def _tuned(
    inputs: Inputs, images: Images, rows: np.ndarray, rate: float, steps: int, batch_size: int
) -> tuple[Any, Any]:
    """A body and a final layer, trained on some images; raises UndefinedError where the loss is no number."""
    import math

    import numpy as np
    import torch

    from penultimate.data.seeding import derived_generator
    from penultimate.probes.linear import LinearProbe

    bank = inputs.features("train")
    probe = LinearProbe(metric=inputs.accuracy, seed=inputs.seed).fit(bank.features[rows], bank.labels[rows])
    head = torch.nn.Linear(bank.features.shape[1], len(images.class_names))
    with torch.no_grad():
        head.weight.zero_()
        head.bias.fill_(float(probe.intercept_.min()) - 1)
        known = torch.from_numpy(probe.classes_)
        head.weight[known] = torch.from_numpy(probe.coef_).float()
        head.bias[known] = torch.from_numpy(probe.intercept_).float()
    body = copy.deepcopy(inputs.network.body).train()
    for parameter in body.parameters():
        parameter.requires_grad_(True)
    optimiser = torch.optim.SGD([*body.parameters(), *head.parameters()], rate, MOMENTUM)
    places, order = np.flatnonzero(rows), np.zeros(0, np.int64)
    size = min(batch_size, len(places))
    for step in range(steps):
        if len(order) < size:
            drawn = torch.randperm(len(places), generator=derived_generator("tuning", inputs.seed, step))
            order = places[drawn.numpy()]
        chosen, order = order[:size], order[size:]
        ((batch, _),) = images.batches(size, chosen)
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 + math.cos(math.pi * step / steps)) / 2
        logits = head(body(inputs.network.prepared(batch)).flatten(1).float())
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(images.labels[chosen]))
        if not math.isfinite(loss.item()):
            raise UndefinedError(f"fine-tuning on '{inputs.target}' diverged at learning rate {rate:g}")
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        inputs.progress({"learning_rate": rate, "step": step + 1, "of": steps})
    return body.eval(), head


def _predicted(network: Network, body: Any, head: Any, images: Images) -> np.ndarray:
    import numpy as np
    import torch

    with torch.inference_mode():
        batches = [
            head(body(network.prepared(batch)).flatten(1).float()).argmax(1).numpy()
            for batch, _ in images.batches(SCORED)
        ]
    return np.concatenate(batches)
