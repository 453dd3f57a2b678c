"""Shifted test sets and corrupted images (section C.2 of the paper).

The mean corruption error takes the errors of a reference: AlexNet's on the published ImageNet-C, and
elsewhere those of the study's softmax network of the same seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from penultimate.data.catalog import SHIFTS, shifted
from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
from penultimate.metrics.robustness import ALEXNET_ERRORS
from penultimate.paper import BASELINE
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import table_of_means, table_of_printed
from penultimate.results.rows import Run, by_setting, mean_of, seeds
from penultimate.results.table import Column, Table

PUBLISHED = "published_robustness"
"""The measurement whose images are those of the published ImageNet-V2, -A, -R, -Sketch and -C."""
GROUPS = {
    "Noise, error %": ("Gauss.", "Shot", "Impulse"),
    "Blur, error %": ("Defocus", "Glass", "Motion", "Zoom"),
    "Weather, error %": ("Snow", "Frost", "Fog", "Bright"),
    "Digital, error %": ("Contrast", "Elastic", "Pixel", "JPEG"),
}
"""The headings of the corruptions, in the order of the benchmark and as in its own tables."""
MCE = Column("mce", "-C, mCE", better="low", with_error=True)


@exhibit("tableC2", "What the networks make of images unlike those they were trained on", section="C.2")
def tableC2(run: Run) -> Iterator[Part]:
    """Top-1 accuracy of the networks, as they are, on shifted test sets in the place of ImageNet-V2, -A, -R
    and -Sketch, and the mean corruption error (mCE) of images under 15 corruptions at 5 severities: the
    errors of a network as a share of those of a reference, 100 where they are equal; lower is better. In the
    paper, every other objective has a lower mCE than softmax, cosine softmax the lowest."""
    errors, published = errors_of(run), is_published(run)
    test = Column("test_percent", "Test, %", "Accuracy", better="high", with_error=True)
    of_sets = {
        replace(test, key=f"{shift}_percent", label=f"-{title}, %", group="Accuracy on other images"): seeds(
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
        Column(f"{name}_error_percent", *heads[place], better="low"): frame
        for place, (name, frame) in enumerate(errors.items())
    }
    title = "Errors on corrupted images, means of five severities"
    yield table_of_means(run, "tableC2_corruptions", title, by_corruption)
    yield table_of_printed(
        "tableC2",
        "The paper's Table C.2: ResNet-50, ImageNet, eight runs",
        "neurips_tableC2_robustness",
        {
            **{
                Column(f"imagenet_{shift}_percent", f"-{title}, %", "Accuracy on other images"): (
                    f"imagenet_{shift}_percent"
                )
                for shift, (title, *_) in SHIFTS.items()
            },
            Column("imagenet_c_mce", "-C, mCE"): "imagenet_c_mce",
        },
    )
    yield from reference_of(run, published)


def errors_of(run: Run) -> dict[str, pd.DataFrame]:
    """Return the mean error over severities on each corruption [seed, objective] in per cent.

    Networks that lack one of the corruptions or severities are left out.
    """
    found = by_setting(run, "corruption_error", ("corruption", "severity"), scale=100)
    every = [[found.get((name, str(severity))) for severity in SEVERITIES] for name in BENCHMARK]
    if any(frame is None for of in every for frame in of):
        return {}
    means = {
        name: mean_of([frame for frame in of if frame is not None])
        for name, of in zip(BENCHMARK, every, strict=True)
    }
    whole = mean_of([*means.values()])
    return {name: frame.reindex_like(whole).where(whole.notna()) for name, frame in means.items()}


def is_published(run: Run) -> bool:
    """Return whether the errors were measured on the published sets, and not on those made here."""
    steps = run.rows("corruption_error")["step"].unique()
    return {str(step).partition(".")[0] for step in steps} == {PUBLISHED}


def relative(errors: dict[str, pd.DataFrame], published: bool) -> pd.DataFrame:
    """Return the mean corruption error of each network that has a reference [seed, objective]."""
    reference = {
        name: 100 * ALEXNET_ERRORS[name] if published else frame.get(BASELINE)
        for name, frame in errors.items()
    }
    if not errors or any(error is None for error in reference.values()):
        return pd.DataFrame()
    shares = [100 * frame.div(reference[name], axis=0) for name, frame in errors.items()]
    found: pd.DataFrame = mean_of(shares)
    return found.where(found < float("inf")).dropna(axis=1, how="all")


def with_reference(table: Table) -> Table:
    """Return the table with a plain 100 for the mCE of the network that is the reference."""
    if MCE not in table.columns or BASELINE not in table.slugs:
        return table
    place = table.slugs.index(BASELINE)
    parts = {"errors": table.errors, "counts": table.counts}
    blank = pd.Series([number == place for number in range(len(table.values))], table.values.index)
    return replace(
        table,
        **{name: of.assign(mce=of[MCE.key].mask(blank)) for name, of in parts.items() if of is not None},
        texts=pd.DataFrame({MCE.key: blank.map({True: "100", False: None})}),
    )


def reference_of(run: Run, published: bool) -> Iterator[str]:
    """Yield what stands in for each ImageNet set, and what the errors are compared with."""
    if published:
        yield "The images are the published ones, and the reference is AlexNet, as in the paper."
        return
    relations = {shift: relation for shift, (_, relation, _) in SHIFTS.items()}
    relations["a"] = "what a network outside the study gets wrong"
    sets = [f"-{SHIFTS[shift][0]}: {relations[shift]}" for shift in shifted(run.source)]
    if sets:
        yield f"In the place of ImageNet's sets stand {'; '.join(sets)}."
    yield (
        "The reference is the study's softmax network of the same seed; in the paper it is AlexNet. Frost is"
        " a procedural texture here, where ImageNet-C has photographs."
    )
