"""Shifted test sets, corrupted images, and calibration (section C.2 of the paper).

The mean corruption error takes the errors of a reference: AlexNet's on the published ImageNet-C, and
elsewhere those of the study's softmax network of the same seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.data.catalog import SHIFTS, shifted
from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
from penultimate.paper import BASELINE
from penultimate.paper.printed import figure, printed_columns
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Curve, Panel, Point
from penultimate.results.means import table_of_means, table_of_printed
from penultimate.results.rows import Run, by_setting, mean_of, seeds
from penultimate.results.table import Column, Table
from penultimate.results.text import fixed

PUBLISHED = "published_robustness"
"""The measurement whose images are those of the published ImageNet-V2, -A, -R, -Sketch and -C."""
GROUPS = {
    "Noise, error %": ("Gauss.", "Shot", "Impulse"),
    "Blur, error %": ("Defocus", "Glass", "Motion", "Zoom"),
    "Weather, error %": ("Snow", "Frost", "Fog", "Bright"),
    "Digital, error %": ("Contrast", "Elastic", "Pixel", "JPEG"),
}
"""The headings of the corruptions, in the order of the benchmark and as in its own tables."""
ALEXNET_ERRORS = {
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}
"""AlexNet's top-1 errors on the published ImageNet-C, averaged over five severities: the benchmark's
normalisation (Hendrycks and Dietterich, ICLR 2019, table 1; with the digits that evaluation code uses)."""
MCE = Column("mce", "-C, mCE", better="low", with_error=True)


@exhibit("tableC2", "What the networks make of images unlike those they were trained on", section="C.2")
def tableC2(run: Run) -> Iterator[Part]:
    """Top-1 accuracy of the networks, as they are, on shifted test sets in the place of ImageNet-V2, -A, -R
    and -Sketch, and the mean corruption error (mCE) of images under 15 corruptions at 5 severities: the
    errors of a network as a share of those of a reference, 100 where they are equal; lower is better. In the
    paper, every other objective has a lower mCE than softmax, cosine softmax the lowest."""
    errors, others = errors_of(run), "Accuracy on other images"
    published = {str(step).partition(".")[0] for step in run.rows("corruption_error")["step"]} == {PUBLISHED}
    test = Column("test_percent", "Test, %", "Accuracy", better="high", with_error=True)
    of_sets = {
        replace(test, key=f"{shift}_percent", label=f"-{title}, %", group=others): seeds(
            run, "top1", target=shifted(run.source).get(shift, shift), scale=100
        )
        for shift, (title, *_) in SHIFTS.items()
    }
    of_sets[MCE] = relative(errors, published)
    columns = {test: seeds(run, "top1", scale=100), **of_sets}
    measured = {column: frame for column, frame in columns.items() if not frame.empty}
    table = table_of_means(run, "tableC2", f"Robustness on {run.title}", measured, needs=[*of_sets])
    yield table if published or table is None else with_reference(table)
    heads = [(label, group) for group, labels in GROUPS.items() for label in labels]
    by_corruption = {
        Column(f"{name}_error_percent", *head, better="low"): frame
        for head, (name, frame) in zip(heads, errors.items(), strict=False)
    }
    title = "Errors on corrupted images, means of five severities"
    yield table_of_means(run, "tableC2_corruptions", title, by_corruption)
    yield table_of_printed(
        "tableC2",
        "The paper's Table C.2: ResNet-50, ImageNet, eight runs",
        "neurips_tableC2_robustness",
        printed_columns(
            {f"imagenet_{shift}_percent": f"-{title}, %" for shift, (title, *_) in SHIFTS.items()}, others
        )
        | printed_columns({"imagenet_c_mce": "-C, mCE"}),
    )
    if published:
        yield "The images are the published ones, and the reference is AlexNet, as in the paper."
        return
    relations = {shift: relation for shift, (_, relation, _) in SHIFTS.items()}
    relations["a"] = "what a network outside the study gets wrong"
    if sets := [f"-{SHIFTS[shift][0]}: {relations[shift]}" for shift in shifted(run.source)]:
        yield f"In the place of ImageNet's sets stand {'; '.join(sets)}."
    yield (
        "The reference is the study's softmax network of the same seed; in the paper it is AlexNet. Frost is"
        " a procedural texture here, where ImageNet-C has photographs."
    )


def errors_of(run: Run) -> dict[str, pd.DataFrame]:
    """Return the mean error over severities on each corruption [seed, objective] in per cent.

    Networks that lack one of the corruptions or severities are left out.
    """
    found = by_setting(run, "corruption_error", ("corruption", "severity"), scale=100)
    if not {(name, str(severity)) for name in BENCHMARK for severity in SEVERITIES} <= {*found}:
        return {}
    means = {name: mean_of([found[name, str(severity)] for severity in SEVERITIES]) for name in BENCHMARK}
    whole = mean_of([*means.values()])
    return {name: frame.reindex_like(whole).where(whole.notna()) for name, frame in means.items()}


def relative(errors: dict[str, pd.DataFrame], published: bool) -> pd.DataFrame:
    """Return the mean corruption error of each network that has a reference [seed, objective]."""
    reference = {
        name: 100 * ALEXNET_ERRORS[name] if published else frame.get(BASELINE)
        for name, frame in errors.items()
    }
    if not errors or any(error is None for error in reference.values()):
        return pd.DataFrame()
    found: pd.DataFrame = mean_of(
        [100 * frame.div(reference[name], axis=0) for name, frame in errors.items()]
    )
    return found.where(found < float("inf")).dropna(axis=1, how="all")


def with_reference(table: Table) -> Table:
    """Return the table with a plain 100 for the mCE of the network that is the reference."""
    if MCE not in table.columns or BASELINE not in table.slugs:
        return table
    place = table.slugs.index(BASELINE)
    blank = pd.Series([number == place for number in range(len(table.values))], table.values.index)
    parts = {
        name: of.assign(mce=of[MCE.key].mask(blank))
        for name, of in (("errors", table.errors), ("counts", table.counts))
        if of is not None
    }
    return replace(table, **parts, texts=pd.DataFrame({MCE.key: blank.map({True: "100", False: None})}))


SCALINGS = {"": "As trained", "_scaled": "With temperature scaling"}
"""The suffix of a metric, and the words for before or after scaling."""
KEYS = {"": "uncalibrated", "_scaled": "temperature_scaled"}
LEAST_SHARE = 0.005
"""The smallest share of the examples in a bin that is drawn; smaller bins are too noisy."""


@exhibit("tableC3", "Can the probabilities be believed?", section="C.2")
def tableC3(run: Run) -> Iterator[Part]:
    """Negative log-likelihood (NLL) and expected calibration error (ECE, 15 bins) on the test images; lower
    is better. They are shown as trained, and after dividing the scores by the one temperature that makes the
    labels of the holdout images most likely; a temperature above 1 makes predictions less sure. The lines are
    accuracy less confidence by confidence, and the nearer to zero, the better calibrated. For the sigmoid,
    probabilities are renormalised. Squared error is left out, as in the paper: its scores aim at fixed values
    and are not the logarithms of probabilities. In the paper, label smoothing is calibrated best before
    scaling, and the sigmoid after it."""
    columns = {
        Column(f"{KEYS[suffix]}_{metric}_{unit}", metric.upper(), group, 3, "low", with_error=True): seeds(
            run, f"{metric}{suffix}"
        )
        for suffix, group in SCALINGS.items()
        for metric, unit in (("nll", "nats"), ("ece", "fraction"))
    }
    temperature = Column("temperature", "Temperature", SCALINGS["_scaled"], 2, with_error=True)
    ours = columns | {temperature: seeds(run, "temperature")}
    yield table_of_means(run, "tableC3", f"Calibration on {run.title}", ours)
    title, source = "The paper's Table C.3: ResNet-50, ImageNet, three runs", "neurips_tableC3_calibration"
    yield table_of_printed("tableC3", title, source, {column: column.key for column in columns})
    panels = (reliability(run, suffix) for suffix in SCALINGS)
    yield figure("tableC3-reliability", "Reliability", *panels, legend=True)


def reliability(run: Run, suffix: str) -> Panel | None:
    """Return a line of accuracy less confidence for each objective, or None if no bin was measured."""
    curves, points = [], []
    for slug, label in run.labels().items():
        bins = 100 * bins_of(run, suffix, slug)
        line = list(zip(bins["confidence"], bins["accuracy"] - bins["confidence"], strict=True))
        curves += [Curve(tuple(line), slug, label)] if line else []
        for (x, y), bin_ in zip(line, bins.itertuples(), strict=True):
            said = f"{fixed(x, 1)} % sure, {fixed(bin_.accuracy, 1)} % right, {fixed(bin_.share, 1)} % of"
            points.append(Point(x, y, slug, label, f"{said} the images"))
    level = Curve(((0.0, 0.0), (100.0, 0.0)), "", "As sure as right", faint=True)
    panel = Panel(
        f"tableC3-reliability{suffix.replace('_', '-')}",
        SCALINGS[suffix],
        "Confidence, % (mean of a bin)",
        "Accuracy less confidence, points",
        tuple(points),
        (level, *curves),
        labelled=False,
    )
    return panel if curves else None


def bins_of(run: Run, suffix: str, slug: str) -> pd.DataFrame:
    """Return the share, confidence and accuracy of each bin, with all runs of an objective pooled."""
    share, confidence, accuracy = (
        pd.DataFrame({bin_: frame[slug] for bin_, frame in found.items() if slug in frame})
        for name in ("share", "confidence", "accuracy")
        for found in [by_setting(run, f"reliability_{name}{suffix}", ("bin", "bins"))]
    )
    share = share.where(confidence.notna() & accuracy.notna())
    total = share.sum()
    pooled = {"share": total / len(share)}
    pooled |= {
        name: (share * of).sum() / total for name, of in (("confidence", confidence), ("accuracy", accuracy))
    }
    return pd.DataFrame(pooled)[total >= LEAST_SHARE * len(share)]
