"""Features joined: what is scaled, which networks are taken, what a joint probe can know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.evaluation.test_boards import given
from tests.measures.steps import KEY, Parents, measured
from tests.records.stores import described, finished

from penultimate.errors import RequestError
from penultimate.evaluation.request import Request
from penultimate.features.bank import FeatureBank
from penultimate.features.joining import join_features
from penultimate.measures.joined import chosen, members
from penultimate.networks.key import NetworkKey
from penultimate.report import exhibit
from penultimate.study.blocks import Given, Runs
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold

LABELS = np.arange(160) % 4


def half(bit: int, seed: int, scale: float = 1.0, width: int = 5) -> FeatureBank:
    """Features that hold one bit of a class's number (0 to 3), and nothing of the other."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(160, width)) + 3 * np.eye(1, width) * (LABELS[:, None] >> bit & 1)
    return FeatureBank((scale * features + 7).astype(np.float32), LABELS, None, np.arange(160))


def test_every_network_has_the_same_variance_whatever_its_scale_and_width() -> None:
    train = {"a": half(0, 0, 100.0), "b": half(1, 1, 0.01, 9)}
    joined, _ = join_features(train, train)
    assert joined.features.shape == (160, 14)
    assert joined.features[:, :5].var(0).sum() == pytest.approx(7, rel=1e-4)  # 7: the mean width
    assert joined.features[:, 5:].var(0).sum() == pytest.approx(7, rel=1e-4)
    rescaled = {"a": half(0, 0, 3.0), "b": train["b"]}
    assert np.allclose(join_features(rescaled, rescaled)[0].features, joined.features, atol=1e-4)
    test = {"a": half(0, 2, 100.0), "b": half(1, 3, 0.01, 9)}
    ours = join_features(train, test)[1].features[:, :5]
    numbers = train["a"].features.astype(float)
    by_hand = (test["a"].features - numbers.mean(0)) * np.sqrt(7 / numbers.var(0).sum())
    assert np.allclose(ours, by_hand, atol=1e-4)


def test_constant_features_count_for_nothing() -> None:
    flat = FeatureBank(np.ones((160, 3), np.float32), LABELS, None, np.arange(160))
    train = {"a": half(0, 0), "flat": flat}
    assert not join_features(train, train)[0].features[:, 5:].any()


def test_images_in_another_order_or_with_other_labels_are_refused() -> None:
    one, other = half(0, 0), half(1, 1)
    turned = FeatureBank(other.features, other.labels, None, other.ids[::-1].copy())
    relabelled = FeatureBank(other.features, other.labels[::-1].copy(), None, other.ids)
    for wrong in (turned, relabelled):
        with pytest.raises(RequestError, match="'a' and 'b' are not of the same images in the same order"):
            join_features({"a": one, "b": wrong}, {"a": one, "b": other})
    with pytest.raises(RequestError, match="two networks or more"):
        join_features({"a": one}, {"a": one})


def test_names_are_read_with_and_without_settings() -> None:
    names = ["softmax", "squared_error(kappa=9)", "a+b", "label_smoothing + koleo(weight=0.1)"]
    assert members("softmax+softmax", names) == ("softmax", "softmax")
    assert members("squared_error + a+b", names) == ("squared_error(kappa=9)", "a+b")
    assert members("label_smoothing + koleo(weight=0.1)+softmax", names) == (names[3], "softmax")
    with pytest.raises(RequestError, match=r"join 'softmax\+sotfmax': .*sotfmax.*softmax"):
        members("softmax+sotfmax", names)
    with pytest.raises(RequestError, match="names one network"):
        members("softmax", names)


def test_pairs_of_a_study_are_of_neighbouring_seeds() -> None:
    keys = [NetworkKey(name, "net", seed=seed, draw=0) for name in ("a", "b") for seed in range(3)]
    seeds = [[(key.objective, key.seed) for key in group] for group in chosen("a+b", keys)]
    assert seeds == [[("a", 0), ("b", 1)], [("a", 1), ("b", 2)], [("a", 2), ("b", 0)]]
    assert [[key.seed for key in group] for group in chosen("a+a", keys)] == [[0, 1], [1, 2], [2, 0]]
    with pytest.raises(RequestError, match="with itself; it takes a seed for each part"):
        chosen("a+a", keys[:1])


