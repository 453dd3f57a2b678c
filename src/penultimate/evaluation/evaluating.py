"""The evaluation of the user's own networks on their data, behind `pu.evaluate` and the command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.engine.inprocess import InProcessEngine
from penultimate.engine.run import expect_located, run_graph
from penultimate.errors import RequestError
from penultimate.evaluation.request import NAME, Request
from penultimate.networks.sources import HUBS, read_source
from penultimate.notebook import text
from penultimate.report import exhibit, read_study, refresh_page, render_exhibit_text
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.study.unfold import unfold

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from penultimate.engine.observer import Engine, Observer, Summary
    from penultimate.networks.model import Model
    from penultimate.report.base import Built


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation: iterating over it, and pandas.DataFrame(it), gives the ranking's rows.

    `report` is its page; `summary` says what was computed, and what failed for which reason. All numbers are
    those of `penultimate.results(out, study)`.
    """

    out: Path
    study: str
    report: Path
    summary: Summary

    @cached_property
    def ranking(self) -> list[dict[str, Any]]:
        """A row for each network, task and probe: accuracy, its 95 % interval, its places.

        The task "" is the mean over tasks. Places follow from paired tests of the networks on the same
        images: `best_place` is 1 + the number of networks that are better beyond chance, and `unbeaten` says
        that there are none.
        """
        from penultimate.evaluation.boards import records
        from penultimate.report.measurements import admit

        return records(admit(read_study(self.out, self.study)))

    @cached_property
    def remarks(self) -> list[str]:
        """Sentences on the assumed class order of the networks' outputs, and on numbers that are missing."""
        from penultimate.evaluation.outputs import not_given, order_of_classes

        results = read_study(self.out, self.study)
        order = order_of_classes(results.description)
        return [*filter(None, [order]), *not_given(results)]

    @cached_property
    def warnings(self) -> list[str]:
        """Sentences on what makes numbers doubtful: networks below a baseline, groups that a split parts."""
        from penultimate.evaluation.baselines import first_lines, shortfalls
        from penultimate.evaluation.grouped import leaks
        from penultimate.report.measurements import admit

        measurements = admit(read_study(self.out, self.study))
        return [*first_lines(shortfalls(measurements)), *leaks(measurements)]

    def to_pandas(self) -> pd.DataFrame:
        """Return the ranking as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.ranking)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.ranking)

    def __len__(self) -> int:
        return len(self.ranking)

    def _exhibit(self) -> Built:
        return exhibit("ranking", self.out, self.study)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the ranking, after what makes it doubtful, and where its page is."""
        failed = [f"failed: {step}: {why}" for step, why in self.summary.failed.items()]
        said = [f"<p>{text(line)}</p>" for line in (*failed, *self.remarks, f"Report: {self.report}")]
        warned = [f"<p><b>{text(warning)}</b></p>" for warning in self.warnings]
        return "\n".join([*warned, self._exhibit()._repr_html_(), *said])

    def __repr__(self) -> str:
        failed = "".join(f"failed: {step}: {why}\n" for step, why in self.summary.failed.items())
        told = "".join(f"{remark}\n" for remark in self.remarks)
        warned = "".join(f"{warning}\n" for warning in self.warnings)
        return f"{warned}{render_exhibit_text(self._exhibit())}\n{failed}{told}Report: {self.report}"


