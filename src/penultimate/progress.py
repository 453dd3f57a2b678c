"""Progress of long work and the time that is left, reported to a listener or, without one, on a terminal."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[dict[str, Any]], None]
"""Function that receives reports on the progress of a piece of work."""

REPORTED = ("doing", "done", "of", "unit", "seconds_left")
"""What a report on the progress of a probe holds."""
TOLD_EVERY = 1.0
"""Seconds between two reports to a listener."""
SAID_EVERY = 10.0
"""Seconds between two lines on a terminal; shorter work prints nothing."""

_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)


def seconds_text(seconds: float) -> str:
    """Return a duration as text.

    >>> seconds_text(8.2), seconds_text(134), seconds_text(7320), seconds_text(float("inf"))
    ('8 s', '2:14', '2:02:00', 'unknown time')
    >>> seconds_text(3 * 86400 + 7000), seconds_text(551424 * 3600)
    ('3.1 days', '22,976 days')
    """
    if not math.isfinite(seconds):
        return "unknown time"
    if seconds >= 2 * 86_400:
        return f"{seconds / 86_400:,.{1 if seconds < 100 * 86_400 else 0}f} days"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}" if minutes else f"{rest} s"


@contextlib.contextmanager
def listening(progress: Progress) -> Iterator[None]:
    """Report the progress of long probes in the block to `progress`, each at most once a second.

    It is called with {"doing", "done", "of", "unit", "seconds_left"}, for example {"doing": "kNN probe",
    "done": 40000, "of": 160000, "unit": "examples", "seconds_left": 90.0}.
    """
    token = _LISTENER.set(progress)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Advance:
    """Progress of a long piece of work with a known number of units, such as the lambdas of a path.

    Without a listener, a line is printed every ten seconds if standard error is a terminal.
    """

    def __init__(self, doing: str, unit: str, total: int) -> None:
        self.doing, self.unit, self.total = doing, unit, total
        self.done = 0.0
        self.listener = _LISTENER.get()
        self.began = self.last = time.monotonic()

    def to(self, done: float) -> None:
        """Note that `done` units are done, and report it if the last report was long enough ago."""
        self.done, now = done, time.monotonic()
        if now - self.last < (TOLD_EVERY if self.listener else SAID_EVERY):
            return
        self.last = now
        left = (now - self.began) * (self.total - done) / done if done else math.inf
        report = dict(zip(REPORTED, (self.doing, done, self.total, self.unit, left), strict=True))
        if self.listener is not None:
            self.listener(report)
        elif sys.stderr is not None and sys.stderr.isatty():
            print(line_of(report), file=sys.stderr, flush=True)

    def again(self) -> None:
        """Report that the work goes on, although no further unit is done yet."""
        self.to(self.done)

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Count the block as one unit; progress that is reported within it counts as a share of that unit."""
        before = self.done
        with listening(lambda report: self.to(before + report["done"] / report["of"])):
            yield
        self.to(before + 1)


def line_of(report: dict[str, Any]) -> str | None:
    """Return a report of an `Advance` as a line, or None for a plug-in's report in another form.

    >>> line_of({"doing": "kNN probe", "done": 4.5, "of": 1600, "unit": "examples", "seconds_left": 90.0})
    'kNN probe: 4 of 1,600 examples, about 1:30 left'
    """
    if not report.keys() >= {*REPORTED}:
        return None
    doing, done, total, unit, left = (report[key] for key in REPORTED)
    about = f"about {seconds_text(left)}" if math.isfinite(left) else "unknown time"
    return f"{doing}: {int(done):,} of {int(total):,} {unit}, {about} left"
