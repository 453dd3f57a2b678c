"""What README and docs say of results is what the reference run measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from penultimate import specs
from penultimate.paper import published
from penultimate.paper.arms import PAPERS_STRENGTHS
from penultimate.paper.claims.criteria import CRITERIA
from penultimate.paper.claims.doses import DOSE_CLAIMS, DOSE_RULES, FAMILIES, PAIRS
from penultimate.paper.claims.effects import decide
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.joint import judge_head_decay
from penultimate.paper.claims.prices import judged_pairs, mean_of_pairs, overall_effects, price_effects
from penultimate.paper.claims.rules import AMENDED, FILED, RULES_OF
from penultimate.paper.claims.strengths import dose_curves, in_family
from penultimate.paper.claims.verdicts import judge
from penultimate.paper.families import below_softmax_in_training, distinct, families_of
from penultimate.records.reading import reference_tuning
from penultimate.report import exhibit, read_reference
from penultimate.report.base import Cell, StudyResults
from penultimate.report.measurements import Measurements, admit
from penultimate.report.quantity import Quantity
from penultimate.report.text import in_words
from penultimate.statistics import leave_two_out, spearman
from penultimate.study import load_study
from tests.report.reading import glyphs, only

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reference() -> StudyResults:
    return read_reference("evidence")


@pytest.fixture(scope="module")
def measured(reference: StudyResults) -> Measurements:
    return admit(reference)


def means(measured: Measurements, runs: Mapping[str, Mapping[int | None, float]]) -> list[float]:
    """An objective's mean over its seeds, for those that are compared."""
    return [fmean(runs[one.spec].values()) for one in measured.objectives]


def quantities(measured: Measurements) -> dict[str, list[float]]:
    runs = {
        "test": measured.runs("top1"),
        "separation": measured.runs("class_separation", split="train"),
        "linear": measured.values(Quantity("linear_{accuracy}", target="targets")),
        "knn": measured.values(Quantity("knn_{accuracy}", target="targets")),
    }
    return {name: means(measured, values) for name, values in runs.items()}


def text(name: str) -> str:
    """A page with its line breaks as spaces."""
    return re.sub(r"\s+", " ", (ROOT / name).read_text())


def test_the_readmes_table_is_the_reference_run(measured: Measurements) -> None:
    found = quantities(measured)
    lines = [
        f"| {one.label} | {100 * test:.1f} | {separation:.3f} | {100 * linear:.1f} | {100 * knn:.1f} |"
        for one, test, separation, linear, knn in zip(measured.objectives, *found.values(), strict=True)
    ]
    assert len(lines) == 9
    for line in lines:
        assert line in text("README.md")


def test_the_readmes_rank_correlations_are_the_reference_runs(measured: Measurements) -> None:
    found = quantities(measured)
    for name in ("linear", "knn"):
        one, left = (rank(found["separation"], found[name]) for rank in (spearman, leave_two_out))
        assert left is not None
        said = (
            f"{one.rho:+.2f} (p = {one.p:.2g}; without any two objectives {left.low:.2f} to {left.high:.2f})"
        )
        assert said.replace("-", "−") in text("README.md")


def claims_of(results: StudyResults) -> list[dict[str, str]]:
    """The rows of the page of claims, by column."""
    table, again, _ = exhibit("claims", results).tables
    keys = [column.key for part in (table, again) for column in part.columns]
    return [
        {
            "says": row.label,
            **{key: cell.text for key, cell in zip(keys, row.cells + other.cells, strict=True)},
        }
        for row, other in zip(table.rows, again.rows, strict=True)
    ]


@pytest.fixture(scope="module")
def claims(reference: StudyResults) -> list[dict[str, str]]:
    return claims_of(reference)


def counts(verdicts: list[str]) -> str:
    """Verdicts counted, as the README says it."""
    holds, fails, open_ = (verdicts.count(verdict) for verdict in ("holds", "does not hold", "undecided"))
    assert holds + fails + open_ == len(verdicts)
    does = "does" if fails == 1 else "do"
    return f"{holds} hold{'s' if holds == 1 else ''}, {fails} {does} not, {open_} are undecided"


