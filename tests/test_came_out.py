"""The numbers written by hand about the reference runs, computed from rows by NumPy and SciPy alone."""

from __future__ import annotations

import csv
import re
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy import stats

from penultimate.paper.page.answers import answer
from penultimate.paper.page.came_out import NOTE, POINTS, WORLD
from penultimate.results.exhibit import show
from penultimate.results.rows import read_reference

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "src/penultimate/paper"
RESULTS, WORLD_PAGE = "docs/results.md", "docs/world.md"
TASKS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")
SQUARED, SMOOTHING = "squared_error(kappa=9, scale=1.28, target={})", "label_smoothing(alpha={})"
FAMILIES = (
    *("label_smoothing", "final_layer_l2", "logit_penalty", "sigmoid"),
    *("logit_norm", "cosine_softmax", "squared_error"),
)
PAIRS = (
    ("logit_penalty", "softmax", "logit_penalty(beta=0.0024)"),
    ("label_smoothing", SMOOTHING.format(0.1), SMOOTHING.format(0.4)),
    ("logit_norm", "logit_norm(temperature=0.028)", "logit_norm(temperature=0.08)"),
    ("squared_error", SQUARED.format(1.88), SQUARED.format(7.5)),
)
"""Pairs of strengths with equal accuracy on the holdout of the searches."""
Means = dict[str, np.ndarray]
"""The values of each objective, by draw."""


@cache
def rows(study: str) -> list[list[str]]:
    with (PAPER / f"reference/{study}/rows.csv").open(newline="") as file:
        return [*csv.reader(file)]


def values(
    study: str, metric: str, target: str = "glyphs", split: str = "test", arm: str = "", setting: str = ""
) -> Means:
    """Return final values of the first architecture, in per cent unless they are R²."""
    head, *lines = rows(study)
    scale = 1 if metric == "class_separation" else 100
    wanted = [[backbone, *[arm] * bool(arm)] for backbone in ("glyphnet", "glyphnet(features=128, width=8)")]
    found: dict[str, list[float]] = {}
    for line in lines:
        if line[1:7] == [metric, target, setting, split, "", ""]:
            for name, value in zip(head[12:], line[12:], strict=True):
                network, _, seed = name.partition(" | seed ")
                objective, *rest = network.split(" | ")
                if value and seed and rest in wanted:
                    found.setdefault(objective, []).append(scale * float(value))
    return {spec: np.array(of) for spec, of in found.items()}


separation = partial(values, metric="class_separation", split="train")


def transfer(study: str, arm: str = "", probe: str = "linear", tasks: tuple[str, ...] = TASKS) -> Means:
    """Return mean accuracies over the tasks."""
    of_tasks = [
        values(study, f"{probe}_{'mean_per_class' if task == 'newfaces' else 'top1'}", task, arm=arm)
        for task in tasks
    ]
    return {spec: np.mean([of[spec] for of in of_tasks], 0) for spec in of_tasks[0]}


def interval(sample: np.ndarray) -> tuple[float, float, float]:
    """Return a mean over draws with its 95 % interval by t."""
    reach = stats.t.ppf(0.975, len(sample) - 1) * stats.sem(sample)
    return sample.mean(), sample.mean() - reach, sample.mean() + reach


