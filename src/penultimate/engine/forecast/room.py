"""Check that a study fits: its steps' files on disk, and the data of parallel steps in memory.

The check is arithmetic, before anything is computed. It counts only known sizes and leaves out rows, drawings
and the working memory of measurements, so that a refused study could not have finished. For a GPU it counts
the memory that a training holds.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from penultimate.backbones.size import size_of
from penultimate.engine.devices import gpu_memory, places_on_gpus
from penultimate.engine.forecast.sizes import (
    FLOAT,
    RENDERED,
    SIDE,
    backbone_of,
    bytes_of,
    cost_of,
    images_of,
    is_on_disk,
    networks_of,
    weights,
    width_of,
)
from penultimate.engine.forecast.timing import LARGE
from penultimate.errors import RequestError
from penultimate.files import size_text, standing
from penultimate.graph import Step
from penultimate.memory import memory
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.variables import ANYWAY, is_wanted

PROCESS, LISTED = 400_000_000, 160
"""The unshared bytes of a process with PyTorch, and the bytes per image file in its listing."""
CONTEXT = 300_000_000
"""The bytes of a GPU that a process takes before it stores anything there."""
HELD, SAVED = 4, 9
"""The number of copies of its weights that a training holds on its device (weights, gradients, momentum,
average), and also on the host while it writes a checkpoint."""
CHECKPOINTS = 2 * 3
"""The number of copies on disk: two files, each with weights, momentum and average."""
ROTATED, ASPECT = 1 << 28, 4 / 3
"""Bytes of features from which on a linear probe writes its copy to a temporary file; the longer side of an
image, in shorter ones."""


def expect_room(study: Study, left: Sequence[Step], root: Path, places: int) -> None:
    """Raise RequestError if the remaining steps do not fit, `places` of them in parallel.

    With 0 places, which means other machines, only the disk is checked. Raises it too if steps need a GPU and
    there is none.
    """
    gpus = max((step.resources.gpus for step in left), default=0.0)
    on_gpus = len(places_on_gpus(gpus)) // max(1, round(gpus)) if gpus and places else 0
    if is_wanted(ANYWAY):
        return
    _expect_disk(study, left, root, places)
    if places:
        _expect_memory(study, left, places, on_gpus)
        _expect_gpu_memory(study, left)


def _expect_disk(study: Study, left: Sequence[Step], root: Path, places: int) -> None:
    classes, side_by_side = study.card(study.source).classes, max(1, places)
    sizes = {step.id: bytes_of(step, study) or 0 for step in left}
    trained = [weights(step.config["backbone"], classes) for step in left if step.name == "train"]
    saved = CHECKPOINTS * sum(sorted(trained)[-side_by_side:])
    scratch = side_by_side * max((_rotated(step, study) for step in left), default=0)
    place, folder = standing(Path(tempfile.gettempdir())), standing(root)
    free = shutil.disk_usage(folder).free
    needed = sum(sizes.values()) + saved
    if needed > free:  # only then is it worth measuring the files of interrupted steps
        needed -= sum(min(size, _written(root, step_id)) for step_id, size in sizes.items())
    shares = place.stat().st_dev == folder.stat().st_dev
    if needed + shares * scratch > free:
        of_networks = saved + sum(sizes[step.id] for step in left if step.name in ("train", "extract"))
        fit = int((free - needed + of_networks) * len(trained) / of_networks) if trained else 0
        fewer = f", or fewer networks (--only, --seeds): of {len(trained)} about {fit} fit"
        raise _refusal(
            f"'{study.name}' has about {size_text(needed + shares * scratch)} still to write, and"
            f" {size_text(free)} are free on the disk of '{root}'; free some, or give --out a folder on"
            f" another disk{fewer if fit > 0 else ''}"
        )
    free = shutil.disk_usage(place).free
    if scratch > free:
        raise _refusal(
            f"'{study.name}' writes about {size_text(scratch)} into '{place}' for a while, and"
            f" {size_text(free)} are free there; set TMPDIR to a folder on another disk"
        )


def _written(root: Path, step_id: str) -> int:
    """Return the bytes that an interrupted step has left."""
    return sum(path.stat().st_size for path in (root / "partial" / step_id).rglob("*") if path.is_file())


def _rotated(step: Step, study: Study) -> int:
    """Return the bytes that a linear probe writes to a temporary file."""
    if "linear" not in cost_of(step).fits:
        return 0
    size = FLOAT * width_of(backbone_of(step)) * study.card(str(step.columns["target"])).sizes["train"]
    return size if size > ROTATED else 0


def _expect_memory(study: Study, left: Sequence[Step], places: int, on_gpus: int) -> None:
    needs = sorted(
        ((sum(held(step, study).values()) * step.resources.processes, step) for step in left),
        key=lambda need: -need[0],
    )
    with_gpu = [need for need in needs if need[1].resources.gpus]
    without = [need for need in needs if not need[1].resources.gpus]
    first = sorted([*with_gpu[:on_gpus], *without], key=lambda need: -need[0])[:places]
    total, needed = memory().total, sum(size for size, _ in first)
    fit = sum(together <= total for together in itertools.accumulate(size for size, _ in first))
    if fit == len(first):
        return
    if fit:
        raise _refusal(
            f"{len(first)} steps of '{study.name}' side by side hold about {size_text(needed)}, and this"
            f" machine has {size_text(total)} of memory; give --processes {fit}"
        )
    size, step = first[0]
    raise _refusal(
        f"a step '{step.name}' of '{study.name}' holds about {size_text(size)}, and this machine has"
        f" {size_text(total)} of memory; {_mend(step, study, size - total)}"
    )


def _expect_gpu_memory(study: Study, left: Sequence[Step]) -> None:
    needs = [(sum(held_on_gpu(step, study).values()), step) for step in left if step.resources.gpus]
    known = gpu_memory() if needs else None
    if known is None:
        return
    needed, step = max(needs, key=lambda need: need[0] / min(1.0, need[1].resources.gpus))
    share = min(1.0, step.resources.gpus)
    if needed <= share * known:
        return
    one = f"{size_text(known)} of memory"
    has = f"a GPU here has {one}" if share == 1 else f"has {share:g} of a GPU of {one}"
    raise _refusal(
        f"a step '{step.name}' of '{study.name}' holds about {size_text(needed)} on its GPU, and {has};"
        f" {_mend_on_gpu(step, study, needed - round(share * known), known)}"
    )


def _mend(step: Step, study: Study, lacking: int) -> str:
    """Return advice that saves the lacking bytes, if there is any."""
    parts = held(step, study)
    if parts.get("resident", 0) >= lacking:
        return "give --set recipe.resident=False"
    if parts.get("batch", 0) >= lacking:
        smaller = _smaller_batch(step)
        return f"give --gpus 1, or {smaller}" if smaller else "give --gpus 1"
    return "use a machine with more"


def _mend_on_gpu(step: Step, study: Study, lacking: int, known: int) -> str:
    parts = held_on_gpu(step, study)
    if step.resources.gpus < 1 and sum(parts.values()) <= known:
        return f"give --gpus {1 / (known // sum(parts.values())):.3g}"
    if parts.get("resident", 0) >= lacking:
        return "give --set recipe.resident=False"
    smaller = _smaller_batch(step)
    if parts.get("batch", 0) >= lacking and smaller:
        return f"give {smaller}"
    return "use a GPU with more"


def _smaller_batch(step: Step) -> str:
    """Return advice to pass fewer images through a network at once, or an empty string."""
    if step.name != "train":
        return "its measurement a smaller batch_size"
    recipe = step.config["recipe"]
    now, least = recipe["at_once"] or recipe["batch_size"], recipe["ghost_batch"] or 2
    fewer = max(least, now // 8 // least * least)
    return f"--set recipe.at_once={fewer}: fewer images go through it together" if fewer < now else ""


def held(step: Step, study: Study) -> dict[str, int]:
    """Return the known bytes that a step holds in its host's memory, by purpose."""
    decoded = cost_of(step).decoded
    listed, images, features = set(), 0, 0
    for supply in step.supplies:
        if supply.kind not in ("images", "features"):
            continue
        on_disk, count = is_on_disk(supply.of, study), images_of(supply, study, step)
        if supply.kind == "images" and not on_disk:
            images += RENDERED * count
        elif supply.kind == "images":
            listed.add(supply.of)
            images += 3 * _side(step, study) ** 2 * count if supply.name in decoded else 0
        elif supply.kind == "features" and supply.network is not None and not on_disk:
            features += 2 * FLOAT * width_of(supply.network.backbone) * count
    return {
        "process": PROCESS,
        "listed": LISTED * sum(study.card(name).images for name in listed),
        "images": images,
        "features": features,
        "resident": _resident(step, study),
        **({} if step.resources.gpus else _computing(step, study)),
        "checkpoints": SAVED * _weights(step, study),
    }


