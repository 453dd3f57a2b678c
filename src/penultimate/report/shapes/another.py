"""Exhibits of a second architecture, besides the one that all other exhibits show."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penultimate.report.base import Missing
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.findings import Sentence
from penultimate.report.spec import OURS, Part, Piece
from penultimate.report.text import plain


@dataclass(frozen=True)
class InAnother:
    """A part that shows the first further architecture for which a study measured its quantities.

    In captions, {beside} says that all other exhibits show another architecture, if they do.
    """

    part: Part
    missing: str

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return self.part.quantities

    def build(self, measurements: Measurements) -> Piece:
        beside = "" if measurements.backbone in measurements.further else " All other tables show the first."
        for name in measurements.further:
            piece = self.part.build(measurements.with_backbone(name))
            if piece.tables or piece.figures:
                return replace(piece, words={**piece.words, "beside": beside})
        return Piece(missing=(without_another(measurements, self.missing),), words={"beside": beside})


def in_another(finding: Sentence) -> Sentence:
    """Return a finding about the first further architecture that it has a sentence for, with its name."""

    def say(measurements: Measurements) -> str:
        for name in measurements.further:
            said = finding(measurements.with_backbone(name))
            if said:
                return said.replace(OURS, f"{OURS}, in {plain(name)}", 1)
        return ""

    return say


def without_another(measurements: Measurements, what: str) -> Missing:
    """Return the gap for a second architecture, with the command that measures it if the study has none."""
    if len(measurements.backbones) > 1:
        return Missing(what)
    first = plain(measurements.backbone or "glyphnet")
    other = "glyphplain" if first.partition("(")[0] == "glyphnet" else "glyphnet"
    command = f"penultimate run {measurements.words['name']} --set \"backbones=('{first}', '{other}')\""
    return Missing(what, command, "this study has one architecture; for a second")
