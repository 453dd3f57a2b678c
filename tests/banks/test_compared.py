"""Feature files compared: paired tests, AUCs by DeLong, splits of one's own, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.metrics import roc_auc_score

from penultimate.banks.compared import compare_banks
from penultimate.banks.files import read_bank
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.probes.linear import LinearProbe
from penultimate.probes.validation import split_off
from penultimate.statistics.areas import compare_areas

CLASSES = np.arange(240) % 3
MARKS = (np.arange(240) // 3 % 2, np.arange(240) // 6 % 2)
PARTS = np.where(np.arange(240) % 4 == 3, "test", "train")


def wrote(path: Path, size: float, seed: int, rows: Any = slice(None), **arrays: np.ndarray) -> Path:
    """A file of features in which classes and marks are this far apart."""
    noise = np.random.default_rng(seed).normal(size=(240, 6))
    signal = np.concatenate([np.eye(3)[CLASSES], np.stack(MARKS, 1), np.zeros((240, 1))], 1)
    columns = {"species": np.array(list("abc"))[CLASSES], "spots": MARKS[0], "tail": MARKS[1], "part": PARTS}
    whole = {"x": (noise + size * signal).astype(np.float32), **columns, "key": np.arange(240), **arrays}
    np.savez(path, **{name: of[rows] for name, of in whole.items()})
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [wrote(tmp_path / "weak.npz", 1.0, 0), wrote(tmp_path / "strong.npz", 4.0, 1)]


def slow_delong(scores: np.ndarray, labels: np.ndarray) -> tuple[list[float], np.ndarray]:
    """The areas and their covariance, by DeLong's double sums."""
    positive, negative = scores[:, labels == 1], scores[:, labels == 0]
    wins = (positive[:, :, None] > negative[:, None, :]) + 0.5 * (
        positive[:, :, None] == negative[:, None, :]
    )
    v, w = wins.mean(2), wins.mean(1)
    return wins.mean((1, 2)).tolist(), np.cov(v) / v.shape[1] + np.cov(w) / w.shape[1]


def test_areas_and_their_test_are_delongs() -> None:
    random = np.random.default_rng(0)
    labels = (np.arange(90) % 3 == 0).astype(int)
    shared = random.normal(size=90)
    scores = np.round(
        np.stack([shared + random.normal(size=90) + gain * labels for gain in (1.5, 0.8, 0.3)]), 1
    )
    found = compare_areas([*scores], labels)
    areas, covariance = slow_delong(scores, labels)
    assert [each.value for each in found.areas] == pytest.approx(areas, abs=1e-12)
    assert [each.value for each in found.areas] == pytest.approx(
        [roc_auc_score(labels, one) for one in scores]
    )
    assert [each.standard_error**2 for each in found.areas] == pytest.approx(np.diag(covariance), rel=1e-9)
    contrast = np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1]])
    z = contrast @ areas / np.sqrt(np.einsum("ij,jk,ik->i", contrast, covariance, contrast))
    raw = 2 * norm.sf(abs(z))
    holm = np.maximum.accumulate(np.minimum(1, np.sort(raw) * [3, 2, 1]))[np.argsort(np.argsort(raw))]
    assert [pair.p for pair in found.pairs] == pytest.approx(holm, rel=1e-9)


def test_the_mean_over_labels_heeds_that_labels_share_their_examples() -> None:
    """Twice the same label has the error of the label itself, and not a smaller one."""
    random = np.random.default_rng(1)
    labels = np.arange(60) % 2
    scores = [labels + random.normal(size=60) for _ in range(2)]
    one = compare_areas(scores, labels)
    twice = compare_areas([np.stack([each, each], 1) for each in scores], np.stack([labels, labels], 1))
    assert [each.standard_error for each in twice.areas] == pytest.approx(
        [each.standard_error for each in one.areas]
    )
    assert twice.pairs[0].p == pytest.approx(one.pairs[0].p)


def test_examples_that_do_not_count_change_nothing() -> None:
    random = np.random.default_rng(2)
    labels = np.arange(40) % 2
    scores = [labels + random.normal(size=40) for _ in range(2)]
    longer = [np.append(each, [9.0, -9.0]) for each in scores]
    with_unknown = compare_areas(longer, np.append(labels, [-1, -1]))
    assert with_unknown.pairs[0].p == pytest.approx(compare_areas(scores, labels).pairs[0].p)
    with pytest.raises(UndefinedError, match="no negative example among 40"):
        compare_areas(scores, np.ones(40, int))
    with pytest.raises(RequestError, match="as many as labels"):
        compare_areas([np.zeros(3)], labels)


def test_files_are_ranked_by_mcnemar_on_the_same_examples(files: list[Path]) -> None:
    banks = {path.stem: read_bank(path, "x", ["species"]) for path in files}
    (found,) = compare_banks(banks)
    tested = split_off(CLASSES, 0.2, 0)
    right = []
    for bank in banks.values():
        probe = LinearProbe().fit(bank.features[~tested], CLASSES[~tested])
        right.append(probe.predict(bank.features[tested]) == CLASSES[tested])
    assert [each.name for each in found.standings] == ["strong", "weak"]
    assert [each.interval.value for each in found.standings] == [right[1].mean(), right[0].mean()]
    assert found.tested == tested.sum()
    ahead, behind = int((right[1] & ~right[0]).sum()), int((right[0] & ~right[1]).sum())
    assert found.pairs[0].p == pytest.approx(binomtest(ahead, ahead + behind).pvalue)


