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
