"""The findings of a check, and their form on a terminal."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from penultimate.errors import PenultimateError

WIDTH = 100


class WrongError(PenultimateError):
    """Description of what is wrong with a plug-in and of how to mend it."""


def require(fits: object, sentence: str) -> None:
    """Raise WrongError with a sentence unless something holds."""
    if not fits:
        raise WrongError(sentence)


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of one check of a plug-in: whether it passed, and a sentence on what to do if not."""

    name: str
    kind: str
    check: str
    ok: bool
    sentence: str


@dataclass(frozen=True)
class Report:
    """All findings on a file, in the order of its plug-ins; `digest` is the file's sha256."""

    path: Path
    digest: str
    findings: tuple[CheckOutcome, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; the command's exit code is then 0, otherwise 1."""
        return not self.wrong

    @property
    def wrong(self) -> tuple[CheckOutcome, ...]:
        """The findings on what is wrong."""
        return tuple(finding for finding in self.findings if not finding.ok)


def render_report(report: Report) -> str:
    """Return the report as plain text.

    >>> finding = CheckOutcome("focal", "loss", "shape", False, "focal returns [7 5]; sum over the classes.")
    >>> print(render_report(Report(Path("focal.py"), "3fa1" * 16, (finding,))))
    focal.py  (sha256 3fa13fa13fa1)
    <BLANKLINE>
    loss focal
      WRONG  shape  focal returns [7 5]; sum over the classes.
    <BLANKLINE>
    1 of 1 checks found something wrong.
    """
    lines = [f"{report.path.name}  (sha256 {report.digest[:12]})"]
    column = max((len(finding.check) for finding in report.findings), default=0)
    for (kind, name), findings in groupby(report.findings, key=lambda finding: (finding.kind, finding.name)):
        lines += ["", f"{kind} {name}"]
        for finding in findings:
            head = f"  {'ok' if finding.ok else 'WRONG':<5}  {finding.check:<{column}}  "
            wrapper = textwrap.TextWrapper(WIDTH, head, " " * len(head))
            wrapper.break_long_words = wrapper.break_on_hyphens = False
            lines += wrapper.wrap(finding.sentence)
    count, wrong = len(report.findings), len(report.wrong)
    verdict = f"{wrong} of {count} checks found something wrong." if wrong else f"All {count} checks passed."
    return "\n".join([*lines, "", verdict])
