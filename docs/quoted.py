"""The sentences and tables of README and these pages whose numbers come from kept rows, by name."""

from __future__ import annotations

import functools
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from penultimate import specs
from penultimate.paper.claims.both import STUDY as BETTER
from penultimate.paper.claims.stated import DOSE_CLAIMS
from penultimate.paper.claims.verdicts import judge, judge_all
from penultimate.paper.exhibits.better import kept_candidates
from penultimate.paper.layers import PROBES, served
from penultimate.paper.page import answers
from penultimate.records.archive import network_of
from penultimate.records.reading import reference_tuning
from penultimate.report import exhibit, read_reference
from penultimate.report.base import Built, StudyResults
from penultimate.report.measurements import Measurements, admit
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.numbers import printed_rows
from penultimate.report.text import counted, fixed, in_words, listed, signed
from penultimate.results.page import Answer
from penultimate.results.rows import read_reference as read_run
from penultimate.statistics import spearman
from penultimate.study import load_study
from penultimate.study.unfold import unfold

Quote = Callable[[], str]
QUOTES: dict[str, Quote] = {}
"""The text of each block, by the name that a page gives."""

MAIN = "evidence"
SEARCHES = ("matched_search", "matched_search_scaled", "matched_sweep_search")
SOUGHT = ("alpha", "lambda_final", "keep", "beta", "temperature", "target", "learning_rate")
VERDICTS = ("holds", "does not hold", "undecided")


def quote(function: Quote) -> Quote:
    """Add a function to the blocks that a page may hold; what it returns is kept for the next page."""
    QUOTES[function.__name__] = functools.cache(function)
    return function


@functools.cache
def results(study: str = MAIN) -> StudyResults:
    return read_reference(study)


@functools.cache
def measured(study: str = MAIN) -> Measurements:
    return admit(results(study))


@functools.cache
def shown(name: str, study: str = MAIN) -> Built:
    return exhibit(name, results(study))


@functools.cache
def answer(study: str = MAIN) -> Answer:
    return answers.answer(read_run(study))


MARKUP = re.compile(r" (?=%|(?:[-+*>]|#+|\d+[.)]) )")
"""The space before what is no text at a line's beginning: MyST's comment, an item of a list, a quotation, a heading."""


