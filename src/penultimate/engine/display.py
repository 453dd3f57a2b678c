"""The display of a running study: a line for each result, and a live footer in a terminal."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from penultimate.engine.observer import Observer
from penultimate.engine.plan import Costs
from penultimate.errors import shortened
from penultimate.files import atomic_write
from penultimate.graph import Step
from penultimate.progress import line_of, seconds_text
from penultimate.records.table import ROWS, read_rows
from penultimate.store import Store
from penultimate.study.graph import Graph

LOG_EVERY = 15.0
"""The seconds between two log lines about a step; a terminal has a progress bar instead."""
COUNTED_EVERY = 60.0
"""The seconds after which a log gives the number of finished steps, and the remaining time, once more."""
LONGEST_REASON = 300
"""The number of characters shown of the reason for a missing value; the page shows all of it."""
LEAST_LEFT = 5.0
"""The seconds below which no remaining time is shown."""
OF_EPOCH = {"epoch", "epochs", "loss", "images_per_second", "seconds_left"}
"""The keys that a training reports at the end of an epoch."""


class _Console(Console):
    """A console that notes when its reader has gone (`| head`) instead of ending the program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Display(Observer):
    """An observer that prints to a console; without a terminal the same lines make a log."""

    def __init__(self, store: Store, console: Console | None = None) -> None:
        self.store = store
        self.console = console or _Console(highlight=False)
        self.began = self.last_counted = time.monotonic()
        self.done = self.total = self.processes = 0
        self.undefined: set[tuple[str, str]] = set()
        self.last_news: dict[str, float] = {}
        self.progress: Progress | None = None
        self.tasks: dict[str, TaskID] = {}

    def say(self, text: str, style: str = "") -> None:
        since = seconds_text(time.monotonic() - self.began)
        self.console.print(f"[dim]{since:>7}[/]  {text}", style=style, soft_wrap=True)

    def opened(self, graph: Graph, cached: int, processes: int) -> None:
        self.study, self.slugs = graph.study, graph.study.slugs()
        trained = [key for block in graph.study.runs for key in block.keys()]
        names = ("arm", "backbone", "seed")
        self.distinctive = [name for name in names if len({getattr(key, name) for key in trained}) > 1]
        self.done, self.total, self.processes = cached, len(graph.steps), processes
        metas = {step_id: meta for step_id in graph.steps if (meta := self.store.meta(step_id)) is not None}
        self.costs = Costs(graph, {step_id: meta.content["seconds"] for step_id, meta in metas.items()})
        count = f"continuing, {cached} of {self.total} steps are done" if cached else f"{self.total} steps"
        side = f"{processes} side by side" if processes else "as many side by side as the nodes have room for"
        where = escape(f"{count} in '{self.store.root}', {side}")
        self.say(", ".join(filter(None, (f"[bold]{escape(graph.study.name)}[/]: {where}", self._about()))))
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
            self.overall = self.progress.add_task(
                "all steps", total=self.total, completed=cached, note=self._about()
            )

    def started(self, step: Step) -> None:
        self.last_news[step.id] = time.monotonic()
        if self.progress is not None:
            self._drop_task(step)
            self.tasks[step.id] = self.progress.add_task(self._title(step)[:34], total=None, note="")

    def progressed(self, step: Step, news: dict[str, Any]) -> None:
        if news.keys() >= OF_EPOCH:
            done, total = news["epoch"], news["epochs"]
            note = f"loss {news['loss']:.3f}, {news['images_per_second']:,.0f} img/s"
            line = f"epoch {done} of {total}, {note}, {seconds_text(news['seconds_left'])} left"
        elif text := line_of(news):
            done, total, note = news["done"], news["of"], escape(text)
            line = note
        else:  # a plug-in's measurement may report anything
            return
        if self.progress is not None and step.id in self.tasks:
            self.progress.update(self.tasks[step.id], completed=done, total=total, note=note)
        elif time.monotonic() - self.last_news[step.id] > LOG_EVERY:
            self.last_news[step.id] = time.monotonic()
            self.say(f"{self._doing(step)} {line}")

    def finished(self, step: Step, meta: dict[str, Any]) -> None:
        self.done += 1
        self.costs.ended(step.id, meta["seconds"], meta["status"] == "diverged")
        if self.progress is not None:
            self._drop_task(step)
            self.progress.update(self.overall, advance=1, note=self._about())
        if line := self._result(step, meta):
            self.say(line)
        why = meta.get("undefined")
        if why and (step.name, why) not in self.undefined:  # said only for the first of many similar networks
            self.undefined.add((step.name, why))
            self.say(f"{self._doing(step)}: no value: {escape(shortened(why, LONGEST_REASON))}")
        if self.progress is None and time.monotonic() - self.last_counted > COUNTED_EVERY:
            self.last_counted = time.monotonic()
            count = f"{self.done:,} of {self.total:,} steps are done"
            self.say(", ".join(filter(None, (count, self._about()))))

    def _result(self, step: Step, meta: dict[str, Any]) -> str:
        """Return a line on a finished step, or "" for one that needs none."""
        took = f"in {seconds_text(meta['seconds'])}"
        if meta["status"] == "diverged":
            reason = escape(str(meta.get("reason", "")))
            return f"{self._doing(step)} [bold red]diverged[/]: {reason}; the study goes on without it"
        match step.name:
            case "data":
                done = "looked at" if "where" in step.config else "rendered"
                return f"{escape(step.config['name'])} {done} {took}"
            case "train":
                return f"{self._who(step)} trained {took}"
            case "given":
                noted = "".join(f"; {escape(text)}" for text in meta.get("noted", {}).values())
                return f"{self._who(step)} loaded {took}{noted}"
            case "accuracy" if "seed" in step.columns:
                rows = read_rows(self.store.folder(step.id) / ROWS)
                found = [f"{row.split} {100 * row.value:.1f}" for row in rows if row.metric == "top1"]
                return f"{self._who(step)} {'  '.join(found)}" if found else ""
        return ""

    def failed(self, step: Step, reason: str, log: str) -> None:
        self._drop_task(step)
        path = self.store.root / "studies" / self.study.name / f"failed-{step.id}.log"
        where = ""
        with contextlib.suppress(OSError):  # the disk may be full
            if log:
                atomic_write(path, log.encode(errors="backslashreplace"), durable=False)
                where = f" (log: {path})"
        self.say(f"[bold red]failed[/] {escape(f'{step.id}: {reason}{where}')}")

    def noticed(self, message: str) -> None:
        self.say(f"[yellow]{escape(message)}[/]")

    def closed(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None

    def _about(self) -> str:
        """Return about how long the rest takes, or an empty string if that is unknown, or a moment."""
        seconds = self.costs.left(self.processes)
        return f"about {seconds_text(seconds)} left" if LEAST_LEFT < seconds < math.inf else ""

    def _drop_task(self, step: Step) -> None:
        if self.progress is not None and step.id in self.tasks:
            self.progress.remove_task(self.tasks.pop(step.id))

    def _name(self, step: Step) -> str:
        """Return a name for a step's network from the arm, architecture and seed that distinguish it."""
        objective = step.columns.get("objective")
        parts = [self.slugs.get(objective, objective)] if objective else []
        for name in self.distinctive:
            value = step.columns.get(name)
            if value is not None:
                parts.append(f"seed {value}" if name == "seed" else value)
        return " ".join(parts)

    def _who(self, step: Step) -> str:
        return f"[bold]{escape(self._name(step))}[/]"

    def _title(self, step: Step) -> str:
        """Return a title for a step from its kind, network and data set."""
        return escape(" ".join(filter(None, (step.name, self._name(step), step.columns.get("target")))))

    def _doing(self, step: Step) -> str:
        """Return a name for what trains: the network of a study, or else the step and data set."""
        return self._who(step) if step.name == "train" else f"[bold]{self._title(step)}[/]"
