"""Images of several letters, some of them faint: five labels, each present, absent or uncertain.

This task relates to the other tasks as CheXpert does to the paper's photographs. The two by two places of an
image are assigned to four of the five labels, and each assigned label has a finding in its place with its own
probability. A clear finding is the label's letter. A faint finding is the label's letter or, equally often, a
letter that belongs to no label. A place without a finding holds such a letter or nothing. Hence:

    train, test     a label with a faint finding is uncertain (-1)
    validation      the true labels are given, and none is uncertain
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
from penultimate.data.world.characters import SCRIPTS, selected
from penultimate.data.world.nuisance import Nuisances, compose
from penultimate.data.world.world import one_thread

CHANCES = (0.3, 0.4, 0.5, 0.6, 0.7)
"""The probability that each label has a finding in its place."""
FAINT, FAINTNESS = 0.3, (0.2, 0.4)
"""The share of faint findings, and the share of ink that they keep."""
FILLED = 0.3
"""The share of places without a finding that hold another letter."""
PLACES = 4


@dataclass(frozen=True)
class Scene:
    """The contents of n images, and the labels that follow from them.

    letter  [n places] the number of the character, with the labels' characters first; -1 for nothing
    ink     [n places] 1, or less if faint
    truth   [n l] whether the label's letter is present
    faint   [n l] whether the label has a faint finding
    """

    letter: Int64[Tensor, "n places"]
    ink: Float[Tensor, "n places"]
    truth: Bool[Tensor, "n l"]
    faint: Bool[Tensor, "n l"]


def scenes(count: int, letters: int, generator: torch.Generator) -> Scene:
    """Draw the contents of `count` images from `letters` characters; the labels' characters come first."""

    def uniform(columns: int) -> Tensor:
        return torch.rand(count, columns, generator=generator)

    def others() -> Tensor:
        return torch.randint(len(CHANCES), letters, (count, PLACES), generator=generator)

    # The label of each place: a random order of the five labels, the last of which has no place.
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
    """Return a mask [n 48 48] per image, of its letters at half size; `masks` is [letters faces 48 48]."""
    face = torch.randint(masks.shape[1], scene.letter.shape, generator=generator)
    small = F.avg_pool2d(masks.float(), 2)[scene.letter.clamp(min=0), face]
    small *= (scene.ink * (scene.letter >= 0))[..., None, None]
    rows = small.view(-1, 2, 2, SIDE // 2, SIDE // 2).transpose(2, 3)
    return rows.reshape(-1, SIDE, SIDE).round().to(torch.uint8)


@dataclass(frozen=True)
class Findings:
    """A data set of findings; a call with a draw yields (split, images), one split after another.

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
        characters, faces = selected("findings"), SCRIPTS["findings"].faces
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