def test_the_verdicts_that_the_readme_counts(claims: list[dict[str, str]]) -> None:
    page = text("README.md").replace("\n", " ")
    papers, own = (
        [row["verdict"] for row in claims if row["whose"] == one] for one in ("the paper's", "ours")
    )
    first = [row["first_rules"] for row in claims if row["first_rules"] != "no such claim"]
    assert f"can judge {len(claims)} claims" in page
    assert f"dated {RULES_OF}, but for one that was amended on {AMENDED}" in page
    assert f"filed on {FILED}, after this run, which describes it" in page
    assert f"Of the {len(papers)} that are the paper's, {counts(papers)}" in page
    assert f"of the {len(own)} that are ours, {counts(own)}" in page
    assert f"of {len(first)} claims {counts(first)}" in page


def test_what_the_readme_says_of_claims(claims: list[dict[str, str]]) -> None:
    page, said = text("README.md"), {row["says"]: row for row in claims}
    by_key = {claim.key: said[claim.says] for claim in EVERY_CLAIM}
    verdicts = {
        "accuracy_logit_penalty": "holds",
        "accuracy_dropout": "does not hold",
        "accuracy_squared_error": "does not hold",
        "accuracy_final_layer_l2": "does not hold",
        "calibration": "undecided",
        "robustness": "does not hold",
        "mistakes": "holds",
        "last_layers": "undecided",
        "separation_all": "does not hold",
        "separation_linear": "does not hold",
        "separation_knn": "undecided",
        "separation_shared": "undecided",
        "softmax_best_knn": "does not hold",
        "temperature_transfer": "holds",
        "fine_tuning_erases": "undecided",
        "fine_tuned_alike": "undecided",
        "augmentation": "does not hold",
        "combinations": "holds",
    }
    assert {key: by_key[key]["verdict"] for key in verdicts} == verdicts
    gains = [key for key in by_key if key.startswith("accuracy_") and key not in verdicts]
    assert [by_key[key]["verdict"] for key in gains] == ["undecided"] * 4
    points = {key: by_key[key]["ours"].partition(" points")[0] for key in by_key}
    gain, dropout, squared, final = (points[key] for key in list(verdicts)[:4])
    assert (
        f"better than softmax ({gain} points), squared error worse ({squared}), dropout and more final-layer"
        f" L² do not gain what counts ({dropout} and {final}), the other four are open" in page
    )
    assert by_key["accuracy_squared_error"]["reason"].startswith("Excluded (p < 0.0001, corrected for eight")
    thesis = {side: re.search(r"ρ = \S+", by_key["thesis"][side]) for side in ("ours", "paper")}
    assert thesis["ours"] is not None
    assert thesis["paper"] is not None
    assert by_key["thesis"]["verdict"] == by_key["thesis"]["printed"] == "undecided"
    assert f"is open here ({thesis['ours'][0]}), as it is by the same rule on the paper's own" in page
    assert f"numbers ({thesis['paper'][0]}): nine objectives" in page
    error = re.match(r"With the calibration error .*?; (ρ = \S+) ", by_key["calibration"]["ours"])
    assert error is not None
    assert f"the more accurate, the larger the calibration error ({error[1]} now)" in page
    excluded = by_key["separation_linear"]["reason"]
    assert re.fullmatch(r"Excluded \(p = 0.04\d\): ρ = −0.50 or less\.", excluded)
    kept_back = by_key["softmax_best_knn"]
    assert kept_back["reason"].endswith("for Sigmoid.")
    ahead = re.search(r"Sigmoid, ([+]0[.]\d+) points of kNN transfer \((.*?)\)", kept_back["ours"])
    assert ahead is not None
    assert f"is excluded (sigmoid {ahead[1]} points, {ahead[2]})" in page
    alike = by_key["mistakes"]["ours"].partition(" points")[0]
    assert f"more often than two of different ones, as in the paper ({alike} points)" in page
    last = re.search(r"[+](\S+) [(](\S+ to \S+)[)] in penultimate", by_key["last_layers"]["ours"])
    assert last is not None
    of_nine = re.search(r"between for (nine of nine objectives)\.", by_key["last_layers"]["reason"])
    assert of_nine is not None
    assert f"for {of_nine[1]}, by {last[1]} of CKA" in page
    assert f"for objectives at large is open ({last[2]})" in page
    ratio = re.search(r"ratio of (\d\.\d\d)", by_key["robustness"]["ours"])
    assert ratio is not None
    assert f"differ {ratio[1]} times as much as in transfer" in page
    erased = re.search(r"ratio of (\S+) [(](.*?), 99 %[)]", by_key["fine_tuning_erases"]["ours"])
    assert erased is not None
    assert (
        f"not judged (their spread is {erased[1]} times as wide as with linear classifiers, {erased[2]})"
        in page
    )
    combined = re.match(r"(\S+) points .* mean of seven combinations;", by_key["combinations"]["ours"])
    assert combined is not None
    assert (
        "Seven combinations of objectives are no more accurate than the better of their parts, as in the"
        f" paper ({combined[1]} points in the mean)" in page
    )


