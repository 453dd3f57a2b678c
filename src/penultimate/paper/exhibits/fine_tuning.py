"""Networks whose weights were all trained further on each task (Table 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.data.catalog import card
from penultimate.paper.printed import TASKS
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import PER_CLASS_NOTE, table_of_means, table_of_printed, task_columns
from penultimate.results.rows import MEAN, Run, mean_of, shared_seeds, transfer
from penultimate.results.table import Column, Table

FRESH, PROBE = "head=fresh", "head=probe"
GROUP = "Transfer, fine-tuned"


@exhibit("table2", "Does the objective still matter when all weights are trained further?", section="3.1")
def table2(run: Run) -> Iterator[Part]:
    """Test accuracy on each task of networks all of whose weights were fine-tuned on it, in per cent, means
    over runs. Learning rate and decay are chosen for each objective and task. The paper says that the
    objective has little effect on fine-tuned networks: the best is 0.2 points above softmax on average,
    which is not significant."""
    frames = {
        "linear": transfer(run, "linear"),
        FRESH: transfer(run, "fine_tuned", FRESH),
        PROBE: transfer(run, "fine_tuned", PROBE),
        "scratch": from_scratch(run),
    }
    shared = shared_seeds(
        frame for by_task in frames.values() for task, frame in by_task.items() if task != MEAN
    )
    linear, fresh, probe, scratch = (
        {task: frame[frame.index.isin(shared)] for task, frame in by_task.items()}
        for by_task in frames.values()
    )
    tuned = table_of_means(run, "table2", "All weights fine-tuned, %", task_columns(fresh, GROUP))
    title = "All weights fine-tuned, the final layer trained first, %"
    from_probe = table_of_means(run, "table2_probe", title, task_columns(probe, GROUP))
    if shown := tuned or from_probe:
        yield with_scratch(shown, scratch)
    columns = {
        Column(key, label, "Mean over tasks, %", better="high"): by_task[MEAN]
        for key, label, by_task in (
            ("linear_mean_percent", "Only a final layer", linear),
            ("fine_tuned_mean_percent", "All weights, the final layer fresh", fresh),
            ("probe_fine_tuned_mean_percent", "All weights, the final layer trained first", probe),
        )
        if not by_task[MEAN].empty
    }
    of_tuned = [column for column in columns if column.key != "linear_mean_percent"]
    if of_tuned and len(columns) > 1:
        title = "What is trained, and from where"
        yield table_of_means(run, "table2_starts", title, columns, needs=of_tuned, folded=True)
    if tuned and from_probe:
        yield replace(from_probe, folded=True)
    yield table_of_printed(
        "table2",
        "The paper's Table 2: ResNet-50, ImageNet, three runs, %",
        "neurips_table2_finetune",
        {
            Column(key, label, GROUP): key
            for key, label in {
                **{f"{task}_percent": label for task, label in TASKS.items()},
                "avg_percent": "Mean",
            }.items()
        },
        notes=["The paper's bold is not recorded."],
    )
    yield PER_CLASS_NOTE


def from_scratch(run: Run) -> dict[str, pd.DataFrame]:
    """Return the accuracies [seed, 1] of networks that were trained on a task alone, and their mean."""
    found = {}
    for task in run.targets:
        rows = run.rows(f"from_scratch_{card(task).accuracy}", target=task, about="images")
        found[task] = pd.DataFrame({"": 100 * rows.set_index(rows["seed"].astype(int))["value"]}).dropna(
            axis=1, how="all"
        )
    return {**found, MEAN: mean_of(list(found.values()))}


def with_scratch(table: Table, scratch: dict[str, pd.DataFrame]) -> Table:
    """Return a table by task with a last row of networks from scratch, if there are any."""
    runs = pd.DataFrame(
        {f"{task}_percent": frame.get("", pd.Series(dtype=float)) for task, frame in scratch.items()}
    )
    if runs.empty:
        return table
    rows = {"values": runs.mean(), "errors": runs.sem(), "counts": runs.count()}
    parts = {
        name: pd.concat([getattr(table, name), row.to_frame("From scratch").T]) for name, row in rows.items()
    }
    marks = None if table.marks is None else table.marks.reindex(parts["values"].index, fill_value="")
    return replace(table, **parts, marks=marks, slugs=(*table.slugs, ""))
