"""The exhibits of a portrait: functions of a run, imported when they are asked for."""

from functools import partial

from penultimate.results.exhibit import declare_exhibits, exhibit

shows = partial(exhibit, page="portrait", section="portrait")
"""Makes an exhibit of the page of portraits."""
PLACE = {
    "portrait_place": "Of a portrait: accuracy against transfer, and the objective's ranks",
    "portrait_strengths": "Of a portrait: class separation and transfer at each strength",
}
INSIDE = {"portrait_inside": "Of a portrait: what is unusual about the objective, and what it resembles"}
SEARCH = {"portrait_search": "Of a portrait: the search for the objective's strength, and the cost"}
declare_exhibits(__name__, {"place": PLACE, "inside": INSIDE, "search": SEARCH})