def ranked(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Return Spearman's rho of means over draws, with the interval of Bonett and Wright."""
    rho = stats.spearmanr(x.mean(1), y.mean(1))[0]
    reach = stats.norm.ppf(0.975) * np.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    return rho, np.tanh(np.arctanh(rho) - reach), np.tanh(np.arctanh(rho) + reach)


def p_of_a_strong_one(rho: float) -> float:
    """Return p against a rho of -0.5 or stronger over nine objectives."""
    return stats.norm.cdf((np.arctanh(-rho) - np.arctanh(0.5)) / np.sqrt((1 + rho**2 / 2) / 6))


def span(of: np.ndarray) -> float:
    """Return the narrowest range that holds all but one."""
    low, *_, high = ascending = sorted(of)
    return min(high - ascending[1], ascending[-2] - low)


def in_turn(of: Means) -> np.ndarray:
    return np.array([*of.values()])


def of_nine(probe: str = "linear") -> list[np.ndarray]:
    """Return R² and transfer of the nine objectives over nine draws of `evidence` and five of `sweep`."""
    sides = []
    for of in (separation, partial(transfer, probe=probe)):
        first, second = of("evidence"), of("sweep")
        sides.append(np.array([[*first[spec], *second[spec]] for spec in first]))
    return sides


def slopes(family: str, among: tuple[str, ...] = ()) -> np.ndarray:
    """Return the slope of transfer on R² in each draw, for each 0.1 of R²."""
    x, y = separation("sweep", arm=family), transfer("sweep", family)
    of_x, of_y = (np.array([of[spec] for spec in among or x]) for of in (x, y))
    return np.array([np.polyfit(10 * of_x[:, draw], of_y[:, draw], 1)[0] for draw in range(of_x.shape[1])])


def adjusted(draw: int) -> float:
    """Return the slope on R² of one draw's regression on R² and test accuracy within families."""
    across, up = [], []
    for family in FAMILIES:
        x, top1 = separation("sweep", arm=family), values("sweep", "top1", arm=family)
        columns = np.array([[10 * x[spec][draw], top1[spec][draw]] for spec in x])
        heights = np.array([transfer("sweep", family)[spec][draw] for spec in x])
        across.append(columns - columns.mean(0))
        up.append(heights - heights.mean())
    return np.linalg.lstsq(np.vstack(across), np.concatenate(up), rcond=None)[0][0]


def change_by_classes(draw: int) -> float:
    """Return how the slope changes with each doubling of the classes, by one regression of a draw."""
    across, up = [], []
    for classes in (16, 32, 64, 128):
        arm = f"{classes} classes" if classes < 128 else ""
        x, y = (
            separation("class_counts", arm=arm),
            transfer("class_counts", arm, tasks=TASKS[:3:2] + TASKS[6:7]),
        )
        of_x, of_y = (in_turn(of)[:, draw] - in_turn(of)[:, draw].mean() for of in (x, y))
        across.append(np.stack([10 * of_x, 10 * of_x * np.log2(classes)], 1))
        up.append(of_y)
    return np.linalg.lstsq(np.vstack(across), np.concatenate(up), rcond=None)[0][1]


def said(digits: int, *numbers: float) -> list[str]:
    texts = [f"{number:.{digits}f}".replace("-", "−") for number in numbers]
    return [re.sub(r"^−(0\.0+)$", r"\1", text) for text in texts]


def numbers(text: str) -> list[str]:
    return re.findall(r"−?\d+(?:\.\d+)?", text)


def page(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").replace("**", "").split())


def between(start: str, end: str, name: str = RESULTS) -> list[str]:
    """Return the numbers of a page between two phrases."""
    return numbers(page(name).split(start, 1)[1].split(end, 1)[0])


def test_within_a_family_separation_costs_transfer() -> None:
    found = -np.array([slopes(family) for family in FAMILIES])
    window = -slopes("label_smoothing", ("softmax", *map(SMOOTHING.format, (0.1, 0.2, 0.4))))
    pairs = []
    for family, weak, strong in PAIRS:
        x, y = separation("sweep", arm=family), transfer("sweep", family)
        pairs.append((x[strong] - x[weak], y[strong] - y[weak]))
    fewer, worse = -pairs[-1][0], -pairs[-1][1]
    assert numbers(POINTS[0]) == [
        "0.1",
        *said(1, *interval(found.mean(0)), *interval(found.mean(1))[1:]),
        *said(1, *interval(np.array([-adjusted(draw) for draw in range(5)]))),
        *said(1, found.mean(1).min(), found.mean(1).max(), *interval(window)),
        *said(3, fewer.mean()),
        *said(1, *interval(worse)),
    ]
    prices = np.array([more / x.mean() / 10 for x, more in pairs])
    told = [text for each in (*prices, prices.mean(0)) for text in said(2, *interval(each))]
    assert between("The pairs at equal accuracy, in", "## With") == ["0.1", *told]


def test_across_the_nine_objectives_it_is_undecided() -> None:
    x, y = of_nine()
    rho, *ends = ranked(x, y)
    apart, decayed = (in_turn(of("head_decay")) for of in (separation, transfer))
    with (PAPER / "published/neurips_table3_class_separation.csv").open(newline="") as file:
        printed = span(np.array([float(row["class_separation_r2"]) for row in csv.DictReader(file)]))
    assert x.shape == (9, 14)
    spans = said(2, span(x.mean(1)), printed)
    assert numbers(POINTS[1]) == [
        "14",
        *said(2, rho, *ends),
        "−0.93",
        *spans,
        *said(2, *ranked(apart, decayed), span(apart.mean(1))),
    ]
    assert between("transfer worse is undecided. Over", "Until 28 November") == [
        *("14", *said(2, rho, *ends, *ranked(x, of_nine("knn")[1]))),
        *("−0.5", *said(3, p_of_a_strong_one(rho)), "0.025", spans[0]),
        *said(2, *(np.corrcoef(x[:end].mean(1), y[:end].mean(1))[0, 1] for end in (9, 8))),
    ]
    first, second = (ranked(x[:, of], y[:, of])[0] for of in (slice(9), slice(9, 14)))
    assert between("That verdict rested", "![") == said(2, first) + said(3, p_of_a_strong_one(first)) + said(
        2, second
    )
    left_out = [np.delete(of[:, :9], draw, 1) for draw in range(9) for of in (x, y)]
    without = [ranked(*pair)[0] for pair in zip(left_out[::2], left_out[1::2], strict=True)]
    assert sum(p_of_a_strong_one(each) > 0.025 for each in without) == 4


def test_squared_error_is_learned_again_from_few_images() -> None:
    five, forty = (values("evidence", "relearn_top1", setting=f"shots={shots}") for shots in (5, 40))
    squared, smoothing = SQUARED.format(3.75), SMOOTHING.format(0.2)
    gains = [five[spec] - five["softmax"] for spec in (squared, smoothing, "logit_penalty(beta=0.0006)")]
    transferred = of_nine()[1]
    assert max(five, key=lambda spec: five[spec].mean()) == squared
    assert (gains[0] > 0).sum() == len(gains[0]) == 9
    assert transferred.mean(1).argmin() == 8
    assert numbers(POINTS[2]) == [
        *said(
            1, five[squared].mean(), five["softmax"].mean(), *(end for of in gains for end in interval(of))
        ),
        *("40", *said(1, *interval(forty[squared] - forty["softmax"]))),
        *(*said(1, *interval(transferred[0] - transferred[8])), "14"),
    ]


def test_what_stands_between_the_blocks_of_the_pages() -> None:
    changes = interval(np.array([change_by_classes(draw) for draw in range(3)]))
    assert between("kept changes the price by", "A first run") == [
        *said(2, changes[0]),
        "0.1",
        *said(2, *changes[1:]),
    ]
    layer, plain = "projector(depth=1, width=512)", "softmax"
    gains = [
        of[layer] - of[plain]
        for of in (values("sweep", "top1", arm="projector"), transfer("sweep", "projector"))
    ]
    plain_faces, faces = values("better", "linear_mean_per_class", "newfaces").values()
    told = [end for of in gains for end in said(2, *interval(of))] + said(2, *interval(plain_faces - faces))
    assert between("not from the objective: softmax with it", "The projector is one") == told
    top1 = values("head_decay", "top1")
    six = [
        of - top1["softmax"]
        for spec, of in top1.items()
        if not spec.startswith(("softmax", "squared", "dropout"))
    ]
    assert between("was left untranslated: the other six gain", "The quickstart.", WORLD_PAGE) == said(
        2, *interval(np.mean(six, 0))
    )
    shifts = ("glyphs", "glyphs_v2", "glyphs_a", "glyphs_r", "glyphs_sketch")
    usual, *shifted = (values("evidence", "top1", target)["softmax"].mean() for target in shifts)
    assert sum(usual - each < 2 for each in shifted) == 3
    under, without = (values("evidence", "top1", arm=arm) for arm in ("autoaugment", ""))
    lost = np.mean([without[spec][:3] - under[spec] for spec in under])
    assert numbers(NOTE) == [*said(1, lost), "44"]


def test_the_pages_and_the_report_say_the_same() -> None:
    told = answer(read_reference())
    assert (told.sentence, told.points) == (WORLD, tuple(POINTS))
    for name in ("README.md", RESULTS):
        for sentence in (WORLD, *POINTS):
            assert sentence in page(name), name
    assert NOTE.partition(" below ")[2] in page(RESULTS)
    claims = show("claims", read_reference())
    (main,) = claims.only("worse its features transfer (linear an objective").tables[0].json()["rows"]
    assert main["verdict"] == "undecided"
    assert "9 draws of this run and 5 of `sweep`" in main["reason"]
    assert NOTE in claims.notes
