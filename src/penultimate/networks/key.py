"""The key of a network: the one way to name it in studies, steps, rows and archives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NetworkKey:
    """One network of a study.

    objective   its canonical spec; for a network that was not trained here, the study's name for it
    backbone    the spec of its architecture; empty for a network that was not trained here
    arm         the condition of the study to which it belongs (another recipe, a sweep); "" is the main one
    seed        determines the initial weights and the order of the images; None if it was not trained here
    draw        determines which images of a generated world are drawn; None if it was not trained here

    >>> str(NetworkKey("softmax", "glyphnet", seed=0, draw=0))
    'softmax | glyphnet | seed 0, draw 0'
    >>> str(NetworkKey("cosine_softmax(temperature=0.1)", "glyphnet", "temperature", 1, 1))
    'cosine_softmax(temperature=0.1) | glyphnet | temperature | seed 1, draw 1'
    >>> str(NetworkKey("resnet18"))
    'resnet18'
    """

    objective: str
    backbone: str = ""
    arm: str = ""
    seed: int | None = None
    draw: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether the network was not trained here."""
        return self.seed is None

    def columns(self) -> dict[str, Any]:
        """Return the columns that name this network in a row; a column that does not apply is None."""
        names = {"objective": self.objective, "backbone": self.backbone, "arm": self.arm}
        return {
            **{name: text or None for name, text in names.items()},
            "seed": self.seed,
            "draw": self.draw,
        }

    def __str__(self) -> str:
        numbers = {"seed": self.seed, "draw": self.draw}
        run = ", ".join(f"{name} {number}" for name, number in numbers.items() if number is not None)
        return " | ".join(part for part in (self.objective, self.backbone, self.arm, run) if part)


def grid(
    objectives: Sequence[str], backbones: Sequence[str], seeds: Sequence[int], draws: int | str, arm: str
) -> Iterator[NetworkKey]:
    """Yield the networks of a grid, seed by seed; with `draws` "seed", each seed has its own draw.

    >>> [str(key) for key in grid(["softmax", "sigmoid"], ["glyphnet"], [3], "seed", "")]
    ['softmax | glyphnet | seed 3, draw 3', 'sigmoid | glyphnet | seed 3, draw 3']
    """
    for seed in seeds:
        draw = seed if draws == "seed" else int(draws)
        for backbone in backbones:
            for objective in objectives:
                yield NetworkKey(objective, backbone, arm, seed, draw)
