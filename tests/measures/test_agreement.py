"""Agreement of predictions: of every pair of networks, and of the objectives' ensembles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.measures.banks import bank
from tests.measures.steps import Parents, measured, value
from tests.oracles import agreement as oracle

from penultimate import FeatureBank, RequestError
from penultimate.networks.key import NetworkKey
from penultimate.records.table import Row


def key(objective: str, seed: int | None) -> NetworkKey:
    return NetworkKey(objective) if seed is None else NetworkKey(objective, "glyphnet", seed=seed, draw=0)


def agreed(root: Path, banks: Mapping[tuple[str, int | None], FeatureBank], **more: Any) -> list[Row]:
    parents = Parents(root)
    for network, one in banks.items():
        parents.bank("test", one, key(*network))
    return measured("agreement", parents, key=None, **more).rows


def test_agreement_of_all_pairs_and_ensembles_of_the_common_seeds(tmp_path: Path) -> None:
    networks = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2), ("b", 7)]
    banks: dict[tuple[str, int | None], FeatureBank] = {
        network: bank(place) for place, network in enumerate(networks)
    }
    rows = agreed(tmp_path, banks)
    labels = bank(0).labels.tolist()
    predicted = {
        network: one.logits.argmax(1).tolist() for network, one in banks.items() if one.logits is not None
    }
    same, together, alike = oracle.agreement(predicted["a", 1], predicted["b", 7], labels)
    pair = {"objective": "a", "seed": 1, "objective_b": "b", "seed_b": 7}
    assert value(rows, "agreement_same", **pair) == same
    assert value(rows, "agreement_both_right_or_wrong", **pair) == together
    assert value(rows, "agreement_same_when_both_wrong", **pair) == alike
    count = Counter((row.metric, row.setting) for row in rows)
    assert count["agreement_same", None] == 7 * 6 / 2
    assert count["agreement_same", "models=3"] == 1
    assert (count["ensemble_top1", "models=3"], count["ensemble_top1", "models=2"]) == (2, 3)
    assert {row.seed for row in rows if row.setting} == {None}

    def right(members: list[tuple[str, int | None]]) -> float:
        chosen = oracle.modal([predicted[one] for one in members])
        return sum(p == y for p, y in zip(chosen, labels, strict=True)) / len(labels)

    columns = {"objective": "a", "objective_b": "b", "setting": "models=2"}
    mixed = right([("a", 0), ("b", 1)]) + right([("b", 0), ("a", 1)])
    assert value(rows, "ensemble_top1", **columns) == pytest.approx(mixed / 2)
    pure = {"objective": "b", "objective_b": "b", "setting": "models=3"}
    assert value(rows, "ensemble_top1", **pure) == right([("b", 0), ("b", 1), ("b", 2)])


def test_a_pair_alone_is_compared_as_it_is_among_others(tmp_path: Path) -> None:
    banks: dict[tuple[str, int | None], FeatureBank] = {("a", 0): bank(0), ("b", 0): bank(1)}
    parents = Parents(tmp_path / "pair")
    for network, one in banks.items():
        parents.bank("test", one, key(*network))
    alone, among = measured("pair_agreement", parents, key=None).rows, agreed(tmp_path / "all", banks)
    assert [(row.metric, row.objective, row.objective_b, row.value) for row in alone] == [
        (row.metric, row.objective, row.objective_b, row.value) for row in among
    ]


def test_a_given_network_is_compared_and_is_in_no_ensemble(tmp_path: Path) -> None:
    banks: dict[tuple[str, int | None], FeatureBank] = {
        ("a", 0): bank(0),
        ("a", 1): bank(1),
        ("ours", None): bank(2),
    }
    rows = agreed(tmp_path, banks)
    pairs = {(row.objective, row.seed, row.objective_b, row.seed_b) for row in rows if row.setting is None}
    assert pairs == {("a", 0, "a", 1), ("a", 0, "ours", None), ("a", 1, "ours", None)}
    ensembles = [(row.metric, row.objective, row.objective_b) for row in rows if row.setting]
    assert ensembles == [("ensemble_top1", "a", "a")]


def test_other_examples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RequestError, match=r"'b \| glyphnet \| seed 0, draw 0' was measured on other examples"
    ):
        agreed(tmp_path, {("a", 0): bank(0), ("b", 0): bank(1, n=56)})
