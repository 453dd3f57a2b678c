"""Networks of transformers: `hf:NAME` of Hugging Face's hub, or `hf:FOLDER` that `save_pretrained` wrote.

Weights are read from safetensors alone, and no code of a repository is run. Images are resized and cropped by
the network's own image processor.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError
from penultimate.networks.sources import Source
from penultimate.networks.weights import refusal

PICTURE = Image.fromarray(np.full((131, 97, 3), 128, np.uint8))
"""A picture from which a processor shows the size of the images that it makes."""


def library() -> Any:
    """Return transformers; raise RequestError if it is not installed."""
    try:
        import transformers
    except ImportError:
        raise RequestError("networks of transformers need it: pip install 'penultimate[hf]'") from None
    transformers.logging.set_verbosity_error()  # what counts is said here
    transformers.utils.logging.disable_progress_bar()
    return transformers


def expect(source: Source) -> None:
    """Raise RequestError if the library or a folder that is named is not there."""
    library()
    place(source)


def place(source: Source) -> str:
    """Return the folder or the name of the hub from which a network is loaded."""
    path = Path(source.name).expanduser()
    if path.is_dir() and not (path / "config.json").is_file():
        raise RequestError(f"'{path}' holds no config.json; a folder that save_pretrained wrote is expected")
    if not path.is_dir() and (source.name.startswith(("/", ".", "~")) or source.name.count("/") > 1):
        raise RequestError(f"hf:{source.name}: there is no folder '{path}'")
    return str(path) if path.is_dir() else source.name


def load(source: Source) -> nn.Module:
    """Return the network of a source with its weights, or with initial weights where these are asked for."""
    transformers, where = library(), place(source)
    missing: list[str] = []
    try:
        config = transformers.AutoConfig.from_pretrained(where, trust_remote_code=False)
        if source.settings.get("pretrained", True) and source.weights is None:
            module, found = transformers.AutoModel.from_pretrained(
                where,
                use_safetensors=True,
                output_loading_info=True,
                dtype=torch.float32,
                trust_remote_code=False,
            )
            missing = sorted(found["missing_keys"])
        else:
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(source.settings.get("seed", 0))
                module = transformers.AutoModel.from_config(config, dtype=torch.float32)
    except Exception as error:  # of a network that is unknown, incomplete or needs code of its own
        raise refusal(error, f"hf:{source.name}") from None
    if source.settings.get("pooling") is not None:
        missing = [name for name in missing if not name.startswith("pooler.")]
    if missing:
        hint = "; say another pooling of its tokens, pooling='cls'" if "pooler" in missing[0] else ""
        raise RequestError(f"hf:{source.name} has no weights of {', '.join(missing[:3])}{hint}")
    tower = _tower(module)
    tower.made_with = {"config": json.loads(config.to_json_string())}  # type: ignore[assignment]
    return tower


def create(made_with: dict[str, Any]) -> nn.Module:
    """Return the architecture of a stored configuration, with initial weights."""
    transformers = library()
    known = dict(made_with["config"])
    config = transformers.AutoConfig.for_model(known.pop("model_type"), **known)
    return _tower(transformers.AutoModel.from_config(config, dtype=torch.float32))


def preparation(source: Source, module: nn.Module) -> tuple[Preparation, str]:
    """Return how the image processor of a network prepares images, and where this was found."""
    try:
        processor = library().AutoImageProcessor.from_pretrained(place(source), trust_remote_code=False)
        made = processor(images=PICTURE, do_rescale=False, do_normalize=False, return_tensors="np")
        shape = np.asarray(made["pixel_values"]).shape
    except RequestError:
        raise
    except Exception as error:  # of a missing file, a missing package or a wrong configuration
        raise refusal(error, f"the image processor of hf:{source.name}") from None
    if len(shape) != 4 or shape[0] != 1 or shape[-1] != shape[-2]:
        raise RequestError(f"hf:{source.name} is given images {[*shape[1:]]}; squares are supported alone")
    config = json.loads(json.dumps(processor.to_dict(), default=int))
    config["image_processor_type"] = type(processor).__name__
    # It computes (x f - mean) / std of bytes x, which is (x / 255 - mean / (255 f)) / (std / (255 f)).
    factor = 255 * config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 255.0
    normalises = config.get("do_normalize", True)
    mean = config["image_mean"] if normalises else (0.0,) * 3
    std = config["image_std"] if normalises else (1.0,) * 3
    statistics = ChannelStatistics(
        tuple(value / factor for value in mean), tuple(value / factor for value in std)
    )
    crop = int(shape[-1])
    text = json.dumps(config, sort_keys=True)
    return Preparation(crop, crop, "bilinear", statistics, processor=text), "its image processor"


def _tower(module: nn.Module) -> nn.Module:
    """Return the part of a model that sees images; of a model of images and texts, such as CLIP, one part."""
    tower = getattr(module, "vision_model", None)
    return tower if isinstance(tower, nn.Module) and hasattr(module, "text_model") else module
