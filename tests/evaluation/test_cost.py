"""What accuracy costs: multiply-adds as published, the front, and a speed that is in no row."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision
from tests.evaluation.test_boards import given
from tests.records.stores import described, finished
from torch import nn

from penultimate.backbones import operations
from penultimate.backbones.operations import images_a_second, multiply_adds
from penultimate.evaluation.request import Request
from penultimate.report import exhibit, read_study, render_exhibit_text
from penultimate.report.base import MISSING
from penultimate.report.page.page import render_report


@pytest.mark.parametrize(
    ("name", "weights"),
    [("resnet18", "ResNet18_Weights"), ("mobilenet_v3_small", "MobileNet_V3_Small_Weights")],
)
def test_multiply_adds_are_those_that_torchvision_prints(name: str, weights: str) -> None:
    module = torchvision.models.get_model(name).eval()
    published = getattr(torchvision.models, weights).DEFAULT.meta["_ops"]  # billions, three digits
    assert multiply_adds(module, torch.zeros(1, 3, 224, 224)) / 1e9 == pytest.approx(published, abs=5e-4)


def test_attention_is_counted_though_it_may_run_fused() -> None:
    tokens, width, heads = 5, 8, 2
    layer = nn.TransformerEncoderLayer(width, heads, 16, batch_first=True).eval()
    enabled = torch.backends.mha.get_fastpath_enabled()
    products = tokens * width * (3 * width + width + 16 + 16) + 2 * tokens * tokens * width
    assert multiply_adds(layer, torch.zeros(3, tokens, width)) == products
    assert torch.backends.mha.get_fastpath_enabled() is enabled


def test_what_runs_outside_pytorch_has_no_count() -> None:
    assert multiply_adds(nn.Flatten(), torch.zeros(1, 3, 2, 2)) == 0


def test_speed_is_of_the_median_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 1.0, 1.0, 3.0, 3.0, 13.0, 13.0, 15.0, 15.0, 17.0])
    monkeypatch.setattr(operations.time, "perf_counter", lambda: next(ticks))
    assert images_a_second(lambda images: images, torch.zeros(8, 1)) == 4.0  # batches of 1, 2, 10, 2, 2 s


def test_the_front_and_the_speed_stand_in_the_table(tmp_path: Path) -> None:
    names = ("best", "slow", "quick", "outside")
    study = given(tmp_path, names)
    steps = [*study.description["steps"]]
    for name, adds in {"best": 2e9, "slow": 3e9, "quick": 1e8, "outside": None}.items():
        columns = {"objective": name, "source": "digits_smoke", "target": "digits_smoke"}
        rows = [{"metric": "width", "value": 512, "unit": "count"}]
        rows += [] if adds is None else [{"metric": "multiply_adds", "value": adds, "unit": "count"}]
        facts = {"speed": {"images_a_second": 1234.5, "device": "cpu", "threads": 1, "batch": 32}}
        step = f"cost.{name}-digits_smoke.0"
        steps.append(finished(study.store, step, columns, rows, **(facts if name == "best" else {})))
    as_before = ("source", "targets", "measure", "title", "question", "networks", "objectives")
    described(study.store, "mine", steps, **{key: study.description[key] for key in as_before})
    shown = exhibit("cost", tmp_path)
    (table,) = shown.tables
    by_name = {row.label: row.cells for row in table.rows}
    assert {name for name, cells in by_name.items() if cells[0].best} == {"best", "quick"}
    assert [cell.text for cell in by_name["best"]] == ["100.0", MISSING, "2", "1,234", "2,048"]
    assert [cell.text for cell in by_name["outside"]][2:4] == [MISSING, MISSING]
    assert [point.objective for point in shown.figures[0].panels[0].points] == ["best", "slow", "quick"]
    assert "one thread" in " ".join(render_exhibit_text(shown).split())
    assert "What the accuracy costs" in render_report(read_study(tmp_path))[""].decode()


def test_speed_is_measured_only_when_it_is_asked_for() -> None:
    networks, data = {"one": "timm:resnet18"}, {"digits": ""}
    assert "cost" in Request(networks, data).study().measure
    assert "cost(speed=True)" in Request(networks, data, speed=True).study().measure
