"""A study's results as one data frame, and the few ways in which exhibits read it.

Most readers return a frame with a row for each seed and a column for each objective:

>>> run = read_reference()
>>> seeds(run, "top1", scale=100)[["softmax", "squared_error"]].round(1).head(2)
objective  softmax  squared_error
seed...
0             77.7           74.1
1             77.6           74.1
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from penultimate import registry, specs
from penultimate.data.catalog import card, remember
from penultimate.errors import RequestError
from penultimate.results.text import counted, plain

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.records.archive import KeptStudy

    Frame: TypeAlias = pd.DataFrame

LARGEST = 1e150
"""The largest number that exhibits show: its square and sums of it are finite."""
UNTRAINED_HERE = -1
"""The seed of a network that was not trained here."""
MEAN = "mean"
"""The key of the mean over tasks."""
USUAL_PAGE, OF_EVALUATIONS = "usual", "evaluation"
"""The pages of studies that train networks, and of those that evaluate given ones."""


class Objective(NamedTuple):
    """An objective, or a given network: its short name, its label for readers, its canonical spec."""

    slug: str
    label: str
    spec: str


@dataclass(frozen=True, eq=False)
class Run:
    """The rows of a study, finished or not, and the card that says what was run.

    `frame` has the columns of `records.table.Row`, `description` is the study as JSON, and `provenance` says
    where the rows come from. `arrays(step, metric)` reads the arrays that a row points to, and `sheet` is a
    PNG of the images. Several studies are read as a run with `parts`, whose frame has the column "study".
    `log` collects the rows that readers return; `why` reads it to say where a number comes from.
    """

    frame: Frame
    description: Mapping[str, Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    arrays: Callable[[str, str], Mapping[str, Any]] | None = None
    sheet: bytes | None = None
    parts: tuple[Run, ...] = ()
    log: list[Frame] | None = None

    def __post_init__(self) -> None:
        for kept in self.description.get("cards", ()):
            remember(kept)

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.description.get("name", ""))

    @property
    def source(self) -> str:
        """The data set that the networks were trained on."""
        return str(self.description["source"])

    @property
    def title(self) -> str:
        """The name of that data set for readers."""
        return card(self.source).title

    @property
    def targets(self) -> list[str]:
        """The tasks whose images have one class each."""
        return [name for name in self._targets if not card(name).has_several_labels]

    @property
    def several_labels(self) -> list[str]:
        """The tasks whose images have several labels."""
        return [name for name in self._targets if card(name).has_several_labels]

    @property
    def _targets(self) -> list[str]:
        return [str(name) for name in self.description.get("targets", ())]

    @cached_property
    def limited(self) -> bool:
        """Whether the run is too small to be evidence."""
        return bool(self.description.get("limited")) or bool((self.frame["status"] == "limited").any())

    @property
    def unfinished(self) -> str:
        """The progress of a run that is not finished, such as "98 of 187 steps"; empty for a finished one."""
        whole = {"networks": [self.provenance.get("networks", (0, 0))]}
        for what, pairs in (whole | {"steps": self.provenance.get("steps", {}).values()}).items():
            done, total = (sum(pair[side] for pair in pairs) for side in (0, 1))
            if done < total:
                return f"{done:,} of {total:,} {what}"
        lacking = len(self.provenance.get("lacking", ()))
        return f"{counted(lacking, 'measurement')} not done" if lacking else ""

    @cached_property
    def are_given(self) -> bool:
        """Whether no network was trained here."""
        blocks = self.description.get("networks", ())
        return any("given" in block for block in blocks) and not any("recipe" in block for block in blocks)

    @property
    def page(self) -> str:
        """The name of the page that shows the study."""
        return str(self.description.get("page") or (OF_EVALUATIONS if self.are_given else USUAL_PAGE))

    @property
    def baseline(self) -> str:
        """The objective that all others are compared with; empty if the page names none."""
        known = self.page in registry.names("page")
        return str(registry.entry("page", self.page).facts.get("baseline", "")) if known else ""

    @cached_property
    def arms(self) -> list[str]:
        """The arms, the main one ("") first."""
        named = [str(block.get("arm", "")) for block in self.description.get("networks", ())]
        return list(dict.fromkeys(["", *named, *self._values("arm")]))

    @cached_property
    def backbones(self) -> list[str]:
        """The architectures, the main one first."""
        measured = self._values("backbone")
        listed = [name for block in self.grids() for name in block.get("backbones", ())]
        known = listed if {*listed} & {*measured} or not measured else []
        return list(dict.fromkeys([*known, *measured]))

    @property
    def backbone(self) -> str:
        """The main architecture."""
        return self.backbones[0] if self.backbones else ""

    @property
    def further(self) -> list[str]:
        """The architectures besides the main one, or the main one if the page counts it among the others."""
        facts = registry.entry("page", self.page).facts if self.page in registry.names("page") else {}
        others = facts.get("further", ())
        return self.backbones[1:] or [name for name in self.backbones if name.partition("(")[0] in others]

    def grids(self, arm: str = "", backbone: str = "") -> list[Mapping[str, Any]]:
        """Return the grids and given networks of an arm, or those of one architecture."""
        return [
            block
            for block in self.description.get("networks", ())
            if str(block.get("arm", "")) == arm and (not backbone or backbone in block.get("backbones", ()))
        ]

    def objectives(self, arm: str = "") -> list[Objective]:
        """Return the objectives of an arm in the study's order; given networks by their mean accuracy.

        Objectives that share a label have their hyperparameters behind it.
        """
        if arm not in self._objectives:
            self._objectives[arm] = self._objectives_of(arm)
        return self._objectives[arm]

    @cached_property
    def _objectives(self) -> dict[str, list[Objective]]:
        return {}

    def _objectives_of(self, arm: str) -> list[Objective]:
        column = self.frame["arm"]
        named = {*self.frame["objective"][column == arm if arm else column.isna()].dropna().unique()}
        for block in self.grids(arm):
            named |= {*block.get("objectives", ()), *block.get("given", ())}
        listed = [each for spec, each in self._listed.items() if spec in named]
        labels = [each.label.casefold() for each in listed]
        found = [
            each._replace(label=f"{each.label} ({arguments})")
            if labels.count(each.label.casefold()) > 1 and (arguments := _arguments(each.spec))
            else each
            for each in listed
        ]
        return self._by_rank(found) if self.are_given else found

    @cached_property
    def _listed(self) -> dict[str, Objective]:
        """All objectives by spec: those of the card, then those that only rows name."""
        given = {name for block in self.description.get("networks", ()) for name in block.get("given", ())}
        listed = {
            str(of["spec"]): Objective(
                _given_slug(str(of["spec"])) if of["spec"] in given else str(of["slug"]),
                plain(of["label"]),
                str(of["spec"]),
            )
            for of in self.description.get("objectives", ())
        }
        measured = self._values("objective") + self._values("objective_b")
        return listed | {spec: Objective(spec, plain(spec), spec) for spec in measured if spec not in listed}

    def _by_rank(self, networks: Sequence[Objective]) -> list[Objective]:
        """Return given networks by their mean accuracy under a linear probe, the best first."""
        frames = [seeds(self, f"linear_{card(name).accuracy}", target=name) for name in self.targets]
        means = mean_of(frames).mean() if frames else {}
        return sorted(networks, key=lambda network: -means.get(network.slug, -1.0))

    def labels(self, *arms: str) -> dict[str, str]:
        """Return {slug: label} of the objectives of these arms, or of the main one, in their order."""
        found: dict[str, str] = {}
        for each in (each for arm in arms or ("",) for each in self.objectives(arm)):
            found.setdefault(each.slug, each.label)
        return found

    def temperatures(self, arm: str) -> dict[str, float]:
        """Return the temperatures of the cosine softmax objectives of an arm by slug, ascending."""
        from penultimate.objectives.sweeps import temperature_of

        of_arm = {each.slug: temperature_of(each.spec) for each in self.objectives(arm)}
        known = {slug: value for slug, value in of_arm.items() if value is not None}
        return dict(sorted(known.items(), key=operator.itemgetter(1)))

    def _values(self, column: str) -> list[str]:
        return [str(value) for value in self.frame[column].dropna().unique()]

    @cached_property
    def _places(self) -> Any:
        """Where the rows of each (metric, split, target, arm) stand; an empty cell has its usual value."""
        usual = {"metric": "", "split": "test", "target": self.source, "arm": ""}
        keys = []
        for name, value in usual.items():
            column = self.frame[name].astype("category")
            if value not in column.cat.categories:
                column = column.cat.add_categories([value])
            keys.append(column.fillna(value))
        return self.frame.groupby(keys, observed=True, sort=False).indices

    def rows(
        self,
        metric: str,
        split: str = "test",
        target: str = "",
        arm: str = "",
        backbone: str = "",
        about: Literal["networks", "pairs", "images", "all"] = "networks",
    ) -> Frame:
        """Return the rows of a metric about networks of one arm and architecture, without diverged ones.

        The target is by default the source, and the architecture the main one. Rows about pairs compare two
        networks, and rows about images belong to no network that was pretrained.
        """
        places = self._places.get((metric, split, target or self.source, arm))
        if places is None:
            return self.frame.iloc[:0]
        found = self.frame.iloc[places[self._kinds[about][places]]]
        # A row without an architecture belongs to a given network.
        found = found[(found["backbone"] == (backbone or self.backbone)) | found["backbone"].isna()]
        return found if about == "networks" else self._read(found)

    @cached_property
    def _kinds(self) -> dict[str, Any]:
        """Whether each row is a finite number of a run that did not diverge, by what it is about."""
        frame = self.frame
        is_pair, is_network = frame["objective_b"].notna(), frame["objective"].notna()
        usable = frame["status"].isin(("done", "limited")) & (frame["value"].abs() <= LARGEST)
        kinds = {"pairs": is_pair, "networks": is_network & ~is_pair, "images": ~is_network}
        found = {about: (usable & where).to_numpy() for about, where in kinds.items()}
        return {**found, "all": usable.to_numpy()}

    def _read(self, rows: Frame) -> Frame:
        if self.log is not None:
            self.log.append(rows)
        return rows

    def slugs(self, specs_of_rows: Any) -> Any:
        """Return the short names of objectives in a column of rows."""
        return specs_of_rows.astype(object).map(self._slugs)

    @cached_property
    def _slugs(self) -> dict[str, str]:
        return {spec: each.slug for spec, each in self._listed.items()}

    @cached_property
    def _order(self) -> dict[str, int]:
        return {each.slug: place for place, each in enumerate(self._listed.values())}

    def finals(self, *where: str) -> dict[tuple[str, str], Frame]:
        """Return the final values [seed, objective] for each (setting, layer); `where` is as in `rows`.

        The frames are kept for other readers, so that nobody may change one.
        """
        if where not in self._finals:
            rows = self.rows(*where)  # type: ignore[arg-type]
            rows = rows[rows["epoch"].isna()]
            self._finals[where] = self._pivoted(rows, _conditions(rows))
        return self._finals[where]

    @cached_property
    def _finals(self) -> dict[tuple[str, ...], dict[tuple[str, str], Frame]]:
        return {}

    def final(self, condition: tuple[str, str], *where: str) -> Frame:
        """Return the final values [seed, objective] under one (setting, layer); `where` is as in `rows`."""
        if self.log is not None:
            rows = self.rows(*where)  # type: ignore[arg-type]
            rows = rows[rows["epoch"].isna()]
            self.log.append(rows[[each == condition for each in _conditions(rows)]])
        found = self.finals(*where)
        return found[condition] if condition in found else self._frame({})

    def pivot(self, rows: Frame, over_epochs: bool = False) -> Frame:
        """Return values as a frame [seed, objective], or [epoch, (objective, seed)], in the study's order.

        Raises RequestError if there are two values of one quantity.
        """
        self._read(rows)
        found = self._pivoted(rows, [""] * len(rows), over_epochs)
        return found[""] if found else self._frame({}, over_epochs)

    def _pivoted(self, rows: Frame, keys: Sequence[Any], over_epochs: bool = False) -> dict[Any, Frame]:
        """Return a frame of `pivot` for each of the keys, of which every row has one."""
        columns: list[Any] = [self._slugs[spec] for spec in rows["objective"].astype(object)]
        places = numbers = _whole_numbers(rows["seed"])
        if over_epochs:
            columns, places = list(zip(columns, numbers, strict=True)), _whole_numbers(rows["epoch"])
        cells: dict[Any, dict[Any, dict[int, float]]] = {}
        every = zip(keys, columns, places, rows["value"].tolist(), strict=True)
        for number, (key, column, place, value) in enumerate(every):
            if cells.setdefault(key, {}).setdefault(column, {}).setdefault(place, value) != value:
                one = rows.iloc[number]
                raise RequestError(
                    f"two values of one quantity: {one['metric']} of '{one['objective']}', seed"
                    f" {one['seed']}, on '{one['target']}' ({one['split']}). Read one study's rows at a time."
                )
        return {key: self._frame(of, over_epochs) for key, of in cells.items()}

    def _frame(self, cells: Mapping[Any, Mapping[int, float]], over_epochs: bool = False) -> Frame:
        """Return the frame of {column: {place: value}}."""
        import numpy as np
        import pandas as pd

        order = self._order
        if over_epochs:
            named = sorted(cells, key=lambda run: (order[run[0]], run[1]))
            levels = [[run[level] for run in named] for level in (0, 1)]
            columns: Any = pd.MultiIndex.from_arrays(levels, names=["objective", "seed"])
        else:
            named = sorted(cells, key=order.__getitem__)
            columns = pd.Index(named, name="objective", dtype=object)
        places = {
            place: at for at, place in enumerate(sorted({place for of in cells.values() for place in of}))
        }
        values = np.full((len(places), len(named)), np.nan)
        for at, column in enumerate(named):
            of = cells[column]
            values[[places[place] for place in of], at] = [*of.values()]
        index = pd.Index([*places], name="epoch" if over_epochs else "seed", dtype=int)
        return pd.DataFrame(values, index, columns)


def _texts(column: Any) -> list[str]:
    """Return the texts of a column, "" for an empty cell."""
    texts: list[str] = column.astype(object).where(column.notna(), "").tolist()
    return texts


def _conditions(rows: Frame) -> list[tuple[str, str]]:
    """Return the (setting, layer) of each row."""
    return list(zip(_texts(rows["setting"]), _texts(rows["layer"]), strict=True))


def _whole_numbers(column: Any) -> list[int]:
    """Return the seeds or epochs of a column; the seed of a network that was not trained here is -1."""
    numbers: list[int] = column.fillna(UNTRAINED_HERE).astype(int).tolist()
    return numbers


def _arguments(spec: str) -> str:
    """Return the hyperparameters of a spec, which distinguish objectives that share a label."""
    try:
        terms = specs.parse_sum(spec)
    except RequestError:
        return ""
    return ", ".join(f"{key} = {value}" for term in terms for key, value in term.arguments.items())


def _given_slug(name: str) -> str:
    """Return the slug of a network that was not trained here, which is never that of an objective."""
    from penultimate.objectives.presets import resolve

    try:
        resolve(name)
    except RequestError:
        return f"network {name}" if name.startswith("network ") else name
    return f"network {name}"


def seeds(
    run: Run,
    metric: str,
    split: str = "test",
    *,
    target: str = "",
    setting: str = "",
    layer: str = "",
    arm: str = "",
    backbone: str = "",
    scale: float = 1.0,
) -> Frame:
    """Return the final values of a metric [seed, objective], times `scale`, under one condition.

    `setting` is the condition as rows write it, such as "head=fresh", and `layer` a layer by its name.
    """
    return scale * run.final((setting, layer), metric, split, target, arm, backbone)


def by_setting(
    run: Run,
    metric: str,
    names: Sequence[str],
    split: str = "test",
    *,
    target: str = "",
    arm: str = "",
    backbone: str = "",
    scale: float = 1.0,
) -> dict[tuple[str, ...], Frame]:
    """Return the final values [seed, objective] for each value of the settings of these names, ascending."""
    where = metric, split, target, arm, backbone
    found = {}
    for setting, layer in run.finals(*where):
        parts = dict(part.split("=", 1) for part in setting.split(", ") if setting)
        if not layer and parts.keys() == {*names}:
            found[tuple(parts[name] for name in names)] = scale * run.final((setting, ""), *where)
    return dict(sorted(found.items(), key=lambda item: [_natural(text) for text in item[0]]))


def _natural(text: str) -> tuple[float, str]:
    """Return a key that sorts numbers by their value, before words."""
    try:
        return float(text), ""
    except ValueError:
        return float("inf"), text


def layers(
    run: Run,
    metric: str,
    split: str = "test",
    *,
    target: str = "",
    arm: str = "",
    backbone: str = "",
    scale: float = 1.0,
) -> dict[str, Frame]:
    """Return the final values [seed, objective] in each layer, the penultimate features last.

    The others come in the study's order, then by the numbers in their names.
    """
    where = metric, split, target, arm, backbone
    place = {name: number for number, name in enumerate(run.description.get("layers") or ())}

    def order(name: str) -> tuple[bool, int, list[tuple[float, str]]]:
        parts = [_natural(part) for part in re.split(r"(\d+)", name)]
        return name == "penultimate", place.get(name, len(place)), parts

    names = sorted((layer for setting, layer in run.finals(*where) if layer and not setting), key=order)
    return {name: scale * run.final(("", name), *where) for name in names}


def epochs(run: Run, metric: str, split: str = "test", *, scale: float = 1.0, **where: Any) -> Frame:
    """Return the values of every run over the epochs [epoch, (objective, seed)]."""
    rows = run.rows(metric, split, **where)
    return scale * run.pivot(rows[rows["epoch"].notna() & rows["layer"].isna()], over_epochs=True)


def transfer(
    run: Run,
    probe: str,
    setting: str = "",
    of: Callable[..., Frame] = seeds,
    scale: float = 100.0,
    **where: Any,
) -> dict[str, Frame]:
    """Return the official accuracy by task, and the mean of the runs that have all tasks.

    `of` is the reader: `seeds`, or `epochs` for accuracies over training.
    """
    condition = {"setting": setting} if setting else {}
    found = {
        task: of(run, f"{probe}_{card(task).accuracy}", target=task, scale=scale, **condition, **where)
        for task in run.targets
    }
    return {**found, MEAN: mean_of(list(found.values()))}


def mean_of(frames: Sequence[Frame]) -> Frame:
    """Return the mean over frames of the cells that all of them have."""
    if not frames:
        import pandas as pd

        return pd.DataFrame()
    total = functools.reduce(operator.add, frames) / len(frames)
    total = total[[column for column in frames[0].columns if column in total.columns]]
    return total.dropna(how="all").dropna(axis=1, how="all")


def both(x: Frame, y: Frame) -> tuple[Frame, Frame]:
    """Return two frames [seed, objective] with only those cells that both have."""
    shared = [column for column in x.columns if column in y.columns]
    seeds_of_both = x.index.intersection(y.index)
    x, y = x.loc[seeds_of_both, shared], y.loc[seeds_of_both, shared]
    there = x.notna() & y.notna()
    return x.where(there).dropna(axis=1, how="all"), y.where(there).dropna(axis=1, how="all")


def shared_seeds(frames: Iterable[Frame]) -> list[int]:
    """Return the seeds for which no objective lacks any of the frames that it has values in."""
    every = [{*frame[slug].dropna().index} for frame in frames for slug in frame.columns]
    return sorted(set.intersection(*every)) if every else []


def pairs(run: Run, metric: str, split: str = "test", *, scale: float = 1.0, **where: Any) -> Frame:
    """Return the rows that compare two networks: objective, seed, objective_b, seed_b, setting, layers,
    value."""
    rows = run.rows(metric, split, about="pairs", **where)
    columns = ("objective", "seed", "objective_b", "seed_b", "setting", "layer", "layer_b")
    found = rows[[*columns]].astype(object)
    for name in ("objective", "objective_b"):
        found[name] = run.slugs(rows[name])
    for name in ("seed", "seed_b"):
        found[name] = _whole_numbers(rows[name])
    return found.assign(value=scale * rows["value"])


def means_of_pairs(pairs: Frame, order: Sequence[str]) -> tuple[Frame, Frame]:
    """Return the mean over pairs of each two objectives [objective, objective], and their number.

    Networks of one seed share initial weights and images, so pairs of different seeds are preferred.
    """
    import pandas as pd

    swapped = {"objective": "objective_b", "objective_b": "objective", "seed": "seed_b", "seed_b": "seed"}
    twice = pd.concat([pairs, pairs.rename(columns=swapped)], ignore_index=True).drop_duplicates([*swapped])
    # A pair of two networks of one objective is listed once, in either order.
    twice = twice[(twice["objective"] != twice["objective_b"]) | (twice["seed"] <= twice["seed_b"])]
    keys = ["objective", "objective_b"]
    apart = twice["seed"] != twice["seed_b"]
    some_apart = apart.groupby([twice[key] for key in keys]).transform("any")
    grouped = twice[apart | ~some_apart].groupby(keys)["value"]
    there = [slug for slug in order if slug in {*twice["objective"]}]
    mean, count = (
        found.unstack().reindex(index=there, columns=there) for found in (grouped.mean(), grouped.count())
    )
    return mean, count


def arrays_of(
    run: Run, metric: str, names: Collection[str], split: str = "test", setting: str = "", **where: Any
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the objective, the seed and the named arrays of each run whose rows point to arrays."""
    if run.arrays is None:
        return
    rows = run.rows(metric, split, **where)
    column = rows["setting"]
    rows = run._read(rows[rows["epoch"].isna() & (column == setting if setting else column.isna())])
    order = [each.slug for each in run.objectives(where.get("arm", ""))]
    keyed = rows.assign(slug=run.slugs(rows["objective"]), number=_whole_numbers(rows["seed"]))
    for slug in order:
        for _, row in keyed[keyed["slug"] == slug].sort_values("number", kind="stable").iterrows():
            held = run.arrays(str(row["step"]), metric)
            yield slug, int(row["number"]), {name: held[name] for name in names}


