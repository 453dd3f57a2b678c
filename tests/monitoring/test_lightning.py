"""A monitor as a callback of Lightning: with a stand-in always, and with Lightning where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch
from tests import lightning_stand_in
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import penultimate as pu
from penultimate import RequestError

LABELS = torch.arange(40) % 4
IMAGES = torch.randn(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))
QUIET = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
KINDS = [
    "stand-in",
    pytest.param(
        "real",
        marks=pytest.mark.skipif(not lightning_stand_in.IS_INSTALLED, reason="Lightning is not installed"),
    ),
]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", *lightning_stand_in.WARNINGS)


@pytest.fixture(autouse=True)
def as_for_users() -> Iterator[None]:
    """Without the tests' checks of annotations, which draw from Python's generator of random numbers."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(params=KINDS)
def lightning(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    return lightning_stand_in.module(monkeypatch, real=request.param == "real")


def classifier(lightning: Any) -> Any:
    class Classifier(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            body = (nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.network = nn.Sequential(*body, nn.Dropout(0.2), nn.Linear(6, 4))

        def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
            return nn.functional.cross_entropy(self.network(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Classifier()


def fitted(lightning: Any, *callbacks: Any, module: Any = None) -> tuple[Any, Any]:
    module = classifier(lightning) if module is None else module
    loader = DataLoader(TensorDataset(IMAGES, LABELS), batch_size=10, shuffle=True)
    trainer = lightning.Trainer(max_epochs=2, callbacks=[*callbacks], logger=False, **QUIET)
    trainer.fit(module, loader)
    return module, trainer


def test_it_measures_each_epoch_logs_by_the_module_and_changes_no_bit(lightning: Any) -> None:
    alone, _ = fitted(lightning)
    module = classifier(lightning)
    monitor = pu.Monitor(module.network, (IMAGES, LABELS))
    _, trainer = fitted(lightning, monitor.lightning(), module=module)
    assert [row["step"] for row in monitor.history] == [1, 2]
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    for name in ("class_separation", "nonzero_share", "rankme", "knn"):
        assert logged[f"features/{name}"] == pytest.approx(monitor.history[-1][name], rel=1e-6)
    state = alone.state_dict()
    assert all(torch.equal(state[name], value) for name, value in module.state_dict().items())


def test_it_measures_every_third_batch_and_its_state_goes_into_checkpoints(lightning: Any) -> None:
    module = classifier(lightning)
    monitor = pu.Monitor(module.network, (IMAGES, LABELS), measure="nonzero_share", every=3)
    callback = monitor.lightning("batch")
    fitted(lightning, callback, module=module)
    assert [row["step"] for row in monitor.history] == [3, 6]
    again = pu.Monitor(module.network, (IMAGES, LABELS), measure="nonzero_share", prefix="again/")
    other = again.lightning("batch")
    other.load_state_dict(callback.state_dict())
    assert again.history == monitor.history
    assert again.steps == 8
    assert other.state_key != callback.state_key


def test_another_unit_and_a_machine_without_lightning_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = pu.Monitor(nn.Sequential(nn.Flatten(), nn.Linear(192, 4)), (IMAGES, LABELS))
    with pytest.raises(RequestError, match="unknown per 'step'"):
        monitor.lightning("step")
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RequestError, match="a callback for Lightning needs it: pip install lightning"):
        monitor.lightning()
