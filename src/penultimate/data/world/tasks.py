"""What each data set of the world draws: its classes of (character, face) pairs, counts and nuisances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penultimate.data.catalog import SHARES, card
from penultimate.data.fewer import evenly, of_fewer
from penultimate.data.world.atlas import Glyph, Typefaces
from penultimate.data.world.characters import (
    DEJAVU,
    FACE_TITLES,
    FACES,
    STIX,
    pretraining_classes,
    selected,
)
from penultimate.data.world.nuisance import Nuisances, compose
from penultimate.data.world.renderings import Rendering, rendition, sketch

UPRIGHT = Nuisances(stroke=0.0, rotation=0.125, shear=0.0, elastic=0.0)
"""For telling faces apart: what distinguishes a face is left unchanged."""

RENDERINGS: Mapping[str, Rendering] = {"r": rendition, "sketch": sketch}
"""How those shifted sets are drawn that differ from pretraining."""


@dataclass(frozen=True)
class GlyphTask:
    """Classes with the glyphs from which an example is drawn uniformly, and each split's images per class.

    Tasks of one `family` show the same images of a class that they have in common; one without is alone.
    """

    name: str
    classes: Mapping[str, tuple[Glyph, ...]]
    counts: Mapping[str, int]
    nuisances: Nuisances
    render: Rendering = compose
    family: str = ""

    @property
    def glyphs(self) -> tuple[Glyph, ...]:
        """All (character, face) pairs, class by class."""
        return tuple(glyph for glyphs in self.classes.values() for glyph in glyphs)


def _pairs(typefaces: Typefaces, characters: Iterable[str], faces: Iterable[str]) -> tuple[Glyph, ...]:
    faces = tuple(faces)
    return tuple((c, face) for c in characters for face in faces if typefaces.covers(face, c))


def _by_character(
    typefaces: Typefaces, classes: Iterable[str], faces: tuple[str, ...]
) -> dict[str, tuple[Glyph, ...]]:
    return {" ".join(members): _pairs(typefaces, members, faces) for members in classes}


def glyph_task(name: str, typefaces: Typefaces, fewer: int = 0) -> GlyphTask:
    """Return the task of a data set in the catalogue; an unknown name raises with the nearest known one.

    `fewer` is how many of the classes it has, evenly spaced, with as many images in all; 0: all of them.

    >>> task = glyph_task("glyphs", Typefaces())
    >>> len(task.classes), task.counts["train"], next(iter(task.classes))
    (128, 88, 'A a B b')
    """
    described = card(name)
    shift = name.removeprefix(f"{described.source}_") if described.source else ""
    script, nuisances, family = name.removesuffix(f"_{shift}"), Nuisances(), ""
    for size in ("_smoke", "_tuning"):
        script = script.removesuffix(size)
    if script == "glyphs_512":
        classes = _by_character(typefaces, "".join(pretraining_classes()), DEJAVU)
    elif script == "glyphs":
        classes = _by_character(typefaces, pretraining_classes()[: described.classes], DEJAVU)
    elif script == "newfaces":
        classes = _by_character(typefaces, selected(script), STIX)
    elif script in SHARES:
        family, count = "shared", round(SHARES[script] * described.classes)
        members = (*selected("shared")[:count], *selected("unshared")[count:])
        classes = _by_character(typefaces, members, STIX)
    elif script == "typeface":
        nuisances = UPRIGHT
        classes = {FACE_TITLES[face]: _pairs(typefaces, selected(script), [face]) for face in FACES[script]}
    else:
        classes = _by_character(typefaces, selected(script)[: described.classes], FACES[script])
    if fewer:
        described = of_fewer(described, fewer)
        classes = dict(evenly(list(classes.items()), fewer))
    counts = {split: size // described.classes for split, size in described.sizes.items()}
    return GlyphTask(name, classes, counts, nuisances, RENDERINGS.get(shift, compose), family)
