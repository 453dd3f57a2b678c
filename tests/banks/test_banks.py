"""Banks written by others: read from every format, and what their features organise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

import penultimate as pu
from penultimate.banks.files import ForeignBank, read_bank
from penultimate.banks.organisation import organisation
from penultimate.errors import DamagedFileError, RequestError
from penultimate.metrics.separation import class_separation

GENERATOR = np.random.default_rng(0)
KINDS = np.arange(240) % 3
SITES = GENERATOR.integers(0, 2, 240)
FEATURES = (GENERATOR.normal(size=(240, 6)) + 6 * np.eye(3, 6)[KINDS] + 3 * np.eye(2, 6, 3)[SITES]).astype(
    np.float32
)
NAMES = np.array(["ant", "bee", "cat"])[KINDS]


def npz(root: Path) -> Path:
    np.savez(root / "b.npz", embeddings=FEATURES, kind=NAMES, site=SITES, number=np.arange(240))
    return root / "b.npz"


def parquet(root: Path, **columns: object) -> Path:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    whole = {"embeddings": list(FEATURES), "kind": NAMES, "site": SITES, "number": np.arange(240), **columns}
    files.write_table(arrow.table(whole), root / "b.parquet", row_group_size=100)
    return root / "b.parquet"


def tensors(root: Path) -> Path:
    labels = {"kind": torch.tensor(KINDS), "site": torch.tensor(SITES), "number": torch.arange(240)}
    safetensors.torch.save_file({"embeddings": torch.tensor(FEATURES), **labels}, root / "b.safetensors")
    return root / "b.safetensors"


@pytest.mark.parametrize("write", [npz, tensors, parquet])
def test_every_format_gives_the_same_bank(tmp_path: Path, write) -> None:  # type: ignore[no-untyped-def]
    bank = read_bank(write(tmp_path), labels=("kind", "site"), ids="number")
    assert np.array_equal(bank.features, FEATURES)
    assert np.array_equal(bank.labels, KINDS)
    assert np.array_equal(bank.by("site").labels, SITES)
    assert bank.ids is not None
    assert bank.ids.tolist() == list(range(240))
    assert class_separation(bank) == class_separation(FEATURES, KINDS)
    assert bank.columns["kind"].classes == (("0", "1", "2") if write is tensors else ("ant", "bee", "cat"))
    assert read_bank(write(tmp_path), "embeddings").columns.keys() == {"kind", "site", "number"}


def test_parquet_with_a_column_for_each_feature(tmp_path: Path) -> None:
    columns = {f"f{i}": FEATURES[:, i] for i in range(6)}
    path = parquet(tmp_path, **columns)
    assert np.array_equal(read_bank(path, list(columns), "kind").features, FEATURES)


def test_half_precision_becomes_float32(tmp_path: Path) -> None:
    halves = {"f": torch.tensor(FEATURES).bfloat16(), "kind": torch.tensor(KINDS)}
    safetensors.torch.save_file(halves, tmp_path / "h.safetensors")
    bank = read_bank(tmp_path / "h.safetensors")
    assert bank.features.dtype == np.float32
    assert np.array_equal(bank.features, halves["f"].float().numpy())


@pytest.mark.parametrize(
    ("arrays", "asked", "answer"),
    [
        ({"f": FEATURES, "k": KINDS}, {"features": "g"}, "unknown array of 'b.npz' 'g'"),
        ({"f": FEATURES, "k": KINDS}, {"labels": ["k", "k"]}, "named once"),
        ({"f": FEATURES, "g": FEATURES, "k": KINDS}, {}, "which of 'b.npz' are the features"),
        ({"k": KINDS}, {}, "It holds k; name an array"),
        ({"f": FEATURES}, {}, "no column of labels"),
        ({"f": FEATURES, "k": KINDS[:9]}, {}, r"each of 240 examples; 'k' is \[9\]"),
        ({"f": FEATURES, "k": np.where(KINDS == 1, np.nan, KINDS)}, {}, "no label for 80 of 240 .*rows 1, 4"),
        ({"f": FEATURES, "k": KINDS + 0.5}, {}, "'k' holds fractions"),
        ({"f": np.where(FEATURES > 8, np.nan, FEATURES), "k": KINDS}, {}, "features of .* not finite"),
        ({"f": FEATURES.astype(str), "k": KINDS}, {"features": "f"}, "features are numbers"),
        ({"f": KINDS, "g": NAMES, "k": KINDS}, {"features": ["f", "g"], "labels": "k"}, "'g' is <U3"),
        ({"f": KINDS, "g": SITES[1:], "k": KINDS}, {"features": ["f", "g"], "labels": "k"}, r"'g' .*\[239\]"),
        ({"f": FEATURES, "k": np.where(KINDS == 1, np.inf, KINDS)}, {}, "'k': infinity in rows"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, arrays: dict[str, np.ndarray], asked: dict[str, str], answer: str
) -> None:
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(RequestError, match=answer):
        read_bank(tmp_path / "b.npz", **asked)


def test_objects_are_not_unpickled_and_damage_is_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", f=FEATURES, k=np.array([{}] * 240, object))
    with pytest.raises(RequestError, match="Python objects, which are not unpickled"):
        read_bank(tmp_path / "b.npz")
    for write in (npz, tensors):
        path = write(tmp_path)
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(DamagedFileError, match=rf"cannot be read as \{path.suffix}: .*save it again"):
            read_bank(path)
    with pytest.raises(RequestError, match=r"is a folder; features are read from a file \(.npz"):
        read_bank(tmp_path)
    with pytest.raises(RequestError, match=r"unknown kind of bank '.csv'"):
        read_bank(tmp_path / "b.csv")
    with pytest.raises(RequestError, match="no file"):
        read_bank(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.array([[1.0], [np.nan], [np.inf]]), [0, 1, 1], "2 examples .*rows 1, 2 are NaN or infinite"),
        (FEATURES, KINDS[:-1], r"one label for each of 240 examples; 'labels' is \[239\]"),
        (FEATURES, np.arange(240) / 7, "'labels' holds fractions"),
        (FEATURES[:0], KINDS[:0], r"holds no examples: its features are \[0, \d+\]"),
    ],
)
def test_what_is_wrong_with_a_bank_is_said_with_the_file(
    tmp_path: Path, features: np.ndarray, labels: np.ndarray, message: str
) -> None:
    np.savez(tmp_path / "mine.npz", features=features, labels=labels)
    with pytest.raises(RequestError, match=rf"mine.npz'.*{message}"):
        read_bank(tmp_path / "mine.npz")


def test_whatever_byte_is_damaged_is_said(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "b.npz", f=FEATURES, k=KINDS)
    whole, refused = (tmp_path / "b.npz").read_bytes(), 0
    for place in (*range(300), *range(300, len(whole), 50)):
        damaged = whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :]
        (tmp_path / "b.npz").write_bytes(damaged)
        try:
            bank = read_bank(tmp_path / "b.npz")
        except (RequestError, DamagedFileError):
            refused += 1
        else:
            assert np.array_equal(bank.features, FEATURES)
    assert refused > 200


def test_categories_without_a_label_are_missing_too(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    kind = arrow.array([None if i == 7 else name for i, name in enumerate(NAMES)]).dictionary_encode()
    with pytest.raises(RequestError, match=r"'kind': no label for 1 of 240 examples .*row 7"):
        read_bank(parquet(tmp_path, kind=kind))
    bank = read_bank(parquet(tmp_path, kind=arrow.array(NAMES).dictionary_encode()))
    assert np.array_equal(bank.columns["kind"].codes, KINDS)
    with pytest.raises(RequestError, match="features are lists of numbers; 'embeddings' holds others"):
        read_bank(parquet(tmp_path, embeddings=[["a", "b"]] * 240))


def test_parquet_says_what_is_missing(tmp_path: Path) -> None:
    missing = [None if i == 7 else name for i, name in enumerate(NAMES)]
    with pytest.raises(RequestError, match=r"'kind': no label for 1 of 240 examples .*row 7"):
        read_bank(parquet(tmp_path, kind=missing))
    ragged = [row[:5] if i == 120 else row for i, row in enumerate(FEATURES)]
    with pytest.raises(RequestError, match="features are lists of one length"):
        read_bank(parquet(tmp_path, embeddings=ragged))
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DamagedFileError, match="cannot be read"):
        read_bank(tmp_path / "b.parquet")


def test_what_features_organise_beside_the_classes(tmp_path: Path) -> None:
    noise = GENERATOR.integers(0, 4, 240)
    np.savez(tmp_path / "b.npz", f=FEATURES, kind=NAMES, site=SITES, noise=noise, one=np.zeros(240, int))
    bank = pu.read_bank(tmp_path / "b.npz")
    kind, site, chance, one = pu.organisation(bank)
    assert kind.r2 is not None
    assert site.r2 is not None
    assert chance.r2 is not None
    assert kind.r2 == class_separation(FEATURES, KINDS, unbiased=True)
    assert kind.r2 > site.r2 > 0.05 > abs(chance.r2)
    assert kind.linear is not None
    assert site.linear is not None
    assert chance.linear is not None
    assert min(kind.linear, site.linear) > 0.9
    assert chance.linear < 0.5
    assert one.r2 is None
    assert "one class alone" in one.undefined
    assert organisation(bank, ("site",)) == [site]
    with pytest.raises(RequestError, match=r"unknown column of labels 'sight'\. Did you mean 'site'"):
        organisation(bank, ("sight",))
    few = organisation(bank, ("kind",), examples=60)[0]
    assert few.r2 == kind.r2
    assert few.linear is not None


def test_a_class_of_one_example_and_a_label_for_each(tmp_path: Path) -> None:
    rare = np.where(np.arange(240) == 3, 9, KINDS)
    np.savez(tmp_path / "b.npz", f=FEATURES, rare=rare, each=np.arange(240))
    found = organisation(read_bank(tmp_path / "b.npz"))
    assert found[0].r2 is not None
    assert found[0].linear is not None
    assert found[0].linear > 0.9
    assert "a label of its own" in found[1].undefined
    pairs = np.arange(240)
    pairs[1] = 0  # one class of two: with one of them tested, each class has one to learn from
    np.savez(tmp_path / "b.npz", f=FEATURES, kind=KINDS, pairs=pairs)
    kind, found_pairs = organisation(read_bank(tmp_path / "b.npz"))
    assert kind.linear is not None
    assert found_pairs.linear is None
    assert "a single example" in found_pairs.undefined
    alone = ForeignBank(np.ones((1, 2)), np.zeros(1, int))
    assert organisation(alone) == []


def test_bytes_are_text_and_text_that_is_none_is_named_with_its_row(tmp_path: Path) -> None:
    stored = NAMES.astype(object)
    column = read_bank(parquet(tmp_path, kind=[name.encode() for name in stored]), "embeddings", "kind")
    assert column.columns["kind"].classes == ("ant", "bee", "cat")
    np.savez(tmp_path / "s.npz", embeddings=FEATURES, kind=np.array([b"a", b"\xc3\xa4"])[SITES])
    assert read_bank(tmp_path / "s.npz").columns["kind"].classes == ("a", "ä")
    np.savez(tmp_path / "s.npz", embeddings=FEATURES, kind=np.array([b"a"] * 239 + [b"\xff"]))
    with pytest.raises(RequestError, match="'kind': row 239 holds bytes that are no UTF-8"):
        read_bank(tmp_path / "s.npz")


def test_labels_beyond_int64_keep_their_names(tmp_path: Path) -> None:
    for large in (np.array([1e19, 2e19])[SITES], np.array([2**63, 2**64 - 1], np.uint64)[SITES]):
        np.savez(tmp_path / "l.npz", embeddings=FEATURES, kind=large)
        classes = read_bank(tmp_path / "l.npz").columns["kind"].classes
        assert classes == tuple(str(int(value)) for value in np.unique(large))
