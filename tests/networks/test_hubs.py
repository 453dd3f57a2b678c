"""Networks of transformers and open_clip: from folders, exactly prepared; and what is said without them.

What needs the libraries themselves is skipped where they are not installed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import penultimate as pu
from penultimate.data.disk.preparation import Preparation
from penultimate.errors import RequestError
from penultimate.evaluation.naming import networks_named
from penultimate.evaluation.request import Request
from penultimate.networks import downloads, hub
from penultimate.networks.given import fetch, load_given
from penultimate.networks.processors import of_picture
from penultimate.networks.sources import fingerprint, read_source

CLOSED = "the.host, port 443, cannot be reached (no route)"
RANDOM = Image.fromarray(np.random.default_rng(0).integers(0, 256, (91, 60, 3), dtype=np.uint8))


# -- without the libraries ----------------------------------------------------------------------------------


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "open_clip", None)
    for source, extra in (("hf:owner/net", "hf"), ("open_clip:ViT-B-32/openai", "open_clip")):
        with pytest.raises(RequestError, match=rf"pip install 'penultimate\[{extra}\]'"):
            fetch(source, (), tmp_path)
        with pytest.raises(RequestError, match=rf"pip install 'penultimate\[{extra}\]'"):
            pu.evaluate({"net": source}, {"glyphs_smoke": ""}, out=tmp_path / "runs")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module called transformers that is asked for nothing."""
    module = ModuleType("transformers")
    silent = SimpleNamespace(set_verbosity_error=lambda: None, disable_progress_bar=lambda: None)
    vars(module).update(logging=silent, utils=SimpleNamespace(logging=silent))
    monkeypatch.setitem(sys.modules, "transformers", module)
    return module


def test_without_a_network_it_is_said_what_was_tried_and_that_a_folder_works(
    stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(downloads, "unreachable", lambda url: CLOSED)
    with pytest.raises(RequestError) as told:
        fetch("hf:owner/net", (), tmp_path)
    for words in ("the.host, port 443, cannot be reached", "the files of 'owner/net' in '", "hf:FOLDER"):
        assert words in str(told.value)
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(RequestError, match="HF_HUB_OFFLINE forbids it"):
        fetch("hf:owner/net", (), tmp_path)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ValueError("set the option `trust_remote_code=True`"),
            "needs code from its repository, which",
        ),
        (OSError("no file named model.safetensors found"), "no weights in safetensors.*save_pretrained"),
        (OSError("odd\nand long"), "cannot be loaded: odd"),
    ],
)
def test_what_cannot_be_loaded_is_said(
    error: Exception, message: str, stand_in: ModuleType, tmp_path: Path
) -> None:
    def fails(*asked: Any, **settings: Any) -> Any:
        assert settings["trust_remote_code"] is False
        raise error

    (tmp_path / "config.json").write_text("{}")
    vars(stand_in)["AutoConfig"] = SimpleNamespace(from_pretrained=fails)
    with pytest.raises(RequestError, match=message):
        fetch(f"hf:{tmp_path}", (), tmp_path)


def test_weights_that_are_missing_are_named_and_a_pooling_does_without_a_pooler(
    stand_in: ModuleType, tmp_path: Path
) -> None:
    missing = {"pooler.dense.weight"}

    def gives(place: str, **settings: Any) -> Any:
        assert settings["use_safetensors"] is True
        assert settings["local_files_only"] is True
        return nn.Linear(2, 2), {"missing_keys": missing}

    (tmp_path / "config.json").write_text("{}")
    config = SimpleNamespace(to_json_string=lambda: "{}")
    known = {"AutoConfig": SimpleNamespace(from_pretrained=lambda *a, **s: config)}
    vars(stand_in).update(known | {"AutoModel": SimpleNamespace(from_pretrained=gives)})
    with pytest.raises(RequestError, match=r"no weights of pooler.*its own pooling.*'cls'"):
        hub.load(read_source(f"hf:{tmp_path}"))
    assert hub.made_with(hub.load(read_source(f"hf:{tmp_path}(pooling='mean')"))) == {"config": {}}
    missing.add("encoder.weight")
    with pytest.raises(RequestError, match=r"no weights of encoder\.weight"):
        hub.load(read_source(f"hf:{tmp_path}(pooling='mean')"))


