"""Writes out everything that a change of the house must leave as it is, to be compared with `diff -r`.

    python -m tests.safety_net FOLDER [STUDY ...]

Before a move, and again after it, this writes every page, table and drawing of all kept runs, every exhibit
as the terminal shows it, and the identities of all steps of all built-in studies. Each STUDY (smoke,
quickstart) is run from an empty store as well, and its rows and exhibits are written out too.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from penultimate import registry
from penultimate.records.references import references
from penultimate.results import Run, read_reference, read_run, show, write_page
from penultimate.study import load_study
from penultimate.study.unfold import unfold


def write_exhibits(results: Run, folder: Path) -> None:
    """Write every exhibit of a study's results as the terminal shows it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in registry.names("exhibit"):
        shown = show(name, results, allow_limited=True).text()
        (folder / f"{name}.txt").write_text(shown, encoding="utf-8")


def write_kept_runs(folder: Path) -> None:
    """Write the page and the exhibits of every kept study, from its rows alone."""
    for name in references():
        if not name.startswith("tune-"):
            results = read_reference(name)
            write_page(results, folder / name / "report.html")
            write_exhibits(results, folder / name / "exhibits")


def write_identities(folder: Path) -> None:
    """Write the identities of the steps of every built-in study, a file a study, in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in registry.names("study"):
        steps = unfold(load_study(name)).steps
        (folder / f"{name}.txt").write_text("\n".join(steps) + "\n", encoding="utf-8")


def write_fresh_run(study: str, folder: Path) -> None:
    """Run a study from an empty store, and write its rows and exhibits, which bear no time and no machine."""
    from penultimate.engine.run import run

    with tempfile.TemporaryDirectory() as store:
        run(load_study(study), store)
        results = read_run(store, study)
        write_exhibits(results, folder / "exhibits")
    results.frame.to_csv(folder / "rows.csv", index=False)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    write_kept_runs(place / "kept")
    write_identities(place / "identities")
    for each in sys.argv[2:]:
        write_fresh_run(each, place / "fresh" / each)
