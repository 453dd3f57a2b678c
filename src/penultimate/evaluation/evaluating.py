"""The evaluation of the user's own networks on their data, behind `pu.evaluate` and the command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.engine.inprocess import InProcessEngine
from penultimate.engine.run import expect_located, run_graph
from penultimate.errors import RequestError
from penultimate.evaluation.request import Request
from penultimate.networks.sources import HUBS, read_source
from penultimate.notebook import text
from penultimate.results.exhibit import show
from penultimate.results.page import refresh_page
from penultimate.results.rows import Run, read_run
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.study.unfold import unfold

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from penultimate.engine.observer import Engine, Observer, Summary
    from penultimate.networks.model import Model


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
    def run(self) -> Run:
        """The rows of the study."""
        return read_run(self.out, self.study)

    @cached_property
    def ranking(self) -> list[dict[str, Any]]:
        """A row for each network, task and probe: accuracy, its 95 % interval, its places.

        The task "" is the mean over tasks. Places follow from paired tests of the networks on the same
        images: `best_place` is 1 + the number of networks that are better beyond chance, and `unbeaten` says
        that there are none.
        """
        from penultimate.evaluation.standings import records

        return records(self.run)

    @cached_property
    def remarks(self) -> list[str]:
        """Sentences on the assumed class order of the networks' outputs, and on numbers that are missing."""
        from penultimate.evaluation.exhibits.networks import classifier_gaps
        from penultimate.evaluation.warnings import order_of_classes

        return [*order_of_classes(self.run.description), *classifier_gaps(self.run)]

    @cached_property
    def warnings(self) -> list[str]:
        """Sentences on what makes numbers doubtful: networks below a baseline, groups that a split parts."""
        from penultimate.evaluation.warnings import warnings

        return warnings(self.run)

    def to_pandas(self) -> pd.DataFrame:
        """Return the ranking as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.ranking)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.ranking)

    def __len__(self) -> int:
        return len(self.ranking)

    def _notes(self) -> list[str]:
        failed = [f"failed: {step}: {why}" for step, why in self.summary.failed.items()]
        return [*failed, *self.remarks, f"Report: {self.report}"]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the ranking, after what makes it doubtful, and where its page is."""
        before = [f"<p><b>{text(warning)}</b></p>" for warning in self.warnings]
        after = [f"<p>{text(line)}</p>" for line in self._notes()]
        return "\n".join([*before, show("ranking", self.run)._repr_html_(), *after])

    def __repr__(self) -> str:
        return "\n".join([*self.warnings, show("ranking", self.run).text(), *self._notes()])


def evaluate(
    networks: Mapping[str, str | nn.Module | Model],
    data: Mapping[str, str | Path],
    *,
    out: Path | str = "runs",
    processes: int | None = None,
    observer: Observer | None = None,
    on: Engine | str = "local",
    command: str = "",
    verify: bool = False,
    **settings: Any,
) -> Evaluation:
    """Evaluate networks, {name: source}, on data, {name: place}; steps that `out` already holds are kept.

    A source is "timm:resnet50", "torchvision:resnet50", "hf:NAME" (transformers), "open_clip:NAME/WEIGHTS", a
    folder of either, "my_net.py:build", "onnx:net.onnx" or the folder of a network that was trained here,
    with settings in parentheses: "timm:resnet50(weights='best.safetensors')". A module (nn.Module) is
    evaluated as it is, in this process; its attribute `preparation` or timm's `pretrained_cfg` says how it
    prepares images, and `pu.Model(module, layer="neck", mean=(0.5,), std=(0.25,), size=64)` sets this and the
    layer of its features.
    A place is a folder with a folder for each class (or with such folders for each split), a table of paths
    and labels, arrays, or, under the name of a published data set, its location; "" stands for a data set
    that the package makes.
    The settings are the fields of `penultimate.evaluation.request.Request`, such as `source="imagenet"`,
    `classifies=True`, `fine_tune=True`, `layers=True`, `group="patient"` or `gpus=1`. Steps that fail are in
    `summary.failed` and do not affect the others. `on` is the engine that carries out the steps, "local",
    "ray" or your own, with `processes` in parallel. Raises RequestError for names and folders that cannot be
    used, and if there is no disk space or no GPU.
    """
    command = command or "penultimate.evaluate(...) in Python"
    request = Request(networks, data, **settings)
    found = carry_out(request, out, processes, observer, command, on, verify)
    if lost := {step: why for step, why in found.summary.failed.items() if step.startswith("given.")}:
        why, count = "; ".join(lost.values()), len(request.sources)
        if len(lost) == count:
            raise RequestError(f"no network could be evaluated: {why}")
        warnings.warn(f"{len(lost)} of {count} networks are left out: {why}", stacklevel=2)
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
    graph = unfold(expect_located(study))
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
