"""The page of a portrait: where the objective stands, what it does inside, and all exhibits."""

from __future__ import annotations

from penultimate.portrait.exhibits.inside import inside_words
from penultimate.portrait.exhibits.place import frames, standing
from penultimate.portrait.exhibits.search import loss_panel, lost, own_search
from penultimate.portrait.traits import subject_of, traits
from penultimate.results import escape
from penultimate.results.beside import why_apart
from penultimate.results.page import Answer, Page, Section
from penultimate.results.rows import USUAL_PAGE, Objective, Run
from penultimate.results.text import counted, listed

HARDLY_TRAINED = (
    "It is less than half as accurate as the least accurate of the others, so that this page may say more of"
    " a recipe that does not suit it than of the objective. Another learning rate may help, as in `--grid"
    " recipe.learning_rate=0.3,0.6,1.2`."
)
SECTIONS = {
    "portrait": Section("The portrait"),
    "": Section("The paper's exhibits, with this objective in them"),
}


def answer(run: Run) -> Answer:
    """Return what a portrait comes to, in one sentence, and the sentences after it."""
    subject = subject_of(run)
    if subject is None:
        return Answer("This is the portrait of no objective.")
    if told := _diverged(run, subject):
        return Answer(told)
    said = standing(run, subject)
    if run.limited or not said:
        return Answer(said or f"{subject.label} was trained; nothing to compare it with was measured.")
    found = traits(run, subject)
    accuracy = frames(run)[0].mean()
    others = accuracy.drop(subject.slug, errors="ignore")
    is_poor = subject.slug in accuracy and len(others) and 2 * accuracy[subject.slug] < others.min()
    points = [
        *([HARDLY_TRAINED] if is_poor else []),
        *([inside_words(run, found)] if found else []),
    ]
    return Answer(said, tuple(points), ("portrait-accuracy", "portrait-separation"))


def _diverged(run: Run, subject: Objective) -> str:
    """Return a sentence if no run of the objective was trained to its end, or ""."""
    search, count = own_search(run), lost(run, subject)
    if search is not None and search[1].best is None:
        cells = counted(len(search[1].cells), "value")
        seen = "before the first epoch ended" if loss_panel(run, subject) is None else "as its curves show"
        return (
            f"{subject.label} diverged under each of {cells} that the search tried, {seen}: its loss was no"
            " longer a number. A lower learning rate may help, as in `--grid"
            " recipe.learning_rate=0.05,0.1,0.2`."
        )
    trained = (run.frame["objective"] == subject.spec) & (run.frame["status"] == "done")
    if count and not trained.any():
        return f"{subject.label} diverged in {counted(count, 'run')}: its loss was no longer a number."
    return ""


def before(run: Run) -> str:
    """Return what stands beside the objective, or why nothing does, as HTML."""
    stands = run.provenance.get("beside", {})
    rounding = " ".join(str(of.get("rounding", "")) for of in stands.values()).strip()
    beside = listed([f"`{name}`" for name in stands])
    told = (
        f"The other objectives are those of the kept run {beside}: networks of the same recipe, seeds and"
        f" images, which were trained and measured before, and not again. {rounding}"
    )
    return f"<p>{escape.html((told if stands else why_apart(run)).strip())}</p>"


PAGE = Page(
    "portrait",
    answer,
    SECTIONS,
    before=before,
    others=lambda exhibit: exhibit.page == USUAL_PAGE and exhibit.name != "claims",
)
