"""What a person sees of a running study: a line for each result, and a live footer in a terminal."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from penultimate.store import Store
from penultimate.study.context import ROWS
from penultimate.study.graph import Graph, Step
from penultimate.table import Row, read_rows

LOG_EVERY = 15.0
"""Seconds between two lines about one training in a log; a terminal has a moving bar instead."""


def seconds_text(seconds: float) -> str:
    """
    >>> seconds_text(8.2), seconds_text(134), seconds_text(7320)
    ('8 s', '2:14', '2:02:00')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Display:
    """An observer that prints to a console; without a terminal the same lines make a log."""

    def __init__(self, store: Store, console: Console | None = None) -> None:
        self.store = store
        self.console = console or Console(highlight=False)
        self.began = time.monotonic()
        self.rows: dict[tuple[str, str, int], list[Row]] = {}
        self.told: set[tuple[str, str, str, int]] = set()
        self.progress: Progress | None = None
        self.tasks: dict[str, TaskID] = {}
        self.graph: Graph | None = None
        self.overall: TaskID | None = None
        self.last_news: dict[str, float] = {}

    def say(self, text: str, style: str = "") -> None:
        since = seconds_text(time.monotonic() - self.began)
        self.console.print(f"[dim]{since:>7}[/]  {text}", style=style, soft_wrap=True)

    def opened(self, graph: Graph, cached: int, processes: int) -> None:
        self.graph = graph
        total = len(graph.steps)
        side = f"{processes} processes side by side" if processes > 1 else "one process"
        self.say(f"{self._opening(graph, cached)}, {side}")
        for step_id, step in graph.steps.items():
            if self.store.meta(step_id) is not None and "objective" in step.about:
                self._remember(step)
                self._tell(step, aloud=False)
        if self.console.is_terminal:
            self.progress = Progress(
                TextColumn("[bold]{task.description:<34}"),
                BarColumn(bar_width=32),
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self.progress.start()
            self.overall = self.progress.add_task("all steps", total=total, completed=cached, note="")

    def started(self, step: Step) -> None:
        self.last_news[step.id] = time.monotonic()
        if self.progress is not None:
            parts = [step.name, step.about.get("slug"), self._backbone(step), step.about.get("target")]
            title = " ".join(part for part in parts if part)
            self.tasks[step.id] = self.progress.add_task(escape(title)[:34], total=None, note="")

    def progressed(self, step: Step, news: dict[str, Any]) -> None:
        note = f"loss {news['loss']:.3f}, {news['images_per_second']:,.0f} img/s"
        if self.progress is not None and step.id in self.tasks:
            self.progress.update(
                self.tasks[step.id], completed=news["epoch"], total=news["epochs"], note=note
            )
        elif time.monotonic() - self.last_news[step.id] > LOG_EVERY:
            self.last_news[step.id] = time.monotonic()
            left = (
                seconds_text(news["seconds_left"]) if math.isfinite(news["seconds_left"]) else "unknown time"
            )
            self.say(f"{self._who(step)} epoch {news['epoch']} of {news['epochs']}, {note}, {left} left")

    def finished(self, step: Step, meta: dict[str, Any]) -> None:
        if self.progress is not None:
            self.progress.remove_task(self.tasks.pop(step.id))
            assert self.overall is not None
            self.progress.advance(self.overall)
        took = seconds_text(meta["seconds"])
        if step.name == "data":
            self.say(f"{escape(step.config['name'])} rendered in {took}")
        elif meta["status"] == "diverged":
            reason = escape(str(meta.get("reason", "")))
            self.say(f"{self._who(step)} [bold red]diverged[/]: {reason}; the study goes on without it")
        elif step.name == "train":
            self.say(f"{self._trained(step, meta)} in {took}")
        elif "objective" in step.about:
            self._remember(step)
            self._tell(step)

    def failed(self, step: Step, reason: str, log: str) -> None:
        if self.progress is not None and step.id in self.tasks:
            self.progress.remove_task(self.tasks.pop(step.id))
        assert self.graph is not None
        path = self.store.root / "studies" / self.graph.study.name / f"failed-{step.id}.log"
        where = ""
        if log:
            try:
                path.write_text(log)
                where = f" (log: {path})"
            except OSError:
                where = " (no room for its log)"
        with_backbone = f" ({self._backbone(step)})" if self._backbone(step) else ""
        name = escape(step.id + with_backbone)
        self.say(f"[bold red]failed[/] {name}: {escape(reason)}{escape(where)}")

    def noticed(self, message: str) -> None:
        self.say(f"[yellow]{escape(message)}[/]")

    def closed(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None

    def _opening(self, graph: Graph, cached: int) -> str:
        total = len(graph.steps)
        start = f"continuing, {cached} of {total} steps are done" if cached else f"{total} steps"
        return f"[bold]{escape(graph.study.name)}[/]: {start}"

    def _trained(self, step: Step, meta: dict[str, Any]) -> str:
        return f"{self._who(step)} trained"

    def _backbone(self, step: Step) -> str:
        """The architecture of a step, where the study has several."""
        assert self.graph is not None
        return str(step.about.get("backbone", "")) if len(self.graph.study.backbones) > 1 else ""

    def _who(self, step: Step) -> str:
        assert self.graph is not None
        seed = f" seed {step.about['seed']}" if len(self.graph.study.seeds) > 1 else ""
        backbone = f" {self._backbone(step)}" if self._backbone(step) else ""
        slug = self.graph.study.slugs()[step.about["objective"]]
        return f"[bold]{escape(slug + backbone + seed)}[/]"

    def _key(self, step: Step) -> tuple[str, str, int]:
        return step.about["objective"], step.about["backbone"], step.about["seed"]

    def _remember(self, step: Step) -> None:
        if "objective" in step.about and step.name not in ("train", "metric"):
            rows = read_rows(Path(self.store.folder(step.id)) / ROWS)
            self.rows.setdefault(self._key(step), []).extend(rows)

    def _tell(self, step: Step, aloud: bool = True) -> None:
        """Say a network's own numbers once both are there, its transfer once every target is; each once."""
        say = self.say if aloud else lambda text: None
        assert self.graph is not None
        rows = self.rows.get(self._key(step), [])
        found = {(row.metric, row.split): row.value for row in rows if row.target == self.graph.study.source}
        own = ("own", *self._key(step))
        if own not in self.told and {("top1", "test"), ("class_separation", "train")} <= found.keys():
            self.told.add(own)
            say(
                f"{self._who(step)} train {100 * found['top1', 'train']:.1f}  test"
                f" {100 * found['top1', 'test']:.1f}  class separation R²"
                f" {found['class_separation', 'train']:.3f}"
            )
        for probe in self.graph.study.probes:
            scores = [row.value for row in rows if row.metric in (f"{probe}_top1", f"{probe}_mean_per_class")]
            told = (probe, *self._key(step))
            if told not in self.told and scores and len(scores) == len(self.graph.study.targets):
                self.told.add(told)
                mean = 100 * sum(scores) / len(scores)
                over = "" if len(scores) == 1 else f" (mean of {len(scores)} data sets)"
                say(f"{self._who(step)} {probe} transfer {mean:.1f}{over}")
