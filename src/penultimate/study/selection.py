"""Selection of a study by its name or file, with changed settings and with some of its networks."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penultimate import plugins, registry, specs, userfile
from penultimate.data.readers.entries import ENTRIES
from penultimate.errors import RequestError, nearest
from penultimate.files import digest_bytes, given_path
from penultimate.measures.catalogue import measurement
from penultimate.measures.declaration import Made, Measurement
from penultimate.objectives.presets import COMPONENT_KINDS, resolve
from penultimate.plugins import Plugin
from penultimate.registry import Entry
from penultimate.study.blocks import Given, Runs
from penultimate.study.existing import with_networks
from penultimate.study.settings import override
from penultimate.study.spec import Study

WHAT = "study file"
COMMA = re.compile(r",(?![^()]*(?:\([^()]*\)[^()]*)*\))")
"""A comma outside all parentheses."""
WORDS = ("name", "title", "question")
"""Fields that only describe a study; no step depends on them."""
LONGEST_OWN_NAME = 64
"""The number of characters up to which the name of a changed study tells all its changes."""
OWN_RECIPE, AND = " with ", " and "
"""What stands between an objective and the settings of its own recipe, and between two of these."""


def as_study(study: Study | str | Path) -> Study:
    """Return the study in a fresh state, because a study that was run before remembers its files."""
    return dataclasses.replace(study) if isinstance(study, Study) else load_study(study)


def load_study(name: str | Path) -> Study:
    """Return a study by its name, or by the path of a Python file that defines STUDY."""
    name = str(name)
    if not (name.endswith(".py") or "/" in name):
        named: Study = registry.entry("study", name).resolve()
        return named
    path, before = Path(name).absolute(), registry.registered()
    with (
        registry.all_or_nothing(),
        userfile.executed(WHAT, name, path, userfile.read(WHAT, name, path)) as module,
    ):
        study = getattr(module, "STUDY", None)
        if isinstance(study, Study):
            return study
        if registry.registered().keys() - before.keys():
            raise RequestError(
                f"'{name}' is a plug-in, not a study. Use it with --plugin {name}, and check it:"
                f" penultimate check {name}"
            )
        raise RequestError(f"the study file '{name}' must define STUDY = Study(...)")


def changed(
    study: Study,
    assignments: Sequence[str] = (),
    only: Sequence[str] = (),
    seeds: Sequence[int] = (),
    table: str = "",
    add: Sequence[str] = (),
) -> Study:
    """Return the study with changed settings (`override`), other seeds and some networks (`restrict`).

    With a `table`, its networks are first replaced by those that exist already (`study.existing`). The
    objectives to `add` stand beside its own (`with_added`).

    A study that differs from the original in more than its description gets a name of its own, and therefore
    a folder of its own, and a title that says what is different. It thus never replaces the original, and
    the steps that both have are shared.
    """
    wanted, parts, changes = study, [study.name], []
    if table:
        wanted = with_networks(wanted, table)
        parts.append(Path(table).stem)
        changes.append(f"networks of {Path(table).name}")
    for text in assignments:
        wanted = override(wanted, [text])
        parts.append(text.replace("=", "-"))
        changes.append(text)
    if seeds:
        wanted = restrict(wanted, (), seeds)
        in_a_row = len(seeds) > 2 and [*seeds] == [*range(seeds[0], seeds[-1] + 1)]
        parts.append(f"seeds-{f'{seeds[0]}-{seeds[-1]}' if in_a_row else '_'.join(map(str, seeds))}")
        changes.append(f"seeds {f'{seeds[0]} to {seeds[-1]}' if in_a_row else ', '.join(map(str, seeds))}")
    wanted = with_added(wanted, add)
    if only:
        wanted = restrict(wanted, [*only, *add], ())
        parts += [*only, *add]
        changes.append(f"only {', '.join([*only, *add])}")
    elif add:
        parts += ["with", *add]
        changes.append(f"with {', '.join(add)}")
    if dataclasses.replace(wanted, **{name: getattr(study, name) for name in WORDS}) == study:
        return wanted
    return dataclasses.replace(
        wanted,
        name=own_name("-".join(parts)) if wanted.name == study.name else wanted.name,
        title=f"{study.name}, changed: {'; '.join(changes)}" if wanted.title == study.title else wanted.title,
        changed_from=study.name,
    )


def own_name(text: str, longest: int = LONGEST_OWN_NAME) -> str:
    """Return a text as a study's name; one that is too long or has other characters ends in a digest.

    >>> own_name("quickstart-recipe.epochs-28"), own_name("quickstart-measure-knn,linear")
    ('quickstart-recipe_epochs-28', 'quickstart-measure-knn_linear-0302b2c3')
    """
    pointless = text.replace(".", "_")
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", pointless)
    if safe == pointless and len(safe) <= longest:
        return safe
    digest = digest_bytes(text.encode(errors="replace"))[:8]
    return f"{safe[: longest - len(digest) - 1].rstrip('_-')}-{digest}"


def names_in(text: str) -> list[str]:
    """Return the names of objectives and networks in a text, in which commas separate them.

    >>> names_in("softmax, margin(by=1, on=(0, 1)) + dropout,ours 2,")
    ['softmax', 'margin(by=1, on=(0, 1)) + dropout', 'ours 2']
    """
    return [name.strip() for name in COMMA.split(text) if name.strip()]


# -- some of the networks, or more of them ------------------------------------------------------------------


def restrict(study: Study, only: Sequence[str], seeds: Sequence[int]) -> Study:
    """Return the study with some objectives (by slug or spec) or given networks (by name), and other seeds.

    An objective of a plug-in that the study does not have is trained and measured like its first objective. A
    grid whose seeds differ from those of the first grid keeps those of its seeds that are asked for; if none
    is, it gets as many of the new seeds as it had.
    """
    if seeds:
        usual = study.main.seeds

        def reseeded(block: Runs) -> Runs:
            kept = tuple(seed for seed in block.seeds if seed in seeds) or tuple(seeds[: len(block.seeds)])
            return dataclasses.replace(block, seeds=tuple(seeds) if block.seeds == usual else kept)

        study = study.with_runs(reseeded)
    return _only(study, only) if only else study


def _only(study: Study, names: Sequence[str]) -> Study:
    given = [name for block in study.networks if isinstance(block, Given) for name in block.networks]
    wanted: list[str] = []
    for name in (name for name in names if name not in given):
        text, recipe = own_recipe(name)
        spec = _spec(study, text)
        if spec not in study.objectives:
            if not resolve(spec).has_plugins:
                known = [*study.slugs().values(), *given]
                raise RequestError(
                    f"study '{study.name}' has no objective '{name}'.{nearest(name, known)}"
                    f" It has: {', '.join(known)}."
                )
            study = _with_objective(study, spec, recipe)
        wanted.append(spec)
    blocks: list[Runs | Given] = []
    for block in study.networks:
        if isinstance(block, Given):
            if networks := {name: source for name, source in block.networks.items() if name in names}:
                blocks.append(dataclasses.replace(block, networks=networks))
        elif kept := tuple(text for text in wanted if text in block.objectives):
            blocks.append(dataclasses.replace(block, objectives=kept))
    return dataclasses.replace(study, networks=tuple(blocks))


def _spec(study: Study, name: str) -> str:
    """Return the spec of an objective that is named by its short name in the study, or by a spec."""
    by_slug = {slug: text for text, slug in study.slugs().items()}
    if name in by_slug:
        return by_slug[name]
    try:
        return resolve(name).canonical
    except RequestError as error:
        for kind in ("measurement", "dataset", "backbone"):
            if name in registry.names(kind) and registry.entry(kind, name).is_plugin:
                way = way_to(registry.entry(kind, name), study)
                raise RequestError(f"'{name}' is a {kind}, which is used with {way}") from None
        hint = "\nAn objective of your own is known once its file is loaded: --plugin FILE"
        raise RequestError(f"{error}{'' if plugins.loaded() else hint}") from None


def own_recipe(text: str) -> tuple[str, dict[str, Any]]:
    """Return an objective and what its own recipe changes, as `tune` prints a choice of both.

    >>> own_recipe("poly1(epsilon=2) with recipe.learning_rate=0.6 and recipe.epochs=3")
    ('poly1(epsilon=2)', {'learning_rate': 0.6, 'epochs': 3})
    """
    name, separator, settings = text.partition(OWN_RECIPE)
    changes: dict[str, Any] = {}
    for setting in settings.split(AND) if separator else ():
        key, _, value = (part.strip() for part in setting.partition("="))
        try:
            if not key.startswith("recipe."):
                raise ValueError
            changes[key.removeprefix("recipe.")] = specs.literal(value)
        except specs.NOT_LITERAL:
            raise RequestError(
                f"after '{name}{OWN_RECIPE}' come settings of its recipe, such as recipe.learning_rate=0.6;"
                f" got '{setting}'"
            ) from None
    return name.strip(), changes


def with_added(study: Study, names: Sequence[str]) -> Study:
    """Return the study with further objectives beside its own, each as a name, a spec or a sum of these.

    They are trained and measured like the study's first objective, but for what their own recipe changes
    (`own_recipe`). Raises RequestError for one that the study has already.

    >>> "dropout(keep=0.7)" in with_added(load_study("smoke"), ["dropout"]).objectives
    True
    """
    for name in names:
        text, changes = own_recipe(name)
        spec = _spec(study, text)
        if spec in study.objectives:
            raise RequestError(f"study '{study.name}' has '{spec}' already, so there is nothing to add")
        study = _with_objective(study, spec, changes)
    return study


def _with_objective(study: Study, spec: str, changes: Mapping[str, Any]) -> Study:
    """Return the study with one more objective, trained and measured like the first one of the main arm.

    The `changes` are those of its own recipe.
    """
    first = study.main
    blocks: list[Runs | Given] = []
    for block in study.networks:
        blocks.append(block)
        if (
            isinstance(block, Runs)
            and first.objectives[0] in block.objectives
            and (block.arm, block.backbones, block.recipe) == (first.arm, first.backbones, first.recipe)
        ):
            own = dataclasses.replace(block, objectives=(spec,), recipe=block.recipe.changed(changes))
            both = dataclasses.replace(block, objectives=(*block.objectives, spec))
            blocks[-1:] = [block, own] if changes else [both]
    return dataclasses.replace(study, networks=tuple(blocks))


def located_in(study: Study, texts: Iterable[str], root: str = "") -> Study:
    """Return a study with the folders of its published data, given as NAME=PLACE or found in `root`.

    Raises RequestError for a text of another form, and for a name that the study does not need.
    """
    data = dict(study.data)
    for text in texts:
        name, _, where = (part.strip() for part in text.partition("="))
        if not where:
            raise RequestError(f"--data wants NAME=FOLDER, such as imagenet=/data/imagenet; got '{text}'")
        if name not in study.nowhere:
            needed = ", ".join(study.nowhere) or "no data on disk"
            raise RequestError(f"study '{study.name}' does not need --data {name}: it takes {needed}")
        data[name] = where
    base = given_path(root, "--root", home=True) if root else Path()
    for name in study.nowhere if root else ():
        if name not in data and (base / ENTRIES[name].folder).is_dir():
            data[name] = root
    return dataclasses.replace(study, data=data) if data != study.data else study


# -- plug-ins -----------------------------------------------------------------------------------------------


def not_used(study: Study, plugin: Plugin) -> str:
    """Return a sentence on the parts of a file that the study does not use, and how to add them, or ""."""
    requests = {one.text: one for asked in study.measured().values() for one in asked}
    used = {
        *((part.kind, part.name) for text in study.objectives for part in resolve(text).components),
        *(("dataset", name) for name in study.sets),
        *(("backbone", specs.parse(text).name) for text in study.backbones),
        *(("measurement", name) for one in requests.values() for name in _with_stages(one.measurement)),
    }
    idle = [
        entry
        for entry in plugin.entries
        if (entry.kind, entry.name) not in used and not getattr(entry.resolve(), "declared", {}).get("stage")
    ]
    if not idle:
        return ""
    names = ", ".join(f"'{entry.name}'" for entry in idle)
    ways = "; ".join(way_to(entry, study) for entry in idle)
    return f"Loaded {plugin.path.name}, but this study does not use {names}. To use it: {ways}."


def way_to(entry: Entry, study: Study) -> str:
    """Return the option of `penultimate run` that makes a study use a plug-in."""
    if entry.kind in COMPONENT_KINDS:
        return f"--add {shlex.quote(entry.name)}"
    setting, others = {
        "backbone": ("backbones", ()),
        "dataset": ("targets", study.targets),
        "measurement": ("measure", study.measure),
    }[entry.kind]
    return "--set " + shlex.quote(f"{setting}={','.join((*others, entry.name))}")


def _with_stages(what: Measurement) -> Iterator[str]:
    yield what.name
    for need in what.needs:
        if isinstance(need, Made):
            yield from _with_stages(measurement(need.stage))
