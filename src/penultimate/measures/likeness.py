"""How alike two networks' features are, by CKA with a permutation test, shared neighbours and a rotation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from penultimate.errors import RequestError
from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Fact, Inputs, Number, Undefined, sample
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

MEASURES = {
    "likeness_cka": "CKA",
    "likeness_cka_p": "p of CKA",
    "likeness_cka_null": "CKA by chance",
    "mutual_neighbours": "mutual neighbours",
    "procrustes": "Procrustes similarity",
}
"""What it yields, with the name within a sentence."""


@register.measurement(
    version=2,
    per="pair",
    needs=(Features("test", common=True),),
    yields=tuple(Yield(metric, "ratio", called=called) for metric, called in MEASURES.items()),
    ranges={
        "images": Interval(4, closed="left"),
        "batch_size": Interval(4, closed="left"),
        "permutations": Interval(1, 100_000, "both"),
        "neighbours": Interval(1, closed="left"),
        "seed": Interval(0, 2**63, "left"),
    },
    seconds=2.0,
    paper="Nguyen et al., 2021; Huh et al., 2024; Ding et al., 2021",
)
def pair_likeness(
    inputs: Inputs,
    *,
    images: int = 1024,
    batch_size: int = 256,
    permutations: int = 499,
    neighbours: int = 10,
    seed: int = 0,
) -> Iterator[Number | Fact | Undefined]:
    """CKA with a permutation test, mutual neighbours and Procrustes similarity of two networks' features.

    All are of one sample of the test images, the same for every pair, whose digest is recorded.
    """
    import numpy as np

    from penultimate.metrics.likeness import mutual_neighbours, permuted_cka, procrustes
    from penultimate.metrics.similarity import FEWEST
    from penultimate.probes.arrays import blocks

    (key, one), (other, two) = inputs.all_features("test").items()
    assert one.ids is not None
    assert two.ids is not None
    if not (np.array_equal(one.labels, two.labels) and np.array_equal(one.ids, two.ids)):
        raise RequestError(f"'{key}' and '{other}' were measured on other images")
    chosen = sample(len(one), images)
    if len(chosen) < FEWEST:
        raise UndefinedError(f"likeness needs {FEWEST} test images; '{inputs.target}' has {len(chosen)}")
    ids = np.ascontiguousarray(one.ids[chosen], np.int64)
    yield Fact("sample", hashlib.sha256(ids.tobytes()).hexdigest())
    order = np.random.default_rng(seed).permutation(len(chosen))
    x, y = (np.asarray(bank.features[chosen])[order] for bank in (one, two))
    parts = [*blocks(len(x), max(batch_size, FEWEST))]
    if min(part.stop - part.start for part in parts) < FEWEST:
        parts = [slice(0, len(x))]

    def of_cka() -> dict[str, float]:
        found = permuted_cka([x[part] for part in parts], [y[part] for part in parts], permutations, seed)
        return {"likeness_cka": found.cka, "likeness_cka_p": found.p, "likeness_cka_null": found.null_high}

    for measure in (
        of_cka,
        lambda: {"procrustes": procrustes(x, y)},
        lambda: {"mutual_neighbours": mutual_neighbours(x, y, min(neighbours, len(x) - 1))},
    ):
        try:
            values = measure()
        except UndefinedError as error:
            yield Undefined(f"{key} and {other}: {error}")
            continue
        for metric, value in values.items():
            yield Number(metric, value, "ratio", "test", network=key, other=other)