def evaluate(
    networks: Mapping[str, str | nn.Module | Model],
    data: Mapping[str, str | Path],
    *,
    source: str = "",
    classifies: bool | Sequence[str] = False,
    fine_tune: bool = False,
    size: int | None = None,
    crop: float | None = None,
    class_order: str | Path | Sequence[str] | Mapping[Any, Any] = (),
    copies: str = "keep",
    out: Path | str = "runs",
    name: str = "",
    processes: int | None = None,
    observer: Observer | None = None,
    on: Engine | str = "local",
    gpus: float = 0.0,
    baselines: bool = True,
    speed: bool = False,
    join: Sequence[str] = (),
    outside: Mapping[str, str | Path] | None = None,
    calibrate: bool = False,
    group: str | int = "",
    poolings: str | Sequence[str] = (),
    layers: bool = False,
    command: str = "",
    verify: bool = False,
) -> Evaluation:
    """Evaluate networks, {name: source}, on data, {name: place}; steps that `out` already holds are kept.

    A source is "timm:resnet50", "torchvision:resnet50", "hf:NAME" (transformers), "open_clip:NAME/WEIGHTS", a
    folder of either, "my_net.py:build", "onnx:net.onnx" or the folder of a network that was trained here,
    with settings in parentheses: "timm:resnet50(weights='best.safetensors')".
    A module (nn.Module) is evaluated as it is, in this process, one step after another; its attribute
    `preparation` or timm's `pretrained_cfg` says how it prepares images, and `pu.Model(module, layer="neck",
    mean=(0.5,), std=(0.25,), size=64)` sets this and the layer of its features.
    A place is a folder with a folder for each class (or with such folders for each split), a table of paths
    and labels, arrays, or, under the name of a published data set, its location; "" stands for a data set
    that the package makes. `source` names the data whose classes the networks were trained on, `classifies`
    (True: all) the networks whose final layers classify these. `size` (pixels) and `crop` (the share of the
    resized image in the centre crop) replace the defaults of the weights for all networks whose sources do
    not set them (crop=160, share=0.9). `class_order` is the order of the source's classes in the networks'
    outputs: their names, {name: place}, {place: name}, a JSON file that holds one of these, or "text" (the
    default, as in torchvision's ImageFolder), "natural" (as in timm) or "dictionary". `copies="drop"` keeps
    only one of several equal images. Steps that fail are in `summary.failed` and do not affect the others.
    `on` is the engine that carries out the steps, "local", "ray" or your own, with `processes` in parallel.

    `gpus` is the share of a GPU for each step that runs a network: 1, or 0.1 for ten in parallel on each;
    with 0, everything runs on the CPU. `baselines=False` leaves out the probes on pixels, colours and random
    convolutions, with which every network is compared; `speed=True` measures how many images a second each
    network takes. `join=("a+b",)` also probes the features of a and b together. `outside` are data, {name:
    place}, of any classes or none, whose images are told from the source's (without a source, from the first
    task's); `calibrate=True` also measures the calibration of the linear probes. `group` is the column of the
    tables, or the level of the folders (1: the first below a class), whose images are kept together: a drawn
    split parts no group, and intervals and tests are of whole groups. `poolings="all"`, or some of "cls",
    "mean", "cls+mean" and "patches:mean", evaluates each network with tokens once more for each way in which
    these become features. `layers=True` chooses for each network and task the layer to read, on validation
    images, and tests it beside the penultimate features. Raises RequestError for names and
    folders that cannot be used, and if there is no disk space or no GPU.
    """
    request = Request(
        networks=networks,
        data=data,
        source=source,
        classifies=classifies,
        fine_tune=fine_tune,
        size=size,
        crop=crop,
        class_order=class_order,
        copies=copies,
        name=name or NAME,
        gpus=gpus,
        baselines=baselines,
        speed=speed,
        join=join,
        outside=outside or {},
        calibrate=calibrate,
        group=group,
        poolings=poolings,
        layers=layers,
    )
    command = command or "penultimate.evaluate(...) in Python"
    found = carry_out(request, out, processes, observer, command, on, verify)
    if lost := {step: why for step, why in found.summary.failed.items() if step.startswith("given.")}:
        told = "; ".join(lost.values())
        if len(lost) == len(request.sources):
            raise RequestError(f"no network could be evaluated: {told}")
        warnings.warn(f"{len(lost)} of {len(request.sources)} networks are left out: {told}", stacklevel=2)
    return found


def carry_out(
    request: Request,
    out: Path | str,
    processes: int | None,
    observer: Observer | None,
    command: str,
    on: Engine | str,
    verify: bool,
) -> Evaluation:
    """Run the study of a request with `engine.run.run`, and write its page."""
    if request.modules and on != "local":
        raise RequestError(
            f"'{request.modules[0]}' is a module, which no other process knows: only on='local' runs it"
        )
    study = request.study()
    graph = unfold(expect_located(study, verify))
    _expect_networks(graph, Store(out))
    engine = InProcessEngine() if request.modules else on
    summary = run_graph(graph, out, processes, observer, command, engine, verify)
    return Evaluation(Path(out), study.name, refresh_page(out, study.name), summary)


def _expect_networks(graph: Graph, store: Store) -> None:
    """Raise RequestError for a network that its library does not have, before any work on the others."""
    steps = graph.steps.values()
    sources = [step.config["source"] for step in steps if step.name == "given" and not store.holds(step.id)]
    for source in map(read_source, sources):
        if source.kind in HUBS:
            from penultimate.networks.architectures import hub_of

            hub_of(source.kind).expect(source)
        if source.kind in ("timm", "torchvision"):
            from penultimate.networks.architectures import expect_known

            expect_known(source.kind, source.name)
            if how := source.settings.get("pooling"):
                from penultimate.networks.poolings import expect_pooling

                expect_pooling(source, how)
