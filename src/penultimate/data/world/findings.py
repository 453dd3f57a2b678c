"""Images of several letters, some of them faint: five labels, each present, absent or uncertain.

The task stands to the others as CheXpert to the paper's photographs. The places of an image, two by
two, are dealt to four of the five labels; a label whose turn it is has a finding there with its own
probability. A finding is clear, and the label's letter then; or it is faint, and as often the label's letter
as one that no label stands for. Places without a finding hold such a letter too, or nothing. So:

    train, test     faint findings are uncertain (-1), whatever they are
    validation      it is known what they are: none is uncertain
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from penultimate.data.catalog import DatasetCard, card
from penultimate.data.images import ImageSet
from penultimate.data.seeding import derived_generator
from penultimate.data.world.atlas import SIDE, Atlas, Typefaces
from penultimate.data.world.characters import FACES, selected
from penultimate.data.world.nuisance import Nuisances, compose
from penultimate.data.world.world import one_thread

CHANCES = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Of each label, of a finding where it has a place."""
FAINT, FAINTNESS = 0.3, (0.2, 0.4)
"""The share of findings that are faint, and how much of the ink they keep."""
FILLED = 0.3
"""The share of places without a finding that hold another letter."""
PLACES = 4


@dataclass(frozen=True)
class Scene:
    """What n images hold in their places, and what that makes of their labels.

    letter  [n places] a character's number, the labels' first; -1 for nothing
    ink     [n places] 1, or less where faint
    truth   [n l] whether the label's letter is there
    faint   [n l] whether the label has a faint finding
    """

    letter: Int64[Tensor, "n places"]
    ink: Float[Tensor, "n places"]
    truth: Bool[Tensor, "n l"]
    faint: Bool[Tensor, "n l"]


def scenes(count: int, letters: int, generator: torch.Generator) -> Scene:
    """Return what `count` images hold, of `letters` characters of which the first are the labels'."""

    def uniform(columns: int) -> Tensor:
        return torch.rand(count, columns, generator=generator)

    def others() -> Tensor:
        return torch.randint(len(CHANCES), letters, (count, PLACES), generator=generator)

    # The label of each place: a random order of the five, of which the last has none.
    label = uniform(len(CHANCES)).argsort(1)[:, :PLACES]
    found = uniform(PLACES) < torch.tensor(CHANCES)[label]
    faint = found & (uniform(PLACES) < FAINT)
    own = found & ~(faint & (uniform(PLACES) < 0.5))
    filled = found | (uniform(PLACES) < FILLED)
    letter = torch.where(own, label, torch.where(filled, others(), -1))
    least, most = FAINTNESS
    ink = torch.where(faint, uniform(PLACES) * (most - least) + least, 1.0)
    by_label = torch.zeros(count, len(CHANCES), dtype=torch.bool)
    return Scene(letter, ink, by_label.scatter(1, label, own), by_label.scatter(1, label, faint))


def drawn(scene: Scene, masks: Tensor, generator: torch.Generator) -> Tensor:
    """Return one mask [n 48 48] an image: its letters at half their size,
    from `masks` [letters faces 48 48].
    """
    face = torch.randint(masks.shape[1], scene.letter.shape, generator=generator)
    small = F.avg_pool2d(masks.float(), 2)[scene.letter.clamp(min=0), face]
    small *= (scene.ink * (scene.letter >= 0))[..., None, None]
    rows = small.view(-1, 2, 2, SIDE // 2, SIDE // 2).transpose(2, 3)
    return rows.reshape(-1, SIDE, SIDE).round().to(torch.uint8)


@dataclass(frozen=True)
class Findings:
    """A data set of findings: called with a draw, it yields (split, images), one split after another.

    >>> splits = dict(Findings("findings_smoke")(0))
    >>> splits["train"].labels.shape, splits["train"].class_names
    ((120, 5), ('Ya', 'Yab', 'Yabh', 'Yag', 'Yaghh'))
    >>> [np.unique(splits[name].labels).tolist() for name in ("train", "validation")]
    [[-1, 0, 1], [0, 1]]
    """

    name: str

    @property
    def card(self) -> DatasetCard:
        return card(self.name)

    def __call__(self, draw: int) -> Iterator[tuple[str, ImageSet]]:
        characters, faces = selected("findings"), FACES["findings"]
        names = tuple(unicodedata.name(each).split()[-1].title() for each in characters[: len(CHANCES)])
        with one_thread():
            atlas = Atlas(Typefaces(), [(each, face) for each in characters for face in faces])
            masks = atlas.masks.view(len(characters), len(faces), SIDE, SIDE)
            first_id = 0
            for split, count in self.card.sizes.items():
                generator = derived_generator(self.name, draw, split)
                scene = scenes(count, len(characters), generator)
                pixels = compose(drawn(scene, masks, generator), Nuisances(), generator)
                labels = scene.truth.long()
                if split != "validation":
                    labels[scene.faint] = -1
                ids = np.arange(first_id, first_id + count)
                first_id += count
                yield split, ImageSet(pixels.numpy(), labels.numpy(), ids, names)


findings = Findings("findings")
findings_smoke = Findings("findings_smoke")
