"""The display of a running study: a line for each result, and a live footer in a terminal."""

from __future__ import annotations

import math
import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from penultimate.engine.costs import Costs
from penultimate.errors import RequestError, shortened
from penultimate.files import atomic_write
from penultimate.graph import Step
from penultimate.progress import line_of, seconds_text
from penultimate.records.table import ROWS, read_rows
from penultimate.store import Store
from penultimate.study.graph import Graph

LOG_EVERY = 15.0
"""The seconds between two log lines about a step; a terminal has a progress bar instead."""
LONGEST_REASON = 300
"""The number of characters shown of the reason for a missing value; the page shows all of it."""
COUNTED_EVERY = 60.0
"""The seconds after which a log gives the number of finished steps, and the time that is left, once more."""
LEAST_LEFT = 5.0
"""The seconds below which no time left is told."""
TOLD = {"epoch", "epochs", "loss", "images_per_second", "seconds_left"}
"""The keys that a training reports at the end of an epoch."""


class _Console(Console):
    """A console that notes when its reader has gone (`| head`) instead of ending the program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Display:
    """An observer that prints to a console; without a terminal the same lines make a log."""

    def __init__(self, store: Store, console: Console | None = None) -> None:
        self.store = store
        self.console = console or _Console(highlight=False)
        self.began = self.last_said = self.last_counted = time.monotonic()
        self.costs: Costs | None = None
        self.processes = self.done = self.total = 0
        self.undefined: set[tuple[str, str]] = set()
        self.progress: Progress | None = None
        self.tasks: dict[str, TaskID] = {}
        self.graph: Graph | None = None
        self.overall: TaskID | None = None
        self.last_news: dict[str, float] = {}
        self.slugs: dict[str, str] = {}
        self.distinctive: list[str] = []

    def say(self, text: str, style: str = "") -> None:
        self.last_said = time.monotonic()
        since = seconds_text(self.last_said - self.began)
        self.console.print(f"[dim]{since:>7}[/]  {text}", style=style, soft_wrap=True)

    def opened(self, graph: Graph, cached: int, processes: int) -> None:
        self._study(graph)
        if not cached and not self.total:  # said once, since a tuning opens one graph after another
            place = self.store.root.absolute()
            self.say(
                escape(
                    f"'{place}' has no results of this study, so all is computed; --out names another folder"
                )
            )
        self.done, self.total = cached, len(graph.steps)
        metas = {step_id: meta for step_id in graph.steps if (meta := self.store.meta(step_id)) is not None}
        self.costs = Costs(graph, {step_id: meta.content["seconds"] for step_id, meta in metas.items()})
        self.processes = processes
        side = "as many side by side as the nodes have room for"
        if processes:
            side = f"{processes} processes side by side" if processes > 1 else "one process"
        self.say(", ".join(filter(None, (f"{self._opening(graph, cached)}, {side}", self._about()))))
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
        if news.keys() >= TOLD:
            done, of = news["epoch"], news["epochs"]
            bar = f"loss {news['loss']:.3f}, {news['images_per_second']:,.0f} img/s"
            line = f"epoch {done} of {of}, {bar}, {seconds_text(news['seconds_left'])} left"
        elif told := line_of(news):
            done, of, bar = news["done"], news["of"], escape(told)
            line = bar
        else:  # a plug-in's measurement may report anything
            return
        if self.progress is not None and step.id in self.tasks:
            self.progress.update(self.tasks[step.id], completed=done, total=of, note=bar)
        elif time.monotonic() - self.last_news[step.id] > LOG_EVERY:
            self.last_news[step.id] = time.monotonic()
            self.say(f"{self._doing(step)} {line}")

    def finished(self, step: Step, meta: dict[str, Any]) -> None:
        if self.costs is not None:
            self.costs.ended(step.id, meta["seconds"], meta["status"] == "diverged")
        if self.progress is not None:
            self._drop_task(step)
            assert self.overall is not None
            self.progress.update(self.overall, advance=1, note=self._about())
        took = seconds_text(meta["seconds"])
        if step.name == "data":
            done = "looked at" if "where" in step.config else "rendered"
            self.say(f"{escape(step.config['name'])} {done} in {took}")
        elif meta["status"] == "diverged":
            reason = escape(str(meta.get("reason", "")))
            self.say(f"{self._doing(step)} [bold red]diverged[/]: {reason}; the study goes on without it")
        elif step.name == "train":
            self.say(f"{self._trained(step, meta)} in {took}")
        elif step.name == "given":
            noted = "".join(f"; {escape(text)}" for text in meta.get("noted", {}).values())
            self.say(f"{self._who(step)} loaded in {took}{noted}")
        elif step.name == "accuracy" and "seed" in step.columns:
            self._tell_accuracy(step)
        why = meta.get("undefined")
        if why and (step.name, why) not in self.undefined:  # said only for the first of many similar networks
            self.undefined.add((step.name, why))
            self.say(f"{self._doing(step)}: no value: {escape(shortened(why, LONGEST_REASON))}")
        self.done += 1
        if self.progress is None and time.monotonic() - self.last_counted > COUNTED_EVERY:
            counted = f"{self.done:,} of {self.total:,} steps are done"
            self.say(", ".join(filter(None, (counted, self._about()))))
            self.last_counted = self.last_said

    def failed(self, step: Step, reason: str, log: str) -> None:
        self._drop_task(step)
        assert self.graph is not None
        path = self.store.root / "studies" / self.graph.study.name / f"failed-{step.id}.log"
        where = ""
        if log:
            try:
                atomic_write(path, log.encode(errors="backslashreplace"), durable=False)
                where = f" (log: {path})"
            except (OSError, RequestError):
                where = " (no room for its log)"
        backbone = step.columns.get("backbone") if "backbone" in self.distinctive else None
        name = escape(f"{step.id} ({backbone})" if backbone else step.id)
        self.say(f"[bold red]failed[/] {name}: {escape(reason)}{escape(where)}")

    def noticed(self, message: str) -> None:
        self.say(f"[yellow]{escape(message)}[/]")

    def closed(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None

    def _about(self) -> str:
        """Return about how long the rest takes, or an empty string if that is unknown, or a moment."""
        seconds = math.inf if self.costs is None else self.costs.left(self.processes)
        return f"about {seconds_text(seconds)} left" if LEAST_LEFT < seconds < math.inf else ""

    def _opening(self, graph: Graph, cached: int) -> str:
        total = len(graph.steps)
        start = f"continuing, {cached} of {total} steps are done" if cached else f"{total} steps"
        return f"[bold]{escape(graph.study.name)}[/]: {start}"

    def _trained(self, step: Step, meta: dict[str, Any]) -> str:
        return f"{self._who(step)} trained"

    def _study(self, graph: Graph) -> None:
        """Note what distinguishes the networks of the study."""
        self.graph, self.slugs = graph, graph.study.slugs()
        trained = [key for block in graph.study.runs for key in block.keys()]
        names = ("arm", "backbone", "seed")
        self.distinctive = [name for name in names if len({getattr(key, name) for key in trained}) > 1]

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

    def _tell_accuracy(self, step: Step) -> None:
        """Print the accuracy of a network on its own data, as soon as it is known."""
        rows = read_rows(self.store.folder(step.id) / ROWS)
        found = {row.split: 100 * row.value for row in rows if row.metric == "top1"}
        if found:
            told = "  ".join(f"{split} {value:.1f}" for split, value in found.items())
            self.say(f"{self._who(step)} {told}")
