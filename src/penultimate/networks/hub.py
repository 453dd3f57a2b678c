"""Networks of transformers: `hf:NAME` of Hugging Face's hub, or `hf:FOLDER` that `save_pretrained` wrote.

Weights are read from safetensors alone, and no code of a repository is run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from penultimate.data.disk.preparation import Preparation
from penultimate.errors import RequestError, legible, shortened
from penultimate.networks.downloads import expect_at_hand
from penultimate.networks.processors import expect_alike, translated
from penultimate.networks.sources import Source
from penultimate.userfile import first_line

NEEDED = "networks of transformers need it: pip install 'penultimate[hf]'"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
TOWER = "vision_model"
"""The part that sees images in models of images and texts, such as CLIP."""


def library() -> Any:
    """Return transformers; raise RequestError if it is not installed."""
    try:
        import transformers
    except ImportError:
        raise RequestError(NEEDED) from None
    transformers.logging.set_verbosity_error()  # what counts is said here
    transformers.utils.logging.disable_progress_bar()
    return transformers


def expect(source: Source) -> None:
    """Raise RequestError if the library or a folder that is named is not there."""
    library()
    folder(source)


def folder(source: Source) -> Path | None:
    """Return the folder that a source names; None for a name of the hub."""
    path = Path(source.name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise RequestError(
                f"'{path}' holds no config.json; a folder that save_pretrained wrote is expected"
            )
        return path
    if source.name.startswith(("/", ".", "~")) or source.name.count("/") > 1:
        raise RequestError(f"hf:{source.name}: there is no folder '{path}'")
    return None


def load(source: Source) -> nn.Module:
    """Return the network of a source with its weights, or with initial weights where these are asked for."""
    module, config = _loaded(source)
    module.made_with = {"config": json.loads(config.to_json_string())}  # type: ignore[assignment]
    return _tower(module)


def create(made_with: dict[str, Any]) -> nn.Module:
    """Return the architecture of a stored configuration, with initial weights."""
    transformers = library()
    known = dict(made_with["config"])
    config = transformers.AutoConfig.for_model(known.pop("model_type"), **known)
    return _tower(transformers.AutoModel.from_config(config, dtype=torch.float32))


def made_with(module: nn.Module) -> dict[str, Any]:
    """Return what `create` makes an equal architecture of."""
    return dict(module.made_with)  # type: ignore[arg-type]


def preparation(source: Source) -> tuple[Preparation, str]:
    """Return how the image processor of a network prepares images, and where this was found."""
    transformers = library()
    place, here = _place(source)
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(
            place, local_files_only=here, trust_remote_code=False
        )
    except Exception as error:  # of a missing file, a missing package or a wrong configuration
        raise RequestError(
            f"hf:{source.name} has no image processor that can be used ({_reason(error)}); its folder is to"
            " hold a preprocessor_config.json"
        ) from None
    try:
        prepared = translated(processor.to_dict())
        expect_alike(processor, prepared)
    except RequestError as error:
        raise RequestError(f"hf:{source.name}: {error}") from None
    return prepared, "its image processor"


def _loaded(source: Source) -> tuple[nn.Module, Any]:
    transformers = library()
    place, here = _place(source)
    asked = {"local_files_only": here, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(place, **asked)
        if not source.settings.get("pretrained", True) or source.weights is not None:
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(source.settings.get("seed", 0))
                return transformers.AutoModel.from_config(config, dtype=torch.float32), config
        module, found = transformers.AutoModel.from_pretrained(
            place, use_safetensors=True, output_loading_info=True, dtype=torch.float32, **asked
        )
    except Exception as error:  # of a network that is unknown, incomplete or needs code of its own
        raise RequestError(_refusal(source, place, error)) from None
    pooled = source.settings.get("pooling") is not None
    missing = sorted(name for name in found["missing_keys"] if not (pooled and name.startswith("pooler.")))
    if missing:
        named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        hint = (
            f"; its own pooling would have random weights: say another, hf:{source.name}(pooling='cls')"
            if all("pooler" in name for name in missing)
            else ""
        )
        raise RequestError(f"hf:{source.name} has no weights of {named}{hint}")
    return module, config


def _tower(module: nn.Module) -> nn.Module:
    """Return the part of a model that sees images, with what the whole was made of."""
    tower = getattr(module, TOWER, None)
    if not isinstance(tower, nn.Module) or not hasattr(module, "text_model"):
        return module
    if hasattr(module, "made_with"):
        tower.made_with = module.made_with
    return tower


def _place(source: Source) -> tuple[str, bool]:
    """Return where a network is loaded from, and whether nothing is to be asked of the hub."""
    own = folder(source)
    if own is not None:
        return str(own), True
    wants = WEIGHTS if source.settings.get("pretrained", True) else ()
    return source.name, expect_at_hand(f"hf:{source.name}", source.name, "config.json", wants)


def _refusal(source: Source, place: str, error: Exception) -> str:
    said = _reason(error)
    if "trust_remote_code" in str(error) or "remote code" in str(error).lower():
        return (
            f"hf:{source.name} needs code from its repository, which is not run here; networks that"
            " transformers knows itself can be used"
        )
    if "safetensors" in str(error):
        return (
            f"hf:{source.name} has no weights in safetensors ({said}); no other files are read. Load it where"
            " you trust it, and write it with save_pretrained(FOLDER): hf:FOLDER"
        )
    return f"hf:{source.name} cannot be loaded: {said}"


def _reason(error: Exception) -> str:
    return shortened(legible(first_line(error) or type(error).__name__), 300)