def test_what_the_readme_says_of_halves_of_the_seeds(claims: list[dict[str, str]]) -> None:
    pairs = {row["says"]: {row["first_half"], row["second_half"]} for row in claims}
    twice = [pair for pair in pairs.values() if pair in ({"holds"}, {"does not hold"})]
    assert {"holds", "does not hold"} not in pairs.values()
    assert f"{len(twice)} claims come out the same way twice and none in opposite ways" in text("README.md")


def test_what_the_readme_says_of_the_first_six_seeds(reference: StudyResults) -> None:
    first = only(reference, lambda row: row.arm is None and (row.seed is None or row.seed < 6))
    verdicts = [
        {one.claim.key: one.ours.verdict for one in judge(gather(admit(results)))}
        for results in (first, reference)
    ]
    pairs = {key: tuple(of[key] for of in verdicts) for key in verdicts[0]}
    assert {key: six for key, (six, nine) in pairs.items() if six != "undecided" == nine} == {
        "accuracy_label_smoothing": "holds",
        "calibration": "does not hold",
    }
    assert "Two that the first six seeds by themselves decide are open with nine" in text("README.md")


def test_what_the_readme_says_of_temperatures(reference: StudyResults) -> None:
    (table,) = (one for one in exhibit("table4", reference).tables if one.source == "ours")
    keys = [column.label for column in table.columns]
    accuracy, separation, transfer = (
        {row.label.removeprefix("τ = 0"): row.cells[keys.index(name)] for row in table.rows}
        for name in ("Top-1", "R²", "Mean")
    )

    def rises(cells: Mapping[str, Cell], since: str, until: str, sign: int = 1) -> bool:
        values = [sign * (cell.value or 0) for at, cell in cells.items() if since <= at <= until]
        return len(values) > 1 and values == sorted(values)

    page = text("README.md")
    assert list(transfer) == [".01", ".02", ".03", ".04", ".05", ".06", ".07", ".08"]
    assert rises(transfer, ".02", ".08", -1)
    assert f"falls from {transfer['.02'].text} to {transfer['.08'].text} %, at each step" in page
    assert max(accuracy, key=lambda at: accuracy[at].value or 0) == ".05"
    assert rises(separation, ".01", ".03", -1)
    assert rises(separation, ".03", ".08")
    assert f"rises from there to .08, from {separation['.03'].text} to {separation['.08'].text}" in page


def test_what_the_readme_says_of_a_second_architecture(reference: StudyResults) -> None:
    (table,) = (one for one in exhibit("tableB1", reference).tables if one.source == "ours")
    keys = [column.label for column in table.columns]
    separation, transfer = (
        {row.label: row.cells[keys.index(name)] for row in table.rows} for name in ("R²", "Mean")
    )
    assert len(table.rows) == 9
    assert max(separation, key=lambda name: separation[name].value or 0) == "Squared error"
    assert min(transfer, key=lambda name: transfer[name].value or 0) == "Squared error"
    assert (
        f"squared error again separates furthest (R² = {separation['Squared error'].text})"
        f" and transfers worst ({transfer['Squared error'].text} %, softmax {transfer['Softmax'].text} %)"
    ) in text("README.md")


def test_what_the_readme_says_of_shared_classes() -> None:
    rows = exhibit("claims", read_reference("shared_classes")).tables[0].rows
    says = next(claim.says for claim in EVERY_CLAIM if claim.key == "separation_shared")
    (ours,) = [
        cell.text for row in rows if row.label == says for cell in row.cells[2:] if " of ρ (" in cell.text
    ]
    said = ours.partition(",")[0].replace(" of ρ", "")
    assert f"rho changes by {said.removesuffix(')')}" in text("README.md")


def test_six_objectives_cannot_be_told_apart_in_transfer(reference: StudyResults) -> None:
    rows = exhibit("table1", reference).tables[0].rows
    assert rows[0].cells[-1].best
    assert [row.cells[-1].best for row in rows].count(True) == 6
    assert "and six cannot be told apart in transfer" in text("README.md")


