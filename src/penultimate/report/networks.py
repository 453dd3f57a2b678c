"""The networks in a study's description: its grids, by arm and by architecture."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from penultimate import registry, specs
from penultimate.errors import RequestError
from penultimate.measures.catalogue import Requested, requested
from penultimate.records.table import Row
from penultimate.report.sets import official_accuracy
from penultimate.report.text import plain

USUAL_PAGE, OF_EVALUATIONS = "usual", "evaluation"
"""The default pages: of studies that train networks (the package's paper registers it), and of others."""


def facts_of_page(page: str) -> Mapping[str, Any]:
    """Return what is registered with a page of its paper; nothing if there is no such page.

    `first` is the study that a newcomer runs, and `further` holds the architectures of the paper besides its
    main one: a study of one of them alone shows it as the paper does. `baseline` is the objective that all
    others are compared with.
    """
    return registry.entry("page", page).facts if page in registry.names("page") else {}


def is_further(backbone: str, page: str) -> bool:
    """Return whether an architecture is one of the further ones of the paper behind a page.

    >>> is_further("inception_v3", "usual"), is_further("resnet50", "usual")
    (True, False)
    """
    return name_in(backbone) in facts_of_page(page).get("further", ())


@dataclass(frozen=True)
class StudyObjective:
    """An objective of the study: its short name, its label for readers, and its canonical spec string.

    A network that was not trained here counts as a separate objective with one run.
    """

    slug: str
    label: str
    spec: str


@dataclass(frozen=True)
class StudyNetworks:
    """The networks of a study as its description lists them."""

    description: Mapping[str, Any]

    @property
    def study(self) -> str:
        """The study as commands name it: its file or name, or that of the study from which it was changed."""
        typed: list[str] = []
        with contextlib.suppress(ValueError):  # a call from Python may leave any text here
            typed = shlex.split(str(self.description.get("command", "")))
        if typed[:2] == ["penultimate", "run"] and typed[2:3] and not typed[2].startswith("-"):
            return shlex.quote(typed[2])
        known = ("tunes", "changed_from", "name")
        return next((str(self.description[key]) for key in known if self.description.get(key)), "")

    def grids(self, arm: str = "", backbone: str = "") -> list[Mapping[str, Any]]:
        """Return the grids and given networks of an arm, or only those of one architecture."""
        return [
            block
            for block in self.description.get("networks", ())
            if str(block.get("arm", "")) == arm and (not backbone or backbone in block.get("backbones", ()))
        ]

    @property
    def page(self) -> str:
        """The name of the page that the study is drawn as."""
        return self.description.get("page") or (OF_EVALUATIONS if self.are_given else USUAL_PAGE)

    @property
    def baseline(self) -> str:
        """The short name of the objective that its paper compares all others with; empty if there is none."""
        return str(facts_of_page(self.page).get("baseline", ""))

    @property
    def are_given(self) -> bool:
        """Whether none of the networks is a run of an objective of the study, whatever their names."""
        blocks = self.description.get("networks", ())
        are_runs = any("recipe" in block or "checkpoints" in block for block in blocks)
        return any("given" in block for block in blocks) and not are_runs

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms of the study, the main one first."""
        named = (str(block.get("arm", "")) for block in self.description.get("networks", ()))
        return tuple(dict.fromkeys(("", *named)))

    @property
    def backbones(self) -> tuple[str, ...]:
        """The architectures of the main arm, its main one first."""
        return tuple(dict.fromkeys(name for block in self.grids() for name in block.get("backbones", ())))

    def specs(self, arm: str = "", backbone: str = "") -> set[str]:
        """Return the specs of the objectives that an arm trains, and of its given networks."""
        grids = self.grids(arm, backbone)
        return {spec for block in grids for spec in (*block.get("objectives", ()), *block.get("given", ()))}

    def recipe(self, arm: str = "", backbone: str = "", spec: str = "") -> Mapping[str, Any]:
        """Return the recipe of the first or an objective's grid; empty if nothing was trained here."""
        trained = [block for block in self.grids(arm, backbone) if "recipe" in block]
        return next((block["recipe"] for block in trained if not spec or spec in block["objectives"]), {})

    def objectives(self, arm: str, measured: Collection[str]) -> tuple[StudyObjective, ...]:
        """Return the objectives of an arm in the order of the study, then others that were measured."""
        given = {name for block in self.description.get("networks", ()) for name in block.get("given", ())}
        listed = {
            spec: StudyObjective(_given_slug(spec) if spec in given else slug, plain(label), spec)
            for entry in self.description.get("objectives", ())
            for spec, slug, label in [(str(entry["spec"]), str(entry["slug"]), entry["label"])]
        }
        listed |= {spec: StudyObjective(spec, plain(spec), spec) for spec in measured if spec not in listed}
        of_arm = self.specs(arm) | {*measured}
        numbers = _numbers_of_alike(listed.values())
        return tuple(
            dataclasses.replace(objective, label=objective.label + numbers[objective.spec])
            for objective in _detailed([each for spec, each in listed.items() if spec in of_arm])
        )

    @property
    def measured(self) -> tuple[str, ...]:
        """All measurements that the study asks for, of any of its networks, as spec strings."""
        blocks = (self.description, *self.description.get("networks", ()))
        return tuple(dict.fromkeys(str(text) for block in blocks for text in block.get("measure") or ()))

    def requested(self, name: str) -> Requested | None:
        """Return a measurement with the settings of its first request, or None if there is no request."""
        found = next((text for text in self.measured if name_in(text) == name), None)
        return requested(found) if found else None

    @property
    def of_plugins(self) -> tuple[str, ...]:
        """The plug-ins' measurements of the networks, as spec strings."""
        known = registry.names("measurement")
        built_in = {name for name in known if not registry.entry("measurement", name).is_plugin}
        return tuple(text for text in self.measured if name_in(text) not in built_in)


def _given_slug(name: str) -> str:
    """Return the slug of a network that was not trained here, which is never that of an objective.

    >>> _given_slug("resnet50"), _given_slug("softmax")
    ('resnet50', 'network softmax')
    """
    from penultimate.objectives.presets import resolve

    try:
        resolve(name)
    except RequestError:
        return f"network {name}" if name.startswith("network ") else name
    return f"network {name}"


def by_rank(
    networks: Iterable[StudyObjective], rows: Iterable[Row], tasks: Collection[str]
) -> tuple[StudyObjective, ...]:
    """Return given networks by their mean accuracy under a linear probe, the best first.

    So every table and figure of an evaluation has them in the order of its ranking. Those without an accuracy
    on each of the tasks come last.
    """
    scores: dict[str, list[float]] = {}
    official = {task: f"linear_{official_accuracy(task)}" for task in tasks}
    for row in rows:
        is_whole = row.split == "test" and not row.setting and row.layer is None
        if is_whole and row.metric == official.get(str(row.target)):
            scores.setdefault(str(row.objective), []).append(row.value)
    most = max(map(len, scores.values()), default=0)
    means = {name: fmean(values) for name, values in scores.items() if len(values) == most}
    return tuple(sorted(networks, key=lambda network: -means.get(network.spec, -1.0)))


def name_in(text: str) -> str:
    """Return the name in a spec string.

    >>> name_in("relearning(shots=(5,))")
    'relearning'
    """
    return text.partition("(")[0]


def _detailed(objectives: Iterable[StudyObjective]) -> list[StudyObjective]:
    """Return objectives of which those that share a label have their hyperparameters behind it."""
    listed = list(objectives)
    alike = Counter(objective.label.casefold() for objective in listed)
    return [
        dataclasses.replace(objective, label=f"{objective.label} ({arguments})")
        if alike[objective.label.casefold()] > 1 and (arguments := _arguments(objective.spec))
        else objective
        for objective in listed
    ]


def _numbers_of_alike(objectives: Iterable[StudyObjective]) -> dict[str, str]:
    """Return numbers to stand behind those labels of a study that readers could not tell apart otherwise.

    An objective has the same number in all arms.
    """
    detailed = _detailed(objectives)
    alike = Counter(objective.label.casefold() for objective in detailed)
    so_far: Counter[str] = Counter()
    numbers = {}
    for objective in detailed:
        seen = objective.label.casefold()
        so_far[seen] += 1
        numbers[objective.spec] = f" [{so_far[seen]} of {alike[seen]}]" if alike[seen] > 1 else ""
    return numbers


def _arguments(spec: str) -> str:
    """Return the hyperparameters of a spec, which distinguish objectives that share a label."""
    try:
        terms = specs.parse_sum(spec)
    except RequestError:
        return ""
    return ", ".join(f"{key} = {value}" for term in terms for key, value in term.arguments.items())