def test_folders_are_checked_and_identified_by_their_files(tmp_path: Path, stand_in: ModuleType) -> None:
    with pytest.raises(RequestError, match="there is no folder"):
        hub.expect(read_source(f"hf:{tmp_path / 'none'}"))
    with pytest.raises(RequestError, match=r"holds no config.json"):
        hub.expect(read_source(f"hf:{tmp_path}"))
    for name, content in (("config.json", "{}"), ("model.safetensors", "a"), ("README.md", "x")):
        (tmp_path / name).write_text(content)
    before = fingerprint(f"hf:{tmp_path}")
    assert before.keys() == {"config.json", "model.safetensors"}
    (tmp_path / "model.safetensors").write_text("b")
    assert fingerprint(f"hf:{tmp_path}") != before
    assert fingerprint("hf:owner/net") == {}


def test_networks_are_called_by_the_last_parts_of_their_names() -> None:
    texts = ["hf:facebook/dinov2-small", "open_clip:ViT-B-32/openai", "hf:a/b(pooling='mean')"]
    assert [*networks_named((text, "") for text in texts)] == ["dinov2-small", "ViT-B-32 openai", "b mean"]
    with pytest.raises(RequestError, match="setting of 'hf:a/b"):
        read_source("hf:a/b(num_classes=3)")


# -- transformers -------------------------------------------------------------------------------------------


def saved(folder: Path, kind: str) -> Any:
    """Write a tiny network of transformers with its processor; return the network."""
    t = pytest.importorskip("transformers")
    tiny = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    seen = {**tiny, "image_size": 32, "patch_size": 8}
    square, side = {"height": 32, "width": 32}, {"shortest_edge": 32}
    if kind == "vit":
        config, processor = t.ViTConfig(**seen), t.ViTImageProcessor(size=square)
    elif kind == "registers":
        own = {**seen, "image_size": 28, "patch_size": 7, "num_register_tokens": 3}
        crop = {"height": 28, "width": 28}
        config = t.Dinov2WithRegistersConfig(**{key: own[key] for key in own if key != "intermediate_size"})
        processor = t.BitImageProcessor(size={"shortest_edge": 33}, crop_size=crop, resample=3)
    elif kind == "clip":
        texts = {**tiny, "vocab_size": 64, "bos_token_id": 1, "eos_token_id": 2}
        config = t.CLIPConfig(vision_config=seen, text_config=texts)
        processor = t.CLIPImageProcessor(size=side, crop_size=square)
    else:
        config = t.ConvNextConfig(hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1])
        processor = t.ConvNextImageProcessor(size=side, crop_pct=0.875)
    torch.manual_seed(0)
    network = t.AutoModel.from_config(config).eval()
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    return network


@pytest.mark.parametrize("kind", ["vit", "registers", "clip", "convnext"])
def test_an_image_is_prepared_as_by_the_processor_itself(kind: str, tmp_path: Path) -> None:
    t = pytest.importorskip("transformers")
    saved(tmp_path / "net", kind)
    (tmp_path / "out").mkdir()
    fetch(f"hf:{tmp_path / 'net'}", (), tmp_path / "out")
    prepared = load_given(tmp_path / "out").preparation
    for backend, levels in (("pil", 0.01), ("torchvision", 2.01)):  # torchvision resizes bytes by itself
        processor = t.AutoImageProcessor.from_pretrained(tmp_path / "net", backend=backend)
        theirs = np.asarray(processor(images=RANDOM, return_tensors="np")["pixel_values"])
        off = np.abs(of_picture(RANDOM, prepared).numpy() - theirs)
        scale = 255 * np.array(prepared.statistics.std)[:, None, None]
        assert float((off * scale).max()) < levels, backend


@pytest.mark.parametrize("kind", ["vit", "registers", "clip", "convnext"])
def test_features_are_what_the_network_pools_and_its_source_is_not_needed_again(
    kind: str, tmp_path: Path
) -> None:
    network = saved(tmp_path / "net", kind)
    (tmp_path / "out").mkdir()
    fetch(f"hf:{tmp_path / 'net'}", (), tmp_path / "out")
    (tmp_path / "net").rename(tmp_path / "elsewhere")
    given = load_given(tmp_path / "out")
    images = torch.randint(0, 256, (3, 40, 50, 3), dtype=torch.uint8)
    part = network.vision_model if kind == "clip" else network
    with torch.no_grad():
        expected = part(given.prepared(images)).pooler_output.flatten(1)
    torch.testing.assert_close(given.features(images), expected, rtol=1e-4, atol=1e-5)