def test_what_the_readme_says_of_strengths() -> None:
    page, evidence = text("README.md"), gather(admit(read_reference("sweep_first")))
    judged = {one.claim.key: one.ours for one in judge(evidence, DOSE_CLAIMS)}
    curves = {one.family: one for one in dose_curves(evidence, "linear")}
    falls = {family: -fmean(one.prices().values()) for family, one in curves.items()}
    effects = overall_effects(evidence, "linear", CRITERIA)
    assert effects is not None
    over_seeds = effects[0]
    assert judged["dose_overall"].verdict == "holds"
    assert (
        f"The price is {over_seeds.estimate:.2f} points of linear transfer for each .1 of R² in their mean"
        f" ({over_seeds.low:.2f} to {over_seeds.high:.2f}), from {falls['squared_error']:.2f} for squared"
        f" error to {falls['logit_norm']:.2f} for logit normalization"
    ) in page
    assert (min(falls.values()), max(falls.values())) == (falls["squared_error"], falls["logit_norm"])
    corrected = price_effects({family: one.prices() for family, one in curves.items()}, CRITERIA)
    sure = [family for family, one in corrected.items() if decide(one, CRITERIA) == "holds"]
    assert f"{in_words(len(sure))} of the seven fall beyond chance by themselves, and all seven" in page
    assert judged["dose_slopes_knn"].verdict == "holds"
    apart = re.search(
        r"R² = 0.40: (\S+) points apart, .* each .1 of R²: (\S+) points", judged["dose_one_line"].ours
    )
    assert apart is not None
    assert f"lie {apart[1]} points apart, and their prices differ by {apart[2]}." in page
    assert judged["dose_reading"].verdict == "does not hold"
    assert judged["dose_reading"].reason.startswith("Refuted: the families do not share a line.")
    counting = [one for one in judged_pairs(evidence, "linear", CRITERIA) if not one.why_not]
    of_pairs = mean_of_pairs(counting, CRITERIA)
    assert of_pairs is not None
    assert judged["dose_pairs"].verdict == "undecided"
    assert (
        f"is open: −{of_pairs.estimate:.2f} points for each .1 of R² (−{of_pairs.high:.2f} to"
        f" {-of_pairs.low:.2f}; {in_words(len(counting))} pairs of strengths, where"
        f" {in_words(len(PAIRS))} had been fixed)"
    ) in page
    strengths = {one.spec: one for one in distinct(families_of(evidence))}
    behind = {
        name: -fmean(below_softmax_in_training(evidence.measurements, strengths[spec]).values())
        for name, spec in (
            ("squared error", "squared_error(kappa=9, scale=1.28, target=3.75)"),
            ("cosine", "cosine_softmax(scale=1, temperature=0.1)"),
        )
    }
    assert (
        f"it transferred {behind['squared error']:.1f} points better than squared error and"
        f" {behind['cosine']:.1f} points better than cosine softmax at .1"
    ) in page
    assert judged["dose_strengths"].verdict == "undecided"
    of_paper = in_family(evidence, PAPERS_STRENGTHS)
    x, y = of_paper.values("separation"), of_paper.values("linear")
    ranks = spearman([fmean(x[spec].values()) for spec in x], [fmean(y[spec].values()) for spec in x])
    assert ranks.n == 8
    assert f"rho is −{-ranks.rho:.2f} (p = {ranks.p:.2f})" in page


def test_what_the_readme_says_of_nine_that_differ_little(
    measured: Measurements, claims: list[dict[str, str]]
) -> None:
    page, found = text("README.md"), quantities(measured)
    slugs = [one.slug for one in measured.objectives]
    rest = [place for place, slug in enumerate(slugs) if slug != "squared_error"]
    separation, linear = (np.array(found[name]) for name in ("separation", "linear"))
    of_paper = [
        float(row["class_separation_r2"])
        for row in published.printed("neurips_table3_class_separation")
        if row["objective"] != "squared_error"
    ]
    assert (
        f"lie within {np.ptp(separation[rest]):.2f} of R² of each other (in the paper within"
        f" {max(of_paper) - min(of_paper):.2f})"
    ).replace("0.", ".") in page
    worst = slugs.index("squared_error")
    assert f"{100 * (linear[slugs.index('softmax')] - linear[worst]):.1f} points below softmax" in page
    whole, without = (
        float(np.corrcoef(separation[of], linear[of])[0, 1]) for of in (list(range(len(slugs))), rest)
    )
    assert f"Pearson's r is −{-whole:.2f}, and +{without:.2f} without squared error" in page
    key = next(claim.says for claim in EVERY_CLAIM if claim.key == "separation_linear")
    (row,) = [row for row in claims if row["says"] == key]
    assert (row["first_half"], row["second_half"]) == ("undecided", "undecided")


