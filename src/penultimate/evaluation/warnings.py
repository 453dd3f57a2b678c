"""What readers need to know before they trust the numbers of an evaluation: networks below a baseline or at
chance, constant features, splits that part groups, numbers that are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from penultimate.data.catalog import card
from penultimate.errors import as_sentence
from penultimate.evaluation.standings import answers_to, boards, predictions_of
from penultimate.measures.baselines import NAMES
from penultimate.results.rows import Run, seeds
from penultimate.results.text import counted, listed, p_value, percent, plain
from penultimate.statistics.comparison import LEVEL, holm
from penultimate.statistics.paired import Answers, paired_p

TITLES = {"pixels": "Pixels, 8 x 8", "colours": "Colour statistics", "convolutions": "Random convolutions"}
NAMED = 3
"""The most networks that are named one by one as worse than a baseline."""
OF_TASKS = ("probed", "given", "extract", "data")
"""The kinds of steps without which a network has no accuracy on a task."""


class Caution(NamedTuple):
    """A warning about a network on a task (on all of them, if it is empty), in two words and in a clause."""

    network: str
    task: str
    short: str
    text: str


class Shortfall(NamedTuple):
    """A network that is worse on a task than a baseline, beyond chance: both accuracies, the corrected p."""

    network: str
    task: str
    baseline: str
    value: float
    of_baseline: float
    p: float

    @property
    def text(self) -> str:
        """The comparison as a clause without its subject."""
        return (
            f"worse than a linear probe on {TITLES[self.baseline].lower()} ({percent(self.value)} against"
            f" {percent(self.of_baseline)} %, {p_value(self.p)})"
        )


def beside_baselines(run: Run, task: str) -> tuple[list[str], Answers] | None:
    """Return a task's networks, and the answers of the baselines and then of these to the same images."""
    import numpy as np

    steps = run.rows("baseline_predictions", target=task, about="images")["step"]
    held = run.arrays(str(steps.iloc[0]), "baseline_predictions") if run.arrays and len(steps) else {}
    networks = predictions_of(run, task)
    if not held or not networks:
        return None
    predicted = {f"baseline {name}": (held["ids"], held["labels"], held[name]) for name in NAMES}
    for network, (ids, labels, guess) in networks.items():
        shared = np.isin(ids, held["ids"])
        predicted[f"network {network}"] = ids[shared], labels[shared], guess[shared]
    return list(networks), answers_to(run, task, predicted)


def shortfalls(run: Run) -> list[Shortfall]:
    """Return the networks that are worse than a baseline, beyond chance: on each task the worst comparison.

    The tests are those of the ranking, corrected for all networks and baselines of a task (Holm).
    """
    found: dict[tuple[str, str], Shortfall] = {}
    for task in run.targets:
        networks, of_all = beside_baselines(run, task) or ([], None)
        pairs = [(row, len(NAMES) + each) for each in range(len(networks)) for row in range(len(NAMES))]
        if of_all is None:
            continue
        values = of_all.accuracies().tolist()
        corrected = holm([paired_p([of_all], *pair) for pair in pairs])
        for (row, other), p in zip(pairs, corrected, strict=True):
            network = networks[other - len(NAMES)]
            known = found.get((network, task))
            if p <= LEVEL and values[other] < values[row] > (known.of_baseline if known else 0):
                found[network, task] = Shortfall(network, task, NAMES[row], values[other], values[row], p)
    return list(found.values())


def warnings(run: Run) -> list[str]:
    """Return a sentence for each network below a baseline, and for each task whose split parts groups."""
    labels, of_network = run.labels(), dict[str, list[Shortfall]]()
    for each in shortfalls(run):
        of_network.setdefault(each.network, []).append(each)
    sentences = []
    for network, fallen in [*of_network.items()][:NAMED]:
        worst = max(fallen, key=lambda each: each.of_baseline - each.value)
        more = [card(each.task).title for each in fallen if each != worst]
        also = f", and below a baseline on {listed(more)} too" if more else ""
        sentences.append(
            f"{labels[network]} is {worst.text} on {card(worst.task).title}{also}: check how its images are"
            " prepared, and its weights."
        )
    if others := [labels[network] for network in [*of_network][NAMED:]]:
        sentences.append(f"Below a baseline {'is' if len(others) == 1 else 'are'} also {listed(others)}.")
    for task in tasks_of(run):
        metrics = "crossing_groups", "groups", "crossing_images"
        shared, groups, images = (_number(run, metric, task) for metric in metrics)
        if shared:
            sentences.append(
                f"The split of {card(task).title} parts groups: {shared:,} of {counted(groups, 'group')} of"
                f" test images {'is' if shared == 1 else 'are'} in training too, with"
                f" {counted(images, 'test image')}; accuracies may be too high for images of new groups."
            )
    return sentences


