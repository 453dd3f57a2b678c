"""Banks written by others: read from every format, and what their features organise."""

from __future__ import annotations

from collections.abc import Callable
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


def csv(root: Path) -> Path:
    import pandas as pd

    frame = pd.DataFrame(FEATURES, columns=[f"f{place}" for place in range(6)])
    frame.assign(kind=NAMES, site=SITES, number=np.arange(240)).to_csv(root / "b.csv", index=False)
    return root / "b.csv"


@pytest.mark.parametrize("write", [npz, tensors, parquet, csv])
def test_every_format_gives_the_same_bank(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    features = "f*" if write is csv else None
    bank = read_bank(write(tmp_path), features, labels=("kind", "site"), ids="number")
    np.testing.assert_allclose(bank.features, FEATURES, rtol=1e-6)
    assert np.array_equal(bank.labels, KINDS)
    assert np.array_equal(bank.by("site").labels, SITES)
    assert bank.ids is not None
    assert bank.ids.tolist() == list(range(240))
    assert bank.columns["kind"].classes == (("0", "1", "2") if write is tensors else ("ant", "bee", "cat"))
    assert read_bank(write(tmp_path), features).columns.keys() == {"kind", "site", "number"}


def test_features_and_labels_come_in_many_forms(
    tmp_path: Path,
) -> None:
    columns = {f"f{i}": FEATURES[:, i] for i in range(6)}
    assert np.array_equal(read_bank(parquet(tmp_path, **columns), list(columns), "kind").features, FEATURES)
    halves = {"f": torch.tensor(FEATURES).bfloat16(), "kind": torch.tensor(KINDS)}
    safetensors.torch.save_file(halves, tmp_path / "h.safetensors")
    assert np.array_equal(read_bank(tmp_path / "h.safetensors").features, halves["f"].float().numpy())
    arrow = pytest.importorskip("pyarrow")
    bank = read_bank(parquet(tmp_path, kind=arrow.array(NAMES).dictionary_encode()))
    assert np.array_equal(bank.columns["kind"].codes, KINDS)
    for stored, classes in (
        (np.array([b"a", b"\xc3\xa4"]), ("a", "ä")),
        (np.array([2**63, 2**64 - 1], np.uint64), (str(2**63), str(2**64 - 1))),
        (np.array([1.0, 3.0]), ("1", "3")),
    ):
        np.savez(tmp_path / "l.npz", embeddings=FEATURES, kind=stored[SITES])
        assert read_bank(tmp_path / "l.npz").columns["kind"].classes == classes


NO_LABEL = [None if place == 7 else name for place, name in enumerate(NAMES)]


@pytest.mark.parametrize(
    ("arrays", "asked", "answer"),
    [
        ({"f": FEATURES, "k": KINDS}, {"features": "g"}, "unknown array of the file 'g'. Known: f, k"),
        ({"f": FEATURES, "k": KINDS}, {"features": "g*"}, "unknown array of the file 'g\\*'"),
        ({"f": FEATURES, "g": FEATURES, "k": KINDS}, {}, "which arrays are the features"),
        ({"k": KINDS}, {}, "It holds k; name an array"),
        ({"f": FEATURES}, {}, "no column of labels"),
        ({"f": FEATURES[:0], "k": KINDS[:0]}, {}, "it holds 0 examples"),
        ({"f": FEATURES, "k": KINDS[:9]}, {}, r"each of 240 examples; 'k' is \[9\]"),
        ({"f": FEATURES, "k": np.where(KINDS == 1, np.nan, KINDS)}, {}, "no label for 80 of 240 .*rows 1, 4"),
        ({"f": FEATURES, "k": KINDS + 0.5}, {}, "'k' holds fractions"),
        ({"f": np.where(FEATURES > 8, np.nan, FEATURES), "k": KINDS}, {}, "features of .* not finite"),
        ({"f": FEATURES.astype(str), "k": KINDS}, {"features": "f"}, "features are numbers"),
        ({"f": KINDS, "g": NAMES, "k": KINDS}, {"features": ["f", "g"], "labels": "k"}, "'g' is <U3"),
        ({"f": KINDS, "g": SITES[1:], "k": KINDS}, {"features": ["f", "g"], "labels": "k"}, r"'g' .*\[239\]"),
        ({"f": FEATURES, "k": np.array(NO_LABEL, object)}, {}, "Python objects, which are not unpickled"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, arrays: dict[str, np.ndarray], asked: dict[str, str], answer: str
) -> None:
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(RequestError, match=rf"b.npz'.*{answer}"):
        read_bank(tmp_path / "b.npz", **asked)


def test_damaged_files_and_parquet_say_what_is_wrong(tmp_path: Path) -> None:
    for write in (npz, tensors):
        path = write(tmp_path)
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(DamagedFileError, match=rf"cannot be read as \{path.suffix}: .*save it again"):
            read_bank(path)
    with pytest.raises(RequestError, match=r"unknown kind of bank '.h5'"):
        read_bank(tmp_path / "b.h5")
    with pytest.raises(RequestError, match="no file"):
        read_bank(tmp_path / "none.npz")
    with pytest.raises(RequestError, match=r"'kind': no label for 1 of 240 examples .*row 7"):
        read_bank(parquet(tmp_path, kind=NO_LABEL))
    with pytest.raises(RequestError, match="'embeddings' holds lists of several lengths"):
        read_bank(parquet(tmp_path, embeddings=[row[: 5 + (i > 0)] for i, row in enumerate(FEATURES)]))
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
    assert "every label is of one example" in found[1].undefined
    pairs = np.arange(240)
    pairs[1] = 0  # one class of two: with one of them tested, each class has one to learn from
    np.savez(tmp_path / "b.npz", f=FEATURES, kind=KINDS, pairs=pairs)
    kind, found_pairs = organisation(read_bank(tmp_path / "b.npz"))
    assert kind.linear is not None
    assert found_pairs.linear is None
    assert "a single example" in found_pairs.undefined
    alone = ForeignBank(np.ones((1, 2)), np.zeros(1, int))
    assert organisation(alone) == []