def test_what_the_readme_says_of_the_third_set_of_rules() -> None:
    page = text("README.md")
    assert f"{in_words(len(FAMILIES) + 1)} families of objectives, each at several strengths" in page
    assert f"Its {in_words(len(DOSE_CLAIMS))} claims are judged by a [third set of rules]" in page
    assert f"dated {DOSE_RULES.partition(',')[0]} and filed before any of its networks" in page
    networks = {(key.objective, key.seed) for key in load_study("sweep_smallest").keys()}
    assert f"its smallest part, {len(networks)} networks" in page


def test_what_the_readme_says_of_full() -> None:
    full = read_reference("full")
    verdicts = {one.ours.verdict for one in judge(gather(admit(full)))}
    assert verdicts == {"undecided"}
    networks = full.provenance["steps"]["train"][1]
    assert (
        f"{networks} networks and all 42 tables and figures, of one seed or two. It gives directions and"
        f" decides nothing: all {len(EVERY_CLAIM)} claims stay undecided." in text("README.md")
    )


def test_what_the_readme_says_of_fine_tuning_depth_and_other_networks(
    reference: StudyResults,
) -> None:
    page = text("README.md")
    tuned, depth = exhibit("table2", reference), exhibit("depth", reference)
    apart = re.match(
        r"Ours: the highest mean is (\S+) points above the lowest in fine-tuned transfer and (\S+) in"
        r" linear.*; in the paper (\S+) and (\S+)[.]$",
        tuned.finding,
    )
    assert apart is not None
    assert (
        f"the best objective is {apart[1]} points above the worst (in the paper {apart[3]}), where with"
        f" linear classifiers it is {apart[2]} (in the paper {apart[4]})"
    ) in page
    assert re.search(
        r"differ beyond chance \(.*p = 0\.035\); .* Bold, which \d+ of 72 cells are, asks",
        " ".join(tuned.notes),
    )
    edge = re.search(r"On the edge of the grid, .* lie (\d+) of (\d+) best cells", " ".join(tuned.notes))
    scratch = re.search(
        r"In the same 400 steps .* scratch reaches (\S+ %).* gains (\S+ to \S+) points on it",
        " ".join(tuned.notes),
    )
    assert edge is not None
    assert scratch is not None
    assert f"{edge[1]} of {edge[2]} best cells lie on the edge of a small grid" in page
    assert (
        f"In the same 400 steps fine-tuning gains {scratch[2]} points on training from scratch, {scratch[1]}."
        in page
    )
    gain = re.search(r"by linear probes .*? gain more from an earlier layer \((.*?);", depth.finding)
    recovered = re.search(
        r"By linear probes Squared error, the only .*? recovers (\d+) % of softmax's lead",
        " ".join(depth.notes),
    )
    assert gain is not None
    assert recovered is not None
    assert f"gain more from an earlier layer ({gain[1]}, one run each;" in page
    assert (
        "squared error, the only one a point behind, by its own best layers recovers"
        f" {recovered[1]} % of softmax's lead" in page
    )
    small = exhibit("iclr_table1", reference)
    finding = small.finding
    ranks = re.search(r"no relation beyond chance \((.*?), nine .* in the paper ρ = (\S+),", finding)
    by_medians = re.search(r"By medians ρ = (\S+),", " ".join(small.notes))
    assert ranks is not None
    assert by_medians is not None
    assert (
        f"do not rank the objectives alike beyond chance ({ranks[1]}; in the paper {ranks[2]}; by medians,"
        f" which single runs far off do not move, {by_medians[1]})" in page
    )


