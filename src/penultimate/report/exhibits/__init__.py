"""The tables and figures of the paper as data: every `Exhibit` that a module of this package defines."""

from importlib import import_module
from pkgutil import iter_modules

from penultimate.registry import declare
from penultimate.report.spec import PAPER, Exhibit


def _exhibits() -> dict[str, tuple[str, Exhibit]]:
    """Where each exhibit stands ("module:NAME"), and the exhibit, by its name and in the paper's order."""
    places = {
        value.name: (f"{module.__name__}:{name}", value)
        for module in (import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__))
        for name, value in vars(module).items()
        if isinstance(value, Exhibit)
    }
    return dict(sorted(places.items(), key=lambda item: item[1][1].order))


for _name, (_place, _exhibit) in _exhibits().items():
    declare("exhibit", _name, _place, _exhibit.summary, PAPER)
