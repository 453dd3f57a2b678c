"""Examination of the machine, the versions, the results and the data, with a remedy for whatever is wrong."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from penultimate.doctor.findings import Finding
from penultimate.doctor.results import look_at_data, look_at_store
from penultimate.doctor.surroundings import look_at_machine, look_at_versions
from penultimate.errors import RequestError
from penultimate.files import given_path


def examine(out: Path | str = "runs") -> int:
    """Print the state of a store and of what it depends on; return 0 if all is sound and 1 otherwise.

    Nothing is changed. Raises RequestError if `out` is a file.
    """
    root = given_path(out, "--out")
    if root.exists() and not root.is_dir():
        raise RequestError(f"the output folder '{root}' is a file; give --out a folder")
    console = Console(highlight=False)
    wrong = _tell(console, "machine", look_at_machine(root))
    wrong += _tell(console, "versions", look_at_versions())
    columns = TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("steps read", total=None)
        found = look_at_store(root, lambda done, total: progress.update(task, completed=done, total=total))
    wrong += _tell(console, f"results in '{root}'", found)
    wrong += _tell(console, "data", look_at_data())
    console.print(f"To be done: {wrong}." if wrong else "All is sound.")
    return 1 if wrong else 0


def _tell(console: Console, title: str, findings: list[Finding]) -> int:
    """Print the findings of a part, and count its remedies; each is printed once, below all its findings."""
    console.print(f"[bold]{escape(title)}[/]")
    for finding in findings:
        if not finding.remedy:
            console.print(f"  {escape(finding.text)}", soft_wrap=True)
    remedies = dict.fromkeys(finding.remedy for finding in findings if finding.remedy)
    for remedy in remedies:
        for finding in findings:
            if finding.remedy == remedy:
                console.print(f"  [bold red]![/] {escape(finding.text)}", soft_wrap=True)
        console.print(f"    to do: {escape(remedy)}", soft_wrap=True)
    return len(remedies)
