"""Execute one step, from its parents' folders to rows and files in its own folder."""

from __future__ import annotations

import fnmatch
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.engine.distributed_training import trained_together
from penultimate.engine.machine import device_name, machine
from penultimate.errors import DamagedFileError, PenultimateError, RequestError
from penultimate.files import file_name
from penultimate.graph import Step
from penultimate.measures.catalogue import measurement
from penultimate.measures.declaration import Measurement
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.plugins import refuse_changed
from penultimate.progress import Progress, listening
from penultimate.records.table import ROWS, Row, encode_rows, setting_text
from penultimate.registry import entry
from penultimate.store import META, Store

if TYPE_CHECKING:
    from penultimate.data.disk.listed import ListedImages
    from penultimate.data.images import ImageSet
    from penultimate.training import TrainingResult
    from penultimate.training.recipe import Recipe

SCRATCH = ("checkpoint*", "*.tmp", ".lock")
POINTS = "points"
"""The unit of a row that points to arrays: it holds the length of the longest."""
OF_NUMBER = ("metric", "value", "unit", "split", "layer", "layer_b", "epoch")
"""The fields of a `Number` that are columns of its row."""


class DamagedParentError(DamagedFileError):
    """A parent's file has changed since it was written, so that the parent must be recomputed."""

    def __init__(self, parent: str, reason: str) -> None:
        super().__init__(reason)
        self.parent = parent


@dataclass
class Outcome:
    """The outcome of a step: its rows, its status, and further entries for meta.json."""

    rows: list[Row] = field(default_factory=list)
    status: str = "done"
    facts: dict[str, Any] = field(default_factory=dict)


def data(inputs: Inputs) -> Outcome:
    """Render or read the splits of a data set."""
    from penultimate.data import generate

    config = inputs.step.config
    if "where" in config:
        return _located(inputs)
    planned = None
    if "plugins" in config and not hasattr(entry("dataset", config["name"]).resolve(), "fingerprint"):
        planned = config.get("content", {})
    classes = config.get("classes", 0)
    manifest = generate(config["name"], config["draw"], inputs.folder, planned=planned, classes=classes)
    return Outcome(facts={"content_digest": manifest["digest"]})


def _located(inputs: Inputs) -> Outcome:
    """Check every image of a data set that stays at another place.

    Raises RequestError if it has changed since the planning.
    """
    from penultimate.data.disk.listed import leave_listing
    from penultimate.data.readers.located import located

    config = inputs.step.config
    reading = config.get("reading")
    found = located(config["name"], config["where"], tuple(config["splits"]), reading)
    if found.fingerprint != config["content"]:
        raise RequestError(
            f"the images in '{config['where']}' were changed since the study began; start it again"
        )
    left = leave_listing(found, inputs.folder, config["draw"], inputs.progress, reading)
    facts = {name: getattr(left, name) for name in ("left_out", "remarks", "copies", "images")}
    known = {name: fact for name, fact in facts.items() if fact}
    return Outcome(facts={"content_digest": left.manifest["digest"], **known})


def sheet(inputs: Inputs) -> Outcome:
    """Draw a contact sheet with some images of every data set."""
    from penultimate.data.catalog import card
    from penultimate.data.images import load_images
    from penultimate.data.world.sheet import contact_sheet

    sets = [
        (card(supply.of).title, load_images(inputs.folders[supply.parent], "train"))
        for supply in inputs.step.supplies
    ]
    (inputs.folder / "sheet.png").write_bytes(contact_sheet(sets))
    return Outcome()


def examples(folder: Path, split: str, recipe: Recipe, threads: int) -> ImageSet | ListedImages:
    """Return a split for training; images on disk are normalised by the moments of their small pictures."""
    from penultimate.data.disk.listed import LISTING, listed_images
    from penultimate.data.disk.preparation import Preparation
    from penultimate.data.images import ChannelStatistics, load_images

    if not (folder / LISTING).is_file():
        return load_images(folder, split)
    statistics = ChannelStatistics.of(load_images(folder, "train").images)
    preparation = Preparation(recipe.resize, recipe.size, "bilinear", statistics)
    return listed_images(folder, split, preparation, threads if threads > 1 else 0)


def trained(inputs: Inputs) -> TrainingResult:
    """Train a network alone or together with other processes."""
    from penultimate.data.images import read_manifest
    from penultimate.training import Recipe, train

    config, recipe = inputs.step.config, Recipe(**inputs.step.config["recipe"])
    folder = inputs.folders[inputs.step.parents[0]]
    held_out = "holdout" in read_manifest(folder)["splits"]  # published data sets are trained on whole
    return train(
        config["objective"],
        config["backbone"],
        examples(folder, "train", recipe, config["threads"]),
        examples(folder, "holdout", recipe, config["threads"]) if held_out else None,
        recipe,
        config["seed"],
        inputs.folder,
        inputs.progress,
        inputs.checkpoint_seconds,
        inputs.device,
    )


