"""Plans for another device: exact arithmetic from a rate, and the seconds of a run that was made there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penultimate.cli import main
from penultimate.engine.elsewhere import at_rate, on_device
from penultimate.engine.forecast.timings import Timings
from penultimate.engine.run import Plan, plan
from penultimate.errors import RequestError

KEPT = Path("src/penultimate/paper/reference/sweep/kept.json")


def planned(study: str, out: Path) -> Plan:
    return plan(study, out, Timings(may_take=False))


def seconds_of(made: Plan, kind: str) -> float | None:
    return next(cost.seconds_each for cost in made.costs if cost.name == kind)


def test_a_rate_gives_the_images_of_the_trainings_divided_by_it(tmp_path: Path) -> None:
    """72 networks see 3,788,928 batches of 4,096 images; docs/howto/cost.md says 1,724 GPU hours."""
    made = at_rate(planned("imagenet_resnet50", tmp_path), 2500)
    each = seconds_of(made, "train")
    assert each is not None
    assert each == pytest.approx(3_788_928 * 4096 / 2500 / 72, rel=0.01)
    assert round(72 * each / 3600) == 1724
    assert seconds_of(at_rate(made, 5000), "train") == pytest.approx(each / 2)
    for rate in (0.0, -3.0, float("nan")):
        with pytest.raises(RequestError, match="images a second, above 0"):
            at_rate(made, rate)


def test_a_device_gives_what_the_steps_of_a_run_took_there(tmp_path: Path) -> None:
    """The same recipe costs the same; `sweep_smallest` took 3:59 there, by docs/cluster.md."""
    known = json.loads(KEPT.read_text("utf-8"))["provenance"]
    found = on_device(planned("sweep_smallest", tmp_path), "h100")
    assert (found.run, found.processes) == ("sweep", 16)
    assert "H100" in found.device
    for kind in ("train", "linear", "extract"):
        assert seconds_of(found.plan, kind) == pytest.approx(known["seconds"][kind] / known["steps"][kind][0])
    assert found.plan.seconds_left / found.processes == pytest.approx(239, rel=0.2)
    shorter = on_device(planned("nine", tmp_path), "h100").plan
    assert seconds_of(shorter, "train") == pytest.approx(
        known["seconds"]["train"] / known["steps"]["train"][0] * 14 / 44, rel=0.01
    )
    assert seconds_of(shorter, "spectra") is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plan nine --device a100", "no kept run was made on 'a100'; known: NVIDIA H100"),
        (
            "plan imagenet_resnet50 --device h100",
            "trained glyphnet on glyphs, and 'imagenet_resnet50' trains",
        ),
        ("plan nine --device h100 --images-per-second 5", "not allowed with"),
    ],
)
def test_what_no_run_tells_is_refused_with_the_way_on(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*line.split(), "--out", str(tmp_path)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_plan_elsewhere_says_by_what_it_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "plan imagenet_resnet50 --images-per-second 2500 --processes 8 --out"
    assert main([*line.split(), str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "trainings at 2,500 images a second each, as you said" in told
    assert "about 9.0 days on 8 processes" in told
    assert main(["plan", "sweep_smallest", "--device", "h100", "--out", str(tmp_path)]) == 0
    assert "took on one NVIDIA H100 80GB HBM3, 16 side by side" in capsys.readouterr().out
