"""The study of shared classes: networks that the reference run trains too, on five targets, for one claim."""

from __future__ import annotations

from collections import Counter

from penultimate.data.catalog import SHARES
from penultimate.paper.studies.world import GLYPHS_FIRST as FIRST
from penultimate.study import load_study
from penultimate.study.unfold import unfold


def test_it_tests_the_main_networks_of_the_reference_run_and_trains_no_other() -> None:
    study = load_study("shared_classes")
    main = {key for key in FIRST.keys() if not key.arm and key.backbone == FIRST.main.backbones[0]}
    assert set(study.keys()) == main
    assert len(main) == 9 * 3
    steps, of_reference = unfold(study).steps, unfold(FIRST).steps
    further = Counter(step.name for name, step in steps.items() if name not in of_reference)
    assert set(further) == {"data", "sheet", "extract", "overlap", "linear"}
    assert further["overlap"] == further["linear"] == len(main) * len(SHARES)
    measured = Counter(step.columns["target"] for step in steps.values() if step.name == "overlap")
    assert measured == dict.fromkeys(SHARES, len(main))