def train(inputs: Inputs) -> Outcome:
    """Train a network on the GPUs that the engine assigned; its curves are the rows."""
    from penultimate.measures.inputs import read_card

    gpus = inputs.step.resources.on
    result = trained_together(inputs, gpus, trained) if len(gpus) > 1 else trained(inputs)
    units = {"mean_loss": "loss"}
    points = [
        Number(at["metric"], at["value"], units.get(at["metric"], "fraction"), at["split"], epoch=at["epoch"])
        for at in result.curves
    ]
    rows = [row(inputs.step, point, result.status) for point in points]
    facts: dict[str, Any] = {"epoch": result.epoch, "reason": result.reason}
    if result.status == "done":
        facts["num_features"] = read_card(inputs.folder)["num_features"]
    if result.damaged:
        facts["damaged"] = result.damaged
    if len(gpus) > 1:
        facts["gpus"] = len(gpus)
    return Outcome(rows, result.status, facts)


def given(inputs: Inputs) -> Outcome:
    """Fetch a network that was not trained here."""
    from penultimate.networks.sources import fingerprint
    from penultimate.networks.store import fetch

    config = inputs.step.config
    if "file" in config:
        return Outcome(facts=existing(inputs))
    classes = tuple(map(str, range(config["classes"] if config["classifies"] else 0)))
    if fingerprint(config["source"]) != config["content"]:
        raise RequestError(
            f"the files of '{config['source']}' were changed since the study began; start it again"
        )
    return Outcome(facts=fetch(config["source"], classes, inputs.folder, config.get("built")))


def existing(inputs: Inputs) -> dict[str, Any]:
    """Leave the network of a run that was trained elsewhere as a training would; return facts about it."""
    from penultimate.data.disk.listed import ListedImages
    from penultimate.networks.existing import assemble
    from penultimate.training.feed import statistics_of
    from penultimate.training.recipe import Recipe

    config = inputs.step.config
    folder = inputs.folders[inputs.step.parents[0]]
    images = examples(folder, "train", Recipe(**config["geometry"]), config["threads"])
    geometry = config["geometry"] if isinstance(images, ListedImages) else {}
    source = str(inputs.step.columns["source"])
    return assemble(config, source, images.class_names, statistics_of(images), geometry, inputs.folder)


def extract(inputs: Inputs) -> Outcome:
    """Leave the features of a split, and its logits where there are any."""
    from penultimate.data.disk.listed import ListedImages
    from penultimate.features.extraction import extract as run_extraction
    from penultimate.features.files import extract_files

    network, images = inputs.step.supplies
    split = images.name
    loaded, shown = inputs.load_from(network), inputs.shown(split)
    if isinstance(shown, ListedImages):
        name = str(inputs.step.columns["objective"])
        if _is_taken(file_name(name)):  # the bank lies beside the step's own files
            name = f"({name})"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of images: the data's own step has told them
            banks = extract_files(
                {name: loaded},
                shown.listing,
                inputs.folder,
                workers=shown.workers,
                identities={name: network.parent},
                images=images.parent,
            )
        if len(banks[name]) < len(shown):
            raise RequestError(f"images of '{images.of}' can no longer be read; start the study again")
    else:
        run_extraction(loaded, shown).save(inputs.folder / f"{file_name(split)}.npz")
    return Outcome()


CORE: dict[str, Callable[[Inputs], Outcome]] = {
    function.__name__: function for function in (data, sheet, train, given, extract)
}
"""The steps that are not measurements."""


def measure(what: Measurement, inputs: Inputs) -> Outcome:
    """Call a measurement's function, and turn what it yields into rows and files.

    Raises PenultimateError for a quantity that its declaration does not name.
    """
    assert what.function is not None
    outcome, undefined = Outcome(), list[str]()
    declared = {item.metric: item for item in what.yields}
    settings = {setting.name for setting in what.settings}
    values = {name: value for name, value in inputs.step.config.items() if name in settings}
    try:
        for item in what.function(inputs, **values):
            match item:
                case Undefined(reason):
                    undefined.append(reason)
                case Fact(name, value):
                    outcome.facts[name] = value
                case Number() | Arrays():
                    _expect_declared(what, declared, item)
                    if any(row.metric == item.metric and row.unit == POINTS for row in outcome.rows):
                        raise PenultimateError(
                            f"{what.name} yields the arrays of {item.metric} twice; give each a metric of"
                            " its own"
                        )
                    outcome.rows.append(_kept(inputs, item))
                case _:
                    raise PenultimateError(
                        f"{what.name} yields {item!r}; a Number, Arrays, Fact or Undefined is expected"
                    )
    except UndefinedError as error:
        undefined.append(str(error))
    if undefined:
        outcome.facts["undefined"] = "; ".join(dict.fromkeys(undefined))
    return outcome


