"""The measurements of plug-ins: the user's metrics, probes and measurements, without a paper to compare."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from penultimate import registry
from penultimate.data.catalog import card
from penultimate.results.exhibit import exhibit
from penultimate.results.means import table_of_means, task_columns
from penultimate.results.rows import LARGEST, MEAN, Run, mean_of, seeds
from penultimate.results.table import Column, Table
from penultimate.results.text import as_name

NONE = (
    "This study asks for nothing that a plug-in measures; one that does: `penultimate run STUDY --plugin FILE"
    " --set measure=accuracy,class_separation,linear,knn,NAME`."
)
DIGITS = 4
"""The number of significant digits of a number whose scale is not known beforehand."""


@exhibit("plugins", "Measured by plug-ins", study="")
def plugins(run: Run) -> Iterator[Table | str | None]:
    """Metrics of your own, taken of the penultimate features of {source}; probes of your own, fitted to those
    of each new task and scored as the others are. Means over runs, ± the standard error."""
    asked = of_plugins(run)
    if not asked:
        yield NONE
    reasons = [str(reason) for reason in run.provenance.get("undefined", {}).values()]
    for text in asked:
        made = [table for arm in run.arms for table in (_scores(run, arm, text), _numbers(run, arm, text))]
        yield from made
        if not any(made):
            why = next((reason for reason in reasons if reason.startswith(f"{text} (")), "")
            yield f"No value: {why}" if why else f"{text}: not measured."


def of_plugins(run: Run) -> list[str]:
    """Return the plug-ins' measurements of the networks, as spec strings."""
    known = [registry.entry("measurement", name) for name in registry.names("measurement")]
    built_in = {entry.name for entry in known if not entry.is_plugin}
    return [text for text in run.description.get("measure", ()) if _name(text) not in built_in]


def _name(text: str) -> str:
    return text.partition("(")[0].strip()


def _scores(run: Run, arm: str, text: str) -> Table | None:
    """Return a table of a plug-in probe's scores on each target, beside the accuracy on the source."""
    of_tasks = {task: seeds(run, _score(text, task), target=task, arm=arm, scale=100) for task in run.targets}
    if all(frame.empty for frame in of_tasks.values()):
        return None
    tasks = task_columns({**of_tasks, MEAN: mean_of([*of_tasks.values()])}, f"Transfer, {text}")
    accuracies = {
        Column(f"top{k}_percent", f"Top-{k}", f"{run.title}, test", 1, "high"): seeds(
            run, f"top{k}", arm=arm, scale=100
        )
        for k in (1, 5)
    }
    title = f"Classifiers on frozen features, {text}, %"
    return _table(run, arm, ("plugins_probe", text), title, accuracies | tasks, [*tasks])


def _score(text: str, target: str) -> str:
    """Return the metric that holds a probe's accuracy on a target."""
    return f"{text}_{card(target).accuracy}"


def _numbers(run: Run, arm: str, text: str) -> Table | None:
    """Return a table of the other numbers of a measurement, in columns with digits that suit their values."""
    rows = run.frame
    rows = rows[rows["step"].astype(str).str.partition(".")[0] == _name(text)]
    rows = rows[rows["epoch"].isna() & rows["objective"].notna() & rows["objective_b"].isna()]
    rows = rows[(rows["arm"].astype(object).fillna("") == arm) & rows["status"].isin(("done", "limited"))]
    rows = rows[rows["value"].abs() <= LARGEST]
    columns: dict[Column, pd.DataFrame] = {}
    places = rows[["metric", "target", "split", "layer", "setting"]].astype(object).fillna("")
    largest = rows["value"].abs().groupby(places["metric"]).max()
    for place, of_place in rows.groupby([places[name] for name in places], sort=False):
        metric, target, split, layer, setting = map(str, place)
        if target in run.targets and metric == _score(text, target):
            continue
        part = metric.removeprefix(text).removeprefix(".")
        on, condition = "" if target == run.source else target, layer or setting
        where = ", ".join(filter(None, (on and card(on).title, split, condition)))
        key = "_".join(filter(None, (on, condition, split, part or "value")))
        label = f"{part.replace('_', ' ') or 'Value'} ({where})"
        columns[Column(key, label, "", _decimals(largest[metric]), with_error=True)] = run.pivot(of_place)
    return _table(run, arm, ("plugins_metric", text), text, columns, [*columns])


def _table(
    run: Run,
    arm: str,
    name: tuple[str, str],
    title: str,
    columns: dict[Column, pd.DataFrame],
    needs: list[Column],
) -> Table | None:
    """Return the table under a name that suits a file; its title names the arm unless it is the main one."""
    file, title = as_name(*name, *filter(None, [arm])), ", ".join(filter(None, (title, arm)))
    return table_of_means(run, file, title, columns, needs=needs, arms=(arm,))


def _decimals(largest: float) -> int:
    """Return the number of decimals, at most six, that gives the largest value four significant digits.

    >>> [_decimals(value) for value in (0.5, 12.0, 123456.0, 0.0)]
    [4, 2, 0, 0]
    """
    return min(6, max(0, DIGITS - 1 - math.floor(math.log10(largest)))) if largest else 0
