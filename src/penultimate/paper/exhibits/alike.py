"""How alike two networks' features are by five measures, what chance gives, and a caution about CKA."""

from __future__ import annotations

from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.likeness import of_pairs
from penultimate.report.shapes.pairs import SEEDS_APART, PairTable, pairs_of
from penultimate.report.spec import Bespoke, Exhibit, Piece

MEASURES = {
    "cka": Quantity("likeness_cka", label="CKA, unbiased, %"),
    "neighbours": Quantity("mutual_neighbours", label="Nearest neighbours in common, of ten, %"),
    "procrustes": Quantity("procrustes", label="Procrustes similarity, %"),
    "rsa": Quantity("rsa_spearman", label="Rank correlation of distances between images (RSA), %"),
    "rsa_linear": Quantity("rsa_pearson", label="Their linear correlation, %"),
}
BESIDE = tuple(
    Quantity(metric)
    for metric in (
        "likeness_cka_p",
        "likeness_cka_null",
        "likeness_cka_shifted",
        "likeness_cka_change",
    )
)


def _caution(measurements: Measurements) -> Piece:
    if not pairs_of(measurements, MEASURES["cka"]):
        return Piece(wanted=False)
    return Piece(notes=(*of_pairs(measurements), SEEDS_APART))


EXHIBIT = Exhibit(
    name="alike",
    title="Do other measures find the same networks alike as CKA does?",
    caption="The penultimate features of every two networks on the same sample of test images, by CKA and"
    " four measures that see other things: which images are neighbours, how well a rotation maps one onto the"
    " other, and how distances between images correlate. Each cell is the mean over pairs of networks.",
    parts=(
        Bespoke(_caution, (MEASURES["cka"], *BESIDE)),
        *(
            PairTable(f"alike-{name}", (quantity,), quantity.label.removesuffix(", %"))
            for name, quantity in MEASURES.items()
        ),
    ),
    place=9,
    of_given=False,
    measured_by="alike",
    summary="CKA with a permutation test, neighbours, Procrustes and RSA of every two networks",
    short="Alike, by five measures",
)