def test_two_networks_know_together_what_neither_knows_alone(tmp_path: Path) -> None:
    other = NetworkKey("sigmoid", KEY.backbone, seed=0, draw=0)
    parents = Parents(tmp_path, target="tasks")
    banks = {}
    for key, bit in ((KEY, 0), (other, 1)):
        for split, seed in (("train", 0), ("test", 10)):
            banks[key, split] = half(bit, seed + bit)
            parents.bank(split, banks[key, split], key)
    settings = {"join": "softmax+sigmoid"}
    rows = measured("joined", parents, settings, None, accuracy="top1").rows
    (row,) = [row for row in rows if row.metric == "joined_top1"]
    assert (row.objective, row.objective_b, row.setting) == ("softmax", "sigmoid", "join=softmax+sigmoid")
    assert row.value > 0.8
    alone = LogisticRegression(max_iter=3000).fit(banks[KEY, "train"].features, LABELS)
    assert alone.score(banks[KEY, "test"].features, LABELS) < 0.65
    with np.load(tmp_path / "out" / "joined_predictions.npz") as arrays:
        assert (arrays["linear"] == arrays["labels"]).mean() == row.value
        assert arrays["networks"].tolist() == ["softmax", "sigmoid"]


def test_a_step_takes_the_networks_that_it_joins_and_no_others() -> None:
    def study(*names: str) -> Study:
        given = Given({name: f"timm:test_resnet(pretrained=False, seed={len(name)})" for name in names})
        return Study("mine", "t", "q", "digits", ("digits",), (given,), ("joined(join='a+bb')",))

    def joined(of: Study) -> dict[str, tuple[str, ...]]:
        return {step.id: step.parents for step in unfold(of).steps.values() if step.name == "joined"}

    assert joined(study("a", "bb")) == joined(study("a", "bb", "ccc"))
    (parents,) = joined(study("a", "bb")).values()
    assert len(parents) == 4


def test_it_is_a_measurement_of_studies_too() -> None:
    runs = Runs(("softmax", "sigmoid"), seeds=(0, 1))
    joins = "joined(join=('softmax+sigmoid', 'softmax+softmax'))"
    graph = unfold(Study("mine", "t", "q", "glyphs_smoke", ("digits_smoke",), (runs,), (joins,)))
    steps = [step for step in graph.steps.values() if step.name == "joined"]
    assert sorted(len(step.parents) for step in steps) == [4, 8]
    with pytest.raises(RequestError, match="sigmiod"):
        unfold(
            Study(
                "mine",
                "t",
                "q",
                "glyphs_smoke",
                ("digits_smoke",),
                (runs,),
                ("joined(join='softmax+sigmiod')",),
            )
        )


def test_joins_of_an_evaluation_are_checked_before_anything_runs() -> None:
    networks = {"a": "timm:resnet18", "b": "timm:resnet34"}
    study = Request(networks, {"digits": ""}, join=("b + a", "b+a")).study()
    assert study.measure[-1] == "joined(join=('b+a',))"
    with pytest.raises(RequestError, match="network 'c'"):
        Request(networks, {"digits": ""}, join=("a+c",)).study()


def test_joined_features_are_compared_with_each_network_and_enter_no_ranking(tmp_path: Path) -> None:
    study = given(tmp_path, ("first", "second"))
    labels = np.arange(12) % 3
    columns = {"source": "digits_smoke", "target": "digits_smoke"}
    row = {"metric": "joined_predictions", "value": 12, "unit": "points", "setting": "join=first+second"}
    arrays = {
        "ids": np.arange(12),
        "labels": labels,
        "linear": labels,
        "networks": np.array(["first", "second"]),
    }
    rows = [{**row, "objective": "first", "objective_b": "second"}]
    step = finished(
        study.store, "joined.digits_smoke.0", columns, rows, arrays={"joined_predictions": arrays}
    )
    as_before = ("source", "targets", "measure", "title", "question", "networks", "objectives")
    settings = {key: study.description[key] for key in as_before}
    described(study.store, "mine", [*study.description["steps"], step], **settings)
    accuracies, gains = exhibit("joined", tmp_path).tables
    assert [each.label for each in accuracies.rows] == ["first + second", "first", "second"]
    assert accuracies.rows[0].cells[0].value == 100
    assert [each.label for each in gains.rows] == ["first + second – first", "first + second – second"]
    assert [each.cells[0].value for each in gains.rows] == pytest.approx([0, 100 / 12])
    assert [each.label for each in exhibit("ranking", tmp_path).tables[0].rows] == ["first", "second"]
