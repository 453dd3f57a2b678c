"""A monitor measures what the metrics measure, and leaves the training as it is without one, to the bit."""

from __future__ import annotations

import copy
import logging
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
import torch.distributed
from tests.oracles.separation import class_separation as separation_by_definition
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import penultimate as pu
from penultimate import RequestError
from penultimate.data.images import ImageSet

LABELS = torch.arange(60) % 4
IMAGES = torch.randn(60, 3, 8, 8, generator=torch.Generator().manual_seed(0)) + LABELS[:, None, None, None]
HELD_OUT = IMAGES[:40], LABELS[:40]


@pytest.fixture(autouse=True)
def as_for_users() -> Iterator[None]:
    """Without the tests' checks of annotations, which draw from Python's generator of random numbers."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Dropout(0.3), nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 4),
    )  # fmt: skip


def trained(monitored: bool, held_out: Any = HELD_OUT, autocast: bool = False) -> tuple[nn.Module, list[Any]]:
    """A network after three epochs whose order, dropout and noise are drawn from the global generators."""
    net = network()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (what a training draws from)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    monitor = pu.Monitor(net, held_out) if monitored else None
    loader = DataLoader(TensorDataset(IMAGES, LABELS), batch_size=20, shuffle=True)
    drawn: list[Any] = []
    for _ in range(3):
        for images, labels in loader:
            noise = random.random() + np.random.random()  # noqa: NPY002
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = nn.functional.cross_entropy(net(images + noise), labels)
                if monitor is not None:
                    monitor.step()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        drawn += [random.random(), np.random.random(), torch.rand(())]  # noqa: NPY002
    if monitor is not None:
        assert len(monitor.history) == 9
        assert all(math.isfinite(value) for row in monitor.history for value in row.values())
    return net, drawn


@pytest.mark.parametrize("autocast", [False, True])
def test_a_training_is_the_same_to_the_bit_with_it_and_without(autocast: bool) -> None:
    (alone, drawn), (watched, again) = (trained(monitored, autocast=autocast) for monitored in (False, True))
    assert drawn == again
    assert all(part.training for part in watched.modules())
    state, seen = alone.state_dict(), watched.state_dict()
    assert [name for name in state if not torch.equal(state[name], seen[name])] == []
    assert seen["1.num_batches_tracked"] == 9


def test_a_loader_that_shuffles_and_draws_leaves_its_generators_where_they_were() -> None:
    generator = torch.Generator().manual_seed(3)
    loader = DataLoader(TensorDataset(*HELD_OUT), batch_size=16, shuffle=True, generator=generator)
    before = generator.get_state()
    (alone, drawn), (watched, again) = trained(False), trained(True, loader)
    assert drawn == again
    assert torch.equal(generator.get_state(), before)
    torch.testing.assert_close([*alone.parameters()], [*watched.parameters()], rtol=0, atol=0)


def test_the_numbers_are_those_of_the_metrics_and_of_their_definitions() -> None:
    net = network()
    asked = ("class_separation", "nonzero_share", "rankme", "knn", "class_separation(unbiased=True)", "top_k")
    row = pu.Monitor(net, HELD_OUT, measure=asked, batch_size=7).step()
    assert row is not None
    bank = pu.extract(net, [HELD_OUT])
    features, labels = bank.features.astype(float), bank.labels
    assert row["class_separation"] == pytest.approx(
        separation_by_definition(features, labels, "cosine"), abs=1e-6
    )
    assert row["class_separation"] == pytest.approx(pu.class_separation(bank), abs=1e-6)
    unbiased = pu.class_separation(bank, unbiased=True)
    assert row["class_separation(unbiased=True)"] == pytest.approx(unbiased, abs=1e-6)
    assert row["nonzero_share"] == pytest.approx(np.count_nonzero(features) / features.size, abs=1e-9)
    values = np.linalg.svd(features, compute_uv=False)
    shares = values / values.sum() + 1e-7
    assert row["rankme"] == pytest.approx(math.exp(-(shares * np.log(shares)).sum()), rel=1e-6)
    assert row["knn"] == pu.KNNProbe(max_k=20).fit(bank).leave_one_out_.max()
    assert row["top_k"] == np.mean(bank.predictions == labels)
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    similar = units @ units.T - 4 * np.eye(len(units))
    nearest = labels[similar.argmax(1)] == labels
    alone = pu.Monitor(net, HELD_OUT, measure={"nearest": "knn(max_k=1)"}).measure()
    assert alone is not None
    assert alone["nearest"] == pytest.approx(nearest.mean(), abs=1e-9)


def test_it_takes_loaders_image_sets_and_functions_of_a_bank() -> None:
    net = network()
    by_tensors = pu.Monitor(net, HELD_OUT, measure="class_separation").step()
    loader = DataLoader(TensorDataset(*HELD_OUT), batch_size=16)
    mine = pu.Monitor(net, loader, measure=["class_separation", lambda bank: bank.features.max()])
    row = mine.step()
    assert by_tensors is not None
    assert row is not None
    assert row["class_separation"] == pytest.approx(by_tensors["class_separation"], abs=1e-6)
    assert row["<lambda>"] == pu.extract(net, loader).features.max()
    pixels = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), np.uint8)
    images = ImageSet(pixels, np.arange(40) % 4, np.arange(40), ("a", "b", "c", "d"))
    model = pu.Model(net, size=8, mean=(0.5,) * 3, std=(0.25,) * 3)
    row = pu.Monitor(model, images, measure="class_separation").step()
    assert row is not None
    assert row["class_separation"] == pytest.approx(pu.class_separation(pu.extract(model, images)), abs=1e-9)


def test_it_measures_at_every_third_step_and_goes_on_after_a_stop() -> None:
    net, rows = network(), list[dict[str, float]]()
    monitor = pu.Monitor(net, HELD_OUT, measure="nonzero_share", every=3, log=rows)
    assert [monitor.step() is None for _ in range(7)] == [True, True, False, True, True, False, True]
    state = torch.load(_saved(monitor.state_dict()), weights_only=True)
    again = pu.Monitor(net, HELD_OUT, measure="nonzero_share", every=3)
    again.load_state_dict(state)
    assert [again.step() is None for _ in range(2)] == [True, False]
    assert [row["step"] for row in again.history] == [3, 6, 9]
    assert rows == monitor.history
    assert [*again.frame().columns] == ["step", "nonzero_share", "seconds"]
    assert len(again.frame()) == 3
    assert repr(again) == "Monitor(nonzero_share; 3 measurements, the last at step 9)"


def _saved(state: dict[str, Any]) -> Any:
    import io

    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return buffer


class Writer:
    """Stands for the loggers that are recognised by the method that they have."""

    def __init__(self, method: str) -> None:
        self.calls: list[tuple[Any, ...]] = []
        setattr(self, method, lambda *args, **named: self.calls.append((*args, *named.items())))


def test_every_kind_of_logger_is_told(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    writers = [Writer(method) for method in ("add_scalar", "log_metrics", "log_dict", "log")]
    log = (*writers, logging.getLogger("mine"), print)
    monitor = pu.Monitor(network(), HELD_OUT, measure="nonzero_share", log=log)
    with caplog.at_level(logging.INFO):
        row = monitor.step()
    assert row is not None
    share, seconds = row["nonzero_share"], row["seconds"]
    named = {"features/nonzero_share": share, "features/seconds": seconds}
    board, metrics, dicts, wandb = (writer.calls for writer in writers)
    assert board == [("features/nonzero_share", share, 1), ("features/seconds", seconds, 1)]
    assert metrics == [(named, ("step", 1))]
    assert dicts == [(named,)]
    assert wandb == [({**named, "features/step": 1},)]
    assert caplog.messages[0].startswith("features at step 1: nonzero_share 0.")
    assert capsys.readouterr().out == f"{row}\n"


def test_what_cannot_be_measured_is_nan_with_a_sentence_said_once() -> None:
    net = network()
    images = IMAGES[:20]
    one_class = pu.Monitor(net, (images, torch.zeros(20, dtype=torch.int64)))
    with pytest.warns(UserWarning, match="said once") as caught:
        rows = [one_class.step(), one_class.step()]
    assert sorted(str(each.message).partition(" ")[0] for each in caught) == ["class_separation", "knn"]
    for row in rows:
        assert row is not None
        assert math.isnan(row["class_separation"])
        assert math.isnan(row["knn"])
        assert row["nonzero_share"] > 0
    broken = pu.Monitor(net, HELD_OUT, measure="nonzero_share")
    with torch.no_grad():
        net[-3].weight.fill_(math.nan)
    with pytest.warns(UserWarning, match="nothing was measured at step 1: RequestError: features of 40"):
        broken.step()
    broken.step()  # without a second warning, which would be an error
    assert [math.isnan(row["nonzero_share"]) for row in broken.history] == [True, True]
    assert all(part.training for part in net.modules())


def test_a_logger_or_a_loader_that_fails_ends_no_training() -> None:
    class Failing:
        fails = False

        def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
            if self.fails:
                raise OSError("the disk is gone")
            yield HELD_OUT

    def refuse(row: dict[str, float]) -> None:
        raise ConnectionError("no network")

    data = Failing()
    monitor = pu.Monitor(network(), data, measure="nonzero_share", log=refuse)
    with pytest.warns(UserWarning, match="could not be logged, and are in monitor.history: ConnectionError"):
        monitor.step()
    data.fails = True
    with pytest.warns(UserWarning, match="nothing was measured at step 2: OSError: the disk is gone"):
        monitor.step()
    assert [math.isnan(row["nonzero_share"]) for row in monitor.history] == [False, True]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": iter([HELD_OUT])}, "an iterator can be read once"),
        ({"data": (IMAGES, LABELS[:3])}, "there are 60 held-out images and 3 labels"),
        ({"data": []}, "no batch to extract features from"),
        ({"data": (IMAGES[:, :2], LABELS)}, "the model refused batch 0"),
        ({"every": 0}, "every must be a whole number of at least 1"),
        ({"measure": "rankmee"}, "unknown measurement 'rankmee'. Did you mean 'rankme'"),
        ({"measure": "class_separation(distance='cosin')"}, "'cosin'"),
        ({"measure": "leep"}, "'leep' does not give one number of a feature bank"),
        ({"measure": []}, "nothing to measure"),
        ({"log": 3}, "log is a function of a row, .*; a int is none of these"),
    ],
)
def test_what_is_wrong_is_refused_before_the_training(changed: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"network": network(), "data": HELD_OUT, **changed}
    net, data = asked.pop("network"), asked.pop("data")
    with pytest.raises(RequestError, match=message):
        pu.Monitor(net, data, **asked)


def test_a_network_whose_features_are_not_found_is_refused_before_the_training() -> None:
    class Squared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.num_classes, self.embed = 4, nn.Linear(192, 4)

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.embed(images.flatten(1)) ** 2
            return scores

    with pytest.raises(RequestError, match="the final layer of Squared was not found"):
        pu.Monitor(Squared(), HELD_OUT)
    assert pu.Monitor(pu.Model(Squared(), layer="output"), HELD_OUT).step() is not None


def test_in_a_process_group_the_first_process_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.distributed.init_process_group("gloo", f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        wrapped = nn.parallel.DistributedDataParallel(network())
        monitor = pu.Monitor(wrapped, HELD_OUT)
        assert monitor.step() is not None
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
        assert monitor.step() is None
        assert monitor.steps == 2
        assert pu.Monitor(wrapped, HELD_OUT).history == []
    finally:
        torch.distributed.destroy_process_group()


def test_with_a_compiled_network_it_measures_the_same_and_nothing_is_compiled_again() -> None:
    import torch._dynamo.utils

    net = network().eval()
    plain = pu.Monitor(copy.deepcopy(net), HELD_OUT).step()
    compiled = torch.compile(net.train(), backend="eager")
    monitor = pu.Monitor(compiled, HELD_OUT)

    def graphs() -> int:
        return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])

    compiled(IMAGES).sum().backward()
    before = graphs()
    with torch.no_grad():
        net[1].reset_running_stats()
    row = monitor.step()
    compiled(IMAGES).sum().backward()
    assert graphs() == before
    assert plain is not None
    assert row is not None
    assert {**row, "seconds": 0} == pytest.approx({**plain, "seconds": 0})


def test_weights_that_are_shared_out_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = pu.Monitor(network(), HELD_OUT)
    monkeypatch.setattr("penultimate.monitoring.monitor.SHARDED", "Parameter")
    with pytest.warns(UserWarning, match="the weights are shared out among processes"):
        monitor.step()
