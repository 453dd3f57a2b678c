"""The page of a portrait: where the objective stands, what it does inside, and all exhibits."""

from __future__ import annotations

from penultimate.portrait.exhibits.inside import inside_words
from penultimate.portrait.exhibits.place import standing
from penultimate.portrait.exhibits.search import loss_panel, lost, own_search
from penultimate.portrait.traits import subject_of, traits
from penultimate.results import escape
from penultimate.results.beside import why_apart
from penultimate.results.page import Answer, Page, Section
from penultimate.results.rows import USUAL_PAGE, Objective, Run
from penultimate.results.text import counted

SECTIONS = {
    "portrait": Section("The portrait"),
    "": Section("The paper's exhibits, with this objective in them"),
}


def answer(run: Run) -> Answer:
    """Return what a portrait comes to, in one sentence, and what is unusual about the objective."""
    subject = subject_of(run)
    if subject is None:
        return Answer("This is the portrait of no objective.")
    sentence = _diverged(run, subject) or standing(run, subject)
    if not sentence:
        return Answer(f"{subject.label} was trained; nothing to compare it with was measured.")
    found = [] if run.limited else traits(run, subject)
    points = (inside_words(run, found),) if found else ()
    return Answer(sentence, points, ("portrait-accuracy", "portrait-separation"))


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
    words = why_apart(run)
    for name, kept in run.provenance.get("beside", {}).items():
        words = (
            f"The other objectives are those of the kept run `{name}`: networks of the same recipe, seeds and"
            f" images, which were trained and measured before, and not again. {kept['rounding']}"
        )
    return f"<p>{escape.html(words.strip())}</p>"


PAGE = Page(
    "portrait",
    answer,
    SECTIONS,
    before=before,
    others=lambda exhibit: exhibit.page == USUAL_PAGE and exhibit.name != "claims",
)
