"""`penultimate check`: sound plug-ins pass, and of each wrong one exactly what is wrong is told."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from penultimate import registry
from penultimate.checking import CheckOutcome, Report, check_entry, check_file, render_report
from penultimate.objectives.presets import COMPONENT_KINDS
from penultimate.plugins import loaded

SAMPLES = Path(__file__).parent / "plugins"
SOUND = {
    "focal": {"focal"},
    "prototypes": {"prototypes", "unbiased"},
    "confidence": {"confidence", "unit_rows"},
    "instruments": {"feature_scale", "nearest_mean"},
    "stripes": {"stripes", "Tiny"},
    "bars": {"bars"},
    "slopes": {"slope"},
}
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "wrong_losses": {
        "reduced": {"shape": "returns [] for 7 examples; return [n], [7] here. Reduce nothing"},
        "squeezed": {"shape": "drops the axis of a single example too; write .squeeze(-1)"},
        "in_numpy": {"shape": "a value of type ndarray"},
        "of_indices": {"shape": "on line 31 of wrong_losses.py: RuntimeError"},
        "single_precision": {"dtype": "torch.float32 for inputs of torch.float64"},
        "on_the_cpu": {"device": "torch.arange(..., device=logits.device)"},
        "detached": {"gradient": "carries no gradient"},
        "stepped": {"gradient": "is 0 everywhere"},
        "half_detached": {"slope": "is not the slope of its value (torch.autograd.gradcheck)"},
        "softmax_over_the_batch": {"examples": "depends on the others of its batch"},
        "ordinal": {"classes": "a class has no number"},
        "in_place": {"inputs": "changes its logits in place"},
        "noisy": {"values": "gives different values when it is called again"},
        "divergence": {"values": "is NaN on ordinary inputs. Is it the logarithm of a target that is 0?"},
        "of_the_largest_target": {"targets": "argmax"},
        "blind": {"targets": "does not depend on its targets"},
        "upside_down": {"direction": "is a minus sign missing?"},
        "overflowing": {"extreme logits": "NaN at logits of 10000 for the right class and -10000"},
        "with_an_infinite_slope": {"extreme logits": "its gradient by logits is NaN"},
        "by_position": {"signature": "by_position(logits, targets, *, gamma=2.0)"},
        "with_anything": {"signature": "name each of its hyperparameters"},
        "with_a_tensor": {"signature": "cannot be written in a spec string"},
        "Smooth": {"signature": "is a class; a loss is a function, called as Smooth(logits, targets)"},
        "of_logits_alone": {"signature": "of_logits_alone(logits) takes too few arguments"},
        "of_targets_first": {"signature": "argument 'targets' is given logits; a loss is called as"},
        "of_centres": {
            "signature": "takes 'features' by position, where nothing sets it; a loss is called as"
        },
        "ending_the_program": {"shape": "of wrong_losses.py: SystemExit: 0"},
    },
    "wrong_heads": {
        "transposed": {"shape": "[5 7] for 7 examples; return [n k], [7, 5] here. Transpose it"},
        "without_weight": {"gradient": "does not depend on weight"},
        "of_directions": {"extreme features": "NaN where all features of an example are 0"},
        "exponential": {"extreme features": "infinite at features of about 10000"},
        "once_for_the_batch": {"shape": "the same for every example: value.expand(n)"},
        "norm_of_logits": {"extreme logits": "at logits that are all 0 (dead features), but its gradient"},
    },
    "wrong_parts": {
        "of_roots": {"order": "when the batch is reordered"},
        "of_lengths": {"copies": "but its gradient by features is NaN"},
        "log_of_nothing": {"values": "is NaN on ordinary inputs"},
        "of_logits": {"signature": "takes 'head' by position, where nothing sets it; a penalty is called as"},
        "forgetful": {"images": "gives one of its examples depend on the others of its batch"},
        "on_its_side": {"weight": "returns [4, 5] for 5 classes and 4 features; return the weight [k m]"},
        "of_the_global_generator": {"weight": "draw from the generator alone"},
    },
    "wrong_worlds": {
        "with_anothers_card": {"card": "is that of 'other'"},
        "without_test": {"card": "one that is transferred to has train, test"},
        "overlapping": {"splits": "the id 3 is in 'train' too (1 of 4 do)"},
        "unseeded": {"draw": "seed every generator from the draw alone"},
        "not_a_module": {"module": "build a torch.nn.Module"},
        "Unpooled": {"features": "pool and flatten it: .mean((2, 3))"},
        "WithClassifier": {"parameters": "2 of 4 parameters take no part in the features"},
        "Hidden": {"state": "register what it learns as parameters or buffers"},
        "SeededByNumPy": {"seed": "draw them from torch's default generator"},
        "OfTheBatch": {"images": "depend on the others of its batch in eval()"},
        "Overwriting": {"parameters": "changes its images in place", "images": "in eval()"},
    },
}


@pytest.fixture(autouse=True, scope="module")
def _registry_as_before() -> Iterator[None]:
    yield
    for plugin in loaded():
        for entry in plugin.entries:
            registry.forget(entry.kind, entry.name)


@cache
def checked(sample: str) -> Report:
    return check_file(SAMPLES / f"{sample}.py")


@pytest.mark.parametrize("sample", SOUND)
def test_sound_plugins_pass(sample: str) -> None:
    report = checked(sample)
    assert {finding.name for finding in report.findings} == SOUND[sample]
    assert report.ok, render_report(report)


@pytest.mark.parametrize(
    ("sample", "name"), [(sample, name) for sample, wrong in WRONG.items() for name in wrong]
)
def test_what_is_wrong_is_told_and_nothing_else(sample: str, name: str) -> None:
    wrong = {finding.check: finding.sentence for finding in checked(sample).wrong if finding.name == name}
    assert wrong.keys() == WRONG[sample][name].keys(), wrong
    for check, phrase in WRONG[sample][name].items():
        assert phrase in wrong[check]
        assert name in wrong[check]
        assert wrong[check].endswith((".", "?", ")"))


@pytest.mark.parametrize("sample", WRONG)
def test_every_wrong_sample_is_expected(sample: str) -> None:
    assert {finding.name for finding in checked(sample).findings} == WRONG[sample].keys()


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in (*COMPONENT_KINDS, "backbone")
        for name in registry.names(kind)
        if name != "inception_v3"  # is made for larger images than a check has
    ]
    + [("dataset", name) for name in registry.names("dataset") if name.endswith("_smoke")],
)
def test_what_is_built_in_keeps_the_same_contract(kind: str, name: str) -> None:
    findings = check_entry(registry.entry(kind, name))
    assert [finding for finding in findings if not finding.ok] == []
    assert len(findings) > 2


def test_what_follows_a_wrong_shape_is_left_out_and_said_to_be() -> None:
    findings = [finding for finding in checked("wrong_losses").findings if finding.name == "reduced"]
    assert [finding.check for finding in findings] == ["signature", "shape"]
    assert "more checks wait for this." in findings[-1].sentence


def test_a_check_draws_nothing_from_the_callers_generator() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    check_entry(registry.entry("loss", "softmax_cross_entropy"))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_report_is_plain_text_that_fits_a_terminal() -> None:
    text = render_report(checked("wrong_losses"))
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text
    assert text.splitlines()[0].startswith("wrong_losses.py  (sha256 ")
    assert "\nloss reduced\n  ok     signature" in text
    wrong = checked("wrong_losses").wrong
    assert text.count("  WRONG  ") == len(wrong)
    assert text.splitlines()[-1] == (
        f"{len(wrong)} of {len(checked('wrong_losses').findings)} checks found something wrong."
    )
    passed = render_report(checked("focal"))
    assert passed.splitlines()[-1] == f"All {len(checked('focal').findings)} checks passed."


def test_a_report_is_ok_when_nothing_is_wrong() -> None:
    right = CheckOutcome("a", "loss", "shape", True, "fine.")
    wrong = CheckOutcome("a", "loss", "dtype", False, "not fine.")
    assert Report(Path("a.py"), "0", (right,)).ok
    assert not Report(Path("a.py"), "0", (right, wrong)).ok
    assert Report(Path("a.py"), "0", (right, wrong)).wrong == (wrong,)
