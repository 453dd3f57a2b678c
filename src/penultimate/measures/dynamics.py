"""A network during its training: accuracy, class separation and linear transfer of its snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.measures.accuracy import ACCURACIES
from penultimate.measures.class_separation import SEPARATION, UNBIASED
from penultimate.measures.declaration import Logits, Pixels, Snapshots
from penultimate.measures.inputs import Inputs, Number, read_card, sample
from penultimate.measures.transfer import LINEAR_ACCURACIES, linear_probe
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank

EVERY = Interval(1, closed="left")


@register.measurement(
    version=1,
    per="network",
    needs=(Snapshots(), Pixels("train"), Pixels("test"), Logits("train"), Logits("test")),
    yields=(*ACCURACIES, SEPARATION, UNBIASED),
    ranges={"images": Interval(2, closed="left"), "every": EVERY},
    seconds=2.7,
    paper="Kornblith et al., 2021, figures C.1 to C.3 and E.4",
)
def dynamics(
    inputs: Inputs, *, images: int = 5120, unbiased: bool = False, every: int = 1
) -> Iterator[Number]:
    """Top-1, top-5 and class separation of every snapshot by epoch, on some training and test images.

    With `unbiased`, the class separation that does not depend on the number of images is measured too. The
    images are the same for all snapshots and networks of a draw. If snapshots were kept more often than every
    `every` epochs, only those after every `every` epochs are used. The numbers of the finished network come
    from its bank. An undefined separation (while features are still constant) is left out.
    """
    from penultimate.features.bank import FeatureBank
    from penultimate.features.extraction import extract
    from penultimate.networks.trained import load_network

    splits = ("train", "test")
    shown = {split: inputs.shown(split) for split in splits}
    places = {split: sample(len(shown[split]), images) for split in splits}
    kept = _kept(inputs, every)
    for epoch, folder in kept.items():
        network = load_network(folder).to(inputs.device)
        for split in splits:
            yield from _measured(extract(network, shown[split].subset(places[split])), split, epoch, unbiased)
    last = read_card(inputs.network_folder)["epoch"]
    for split in splits if last not in kept else ():
        whole, rows = inputs.features(split), places[split]
        assert whole.logits is not None
        assert whole.ids is not None
        bank = FeatureBank(whole.features[rows], whole.labels[rows], whole.logits[rows], whole.ids[rows])
        yield from _measured(bank, split, last, unbiased)


@register.measurement(
    version=2,
    per="target",
    needs=(Snapshots(), Pixels("train"), Pixels("test")),
    yields=LINEAR_ACCURACIES,
    ranges={"every": EVERY},
    seconds=8.0,
    paper="Kornblith et al., 2021, figure D.2",
)
def transfer_dynamics(inputs: Inputs, *, every: int = 1) -> Iterator[Number]:
    """Test accuracy of logistic regression on the target's features, by epoch; the last value is `linear`'s.

    Snapshots are those that `dynamics` uses.
    """
    from penultimate.features.extraction import extract
    from penultimate.networks.trained import load_network

    train, test = inputs.shown("train"), inputs.shown("test")
    last = read_card(inputs.network_folder)["epoch"]
    for epoch, folder in {**_kept(inputs, every), last: inputs.network_folder}.items():
        network = load_network(folder).to(inputs.device)
        probe, queries = linear_probe(inputs, extract(network, train)), extract(network, test)
        score = probe.score(queries.features, queries.labels)
        yield Number(f"linear_{inputs.accuracy}", score, "fraction", "test", epoch=epoch)


def _kept(inputs: Inputs, every: int) -> dict[int, Path]:
    from penultimate.networks.trained import snapshots

    return {epoch: folder for epoch, folder in snapshots(inputs.network_folder).items() if epoch % every == 0}


def _measured(bank: FeatureBank, split: str, epoch: int, unbiased: bool) -> Iterator[Number]:
    from penultimate.metrics.accuracy import top_k
    from penultimate.metrics.separation import class_separation

    for k in (1, 5):
        yield Number(f"top{k}", top_k(bank, k=k), "fraction", split, epoch=epoch)
    for what, without_bias in ((SEPARATION, False), *[(UNBIASED, True)] * unbiased):
        try:
            separation = class_separation(bank, unbiased=without_bias)
        except UndefinedError:
            continue
        yield Number(what.metric, separation, "ratio", split, epoch=epoch)
