"""Features that are read in blocks from where they lie: the same bits in little memory."""

from __future__ import annotations

import tempfile
import tracemalloc

import numpy as np
import pytest
import torch
from tests.probes.conftest import blobs
from threadpoolctl import threadpool_limits

from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.features.writing import BankWriter
from penultimate.probes import inputs, linear, logistic, rows
from penultimate.probes.linear import LinearProbe
from penultimate.probes.multilabel import MultiLabelProbe
from penultimate.probes.rows import Rows, in_order

GRID = np.logspace(-3, 3, 7)


def learnt(probe):
    names = ("coef_", "intercept_", "validation_accuracy_", "certificates_", "objectives_", "n_iter_")
    return [getattr(probe, name).tobytes() for name in names]


def bank_on_disk(folder, features, labels, precision):
    writer = BankWriter(folder, {}, precision)
    writer.add(len(features), {"features": features})
    return writer.finish(labels, np.arange(len(labels)), {})


@pytest.mark.parametrize("precision", ["float16", "float32"])
@pytest.mark.parametrize("given", [True, False])
def test_a_bank_on_disk_gives_the_bits_of_its_copy_in_memory(precision, given, tmp_path, monkeypatch):
    monkeypatch.setattr(logistic, "LEAST_ROWS", 7)
    monkeypatch.setattr(logistic, "BLOCK_LOGITS", {"host": 1, "device": 1})
    features, codes = blobs(1, 60, 5, 3)
    banks = [
        bank_on_disk(tmp_path / split, features[part].astype(precision), codes[part], precision)
        for split, part in (("train", slice(0, 40)), ("validation", slice(40, 60)))
    ]
    assert all(isinstance(bank.features, np.memmap) for bank in banks)
    assert all(bank.features.dtype == precision for bank in banks)
    copies = [FeatureBank(np.array(bank.features, np.float32), bank.labels, provenance={}) for bank in banks]
    names = ("X", "X_val") if given else ("X",)
    mapped = LinearProbe(GRID).fit(**dict(zip(names, banks, strict=False)))
    expected = LinearProbe(GRID).fit(**dict(zip(names, copies, strict=False)))
    assert learnt(mapped) == learnt(expected)
    assert mapped.score(banks[1]) == expected.score(copies[1])


def test_a_working_copy_in_a_file_changes_no_bit_and_is_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    features, codes = blobs(2, 60, 5, 3)
    expected = LinearProbe(GRID).fit(features, codes)
    monkeypatch.setattr(rows, "LARGEST_IN_MEMORY", 0)
    assert learnt(LinearProbe(GRID).fit(features, codes)) == learnt(expected)
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_room_for_the_file_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "LARGEST_IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(RequestError, match=r"gone' for the rotated features .*: set TMPDIR"):
        LinearProbe(GRID).fit(*blobs(2, 60, 5, 3))


def test_the_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(logistic, "LEAST_ROWS", 7)
    monkeypatch.setattr(logistic, "BLOCK_LOGITS", {"host": 1, "device": 1})
    features, codes = blobs(3, 120, 6, 4)
    with threadpool_limits(1):
        expected = learnt(LinearProbe(GRID).fit(features, codes))
    with threadpool_limits(3):
        assert learnt(LinearProbe(GRID).fit(features, codes)) == expected


def test_results_come_in_order_and_an_error_is_the_callers():
    blocks = [slice(place, place + 1) for place in range(40)]

    def work(block):
        if block.start == 30:
            raise RequestError("the thirtieth")
        return block.start

    with threadpool_limits(3):
        results = in_order(work, blocks, np.zeros(1))
        assert [next(results) for _ in range(30)] == list(range(30))
        with pytest.raises(RequestError, match="the thirtieth"):
            next(results)


def test_no_whole_copy_is_in_memory(tmp_path, monkeypatch):
    """20,000 rows of 256 features in float16: 20 MB in float32, through less than half of that."""
    monkeypatch.setattr(rows, "LARGEST_IN_MEMORY", 1 << 20)
    monkeypatch.setattr(logistic, "BLOCK_FEATURES", {"host": 1 << 18, "device": 1 << 18})
    monkeypatch.setattr(inputs, "NUMBERS_CHECKED", 1 << 18)
    monkeypatch.setattr(linear, "NUMBERS_SCORED", 1 << 18)
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, 20_000)
    centers = generator.normal(size=(2, 256))
    features = np.lib.format.open_memmap(tmp_path / "features.npy", "w+", "float16", (20_000, 256))
    features[:] = centers[codes] + 3 * generator.normal(size=features.shape)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    for probe, labels in ((LinearProbe([1e5]), codes), (MultiLabelProbe([1e5]), codes[:, None])):
        tracemalloc.start()
        probe.fit(mapped[:16_000], labels[:16_000], mapped[16_000:], labels[16_000:])
        score = probe.score(mapped, labels)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert score > 0.9
        assert peak < 9e6


def test_rows_of_tensors_stay_tensors():
    features = torch.arange(12.0).reshape(6, 2)
    chosen = Rows(features).chosen(np.array([True, False, True, False, True, False]))
    joined = chosen.joined(Rows(features.double()))
    assert joined.shape == (9, 2)
    assert (chosen.dtype, joined.dtype) == ("float32", "float64")
    block = joined.float64(slice(1, 4))
    assert isinstance(block, torch.Tensor)
    assert block.tolist() == [[4, 5], [8, 9], [0, 1]]
