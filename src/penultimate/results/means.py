"""Tables of means over runs, marked where objectives differ beyond chance, and the paper's printed tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate import registry
from penultimate.data.catalog import CARDS, card
from penultimate.data.readers.entries import ENTRIES
from penultimate.results.rows import MEAN, Run
from penultimate.results.table import Column, Table
from penultimate.results.text import as_name, plain

if TYPE_CHECKING:
    import pandas as pd

PrintedColumn: TypeAlias = "str | Callable[[pd.DataFrame], pd.Series]"
"""A printed column: its name in the file, or what makes one of a table's numbers."""
PER_CLASS = "†"
"""Marks a data set whose accuracy is the mean over classes."""
PER_CLASS_NOTE = f"{PER_CLASS} mean per-class accuracy; all others top-1."


def table_of_means(
    run: Run,
    name: str,
    title: str,
    columns: Mapping[Column, pd.DataFrame],
    *,
    needs: Sequence[Column] | None = None,
    rows: Mapping[str, str] | None = None,
    arms: Sequence[str] = ("",),
    corner: str = "Objective",
    notes: Sequence[str] = (),
    folded: bool = False,
    slugs: bool = True,
) -> Table | None:
    """Return the means over runs of frames [seed, objective], or None without a row.

    The rows are the objectives of `arms`, or {slug: label} of `rows`, that have a value in one of the columns
    `needs` (by default, in any). A column with a `better` end is tested seed by seed and marked.
    """
    import pandas as pd

    labels = dict(rows if rows is not None else run.labels(*arms))
    kept = [column for column in columns if needs is None or column in needs]
    index = [slug for slug in labels if any(slug in columns[column].columns for column in kept)]
    if not index:
        return None
    frames = {column.key: frame.reindex(columns=index) for column, frame in columns.items()}

    def of_each(summary: Callable[[pd.DataFrame], pd.Series], keys: Iterable[str] = frames) -> pd.DataFrame:
        found = pd.DataFrame({key: summary(frames[key]) for key in keys}, index=index)
        return found.set_axis([labels[slug] for slug in index])

    counts = of_each(pd.DataFrame.count)
    higher, lower = ([column.key for column in columns if column.better == end] for end in ("high", "low"))
    marks = of_each(compared, higher).join(of_each(lambda frame: compared(frame, False), lower))
    return Table(
        name,
        title,
        tuple(columns),
        of_each(pd.DataFrame.mean),
        corner=corner,
        errors=of_each(pd.DataFrame.sem),
        counts=counts.where(counts > 0),
        marks=None if marks.empty else marks,
        notes=tuple(notes),
        slugs=tuple(index) if slugs else (),
        folded=folded,
    )


def compared(frame: pd.DataFrame, higher_is_better: bool = True) -> pd.Series:
    """Return "best" for the objectives that no other beats beyond chance, "worse" for those that one beats.

    An objective that cannot be tested is neither (`statistics.bold`).
    """
    import pandas as pd

    from penultimate.statistics import bold

    runs = {slug: frame[slug].dropna().to_dict() for slug in frame.columns}
    found = bold({slug: of for slug, of in runs.items() if of}, higher_is_better)
    marks = {slug: "worse" for slug, of in found.p_values.items() if of}
    return pd.Series(
        {**marks, **dict.fromkeys(found.entries, "best")}, index=frame.columns, dtype=object
    ).fillna("")


def task_columns(
    by_task: Mapping[str, pd.DataFrame], group: str = "", better: Any = "high", digits: int = 1
) -> dict[Column, pd.DataFrame]:
    """Return the columns of `rows.transfer`: a task each, and their mean."""
    return {
        Column(f"{task}_percent", task_label(task), group, digits, better): frame
        for task, frame in by_task.items()
    }


def task_label(task: str) -> str:
    """Return the heading of a task, with a dagger if its accuracy is the mean over classes."""
    if task == MEAN:
        return "Mean"
    is_per_class = card(task).accuracy == "mean_per_class"
    return plain(task.replace("_", " ")).capitalize() + PER_CLASS * is_per_class


def name_on(figure: str, target: str) -> str:
    """Return the name of a panel that shows a figure on a data set.

    A data set of a user's own may be called like another panel: "mean", "scale", "published-pets".

    >>> name_on("figureD2", "digits"), name_on("figureD2", "mean"), name_on("figureD2", "My pets")
    ('figureD2-digits', 'figureD2--mean', 'figureD2--My_pets---e21fef100836')
    """
    return f"{figure}-{target}" if target in CARDS or target in ENTRIES else f"{figure}--{as_name(target)}"


def printed(name: str, numbers: bool = True) -> pd.DataFrame:
    """Return a printed table of the paper by the column that names its rows, such as "objective".

    Its cells are numbers or, digit for digit, texts. `penultimate.paper.published` lists the tables.
    """
    import pandas as pd

    rows: Sequence[Mapping[str, str]] = registry.entry("printed", name).resolve()
    table = pd.DataFrame(rows, dtype=object)
    if numbers:
        table = table.replace("", None).apply(_typed)
    return table.set_index(table.columns[0])


def _typed(column: pd.Series) -> pd.Series:
    """Return a printed column as numbers if all of its cells are."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if bool((numbers.notna() == column.notna()).all()) else column


def table_of_printed(
    name: str,
    title: str,
    source: str,
    columns: Mapping[Column, PrintedColumn],
    *,
    rows: pd.DataFrame | None = None,
    corner: str = "Objective",
    notes: Sequence[str] = (),
    folded: bool = False,
) -> Table:
    """Return the paper's columns, digit for digit with their standard errors; {column: its name in the file}.

    A function of the printed numbers stands for a column that the paper does not print. `rows` are printed
    texts that were chosen or joined by hand.
    """
    import pandas as pd

    texts = printed(source, numbers=False) if rows is None else rows
    texts = texts.replace("", None)
    numbers = texts.apply(lambda column: pd.to_numeric(column, errors="coerce"))
    values, errors, shown = pd.DataFrame(index=texts.index), {}, pd.DataFrame(index=texts.index)
    for column, key in columns.items():
        if callable(key):
            values[column.key] = key(numbers)
            continue
        values[column.key] = numbers[key].where(numbers[key].notna(), texts[key])
        shown[column.key] = texts[key]
        for error in [each for each in (f"{key}_se", f"{key.rpartition('_')[0]}_se") if each in texts][:1]:
            errors[column.key] = numbers[error]
            shown[column.key] += texts[error].map(lambda text: f" ± {text}" if text else "")
    labels = list(map(printed_label, texts.index))
    return Table(
        f"{name}_published",
        title,
        tuple(columns),
        values.set_axis(labels),
        "published",
        corner,
        pd.DataFrame(errors).set_axis(labels) if errors else None,
        texts=shown.set_axis(labels),
        notes=tuple(notes),
        slugs=tuple(map(str, texts.index)) if texts.index.name == "objective" else (),
        folded=folded,
    )


def printed_label(name: object) -> str:
    """Return the label of a printed row: an objective, or a temperature of cosine softmax."""
    from penultimate.objectives.presets import PRESETS

    text = str(name)
    if text in PRESETS:
        return PRESETS[text].label
    try:
        return f"τ = {float(text):g}"
    except ValueError:
        return plain(text)
