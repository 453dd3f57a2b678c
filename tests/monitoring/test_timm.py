"""The task that the page shows, in a loop of timm's own parts: task, optimiser, averages, summary."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import penultimate as pu

timm = pytest.importorskip("timm")
tasks = pytest.importorskip("timm.task")
PAGE = Path(__file__).parents[2] / "docs/howto/loop.md"
LABELS = torch.arange(24) % 3
IMAGES = 0.2 * torch.rand(24, 3, 32, 32) + torch.eye(3)[LABELS][:, :, None, None]


def objective_task() -> Any:
    """The class that the page shows."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    found: dict[str, Any] = {"__name__": "page"}
    exec(next(block for block in blocks if "class ObjectiveTask" in block), found)
    return found["ObjectiveTask"]


@pytest.mark.long
def test_timms_parts_train_an_objective_and_the_monitors_numbers_are_in_its_summary(tmp_path: Path) -> None:
    from timm.optim import create_optimizer_v2
    from timm.utils import update_summary

    torch.manual_seed(0)
    model = timm.create_model("test_vit", num_classes=3, img_size=32)
    undecayed = model.no_weight_decay()
    model = pu.replace_head(pu.Model(model, size=32), "label_smoothing(alpha=0.1)", num_classes=3)
    task = objective_task()(model=model, verbose=False)
    task.setup_ema(decay=0.5)
    optimizer = create_optimizer_v2(task.get_trainable_module(), opt="adamw", lr=3e-3, weight_decay=0.1)
    parameters = dict(model.named_parameters())
    free = {
        id(each) for group in optimizer.param_groups if not group["weight_decay"] for each in group["params"]
    }
    assert all(id(parameters[f"body.{name}"]) in free for name in undecayed if f"body.{name}" in parameters)
    monitor = pu.Monitor(task.get_eval_model(ema=True), (IMAGES, LABELS))
    for epoch in range(2):
        task.train()
        losses = []
        for _ in range(4):
            loss = task(IMAGES, LABELS)["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            task.update_ema()
            losses.append(loss.item())
        metrics = {"top1": 0.0, **(monitor.step() or {})}
        update_summary(epoch, {"loss": losses[-1]}, metrics, str(tmp_path / "s.csv"), write_header=not epoch)
    rows = [*csv.DictReader((tmp_path / "s.csv").read_text().splitlines())]
    assert [float(row["eval_step"]) for row in rows] == [1, 2]
    assert float(rows[-1]["train_loss"]) < float(rows[0]["train_loss"])
    assert float(rows[-1]["eval_class_separation"]) == monitor.history[-1]["class_separation"]
