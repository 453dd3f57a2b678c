"""The studies that come with the package, as data."""

from penultimate.registry import declare

declare(
    "study",
    "smoke",
    "penultimate.studies.smoke:STUDY",
    "three objectives on a tiny world: every step once, in seconds; no evidence",
)
declare(
    "study",
    "quickstart",
    "penultimate.studies.quickstart:STUDY",
    "nine objectives, one seed, eight transfer tasks on the embedded world: minutes on a laptop",
)
declare(
    "study",
    "glyphs",
    "penultimate.studies.glyphs:STUDY",
    "nine objectives, a temperature sweep, five seeds, relearning: more than an hour on a laptop",
)
declare(
    "study",
    "rehearsal",
    "penultimate.studies.rehearsal:STUDY",
    "where the quickstart's hyperparameters are chosen (penultimate tune): two seeds, ten epochs",
)
declare(
    "study",
    "glyphs_search",
    "penultimate.studies.glyphs_search:STUDY",
    "where those of glyphs are chosen: two of its seeds, its own recipe",
)