def test_what_the_readme_says_of_augmentation_and_scores(reference: StudyResults) -> None:
    page = text("README.md")
    changed = re.match(
        r"Ours: under AutoAugment test accuracy changes by −(\S+) ± .* in the paper by \+(\S+), .*"
        r" R² changes by −(\S+) ± .* in the paper by (−\S+),",
        exhibit("tableE3", reference).finding,
    )
    assert changed is not None
    assert (
        f"AutoAugment costs {changed[1]} points of accuracy here and lowers R² by {changed[3]}"
        f" (in the paper it gains {changed[2]} and changes R² by {changed[4]})"
    ) in page
    scores = exhibit("scores", reference)
    picked = re.match(
        r"Ours: least is lost by a pick by TransRate and Pretraining accuracy, (\S+) points .*; a pick at"
        r" random loses (\S+), softmax throughout (\S+)\. .*, softmax on eight\.$",
        scores.finding,
    )
    assert picked is not None
    assert f"TransRate loses least by its picks, {picked[1]} points, as does pretraining accuracy" in page
    assert f"A pick at random loses {picked[2]}, softmax throughout {picked[3]}, and three seeds" in page
    picks, ranks = ({row.label: row.cells for row in scores.tables[at].rows} for at in (1, 0))
    for score in ("TransRate", "Pretraining accuracy"):
        assert {cell.text for cell in picks[score][2:]} == {"Sigmoid"}
    *of_tasks, overall = (cell.value or 0 for cell in ranks["LEEP"])
    assert sum(rho < 0 for rho in of_tasks) > 4
    assert f"on most tasks (ρ = {overall:.2f} in the mean)".replace("-", "−") in page


def test_what_is_said_of_the_world_before() -> None:
    before = quantities(admit(glyphs()))
    rhos = [spearman(before["separation"], before[name]).rho for name in ("linear", "knn")]
    said = "rho was {:.2f} and {:.2f}".format(*rhos).replace("-", "−")
    assert said in text("README.md")
    assert said in text("docs/world.md")


def test_the_worlds_regime_is_that_of_the_reference_runs_softmax(measured: Measurements) -> None:
    softmax = next(one.spec for one in measured.objectives if one.slug == "softmax")
    page, found = text("docs/world.md"), []
    for name, split, decimals, factor in (
        ("top1", "train", 2, 100),
        ("top1", "test", 2, 100),
        ("class_separation", "train", 3, 1),
    ):
        values = measured.runs(name, split=split)[softmax].values()
        found.append(factor * fmean(values))
        assert f"| {found[-1]:.{decimals}f} |" in page
    fits, holds, separation = found
    said = f"{fits:.1f} % on its training images, {holds:.1f} % on new ones and R² = {separation:.3f}"
    assert said.replace("= 0.", "= .") in text("README.md")


def test_the_worlds_table_is_what_the_searches_of_the_matched_regime_found() -> None:
    page, cells = (ROOT / "docs/world.md").read_text(), 0
    sought = ("alpha", "lambda_final", "keep", "beta", "temperature", "target", "learning_rate")
    for search in ("matched_search", "matched_search_scaled", "matched_sweep_search"):
        tuning = reference_tuning(search)
        assert tuning is not None
        for one in tuning.objectives:
            cells += len(one.cells)
            assert one.best is not None
            assert one.best is one.cells[one.highest]
            assert {len(cell.runs) for cell in one.cells} == {3}
            given = {**dict(specs.parse(one.best.objective).arguments), **dict(one.best.settings)}
            searched = {axis.key.rpartition(".")[2] for axis in one.axes if len(axis.grid) > 1}
            chosen = ", ".join(f"{key} = {given[key]}" for key in sought if key in given and key in searched)
            label = f"{one.label}, loss scaled by the temperature .05" if "sweep" in search else one.label
            mean, error = 100 * one.best.mean, 100 * one.best.standard_error
            assert f"| {label} | {chosen or '–'} | {mean:.2f} ± {error:.2f} | {len(one.cells)} |" in page
    assert f"{cells} cells, each trained with three seeds for 44 epochs" in page


def test_what_the_world_s_document_says_of_the_final_layer_s_decay() -> None:
    said, results = text("docs/world.md"), read_reference("head_decay_first")
    (found,) = judge_head_decay(admit(results))
    gain, _, interval = found.ours.ours.partition(",")[0].partition(" points of test accuracy ")
    assert f"the mean gain is {gain} points {interval}," in said
    assert (found.ours.verdict, "That is undecided" in said) == ("undecided", True)
    table = exhibit("table1", results).tables[0]
    found_of = {row.label: float(row.cells[0].value or 0) for row in table.rows}
    gains = {name: found_of[name] - found_of["Softmax"] for name in found_of if name != "Squared error"}
    assert sum(gain > 0 for gain in gains.values()) == 6
    assert f"dropout, which keeps the paper's .7, loses {-gains['Dropout']:.1f}" in said
