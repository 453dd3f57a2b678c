"""Networks of transformers and open_clip: from folders, prepared by their own library; and without them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import penultimate as pu
from penultimate.errors import RequestError
from penultimate.networks.given import GivenNetwork
from penultimate.networks.store import fetch, load_given

PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (91, 60, 3), np.uint8))
TINY = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "open_clip", None)
    for source, extra in (("hf:owner/net", "hf"), ("open_clip:ViT-B-32/openai", "open_clip")):
        with pytest.raises(RequestError, match=rf"pip install 'penultimate\[{extra}\]'"):
            fetch(source, (), tmp_path)
        with pytest.raises(RequestError, match=rf"pip install 'penultimate\[{extra}\]'"):
            pu.evaluate({"net": source}, {"glyphs_smoke": ""}, out=tmp_path / "runs")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder of a tiny ViT, as save_pretrained writes it."""
    transformers = pytest.importorskip("transformers")
    transformers.utils.logging.disable_progress_bar()
    config = transformers.ViTConfig(**TINY, image_size=32, patch_size=8)
    transformers.ViTModel(config).save_pretrained(tmp_path / "net")
    return tmp_path / "net"


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ViTImageProcessor", {"size": {"height": 32, "width": 32}}),
        ("CLIPImageProcessor", {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}}),
        ("ConvNextImageProcessor", {"size": {"shortest_edge": 32}, "crop_pct": 0.875}),
        ("BitImageProcessor", {"size": {"shortest_edge": 36}, "crop_size": 32, "do_normalize": False}),
    ],
)
def test_the_transform_is_the_image_processor(name: str, settings: dict[str, Any], saved: Path) -> None:
    import transformers

    processor = getattr(transformers, name)(**settings)
    processor.save_pretrained(saved)
    network = pu.load(f"hf:{saved}")
    assert isinstance(network, GivenNetwork)
    theirs = torch.as_tensor(np.asarray(processor(images=PICTURE, return_tensors="np")["pixel_values"]))[0]
    torch.testing.assert_close(network.transform(PICTURE), theirs, rtol=1e-5, atol=1e-5)
    assert network.features(theirs[None]).shape == (1, 32)
    assert pu.load(f"hf:{saved}", pooling="patches:mean").preparation == network.preparation


def test_a_stored_network_needs_no_folder(saved: Path, tmp_path: Path) -> None:
    import transformers

    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(saved)
    stored = tmp_path / "stored"
    stored.mkdir()
    facts = fetch(f"hf:{saved}", (), stored)
    assert facts["preparation"]["from"] == "its image processor"
    before = pu.load(f"hf:{saved}").features(torch.ones(1, 3, 32, 32))
    saved.rename(tmp_path / "moved")
    torch.testing.assert_close(load_given(stored).features(torch.ones(1, 3, 32, 32)), before)
