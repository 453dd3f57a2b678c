"""`penultimate check`: sound plug-ins pass, and of each wrong one exactly what is wrong is told."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from penultimate import registry
from penultimate.checking import Report, check_entry, check_file
from penultimate.objectives.presets import COMPONENT_KINDS
from penultimate.plugins import loaded

SAMPLES = Path(__file__).parents[1] / "plugins"
SOUND = ("focal", "prototypes", "confidence", "instruments", "stripes", "bars", "slopes")
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "wrong_losses": {
        "reduced": {"shape": "returns [] for 7 examples; return [n], [7] here. Sum over the classes alone"},
        "squeezed": {"shape": "returns [] for 1 examples; return [n], [1] here"},
        "in_numpy": {"shape": "a value of type ndarray"},
        "of_indices": {"shape": "the plug-in 'wrong_losses.py', line 31: RuntimeError"},
        "single_precision": {"slope": "or rounded, or its own backward is wrong"},
        "on_the_cpu": {"device": "torch.arange(..., device=logits.device)"},
        "detached": {"gradient": "carries no gradient"},
        "stepped": {"gradient": "is 0 everywhere"},
        "half_detached": {"slope": "is not the slope of its value (torch.autograd.gradcheck)"},
        "softmax_over_the_batch": {"examples": "depends on the others of its batch"},
        "ordinal": {"classes": "a class has no number"},
        "in_place": {"shape": "changes its logits in place"},
        "noisy": {"values": "gives different values for the same inputs"},
        "divergence": {"values": "is NaN on ordinary inputs. Is it the logarithm of a target that is 0?"},
        "of_the_largest_target": {"targets": "argmax"},
        "blind": {"targets": "does not depend on its targets"},
        "upside_down": {"direction": "is a minus sign missing?"},
        "overflowing": {"extremes": "NaN at logits of 10000 for the right class and -10000"},
        "with_an_infinite_slope": {"extremes": "its gradient by logits is NaN"},
        "by_position": {"signature": "takes (logits, targets, gamma=2.0); a loss is called as by_pos"},
        "with_a_tensor": {"signature": "can be written in a spec string"},
        "Smooth": {"signature": "is a class; a loss is a function, called as Smooth(logits, targets)"},
        "of_targets_first": {"signature": "takes (targets, logits); a loss is called as of_targets_first(l"},
        "ending_the_program": {"shape": "'wrong_losses.py', line 127: SystemExit: 0"},
    },
    "wrong_heads": {
        "transposed": {"shape": "[5, 7] for 7 examples; return [n k], [7, 5] here. The plain logits are"},
        "without_weight": {"gradient": "does not depend on weight"},
        "of_directions": {"extremes": "NaN where examples are equal, or all features of an example are 0"},
        "exponential": {"extremes": "infinite at features of about 10000"},
        "once_for_the_batch": {"shape": "expand(n) repeats a value"},
        "norm_of_logits": {"extremes": "at logits that are all 0 (dead features), but its gradient"},
    },
    "wrong_parts": {
        "of_lengths": {"extremes": "but its gradient by features is NaN"},
        "of_logits": {"signature": "takes (logits, targets, head); a penalty is called as of_logits(lo"},
        "forgetful": {"batch": "features that depend on the others of its batch"},
        "on_its_side": {"as objective": "weight"},
    },
    "wrong_worlds": {
        "with_anothers_card": {"splits": "has the card of 'other'"},
        "without_test": {"splits": "one that is transferred to has train, test"},
        "overlapping": {"splits": "the id 3 is in 'train' too (1 of 4 do)"},
        "unseeded": {"draw": "seed every generator from the draw alone"},
        "not_a_module": {"module": "build a torch.nn.Module"},
        "Unpooled": {"features": "pool and flatten it: .mean((2, 3))"},
        "WithClassifier": {"parameters": "has 2 of 4 parameters that take no part in the features"},
        "Hidden": {"state": "register what it learns as parameters or buffers"},
        "OfTheBatch": {"batch": "depend on the others of its batch in eval()"},
        "Overwriting": {"parameters": "changes its input in place", "batch": "in eval()"},
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
    assert report.ok, report
    assert str(report).splitlines()[-1] == f"All {len(report.findings)} checks passed."


@pytest.mark.parametrize("sample", WRONG)
def test_of_each_plugin_what_is_wrong_is_told_and_nothing_else(sample: str) -> None:
    report = checked(sample)
    assert {finding.name for finding in report.findings} == WRONG[sample].keys()
    for name, expected in WRONG[sample].items():
        wrong = {finding.check: finding.sentence for finding in report.wrong if finding.name == name}
        assert wrong.keys() == expected.keys(), (name, wrong)
        for check, phrase in expected.items():
            assert phrase in wrong[check]
            assert name in wrong[check]
            assert wrong[check].endswith((".", "?", ")"))


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


def test_the_report_is_plain_text_that_fits_a_terminal() -> None:
    report = checked("wrong_losses")
    text = str(report)
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[0] == "wrong_losses.py"
    assert "\nloss reduced\n  ok     signature" in text
    assert text.count("  WRONG  ") == len(report.wrong)
    verdict = f"{len(report.wrong)} of {len(report.findings)} checks found something wrong."
    assert text.splitlines()[-1] == verdict