def test_tokens_of_transformers_are_pooled_without_registers(tmp_path: Path) -> None:
    network = saved(tmp_path / "net", "registers")
    (tmp_path / "out").mkdir()
    facts = fetch(f"hf:{tmp_path / 'net'}(pooling='patches:mean')", (), tmp_path / "out")
    assert facts["pooling"]["prefix"] == 4
    given = load_given(tmp_path / "out")
    images = torch.randint(0, 256, (3, 40, 50, 3), dtype=torch.uint8)
    with torch.no_grad():
        tokens = network(given.prepared(images)).last_hidden_state
    torch.testing.assert_close(given.features(images), tokens[:, 4:].mean(1), rtol=1e-4, atol=1e-5)
    asked = Request({"net": f"hf:{tmp_path / 'net'}"}, {"glyphs_smoke": ""}, poolings="all")
    assert [*asked.sources] == ["net", "net cls", "net mean", "net cls+mean", "net patches:mean"]


def test_a_checkpoint_without_a_pooler_or_a_processor_is_refused(tmp_path: Path) -> None:
    t = pytest.importorskip("transformers")
    network = saved(tmp_path / "net", "vit")
    t.ViTModel(network.config, add_pooling_layer=False).save_pretrained(tmp_path / "net")
    (tmp_path / "out").mkdir()
    with pytest.raises(RequestError, match=r"no weights of pooler.*pooling='cls'"):
        fetch(f"hf:{tmp_path / 'net'}", (), tmp_path / "out")
    fetch(f"hf:{tmp_path / 'net'}(pooling='cls')", (), tmp_path / "out")
    (tmp_path / "net" / "preprocessor_config.json").unlink()
    with pytest.raises(RequestError, match="no image processor that can be used"):
        fetch(f"hf:{tmp_path / 'net'}(pooling='cls')", (), tmp_path / "out")


# -- open_clip ----------------------------------------------------------------------------------------------


def clip_folder(folder: Path) -> Any:
    """Write a tiny network of open_clip as its folders are; return it."""
    open_clip = pytest.importorskip("open_clip")
    from safetensors.torch import save_file

    config = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8},
        "text_cfg": {"context_length": 8, "vocab_size": 32, "width": 16, "heads": 2, "layers": 1},
    }
    said = {
        "mean": [0.5, 0.4, 0.3],
        "std": [0.2, 0.3, 0.4],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": said}))
    torch.manual_seed(0)
    network = open_clip.CLIP(**config).eval()
    save_file(
        {k: v.contiguous() for k, v in network.state_dict().items()}, folder / "open_clip_model.safetensors"
    )
    return network


def test_the_tower_of_images_gives_its_embedding_and_prepares_as_open_clip(tmp_path: Path) -> None:
    open_clip = pytest.importorskip("open_clip")
    network = clip_folder(tmp_path / "net")
    (tmp_path / "out").mkdir()
    fetch(f"open_clip:{tmp_path / 'net'}", (), tmp_path / "out")
    _, _, transform = open_clip.create_model_and_transforms(f"local-dir:{tmp_path / 'net'}")
    (tmp_path / "net").rename(tmp_path / "elsewhere")
    given = load_given(tmp_path / "out")
    torch.testing.assert_close(
        of_picture(RANDOM, given.preparation)[0], transform(RANDOM), rtol=1e-5, atol=1e-5
    )
    images = torch.randint(0, 256, (3, 40, 50, 3), dtype=torch.uint8)
    with torch.no_grad():
        expected = network.encode_image(given.prepared(images))
    torch.testing.assert_close(given.features(images), expected, rtol=1e-4, atol=1e-5)
    assert isinstance(given.preparation, Preparation)


def test_names_of_open_clip_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("open_clip")
    with pytest.raises(RequestError, match=r"no network 'ViT-B-23'.*Did you mean 'ViT-B-"):
        fetch("open_clip:ViT-B-23/openai", (), tmp_path)
    with pytest.raises(RequestError, match=r"no weights 'opnai' of ViT-B-32.*Did you mean 'openai'"):
        fetch("open_clip:ViT-B-32/opnai", (), tmp_path)
    with pytest.raises(RequestError, match=r"write open_clip:ViT-B-32/WEIGHTS \(it has "):
        fetch("open_clip:ViT-B-32", (), tmp_path)
    monkeypatch.setattr(downloads, "unreachable", lambda url: CLOSED)
    with pytest.raises(RequestError, match=r"the.host, port 443.*open_clip:FOLDER"):
        fetch("open_clip:ViT-B-32/laion2b_s34b_b79k", (), tmp_path)
