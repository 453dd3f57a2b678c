"""Progress of long work and the time that is left, reported to a listener or, without one, on a terminal."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

from penultimate.checks import is_number

Progress: TypeAlias = Callable[[dict[str, Any]], None]
"""Function that receives reports on the progress of a piece of work."""

TOLD_EVERY = 1.0
"""Seconds between two reports to a listener."""
SAID_EVERY = 10.0
"""Seconds between two lines on a terminal; shorter work prints nothing."""

DAY = 86_400
LONG = 2 * DAY
"""The number of seconds from which a duration is told in days."""

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
    whole = round(seconds)
    if whole >= LONG:
        days = whole / DAY
        return f"{days:,.1f} days" if days < 100 else f"{days:,.0f} days"
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
        self.done = done
        now = time.monotonic()
        if now - self.last < (TOLD_EVERY if self.listener else SAID_EVERY):
            return
        self.last = now
        left = (now - self.began) * (self.total - done) / done if done else math.inf
        news = {
            "doing": self.doing,
            "done": done,
            "of": self.total,
            "unit": self.unit,
            "seconds_left": left,
        }
        if self.listener is not None:
            self.listener(news)
        elif sys.stderr is not None and sys.stderr.isatty():
            print(line_of(news), file=sys.stderr, flush=True)

    def again(self) -> None:
        """Report that the work goes on, although no further unit is done yet."""
        self.to(self.done)

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Count the block as one unit; progress that is reported within it counts as a share of that unit."""
        before = self.done
        with listening(lambda news: self.to(before + news["done"] / news["of"])):
            yield
        self.to(before + 1)


def line_of(news: dict[str, Any]) -> str | None:
    """Return a report of an `Advance` as a line, or None for a plug-in's report in another form.

    >>> line_of({"doing": "kNN probe", "done": 4.5, "of": 1600, "unit": "examples", "seconds_left": 90.0})
    'kNN probe: 4 of 1,600 examples, about 1:30 left'
    """
    doing, unit, done, total, left = (
        news.get(key) for key in ("doing", "unit", "done", "of", "seconds_left")
    )
    if not (isinstance(doing, str) and isinstance(unit, str) and is_number(done) and is_number(total)):
        return None
    if not isinstance(left, float):
        return None
    about = f"about {seconds_text(left)}" if math.isfinite(left) else "unknown time"
    return f"{doing}: {int(done):,} of {int(total):,} {unit}, {about} left"
