"""Linear transfer during training: a linear probe of each snapshot and of the finished network."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Pixels, Snapshots
from penultimate.measures.inputs import Inputs, Number, read_card
from penultimate.measures.linear import LINEAR_ACCURACIES
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register


@register.measurement(
    version=2,
    per="target",
    needs=(Snapshots(), Pixels("train"), Pixels("test")),
    yields=LINEAR_ACCURACIES,
    ranges={"every": Interval(1, closed="left")},
    seconds=8.0,
    paper="Kornblith et al., 2021, figure D.2",
)
def transfer_dynamics(inputs: Inputs, *, every: int = 1) -> Iterator[Number]:
    """Test accuracy of logistic regression on the target's features, by epoch; the last value is `linear`'s.

    If snapshots were kept more often than every `every` epochs, only those after every `every` epochs are
    used.
    """
    from penultimate.features.extraction import extract
    from penultimate.networks.trained import load_network, snapshots
    from penultimate.probes.linear import LinearProbe

    train, test = inputs.shown("train"), inputs.shown("test")
    last = read_card(inputs.network_folder)["epoch"]
    kept = {epoch: folder for epoch, folder in snapshots(inputs.network_folder).items() if epoch % every == 0}
    for epoch, folder in {**kept, last: inputs.network_folder}.items():
        network = load_network(folder).to(inputs.device)
        bank, queries = extract(network, train), extract(network, test)
        probe = LinearProbe(metric=inputs.accuracy, seed=inputs.seed).fit(bank.features, bank.labels)
        score = probe.score(queries.features, queries.labels)
        yield Number(f"linear_{inputs.accuracy}", score, "fraction", "test", epoch=epoch)