def test_columns_of_zero_and_one_have_areas_and_a_mean(files: list[Path]) -> None:
    banks = {path.stem: read_bank(path, "x", ["species", "spots", "tail"]) for path in files}
    found = {each.column: each for each in compare_banks(banks)}
    assert [*found] == ["species", "spots", "tail", "the mean of 2 labels"]
    assert [each.measure for each in found.values()] == ["accuracy", "AUC", "AUC", "AUC"]
    assert {each.tested for each in found.values()} == {48}
    means = [
        np.mean(
            [
                one.interval.value
                for name in ("spots", "tail")
                for one in found[name].standings
                if one.name == bank
            ]
        )
        for bank in banks
    ]
    mean = {each.name: each.interval.value for each in found["the mean of 2 labels"].standings}
    assert [mean[name] for name in banks] == pytest.approx(means)


def test_rows_are_matched_by_ids_in_any_order(tmp_path: Path, files: list[Path]) -> None:
    turned = wrote(tmp_path / "turned.npz", 4.0, 1, np.random.default_rng(5).permutation(240))
    (straight,) = compare_banks(
        {name: read_bank(path, "x", ["species"], ids="key") for name, path in zip("ab", files, strict=True)}
    )
    paths = {"a": files[0], "b": turned}
    (shuffled,) = compare_banks(
        {name: read_bank(path, "x", ["species"], ids="key") for name, path in paths.items()}
    )
    assert shuffled == straight
    with pytest.raises(RequestError, match="have other labels in the column 'species'"):
        compare_banks({name: read_bank(path, "x", ["species"]) for name, path in paths.items()})


def test_other_examples_are_refused(tmp_path: Path, files: list[Path]) -> None:
    fewer = wrote(tmp_path / "fewer.npz", 1.0, 2, slice(0, 200))
    others = wrote(tmp_path / "others.npz", 1.0, 2, key=np.arange(240) + 1)
    first = read_bank(files[0], "x", ["species"], ids="key")
    with pytest.raises(RequestError, match="has 240 examples and 'b' 200"):
        compare_banks({"a": first, "b": read_bank(fewer, "x", ["species"], ids="key")})
    with pytest.raises(RequestError, match="have other ids"):
        compare_banks({"a": first, "b": read_bank(others, "x", ["species"], ids="key")})
    with pytest.raises(RequestError, match="two banks or more are compared, not 1"):
        compare_banks({"a": first})


def test_a_column_that_cannot_be_probed_leaves_its_reason(tmp_path: Path) -> None:
    alone = {"species": np.array(["a"] * 240)}
    paths = [wrote(tmp_path / f"{name}.npz", 2.0, seed, **alone) for seed, name in enumerate("ab")]
    found = compare_banks({path.stem: read_bank(path, "x", ["species", "spots"]) for path in paths})
    assert "one class" in found[0].undefined
    assert not found[1].undefined


def test_evaluate_compares_files(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = {path.stem: np.load(path) for path in files}
    for name, of in plain.items():
        np.savez(tmp_path / f"{name}2.npz", x=of["x"], species=of["species"])
    texts = [f"{name}={tmp_path / name}2.npz" for name in plain]
    assert main(["evaluate", "--features", texts[0], "--features", texts[1]]) == 0
    said = capsys.readouterr().out
    assert "species: accuracy on 48 examples, learnt from 192" in said
    assert "  strong – weak: +" in said
    assert main(["evaluate", "--features", texts[0], "--features", texts[1], "--model", "timm:resnet18"]) == 2
    assert "without --model" in capsys.readouterr().err


def test_groups_are_split_and_tested_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    labels, patient = np.arange(240) % 2, np.arange(240) // 12
    own = random.normal(size=(20, 6))[patient]
    for name, size in (("a", 2.0), ("b", 0.6)):
        features = size * np.eye(2, 6)[labels] + own + 0.3 * random.normal(size=(240, 6))
        arrays = {"kind": np.array(["cat", "dog"])[labels], "patient": np.char.mod("p%d", patient)}
        np.savez(tmp_path / f"{name}.npz", features=features.astype(np.float32), **arrays)
    files = [str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]
    banks = {name: read_bank(tmp_path / f"{name}.npz", labels=["kind", "patient"]) for name in "ab"}
    (grouped,) = compare_banks(banks, group="patient")
    alone, _ = compare_banks(banks)
    assert grouped.tested == 48
    widths = [
        np.mean([each.interval.high - each.interval.low for each in of.standings]) for of in (grouped, alone)
    ]
    assert widths[0] > widths[1]
    named = [f"--features={name}={file}" for name, file in zip("ab", files, strict=True)]
    assert main(["evaluate", *named, "--group", "patient"]) == 0
    assert "Intervals and tests are of whole groups by 'patient'" in capsys.readouterr().out
    assert main(["evaluate", *named, "--group", "patent"]) == 2
    assert "patent" in capsys.readouterr().err
