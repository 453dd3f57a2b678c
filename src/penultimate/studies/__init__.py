"""The studies that come with the package, as data."""

from penultimate.registry import declare

for _name, _summary in (
    ("smoke", "three objectives on a tiny world: every step once, in seconds; no evidence"),
    (
        "quickstart",
        "nine objectives, one seed, eight transfer tasks on the embedded world: minutes on a laptop",
    ),
    (
        "glyphs",
        "nine objectives, a temperature sweep, five seeds, relearning: more than an hour on a laptop",
    ),
    (
        "rehearsal",
        "where the quickstart's hyperparameters are chosen (penultimate tune): two seeds, ten epochs",
    ),
    ("variations", "augmentation, long training and combinations: hours on a laptop"),
    ("glyphs_search", "where those of glyphs are chosen: two of its seeds, its own recipe"),
    ("glyphs_sweep_search", "where the learning rate of glyphs' temperature sweep is chosen"),
    (
        "matched_search",
        "where seven objectives' hyperparameters are chosen in the paper's regime: three seeds",
    ),
    (
        "matched_search_scaled",
        "where those of cosine softmax and squared error are, with their learning rates",
    ),
    ("matched_sweep_search", "where the learning rate of a temperature sweep is chosen in that regime"),
):
    declare("study", _name, f"penultimate.studies.{_name}:STUDY", _summary)
