"""Which characters a task uses: look-alikes of pretraining and of one another removed, gaps filled.

`python -m tests.data.selection` rewrites `tasks.json`; a test compares the file with `select()`.
Rendering only reads the file.

The rule. Two characters are twins when their blurred masks correlate by more than .90: the mean, over those
of five faces that cover both, of the Pearson correlation of the masks after a Gaussian blur of one mask
pixel. A task's candidates are the characters first thought of for it (`classes.json`, "transfer") and then
its Unicode block in code order; each is taken unless it is a twin of a pretraining glyph or of one taken
before it, until the task has its number of classes.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter

from penultimate.data.world.atlas import SIDE, Typefaces
from penultimate.data.world.characters import (
    ALPHABETS,
    SCRIPTS,
    STIX,
    TASKS_FILE,
    Script,
    first_thoughts,
    from_codes,
    pretraining_classes,
    to_codes,
)

TWIN = 0.90
TWIN_FACES = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif", "DejaVuSerif-Bold")
BLUR = 1.0
NEW_FACES = 40
SHARED = 16
GATHERED = 4


def similarity(
    typefaces: Typefaces, characters: Sequence[str], faces: Sequence[str] = TWIN_FACES
) -> Float[np.ndarray, "n n"]:
    """Mean correlation of the blurred masks of each pair, over the faces that cover both; -1 where none does.

    >>> float(similarity(Typefaces(), "AAO")[0, 1].round(6))
    1.0
    """
    n = len(characters)
    total, shared = np.zeros((n, n)), np.zeros((n, n))
    for face in faces:
        covered = np.array([typefaces.covers(face, character) for character in characters])
        masks = np.zeros((n, SIDE, SIDE), np.float32)
        for index in np.flatnonzero(covered):
            masks[index] = typefaces.mask(face, characters[int(index)])
        rows = gaussian_filter(masks, (0, BLUR, BLUR)).reshape(n, -1)
        rows -= rows.mean(1, keepdims=True)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        total += rows @ rows.T
        shared += np.outer(covered, covered)
    return np.where(shared > 0, total / np.maximum(shared, 1), -1.0)


def _fillers(script: Script, typefaces: Typefaces, taken: str) -> str:
    """Return the block's characters of the right category, not decomposable,
    that every face of the task covers.
    """
    return "".join(
        character
        for character in map(chr, script.block)
        if character not in taken
        and unicodedata.category(character).startswith(script.categories)
        and not unicodedata.decomposition(character)
        and all(typefaces.covers(face, character) for face in script.faces)
    )


def _greedy(
    candidates: Sequence[int], rivals: Sequence[int], most: int | None, alike: Float[np.ndarray, "n n"]
) -> tuple[list[int], dict[int, int]]:
    """Take candidates in order, up to `most`, unless one is a twin of a rival or of one taken before it."""
    taken: list[int] = []
    twins: dict[int, int] = {}
    for index in candidates:
        if len(taken) == most:
            break
        pool = [*rivals, *taken]
        nearest = pool[int(np.argmax(alike[index, pool]))]
        if alike[index, nearest] > TWIN:
            twins[index] = nearest
        else:
            taken.append(index)
    return taken, twins


def _listed(twins: dict[int, int], characters: str, alike: Float[np.ndarray, "n n"]) -> dict[str, str]:
    """Return each dropped character with its twin and their correlation."""
    return {to_codes(characters[i]): f"{to_codes(characters[j])} {alike[i, j]:.3f}" for i, j in twins.items()}


def _select_scripts(typefaces: Typefaces) -> dict[str, Any]:
    pretraining = "".join(pretraining_classes())
    candidates = {
        name: first_thoughts(name) + _fillers(script, typefaces, first_thoughts(name) + pretraining)
        for name, script in SCRIPTS.items()
    }
    everything = pretraining + "".join(candidates.values())
    alike = similarity(typefaces, everything)
    rivals, start, tasks = range(len(pretraining)), len(pretraining), {}
    for name, script in SCRIPTS.items():
        end = start + len(candidates[name])
        taken, twins = _greedy(range(start, end), rivals, script.classes, alike)
        listed = first_thoughts(name)
        tasks[name] = {
            "characters": to_codes(everything[index] for index in taken),
            "added": to_codes(everything[index] for index in taken if everything[index] not in listed),
            "twins": _listed(twins, everything, alike),
        }
        start = end
    return tasks


def _select_new_faces(typefaces: Typefaces) -> dict[str, Any]:
    """Return the pretraining classes that the STIX faces cover best; ties go to earlier classes."""
    covered = [
        "".join(c for c in members if all(typefaces.covers(face, c) for face in STIX))
        for members in pretraining_classes()
    ]
    best = sorted(range(len(covered)), key=lambda index: -len(covered[index]))[:NEW_FACES]
    owner = [index for index in sorted(best) for _ in covered[index]]
    characters = "".join(covered[index] for index in sorted(best))
    alike = similarity(typefaces, characters, STIX)
    kept: list[int] = []
    twins: dict[int, int] = {}
    for index in range(len(characters)):
        others = [other for other in kept if owner[other] != owner[index]]
        taken, new_twins = _greedy([index], others, None, alike) if others else ([index], {})
        kept += taken
        twins |= new_twins
    classes = [to_codes(characters[i] for i in kept if owner[i] == index) for index in sorted(best)]
    return {"classes": classes, "twins": _listed(twins, characters, alike)}


def _shared_classes(new_faces: dict[str, Any]) -> dict[str, Any]:
    """Return the first classes of `newfaces` that hold four characters,
    which are whole pretraining classes.
    """
    whole = [codes for codes in new_faces["classes"] if len(from_codes(codes)) == GATHERED]
    return {"classes": whole[:SHARED], "twins": {}}


def _select_unshared(typefaces: Typefaces) -> dict[str, Any]:
    """As many classes of Greek and of Cyrillic letters that pretraining never shows, in alternation.

    A letter's capital comes before its small one, as in pretraining. Each is taken unless it is a twin, as
    those five faces or as the STIX faces draw it, of a pretraining glyph or of one taken before it; four that
    follow one another are a class.
    """
    pretraining = "".join(pretraining_classes())
    candidates = {
        name: sorted(
            _fillers(script, typefaces, pretraining),
            key=lambda letter: (ord(letter.lower()), letter.islower()),
        )
        for name, script in ALPHABETS.items()
    }
    everything = pretraining + "".join(letter for letters in candidates.values() for letter in letters)
    alike = np.maximum(similarity(typefaces, everything), similarity(typefaces, everything, STIX))
    rivals, start = list(range(len(pretraining))), len(pretraining)
    by_alphabet: list[list[str]] = []
    twins: dict[int, int] = {}
    for name, letters in candidates.items():
        end = start + len(letters)
        taken, new_twins = _greedy(range(start, end), rivals, ALPHABETS[name].classes, alike)
        rivals, start, twins = [*rivals, *taken], end, twins | new_twins
        gathered = [taken[first : first + GATHERED] for first in range(0, len(taken), GATHERED)]
        by_alphabet.append([to_codes(everything[index] for index in members) for members in gathered])
    classes = [codes for pair in zip(*by_alphabet, strict=True) for codes in pair]
    return {"classes": classes, "twins": _listed(twins, everything, alike)}


def select() -> dict[str, Any]:
    """Return the characters of every transfer task, by the rule of this module:
    the content of `tasks.json`.
    """
    typefaces = Typefaces()
    new_faces = _select_new_faces(typefaces)
    return {
        "made_by": "python -m tests.data.selection",
        "rule": " ".join((__doc__ or "").partition("The rule. ")[2].split()),
        "tasks": {
            **_select_scripts(typefaces),
            "newfaces": new_faces,
            "shared": _shared_classes(new_faces),
            "unshared": _select_unshared(typefaces),
        },
    }


def main() -> None:
    """Write `tasks.json` and print what was dropped and added."""
    selection = select()
    TASKS_FILE.write_text(json.dumps(selection, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for name, task in selection["tasks"].items():
        print(
            f"{name}: {len(task['twins'])} twins dropped, added {from_codes(task.get('added', '')) or 'none'}"
        )


if __name__ == "__main__":
    main()
