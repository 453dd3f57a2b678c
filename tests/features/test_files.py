"""Banks of image files: one pass for several networks, on disk as they come, and gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.data.photographs import folder_of, listing_of, photograph
from torch import Tensor, nn

from penultimate.data.augmentation.transforms import normalise
from penultimate.data.disk.loading import decoded
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import DamagedFileError, RequestError
from penultimate.features.bank import FeatureBank
from penultimate.features.files import extract_files
from penultimate.features.writing import BankWriter
from penultimate.metrics.separation import class_separation
from penultimate.networks.protocol import Network
from penultimate.networks.trained import TrainedNetwork, build

STATISTICS = ChannelStatistics((0.5, 0.4, 0.3), (0.2, 0.3, 0.2))


@dataclass
class Small:
    """A `Network`: a strided convolution; `seconds` of sleep for each batch."""

    body: nn.Module
    preparation: Preparation
    class_names: tuple[str, ...] = ()
    head_weight: Tensor | None = None
    seconds: float = 0.0

    def prepared(self, images: Tensor) -> Tensor:
        return normalise(images, self.preparation.statistics)

    def features(self, images: Tensor) -> Tensor:
        time.sleep(self.seconds)
        features: Tensor = self.body(self.prepared(images))
        return features

    def logits(self, features: Tensor) -> Tensor:
        assert self.head_weight is not None
        return features @ self.head_weight.T

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(1)


def small(seed: int = 0, side: int = 32, classes: int = 0, scale: float = 1.0, seconds: float = 0.0) -> Small:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        body = nn.Sequential(nn.Conv2d(3, 5, 8, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        head = torch.randn(classes, 5) if classes else None
    with torch.no_grad():
        body[0].weight.mul_(scale)  # type: ignore[union-attr, operator]
    preparation = Preparation(side + 4, side, "bilinear", STATISTICS)
    names = tuple(map(str, range(classes)))
    return Small(body.eval(), preparation, names, head, seconds)


def test_several_networks_share_a_pass_and_each_gets_what_it_gets_alone(tmp_path: Path) -> None:
    listing = folder_of(tmp_path / "images", 11)
    networks: dict[str, Network] = {"a": small(0), "b/b": small(1, side=16, classes=4)}
    both = extract_files(networks, listing, tmp_path / "both", batch_size=4)
    for name, network in networks.items():
        alone = extract_files({name: network}, listing, tmp_path / "alone", batch_size=4, workers=0)[name]
        assert alone.digest() == both[name].digest()
        batches = list(decoded(listing, [network.preparation], 4, 0))
        with torch.inference_mode():
            wanted = torch.cat([network.features(batch.prepared(network.preparation)) for batch in batches])
        assert np.array_equal(both[name].features, wanted.numpy())
    assert both["a"].logits is None
    assert both["b/b"].logits is not None
    assert both["b/b"].logits.shape == (11, 4)
    assert both["a"].labels.tolist() == listing.labels.tolist()
    assert both["a"].ids is not None
    assert both["a"].ids.tolist() == listing.ids.tolist()


def test_half_precision_is_the_rounded_features(tmp_path: Path) -> None:
    listing = folder_of(tmp_path / "images", 6)
    (whole,) = extract_files({"a": small()}, listing, tmp_path / "whole").values()
    (half,) = extract_files({"a": small()}, listing, tmp_path / "half", precision="float16").values()
    assert half.features.dtype == np.float16
    assert np.array_equal(half.features, whole.features.astype(np.float16))
    assert abs(class_separation(half) - class_separation(whole)) < 1e-3
    with pytest.raises(RequestError, match=r"features up to .* do not fit into float16"):
        extract_files({"a": small(scale=1e6)}, listing, tmp_path / "large", precision="float16")


def test_damaged_images_are_counted_and_named_and_shift_no_label(tmp_path: Path) -> None:
    whole = folder_of(tmp_path / "images", 9)
    (good,) = extract_files({"a": small()}, whole, tmp_path / "good", batch_size=2).values()
    for broken in (0, 4, 5):
        path = tmp_path / "images" / f"{broken:03}.jpg"
        path.write_bytes(path.read_bytes()[:400])
    with pytest.warns(UserWarning, match=r"3 of 9 images cannot be read .*first is 000.jpg: .*complete"):
        (bank,) = extract_files(
            {"a": small()}, replace(whole), tmp_path / "bad", batch_size=2, workers=2
        ).values()
    left = [1, 2, 3, 6, 7, 8]
    assert bank.labels.tolist() == whole.labels[left].tolist()
    assert bank.ids is not None
    assert bank.ids.tolist() == whole.ids[left].tolist()
    assert np.allclose(bank.features, good.features[left], rtol=1e-5)
    assert [name for _, name, _ in bank.provenance["left_out"]] == ["000.jpg", "004.jpg", "005.jpg"]


def test_nothing_that_can_be_read_is_an_error_and_one_image_is_none(tmp_path: Path) -> None:
    (tmp_path / "no.jpg").write_text("no image")
    with pytest.raises(RequestError, match=r"none of 1 images can be read; the first is 'no.jpg'"):
        extract_files({"a": small()}, listing_of(tmp_path, ("no.jpg",), np.zeros(1)), tmp_path / "none")
    photograph(0).save(tmp_path / "one.png")
    (bank,) = extract_files(
        {"a": small()}, listing_of(tmp_path, ("one.png",), np.zeros(1)), tmp_path / "one"
    ).values()
    assert bank.features.shape == (1, 5)


def test_a_second_call_answers_at_once_and_a_third_network_costs_only_itself(tmp_path: Path) -> None:
    listing = folder_of(tmp_path / "images", 6)
    networks = {"a": small(0), "b": small(1)}
    first = extract_files(networks, listing, tmp_path / "banks")
    for network in networks.values():
        network.seconds = 1e6
    again = extract_files({**networks, "c": small(2)}, listing, tmp_path / "banks")
    assert [again[name].digest() for name in "ab"] == [first[name].digest() for name in "ab"]
    assert len(again["c"]) == 6


def test_a_folder_that_has_changed_is_read_again_and_said(tmp_path: Path) -> None:
    listing = folder_of(tmp_path / "images", 6)
    (first,) = extract_files({"a": small()}, listing, tmp_path / "banks").values()
    before = np.array(first.features)
    photograph(77).save(tmp_path / "images" / "002.jpg", quality=90)
    with pytest.warns(UserWarning, match="bank of 'a' .* is made again: changed: images"):
        (second,) = extract_files({"a": small()}, replace(listing), tmp_path / "banks").values()
    assert (second.features != before).any(1).tolist() == [False, False, True, False, False, False]
    with pytest.warns(UserWarning, match="made again: changed: network"):
        extract_files({"a": small(5)}, replace(listing), tmp_path / "banks")


def test_logits_of_another_head_are_made_anew(tmp_path: Path) -> None:
    """Of a final layer the weight is not all: two have the same, and another bias or temperature."""
    listing = folder_of(tmp_path / "images", 3)

    def logits(objective: str, bias: float = 0.0) -> np.ndarray:
        body, head = build(objective, "glyphnet(features=8, width=2)", 4, seed=0)
        head.head.bias.data.fill_(bias)
        network = TrainedNetwork(
            body.eval(), head.eval(), STATISTICS, tuple("abcd"), {"resize": 28, "crop": 24}
        )
        (bank,) = extract_files({"a": network}, listing, tmp_path / "banks").values()
        return np.array(bank.logits)

    first = logits("cosine_softmax(temperature=0.05)")
    with pytest.warns(UserWarning, match="made again: changed: network"):
        np.testing.assert_allclose(logits("cosine_softmax(temperature=0.1)"), first / 2, rtol=1e-5)
    with pytest.warns(UserWarning, match="made again: changed: network"):
        np.testing.assert_allclose(logits("cosine_softmax(temperature=0.1)", 1.0), first / 2 + 1, rtol=1e-5)


def test_a_network_that_gives_nan_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    listing = folder_of(tmp_path / "images", 6)
    bad = small(1)
    with torch.no_grad():
        bad.body[0].bias.fill_(float("nan"))  # type: ignore[index]
    with pytest.raises(RequestError, match=r"network 'bad': its features are not finite .*'000.jpg'.*kept"):
        extract_files({"bad": bad, "good": small()}, listing, tmp_path / "banks", batch_size=2)
    good = small()
    good.seconds = 1e6
    assert len(extract_files({"good": good}, listing, tmp_path / "banks", batch_size=2)["good"]) == 6


class Wrong(Small):
    def features(self, images: Tensor) -> Tensor:
        return {"features": images}  # type: ignore[return-value]


def test_what_a_network_refuses_or_gives_instead_is_said(tmp_path: Path) -> None:
    listing = folder_of(tmp_path / "images", 3)
    grey = small()
    grey.body = nn.Conv2d(1, 5, 8)
    with pytest.raises(RequestError, match=r"network 'grey': it refused images \[3, 32, 32, 3\]: Given"):
        extract_files({"grey": grey}, listing, tmp_path / "banks")
    wrong = Wrong(nn.Identity(), small().preparation)
    with pytest.raises(RequestError, match=r"features are \[n m\], here \[3 m\]; it gave a dict"):
        extract_files({"wrong": wrong}, listing, tmp_path / "banks")


def test_a_changed_bank_is_found_out(tmp_path: Path) -> None:
    listing = folder_of(tmp_path / "images", 3)
    extract_files({"a": small()}, listing, tmp_path / "banks")
    for name in ("features.npy", "labels.npy", "bank.json"):
        path = tmp_path / "banks" / "a" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
        with pytest.raises(DamagedFileError):
            FeatureBank.load(tmp_path / "banks" / "a")
        path.write_bytes(whole)
    digest = FeatureBank.load(tmp_path / "banks" / "a").digest()
    with pytest.raises(RequestError, match="no feature bank"):
        FeatureBank.load(tmp_path / "banks")
    (tmp_path / "banks" / "a" / "ids.npy").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"made again: .*ids.npy' is not what was saved"):
        (healed,) = extract_files({"a": small()}, listing, tmp_path / "banks").values()
    assert healed.digest() == digest
    (tmp_path / "banks" / "a" / "features.npy").unlink()
    with pytest.warns(UserWarning, match=r"made again: .*cannot be read: .*features\.npy"):
        (healed,) = extract_files({"a": small()}, listing, tmp_path / "banks").values()
    assert healed.digest() == digest


def test_a_file_that_went_from_an_unfinished_bank_is_told(tmp_path: Path) -> None:
    rows = {"features": np.ones((2, 3), np.float32)}
    writer = BankWriter(tmp_path, {"images": "these"}, "float32")
    writer.add(2, rows)
    writer.save()
    writer.close()
    (tmp_path / "features.npy").unlink()
    again = BankWriter(tmp_path, {"images": "these"}, "float32")
    assert again.position == 2
    with pytest.raises(DamagedFileError, match=r"features\.npy' is shorter than its journal says: delete"):
        again.add(4, rows)


SLOW = """
import sys
from pathlib import Path
from penultimate.features import writing
from penultimate.features.files import extract_files
from tests.data.photographs import folder_of
from tests.features.test_files import small
writing.EVERY = 0.0
root = Path(sys.argv[1])
network = {"a": small(seconds=0.05), "b": small(1, side=16, seconds=0.05)}
extract_files(network, folder_of(root / "images", 60), root / "banks", batch_size=2, workers=1)
"""


@pytest.mark.long
def test_extraction_goes_on_after_a_kill(tmp_path: Path) -> None:
    journal = tmp_path / "banks" / "b" / "journal.json"
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path)])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and '"position": 2' in journal.read_text()):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert journal.exists()
    listing = folder_of(tmp_path / "again", 60)
    networks = {"a": small(), "b": small(1, side=16)}
    rest = [0, 0]
    for place, network in enumerate(networks.values()):
        network.features = _counted(network.features, rest, place)  # type: ignore[method-assign]
    resumed = extract_files(networks, listing, tmp_path / "banks", batch_size=2)
    assert max(rest) < 30
    assert min(rest) > 0
    whole = extract_files({"a": small(), "b": small(1, side=16)}, listing, tmp_path / "whole", batch_size=2)
    assert [bank.digest() for bank in resumed.values()] == [bank.digest() for bank in whole.values()]


def _counted(function, calls, place):  # type: ignore[no-untyped-def]
    def counting(images):  # type: ignore[no-untyped-def]
        calls[place] += 1
        return function(images)

    return counting


# -- names of networks --------------------------------------------------------------------------------------