def paragraph(text: str) -> str:
    """Return a paragraph in lines of at most 126 characters, none of which begins with a mark of Markdown's."""
    kept = MARKUP.sub("\0", " ".join(text.split()))
    return textwrap.fill(kept, 126, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def items(texts: Iterable[str]) -> str:
    """Return a list of paragraphs."""
    return "\n".join(textwrap.indent(paragraph(text), "  ").replace("  ", "- ", 1) for text in texts)


def cells(*texts: str) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |"


def of_objectives(found: Measurements) -> dict[str, list[float]]:
    """Return each objective's mean over seeds of test accuracy, class separation, linear and kNN transfer."""
    runs = {
        "test": found.runs("top1"),
        "separation": found.runs("class_separation", split="train"),
        "linear": found.values(Quantity("linear_{accuracy}", target="targets")),
        "knn": found.values(Quantity("knn_{accuracy}", target="targets")),
    }
    return {name: [fmean(of[one.spec].values()) for one in found.objectives] for name, of in runs.items()}


@functools.cache
def nine() -> dict[str, list[float]]:
    """Return the means of the nine objectives in the main reference run."""
    return of_objectives(measured())


@functools.cache
def claims(study: str = MAIN) -> dict[str, dict[str, str]]:
    """Return what is judged of each claim, by its key."""
    run = read_run(study)
    return {
        one.claim.key: {
            "says": one.claim.says,
            "verdict": one.ours.verdict,
            "ours": one.ours.numbers,
            "reason": one.ours.reason,
            "printed": one.printed.verdict if one.printed else "no number printed",
            "whose": "ours" if one.claim.ours else "the paper's",
        }
        for one in (*judge_all(run), *judge(run, DOSE_CLAIMS))
    }


def counts(verdicts: Iterable[str]) -> str:
    """Return the number of claims with each verdict, in words of a sentence."""
    count = Counter(verdicts)
    words = [
        f"{count['holds']} {'holds' if count['holds'] == 1 else 'hold'}",
        f"{count['does not hold']} {'does' if count['does not hold'] == 1 else 'do'} not hold",
        f"{count['undecided']} {'is' if count['undecided'] == 1 else 'are'} undecided",
    ]
    return f"{words[0]}, {words[1]} and {words[2]}"


def finding(name: str, study: str = MAIN) -> str:
    """Return the first sentence of an exhibit, without the word that says whose numbers it has."""
    said = shown(name, study).finding
    said = re.sub(r"^Ours(, in \w+)?: ", "", said)
    return said[0].upper() + said[1:]


@quote
def tally() -> str:
    """The verdicts, counted."""
    found = claims().values()
    whose = [[one["verdict"] for one in found if one["whose"] == name] for name in ("the paper's", "ours")]
    return paragraph(
        f"Of {len(whose[0])} claims of the paper {counts(whose[0])}; of {len(whose[1])} claims of ours"
        f" {counts(whose[1])}. “Undecided” means that these networks cannot tell, not that the claim is in doubt."
    )


@quote
def table_of_nine() -> str:
    """The nine objectives, means of nine seeds."""
    head = ("objective", "test accuracy, %", "class separation R²", "linear transfer, %", "kNN transfer, %")
    lines = [cells(*head), cells(*["---"] * 5)]
    for one, test, separation, linear, knn in zip(measured().objectives, *nine().values(), strict=True):
        lines.append(
            cells(
                one.label,
                *(f"{100 * test:.1f}", f"{separation:.3f}"),
                f"{100 * linear:.1f}",
                f"{100 * knn:.1f}",
            )
        )
    return "\n".join(lines)


@quote
def of_strengths() -> str:
    """What the sweep of strengths says."""
    said = answer("sweep")
    return f"{paragraph(said.sentence)}\n\n{items(said.points)}"


@quote
def of_projectors() -> str:
    """What hidden layers that are dropped after training do to five objectives."""
    found = shown("projectors", "sweep")
    return f"{paragraph(finding('projectors', 'sweep'))}\n\n{items(found.notes[1:4])}"


@quote
def of_papers_strengths() -> str:
    """What the two runs with another choice of strengths or decay say of the main claim."""
    sweep, decay = claims("sweep")["dose_strengths"], claims("head_decay")["separation_linear"]
    return paragraph(
        f"At the strengths that the paper prints: {_first(sweep['ours'])}: {sweep['verdict']}. With the paper's weight"
        f" decay in the final layer: {_first(decay['ours'])}: {decay['verdict']}."
    )


def _first(text: str) -> str:
    return text.partition(";")[0]


@quote
def of_first_world() -> str:
    """The rank correlations of the first reference run, whose rows the tests keep."""
    from penultimate.records.archive import read_kept

    kept = read_kept(Path(__file__).parents[1] / "tests/kept/glyphs")
    before = of_objectives(admit(StudyResults.of(kept)))
    rhos = [fixed(spearman(before["separation"], before[name]).rho, 2) for name in ("linear", "knn")]
    return " and ".join(rhos)


@quote
def all_verdicts() -> str:
    """Every claim with its verdict and evidence."""
    head = ("claim", "the paper's numbers", "here", "evidence here")
    lines = [cells(*head), cells(*["---"] * 4)]
    for one in claims().values():
        lines.append(cells(one["says"], one["printed"], f"**{one['verdict']}**", one["ours"]))
    return "\n".join(lines)


EXHIBITS_OF = {
    "of_temperatures": ("table4",),
    "of_architectures": ("tableB1", "iclr_table1"),
    "of_fine_tuning": ("table2", "tableF1"),
    "of_layers": ("figure2", "figure4", "depth"),
    "of_accuracy": ("table1", "tableC1", "figureC3"),
    "of_shifts": ("tableC2", "tableC3", "figureC4"),
    "of_combinations": ("tableC4", "tableC5", "tableC6", "tableE3"),
}
"""Blocks that list what exhibits say of themselves."""


def _findings(names: tuple[str, ...]) -> str:
    return items(
        f"**{shown(name).title}** {finding(name)} (`penultimate show {name} --reference`)" for name in names
    )


for _name, _exhibits in EXHIBITS_OF.items():
    QUOTES[_name] = functools.cache(functools.partial(_findings, _exhibits))


@quote
def of_own_layers() -> str:
    """How far objectives lie apart at their own best layers, in the two runs that probe every layer."""
    ratios: dict[str, list[str]] = {}
    leads: dict[str, list[float]] = {}
    for run in ("evidence", "full"):
        for probe in PROBES:
            found = served(measured(run), probe)
            own, last = (
                {spec: fmean(of.values()) for spec, of in each.items()}
                for each in (
                    {spec: one.own for spec, one in found.items()},
                    {spec: one.last for spec, one in found.items()},
                )
            )
            ratios.setdefault(probe.word, []).append(fixed(stdev(own.values()) / stdev(last.values()), 2))
            if probe.name == "linear":
                for one in measured(run).objectives:
                    leads.setdefault(one.label, []).append(own[one.spec] - own[measured(run).baseline])
    ahead = {name: of for name, of in leads.items() if min(of) > 0}
    names = listed(
        [f"{name} ({' and '.join(signed(lead, 1) for lead in of)} points)" for name, of in ahead.items()]
    )
    linear, knn = (" and ".join(of) for of in ratios.values())
    above = f"{names} {'lies' if len(ahead) == 1 else 'lie'}" if ahead else "none lies"
    return paragraph(
        f"Two networks of each of the nine objectives were probed at every layer, one in `evidence` and one in `full`."
        f" At their own best layers, which validation chooses, the objectives lie {linear} times as far apart as"
        f" at the penultimate layer by linear probes, and {knn} times by kNN probes (standard deviations). Read at its own layers, {above} above softmax at softmax's own in"
        " both runs. Two networks of each are a direction and decide nothing."
    )


@quote
def of_shared_classes() -> str:
    """What five tasks that differ in their share of classes say."""
    one = claims("shared_classes")["separation_shared"]
    found = measured("shared_classes")
    separation = found.runs("class_separation", split="train")
    rhos = [
        spearman(
            *([fmean(of[each.spec].values()) for each in found.objectives] for of in (separation, transfer))
        ).rho
        for target in found.targets
        for transfer in [found.runs("linear_top1", target=target)]
    ]
    low, high = fixed(min(rhos), 2), fixed(max(rhos), 2)
    return paragraph(
        f"{one['says']}: {one['ours']}. Verdict: {one['verdict']}. {one['reason']} Which tasks are looked at matters:"
        f" on these {in_words(len(rhos))} ρ of class separation with linear transfer lies between {low} and {high}."
    )


@quote
def of_head_decay() -> str:
    """What the final layer's own decay does."""
    key = next(
        key for key, one in claims("head_decay").items() if "weight decay in the final layer" in one["says"]
    )
    one, table = claims("head_decay")[key], shown("table1", "head_decay").tables[0]
    found = {row.label: float(row.cells[0].value or 0) for row in table.rows}
    gains = {
        name: found[name] - found["Softmax"] for name in found if name not in ("Squared error", "Softmax")
    }
    gain = one["ours"].split("; ")[1].replace("points of test accuracy", "points")
    above = sum(value > 0 for value in gains.values())
    seeds = len(read_reference("head_decay").description["networks"][0]["seeds"])
    return paragraph(
        f"Over {in_words(seeds)} seeds the mean gain is {gain}; {in_words(above)} of the {in_words(len(gains))} gain by their"
        f" means, and dropout, which keeps the paper's .7, changes by {signed(gains['Dropout'], 1)} points."
        f" Verdict: {one['verdict']}."
    )


@quote
def of_better() -> str:
    """Whether an objective is better than softmax in both accuracy and transfer."""
    said, found = answer(BETTER), kept_candidates()
    gaining = [one for one in found if one.score > 0]
    projectors = all("projector" in one.spec for one in gaining)
    gained = (
        f"{in_words(len(gaining)).capitalize()} of the {in_words(len(found))} candidates gained in both, by their means"
        f"{'; each of them has a projector' if projectors else ''}."
    )
    return f"{paragraph(said.sentence)}\n\n{items([*said.points, gained])}"


@quote
def of_full() -> str:
    """What the run of three hours shows."""
    verdicts = [one["verdict"] for one in claims("full").values()]
    networks = results("full").provenance["steps"]["train"][1]
    return paragraph(
        f"`full` comes with the package too (`penultimate report --reference --study full`): {networks} networks and"
        f" all 42 tables and figures, with one seed or two of each. Of its {len(verdicts)} claims {counts(verdicts)}:"
        " so few seeds give a first look, and no conclusions."
    )


@quote
def of_overlap() -> str:
    """How many steps and trainings the large studies of a laptop have, and share with `evidence`."""
    graphs = {name: unfold(load_study(name)).steps for name in ("evidence", "glyphs", "full", "sweep")}
    lines = [cells("study", "steps", "trainings", "steps shared with `evidence`", "trainings shared")]
    lines.append(cells(*["---"] * 5))
    for name, steps in graphs.items():
        shared = [step for step_id, step in steps.items() if step_id in graphs["evidence"]]
        counts_of = [
            f"{len(found):,}"
            for of in (steps.values(), shared)
            for found in ([*of], [step for step in of if step.name == "train"])
        ]
        lines.append(cells(f"`{name}`", *counts_of))
    return "\n".join(lines)


@quote
def size_of_evidence() -> str:
    """How many networks the main reference run has."""
    networks = {network_of(row) for row in results().table.where(metric="top1", split="holdout")}
    return counted(len(networks), "network")


@quote
def regime_of_softmax() -> str:
    """The regime of the world beside ImageNet's."""
    spec = next(one.spec for one in measured().objectives if one.slug == "softmax")
    train, test = (
        f"{100 * fmean(measured().runs('top1', split=split)[spec].values()):.2f}"
        for split in ("train", "test")
    )
    separation = f"{fmean(measured().runs('class_separation', split='train')[spec].values()):.3f}"
    seeds = in_words(len(measured().runs("top1", split="test")[spec]))
    printed = {
        name: next(row[column] for row in printed_rows(f"neurips_{table}") if row["objective"] == "softmax")
        for name, table, column in (
            ("train", "tableC1_train_accuracy", "train_top1_percent"),
            ("test", "table3_class_separation", "imagenet_top1_percent"),
            ("separation", "table3_class_separation", "class_separation_r2"),
        )
    }
    rows = (
        (
            "regime, softmax",
            "ImageNet, ResNet-50 (paper)",
            f"this world, `glyphs` (44 epochs, mean of {seeds} seeds)",
        ),
        ("---", "---", "---"),
        ("training accuracy, %", printed["train"], train),
        ("test accuracy, %", printed["test"], test),
        ("class separation R²", printed["separation"], separation),
        ("K / M", "1000 / 2048", "128 / 256"),
    )
    return "\n".join(cells(*row) for row in rows)


@quote
def searched() -> str:
    """What the searches of hyperparameters chose."""
    lines, count = [cells("objective", "chosen", "holdout, %", "cells"), cells(*["---"] * 4)], 0
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
            mean, error = 100 * one.best.mean, 100 * one.best.standard_error
            lines.append(cells(label, chosen or "–", f"{mean:.2f} ± {error:.2f}", str(len(one.cells))))
    return "\n".join([*lines, "", f"{count} cells in all, each trained with three seeds for 44 epochs."])


@quote
def two_processors() -> str:
    """How far networks of one objective and seed lie apart that were trained on two kinds of processor."""

    def accuracies(name: str, arm: str | None) -> dict[tuple[str | None, int | None], float]:
        rows = results(name).table.where(
            metric="top1", split="test", target="glyphs", backbone="glyphnet", arm=arm, draw=9
        )
        return {(row.objective, row.seed): row.value for row in rows if str(row.step).startswith("accuracy.")}

    first, second = accuracies("glyphs", "one draw"), accuracies("full", None)
    apart = np.array([second[key] - first[key] for key in second])
    by_objective = [
        [value for (text, _), value in first.items() if text == each] for each in {k[0] for k in first}
    ]
    seeds = np.sqrt(2 * np.mean([np.var(values, ddof=1) for values in by_objective]))
    return paragraph(
        f"{counted(len(second), 'network')} that `glyphs` and `full` trained alike on two kinds of processor differ by"
        f" {100 * np.sqrt(np.mean(apart**2)):.2f} points of test accuracy (root mean square), two seeds of one"
        f" objective by {100 * seeds:.2f}."
    )
