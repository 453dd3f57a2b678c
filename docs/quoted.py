"""The numbers of the pages that come from kept rows, by name; the prose around them is written by hand."""

from __future__ import annotations

import functools
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from penultimate import specs
from penultimate.paper.claims.judging import judge
from penultimate.records.archive import read_kept
from penultimate.records.reading import reference_tuning
from penultimate.results.rows import MEAN, Run, read_reference, seeds, transfer
from penultimate.results.text import counted, fixed
from penultimate.statistics import spearman
from penultimate.study import load_study
from penultimate.study.unfold import unfold

QUOTES: dict[str, Callable[[], str]] = {}
"""The text of each block, by the name that a page gives."""
MAIN = "evidence"
SEARCHES = ("matched_search", "matched_search_scaled", "matched_sweep_search")
SOUGHT = ("alpha", "lambda_final", "keep", "beta", "temperature", "target", "learning_rate")


def quote(function: Callable[[], str]) -> Callable[[], str]:
    """Add a function to the blocks that a page may hold; what it returns is kept for the next page."""
    QUOTES[function.__name__] = functools.cache(function)
    return function


def rows(*lines: Iterable[str]) -> str:
    """Return a Markdown table, of which the first line is the head."""
    head, *others = [[text.replace("|", "\\|") for text in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *others))


def means(run: Run) -> dict[str, list[float]]:
    """Return each objective's mean over seeds of test accuracy, class separation, linear and kNN transfer."""
    runs = {
        "test": seeds(run, "top1", scale=100),
        "separation": seeds(run, "class_separation", "train"),
        "linear": transfer(run, "linear")[MEAN],
        "knn": transfer(run, "knn")[MEAN],
    }
    return {name: [float(of[slug].mean()) for slug in run.labels()] for name, of in runs.items()}


@functools.cache
def claims() -> list[dict[str, str]]:
    """Return what the main reference run shows of each claim."""
    return [
        {
            "says": one.claim.says,
            "verdict": one.ours.verdict,
            "ours": one.ours.numbers,
            "printed": one.printed.verdict if one.printed else "no number printed",
            "whose": "ours" if one.claim.ours else "the paper's",
        }
        for one in judge(read_reference(MAIN))
    ]


@quote
def size_of_evidence() -> str:
    """How many networks the main reference run has."""
    frame = read_reference(MAIN).frame
    networks = frame[(frame["metric"] == "top1") & (frame["split"] == "holdout")]
    return counted(len(networks.drop_duplicates(["objective", "backbone", "arm", "seed", "draw"])), "network")


@quote
def table_of_nine() -> str:
    """The nine objectives, means of nine seeds."""
    run = read_reference(MAIN)
    return rows(
        ("objective", "test accuracy, %", "class separation R²", "linear transfer, %", "kNN transfer, %"),
        *(
            (label, f"{test:.1f}", f"{apart:.3f}", f"{linear:.1f}", f"{knn:.1f}")
            for label, test, apart, linear, knn in zip(
                run.labels().values(), *means(run).values(), strict=True
            )
        ),
    )


def of_softmax(metric: str, split: str, form: str, scale: float = 1.0) -> str:
    """Return softmax's mean in the main reference run."""
    return format(seeds(read_reference(MAIN), metric, split, scale=scale)["softmax"].mean(), form)


QUOTES["softmax_train"] = lambda: of_softmax("top1", "train", ".2f", 100)
QUOTES["softmax_test"] = lambda: of_softmax("top1", "test", ".2f", 100)
QUOTES["softmax_separation"] = lambda: of_softmax("class_separation", "train", ".3f")


@quote
def of_first_world() -> str:
    """The rank correlations of the first reference run, whose rows the tests keep."""
    kept = read_kept(Path(__file__).parents[1] / "tests/kept/glyphs")
    before = means(Run(kept.table.frame(), kept.description))
    return " and ".join(fixed(spearman(before["separation"], before[of]).rho, 2) for of in ("linear", "knn"))


@quote
def tally() -> str:
    """The verdicts, counted."""
    said = []
    for whose, words in (("the paper's", "the paper"), ("ours", "ours")):
        count = Counter(one["verdict"] for one in claims() if one["whose"] == whose)
        verdicts = f"{count['holds']} hold, {count['does not hold']} do not hold and {count['undecided']}"
        said.append(f"{count.total()} claims of {words} {verdicts} are undecided")
    told = "“Undecided” means that these networks cannot tell, not that the claim is in doubt."
    return textwrap.fill(f"Of {said[0]}; of {said[1]}. {told}", 126)


@quote
def all_verdicts() -> str:
    """Every claim with its verdict and evidence."""
    return rows(
        ("claim", "the paper's numbers", "here", "evidence here"),
        *((one["says"], one["printed"], f"**{one['verdict']}**", one["ours"]) for one in claims()),
    )


@quote
def of_overlap() -> str:
    """How many steps and trainings the large studies of a laptop have, and share with `evidence`."""
    graphs = {name: unfold(load_study(name)).steps for name in ("evidence", "glyphs", "full", "sweep")}
    lines = []
    for name, steps in graphs.items():
        shared = [step for step_id, step in steps.items() if step_id in graphs["evidence"]]
        trained = [sum(step.name == "train" for step in of) for of in (steps.values(), shared)]
        lines.append((f"`{name}`", *(f"{n:,}" for n in (len(steps), trained[0], len(shared), trained[1]))))
    return rows(("study", "steps", "trainings", "steps shared with `evidence`", "trainings shared"), *lines)


@quote
def searched() -> str:
    """What the searches of hyperparameters chose."""
    lines, count = [], 0
    for search in SEARCHES:
        tuning = reference_tuning(search)
        assert tuning is not None
        for one in tuning.objectives:
            assert one.best is not None
            count += len(one.cells)
            given = {**dict(specs.parse(one.best.objective).arguments), **dict(one.best.settings)}
            axes = {axis.key.rpartition(".")[2] for axis in one.axes if len(axis.grid) > 1}
            chosen = ", ".join(f"{key} = {given[key]}" for key in SOUGHT if key in given and key in axes)
            label = f"{one.label}, loss scaled by the temperature .05" if "sweep" in search else one.label
            accuracy = f"{100 * one.best.mean:.2f} ± {100 * one.best.standard_error:.2f}"
            lines.append((label, chosen or "–", accuracy, str(len(one.cells))))
    table = rows(("objective", "chosen", "holdout, %", "cells"), *lines)
    return f"{table}\n\n{count} cells in all, each trained with three seeds for 44 epochs."