def grouping_notes(run: Run) -> list[str]:
    """Return how the images of each task are grouped, and what that changes."""
    counts = {task: _number(run, "groups", task) for task in tasks_of(run)}
    parts = [f"{card(task).title} in {counted(n, 'group')} of test images" for task, n in counts.items() if n]
    units = (
        "Intervals and tests are of whole groups, because images of one group are not independent (Korn and"
        " Graubard; Obuchowski for areas under ROC curves)."
    )
    return [f"Images come in groups: {listed(parts)}. {units}"] if parts else []


def tasks_of(run: Run) -> list[str]:
    """Return all tasks, those whose images have several labels last."""
    return [*run.targets, *run.several_labels]


def _number(run: Run, metric: str, task: str) -> int:
    values = run.rows(metric, target=task, about="images")["value"]
    return int(values.iloc[0]) if len(values) else 0


def cautions(run: Run) -> list[Caution]:
    """Return the warnings about single networks: from loading them, of their features and their accuracy."""
    found = [
        Caution(network.slug, "", plain(short), plain(text))
        for network in run.objectives()
        for short, text in run.provenance.get("noted", {}).get(network.spec, {}).items()
    ]
    same, widths = (seeds(run, name).mean().to_dict() for name in ("constant_features", "width"))
    for network in same:
        if same[network] == widths.get(network):
            found.append(Caution(network, "", "constant", "its features are the same for all test images"))
    for each in shortfalls(run):
        found.append(Caution(each.network, each.task, f"below {each.baseline}", f"it is {each.text}"))
    for board in (board for board in boards(run) if board.task):
        chance = board.answers[0].chance()
        for row in board.standings[board.standings["low"] <= chance].itertuples():
            text = (
                f"its linear probe ({percent(row.accuracy)} %) is not better, beyond chance, than always"
                f" naming one class ({percent(chance)} %)"
            )
            found.append(Caution(str(row.Index), board.task, "at chance", text))
    return found


def caution_notes(run: Run) -> list[str]:
    """Return a sentence for each caution."""
    labels = run.labels()
    return [
        f"{labels[each.network]}{f' on {card(each.task).title}' if each.task else ''}: {each.text}."
        for each in cautions(run)
    ]


def missing_numbers(run: Run, of_tasks: bool) -> list[str]:
    """Return a sentence for each number that is missing, and the reason; either of tasks, or of the rest."""
    failed = {step: of["why"] for step, of in run.provenance.get("failed", {}).items()}
    sentences = []
    for step, reason in {**run.provenance.get("undefined", {}), **failed}.items():
        kind = step.partition(".")[0]
        if (kind in OF_TASKS) == of_tasks:
            what = "No number" if of_tasks else "As a classifier, no number" if kind == "classifier" else kind
            sentences.append(as_sentence(f"{what} of {_whose(run.provenance, step)}: {plain(reason)}"))
    return sentences


def _whose(provenance: Mapping[str, Any], step: str) -> str:
    known = {**provenance.get("undefined_of", {}), **provenance.get("failed", {})}.get(step, {})
    names = [known[name] for name in ("network", "target") if known.get(name)]
    return " on ".join(map(plain, names)) or step.partition(".")[2].rpartition(".")[0]


def order_of_classes(description: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the order of the source's classes, if a network classifies them."""
    names, source = [*map(plain, description.get("source_classes", ()))], description.get("source", "")
    if not names:
        return []
    how = " as you gave them" if "class_order" in description.get("reading", {}).get(source, {}) else ""
    shown = names if len(names) <= 6 else [*names[:5], "...", names[-1]]
    return [
        f"The networks' outputs were taken for the classes of {plain(source)}{how}: {', '.join(shown)}."
        " --class-order gives another order."
    ]