def read_run(path: Path | str = "runs", study: str = "") -> Run:
    """Return the run in a study's folder, or in the folder of all studies; `study` names one or several.

    Several studies, separated by commas, are read as one run with parts, and a study that stands beside a
    kept run (`Study.beside`) with that run's networks.
    """
    from penultimate.records.provenance import provenance
    from penultimate.records.reading import study_folder
    from penultimate.results.beside import beside_reference

    def read(name: str) -> Run:
        folder = study_folder(path, *filter(None, [name]))
        table = folder.table().frame()
        run = Run(table, folder.described(), provenance(folder), folder.arrays, folder.contact_sheet())
        found: Run = beside_reference(run)
        return found

    names = [name.strip() for name in study.split(",") if name.strip()]
    return joined([read(name) for name in names or [""]])


def joined(runs: Sequence[Run]) -> Run:
    """Return several runs as one with parts; its frame has the column "study". One run is itself.

    Raises RequestError for a study that is named twice, and for networks of different images.
    """
    import pandas as pd

    if len(runs) == 1:
        return runs[0]
    names = [run.name for run in runs]
    for run in runs:
        if names.count(run.name) > 1:
            raise RequestError(f"study '{run.name}' is named twice; name it once")
        if card(run.source).citation != card(runs[0].source).citation:
            raise RequestError(
                f"the networks of '{run.name}' were trained on {run.title}, those of '{runs[0].name}' on"
                f" {runs[0].title}; one page is of one of them"
            )
    frame = pd.concat([run.frame.assign(study=run.name) for run in runs], ignore_index=True)
    title = f"{len(runs)} studies on one page: {', '.join(names)}"
    limited = any(run.limited for run in runs)
    description = {**runs[0].description, "name": ", ".join(names), "title": title, "limited": limited}
    sheet = next((run.sheet for run in runs if run.sheet), None)
    record = {"studies": {run.name: dict(run.provenance) for run in runs}}
    return Run(frame, description, record, None, sheet, tuple(runs))


def read_reference(study: str = "") -> Run:
    """Return a run that comes with the package, by default the paper's main one; RequestError if it has
    none."""
    from penultimate.records.archive import reference

    return run_of_kept(reference(study))


def run_of_kept(kept: KeptStudy) -> Run:
    """Return a run of which rows, card and arrays were kept in a folder."""
    provenance = {**kept.provenance, "rows_sha256": kept.digest}
    return Run(kept.table.frame(), kept.description, provenance, kept.arrays)
