"""The spread of features: angular hardness, singular values, cosine distances (figures E.1 to E.3)."""

from __future__ import annotations

from dataclasses import replace

from penultimate.data.catalog import card
from penultimate.paper.exhibits.separation import rows_as_they_lie
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.density import MOST, Densities, Spectra, directions
from penultimate.report.shapes.findings import beside_baseline, ends
from penultimate.report.shapes.table import TableOfRuns
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.report.text import percent as in_percent

HARDNESS = Quantity(
    "hardness_density",
    arrays=("points", "density"),
    label="Angular visual hardness, times the number of classes",
)
MEAN_HARDNESS = Quantity(
    "angular_visual_hardness", label="Mean hardness × classes", key="hardness_times_classes", with_error=True
)
ACCURACY = Quantity("top1", label="Top-1, %", key="top1_percent")
NO_HARDNESS = "Densities of angular visual hardness"


def _mean_hardness(measurements: Measurements) -> Piece:
    """Return the mean hardness times the number of classes, the unit of the densities."""
    columns = (replace(MEAN_HARDNESS, factor=card(measurements.source).classes), ACCURACY)
    title = "Mean hardness on the test images of {source}"
    return TableOfRuns("figureE1", title, columns, NO_HARDNESS, (MEAN_HARDNESS.key,)).build(measurements)


def _hardness(measurements: Measurements) -> str:
    scaled = replace(MEAN_HARDNESS, factor=card(measurements.source).classes)
    return beside_baseline(Asked("mean hardness × classes (lower is easier)", scaled))(measurements)


FIGURE_E1 = Exhibit(
    name="figureE1",
    title="How far from their own class's weights do images lie?",
    caption="The angle between an image's features and the weights of its own class, as a share of the angles"
    " to all classes. 1: the own class is no nearer than the others; to the left: an image easier to tell.",
    parts=(
        Densities(
            "figureE1",
            "Angular visual hardness",
            "Densities of hardness, a line an objective.",
            "{source}, test images",
            (HARDNESS,),
            missing=NO_HARDNESS,
        ),
        Bespoke(_mean_hardness, (MEAN_HARDNESS, ACCURACY)),
    ),
    paper_says="The paper prints its Figure E.1 (50,000 ImageNet validation images, bandwidth 5e-6 at 1000"
    " classes: 0.005 on this scale, which is ours too) as a drawing only. It says that the other objectives"
    " generally lower hardness against softmax, and that sigmoid does not.",
    findings=(_hardness,),
    section="E.2",
    summary="Angular visual hardness",
    short="Angular visual hardness",
)

SPECTRA = Quantity("singular_values", "train", arrays=("activations", "weights", "centroids"))
DIRECTIONS = replace(SPECTRA, decimals=1)
FIGURE_E2 = Exhibit(
    name="figureE2",
    title="In how many directions do the features spread?",
    caption="Singular values, the largest first and at 0, on a scale of powers of ten (training images of"
    " {source}). A line that falls early: most directions are hardly used. Weights that the head scales to"
    " length 1 (cosine softmax) are taken so.",
    parts=(
        Spectra(
            "figureE2",
            "Singular value spectra",
            "Singular values over the largest, in falling order, a line an objective.",
            (SPECTRA,),
            ("Penultimate activations", "Weights of the final layer", "Class centroids"),
            missing="Singular value spectra",
        ),
    ),
    findings=(
        ends(
            *(
                Asked(
                    f"the number of directions that hold {in_percent(MOST, 0)} % of the spread of {what}",
                    DIRECTIONS,
                    read=directions(SPECTRA, array),
                )
                for what, array in (("activations", "activations"), ("class centroids", "centroids"))
            )
        ),
        rows_as_they_lie,
    ),
    paper_says="The paper prints its Figure E.2 as a drawing only. It says that activations and weights fail"
    " to tell sigmoid from softmax, and that the class centroids tell them apart. It does not say whether it"
    " centres; here nothing is centred.",
    section="E.2",
    summary="Singular value spectra of activations, weights and centroids",
    short="Singular values",
)

NO_DISTANCES = "Distributions of cosine distances"
DISTANCES = Quantity(
    "cosine_distance_density", "train", arrays=("points", "within", "between"), label="Cosine distance"
)
MEAN_DISTANCES = tuple(
    Quantity(metric, "train", label=label, group="Mean cosine distance", key=metric, with_error=True)
    for metric, label in (
        ("cosine_distance_within", "Within a class"),
        ("cosine_distance_between", "Between classes"),
    )
)
COUNTS = (
    "Every pair of images counts once; in class separation R² every class counts the same, and an image with"
    " itself counts as well."
)

FIGURE_E3 = Exhibit(
    name="figureE3",
    title="Are images of one class closer than images of two?",
    caption="How the cosine distances between the features of two images are distributed: solid, of one"
    " class; dashed, of different ones. The less the two overlap, the further the classes lie apart.",
    parts=(
        Densities(
            "figureE3",
            "Cosine distances",
            "Densities of cosine distances: within a class (solid) and between classes (dashed).",
            "{source}, training images",
            (DISTANCES,),
            missing=NO_DISTANCES,
            words=(", within a class", ", between classes"),
            closer=True,
        ),
        TableOfRuns("figureE3", "Mean distances on {source}", MEAN_DISTANCES, NO_DISTANCES, notes=(COUNTS,)),
    ),
    paper_says="The paper prints its Figure E.3 (10,000 ImageNet training images) as a drawing only, and does"
    " not say its bandwidth; ours is 0.01.",
    findings=(
        ends(
            *(
                Asked(f"the mean cosine distance {words}", shown)
                for words, shown in zip(("within a class", "between classes"), MEAN_DISTANCES, strict=True)
            )
        ),
    ),
    section="E.2",
    summary="Cosine distances within and between classes",
    short="Distances between images",
)