def _expect_declared(what: Measurement, known: Mapping[str, Any], item: Number | Arrays) -> None:
    declared = known.get(item.metric)
    unit = POINTS if isinstance(item, Arrays) else item.unit
    if declared is None or declared.unit != unit:
        listed = ", ".join(f"{quantity.metric} ({quantity.unit})" for quantity in known.values())
        raise PenultimateError(
            f"{what.name} yields {item.metric} ({unit}), which its declaration does not name: {listed}"
        )
    if isinstance(item, Arrays) and set(item.arrays) != set(declared.arrays):
        raise PenultimateError(
            f"{what.name} yields the arrays {', '.join(item.arrays)} of {item.metric}; its declaration names"
            f" {', '.join(declared.arrays)}"
        )


def _kept(inputs: Inputs, item: Number | Arrays) -> Row:
    """Return the row of what was measured; arrays are left in a file, to which their row points."""
    if isinstance(item, Number):
        return row(inputs.step, item)
    import numpy as np

    file = inputs.folder / f"{file_name(item.metric)}.npz"
    np.savez(file, **{name: np.asarray(array) for name, array in item.arrays.items()})  # type: ignore[arg-type]
    shared = {name: getattr(item, name) for name in ("split", "setting", "network", "other")}
    return row(inputs.step, Number(item.metric, item.points, POINTS, **shared))


def _is_taken(name: str) -> bool:
    """Return whether a file or folder of this name is a step's own: rows, record, or removed in the end."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in (*SCRATCH, ROWS, META))


def row(step: Step, number: Number, status: str = "done") -> Row:
    """Return the row of a number: the columns that the step's rows share, and the number's own.

    It names no arm: a study that shares the step may call it otherwise.
    """
    columns = {**step.columns, **({} if number.network is None else number.network.columns()), "arm": None}
    if number.other is not None:
        columns |= {"objective_b": number.other.objective, "seed_b": number.other.seed}
    if number.target is not None:
        columns["target"] = number.target
    columns |= {name: getattr(number, name) for name in OF_NUMBER}
    return Row(step=step.id, setting=setting_text(number.setting), status=status, **columns)


def execute(store: Store, step: Step, progress: Progress) -> dict[str, Any]:
    """Do one step in its folder, unless another process has done it meanwhile; its meta comes back.

    A measurement that has no value here (constant features, say) leaves no row, and its reason in meta.json.
    Raises DamagedParentError when a parent is not what was written; anything else that a step raises
    passes through, and its partial folder stays for the next attempt.
    """
    with store.step_lock(step.id):
        if store.is_whole(step.id):
            meta = store.meta(step.id)
            assert meta is not None
            return meta.content
        folders = _verified(store, (parent for parent in step.parents if parent not in step.absent))
        folder = store.begin(step.id)
        began, busy = time.perf_counter(), time.process_time()
        inputs = Inputs(step, folder, folders, progress)
        core = CORE.get(step.name)
        with listening(progress):
            outcome = core(inputs) if core else measure(measurement(step.name), inputs)
        refuse_changed(step.config.get("plugins", {}))
        (folder / ROWS).write_bytes(encode_rows(outcome.rows))  # which `finish` makes durable
        meta_content = {
            "step": step.name,
            "version": step.version,
            "config": step.config,
            "columns": {name: value for name, value in step.columns.items() if name != "arm"},
            "parents": list(step.parents),
            "status": outcome.status,
            "seconds": round(time.perf_counter() - began, 3),
            "cpu_seconds": round(time.process_time() - busy, 3),
            **outcome.facts,
            **machine(),
            "device": device_name(inputs.device),
            "threads": step.resources.threads,
        }
        store.finish(step.id, meta_content, SCRATCH)
        return meta_content


def _verified(store: Store, parents: Iterable[str]) -> dict[str, Path]:
    folders = {}
    for parent in parents:
        try:
            folders[parent] = store.verify(parent)
        except DamagedFileError as error:
            raise DamagedParentError(parent, str(error)) from error
    return folders