def held_on_gpu(step: Step, study: Study) -> dict[str, int]:
    """Return the known bytes that a step holds on each of its GPUs, by purpose."""
    if not step.resources.gpus:
        return {}
    return {"process": CONTEXT, "resident": _resident(step, study), **_computing(step, study)}


def _computing(step: Step, study: Study) -> dict[str, int]:
    """Return the bytes that a training step holds on its device: activations of a batch, and the weights."""
    if not _trains(step):
        return {}
    size = size_of(backbone_of(step))
    if step.name == "train":
        recipe, name = Recipe(**step.config["recipe"]), study.source
        batch, side = recipe.at_once or recipe.batch_size, recipe.size
        number = FLOAT if recipe.precision == "float32" else FLOAT // 2
    else:
        name, number = str(step.columns["target"]), FLOAT // 2
        batch, side = int(step.config["batch_size"]), _side(step, study)
    pixels = (side if is_on_disk(name, study) else SIDE) ** 2
    images = min(batch, study.card(name).sizes["train"]) // step.resources.processes
    return {
        "batch": number * size.kept * pixels * images if size else 0,
        "weights": HELD * _weights(step, study),
    }


def _resident(step: Step, study: Study) -> int:
    """Return the bytes of images on disk that a training holds decoded."""
    if step.name != "train" or not is_on_disk(study.source, study):
        return 0
    recipe, sizes = Recipe(**step.config["recipe"]), study.card(study.source).sizes
    whole = recipe.augmentation.crop is None
    of_image = 3 * (recipe.size**2 if whole else recipe.resize**2 * ASPECT)
    return round(of_image * sizes["train"]) if recipe.resident else 0


def _weights(step: Step, study: Study) -> int:
    """Return the bytes of the weights that a step trains."""
    name = study.source if step.name == "train" else str(step.columns.get("target"))
    return weights(backbone_of(step), study.card(name).classes) if _trains(step) else 0


def _trains(step: Step) -> bool:
    return step.name == "train" or cost_of(step).trains


def _side(step: Step, study: Study) -> int:
    """Return the side of a step's input images in pixels."""
    keys = {*networks_of(step)}
    return max((block.recipe.size for block in study.runs if keys & {*block.keys()}), default=LARGE)


def _refusal(why: str) -> RequestError:
    return RequestError(f"{why}. {ANYWAY}=1 starts it anyway")
