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
        return self._objectives.setdefault(arm, self._objectives_of(arm))

    @cached_property
    def _objectives(self) -> dict[str, list[Objective]]:
        return {}

    def _objectives_of(self, arm: str) -> list[Objective]:
        of_arm = self.frame[_equals(self.frame["arm"], arm)]
        measured = list(of_arm["objective"].dropna().unique())
        specs_of_arm = {*measured}
        for block in self.grids(arm):
            specs_of_arm |= {*block.get("objectives", ()), *block.get("given", ())}
        listed = [each for spec, each in self._listed.items() if spec in specs_of_arm]
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
    def _by_metric(self) -> dict[str, Frame]:
        return {}

    @cached_property
    def _places(self) -> Any:
        return self.frame.groupby("metric", observed=True, sort=False).indices

    def of_metric(self, metric: str) -> Frame:
        """Return all rows of a metric, whatever their status."""
        if metric not in self._by_metric:
            self._by_metric[metric] = self.frame.iloc[self._places.get(metric, [])]
        return self._by_metric[metric]

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
        rows = self.of_metric(metric)
        is_pair, is_network = rows["objective_b"].notna(), rows["objective"].notna()
        kinds = {"pairs": is_pair, "networks": is_network & ~is_pair, "images": ~is_network}
        where = kinds.get(about, is_pair | ~is_pair)
        where = where & rows["status"].isin(("done", "limited")) & (rows["value"].abs() <= LARGEST)
        where &= _equals(rows["arm"], arm) & (
            _equals(rows["split"], split) | _absent(rows["split"], split, "test")
        )
        where &= _equals(rows["target"], target or self.source) | _absent(rows["target"], target, "")
        # A row without an architecture belongs to a given network.
        where &= _equals(rows["backbone"], backbone or self.backbone) | rows["backbone"].isna()
        found = rows[where]
        return found if about == "networks" else self._read(found)

    def _read(self, rows: Frame) -> Frame:
        if self.log is not None:
            self.log.append(rows)
        return rows

    def slugs(self, specs_of_rows: Any) -> Any:
        """Return the short names of objectives in a column of rows."""
        return specs_of_rows.astype(object).map({spec: each.slug for spec, each in self._listed.items()})

    def pivot(self, rows: Frame, index: str = "seed", columns: Sequence[str] = ("objective",)) -> Frame:
        """Return final values as a frame [seed, objective], or by other columns, in the study's order.

        Raises RequestError if there are two values of one quantity.
        """
        import pandas as pd

        self._read(rows)
        cells = pd.DataFrame(
            {
                name: _key(rows[name])
                for name in dict.fromkeys(("seed", index, *columns))
                if name != "objective"
            }
            | {"objective": self.slugs(rows["objective"]), "value": rows["value"]}
        ).drop_duplicates()
        keys = [index, *columns]
        if (twice := cells.duplicated(keys)).any():
            one = rows.loc[twice.index[twice][0]]
            raise RequestError(
                f"two values of one quantity: {one['metric']} of '{one['objective']}', seed {one['seed']}, on"
                f" '{one['target']}' ({one['split']}). Read one study's rows at a time."
            )
        found = cells.pivot(index=index, columns=[*columns], values="value")
        order = {each.slug: place for place, each in enumerate(self._listed.values())}
        if self.are_given and index == "seed":
            return found
        names = found.columns if len(columns) == 1 else found.columns.get_level_values("objective")
        return found.iloc[:, sorted(range(len(names)), key=lambda place: order[names[place]])]


def _equals(column: Any, text: str) -> Any:
    return column == text if text else column.isna()


def _absent(column: Any, text: str, usual: str) -> Any:
    """Return where a column is empty, if a text is the one that an empty cell stands for."""
    return column.isna() & (text == usual)


def _key(column: Any) -> Any:
    """Return a column that keys a pivot: whole numbers without gaps, or texts."""
    if column.name in ("seed", "seed_b", "epoch"):
        return column.fillna(UNTRAINED_HERE).astype(int)
    return column.astype(object).where(column.notna(), "")


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
    rows = run.rows(metric, split, target, arm, backbone)
    where = rows["epoch"].isna() & _equals(rows["setting"], setting) & _equals(rows["layer"], layer)
    return scale * run.pivot(rows[where])


def by_setting(
    run: Run, metric: str, names: Sequence[str], split: str = "test", *, scale: float = 1.0, **where: Any
) -> dict[tuple[str, ...], Frame]:
    """Return the final values [seed, objective] for each value of the settings of these names, ascending."""
    rows = run.rows(metric, split, **where)
    rows = rows[rows["epoch"].isna() & rows["layer"].isna() & rows["setting"].notna()]
    found = {}
    for text in rows["setting"].unique():
        parts = dict(part.split("=", 1) for part in text.split(", "))
        if parts.keys() == {*names}:
            found[tuple(parts[name] for name in names)] = scale * run.pivot(rows[rows["setting"] == text])
    return dict(sorted(found.items(), key=lambda item: [_natural(text) for text in item[0]]))


def _natural(text: str) -> tuple[float, str]:
    """Return a key that sorts numbers by their value, before words."""
    try:
        return float(text), ""
    except ValueError:
        return float("inf"), text


def layers(
    run: Run, metric: str, split: str = "test", *, scale: float = 1.0, **where: Any
) -> dict[str, Frame]:
    """Return the final values [seed, objective] in each layer, the penultimate features last.

    The others come in the study's order, then by the numbers in their names.
    """
    rows = run.rows(metric, split, **where)
    rows = rows[rows["epoch"].isna() & rows["setting"].isna() & rows["layer"].notna()]
    place = {name: number for number, name in enumerate(run.description.get("layers") or ())}

    def order(name: str) -> tuple[bool, int, list[tuple[float, str]]]:
        parts = [_natural(part) for part in re.split(r"(\d+)", name)]
        return name == "penultimate", place.get(name, len(place)), parts

    names = sorted(rows["layer"].unique(), key=order)
    return {name: scale * run.pivot(rows[rows["layer"] == name]) for name in names}


def epochs(run: Run, metric: str, split: str = "test", *, scale: float = 1.0, **where: Any) -> Frame:
    """Return the values of every run over the epochs [epoch, (objective, seed)]."""
    rows = run.rows(metric, split, **where)
    rows = rows[rows["epoch"].notna() & rows["layer"].isna()]
    return scale * run.pivot(rows, "epoch", ("objective", "seed"))


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
        found[name] = _key(rows[name])
    return found.assign(value=scale * rows["value"])


def means_of_pairs(pairs: Frame, order: Sequence[str]) -> tuple[Frame, Frame]:
    """Return the mean over pairs of each two objectives [objective, objective], and their number.

    Networks of one seed share initial weights and images, so pairs of different seeds are preferred.
    """
    import pandas as pd

    swapped = {"objective": "objective_b", "objective_b": "objective", "seed": "seed_b", "seed_b": "seed"}
    twice = pd.concat([pairs, pairs.rename(columns=swapped)])
    twice = twice.drop_duplicates(["objective", "seed", "objective_b", "seed_b"])
    apart = twice[twice["seed"] != twice["seed_b"]]
    keys = ["objective", "objective_b"]
    listed = set(map(tuple, apart[keys].to_numpy()))
    alone = twice[[tuple(pair) not in listed for pair in twice[keys].to_numpy()]]
    of_both = pd.concat([apart, alone])
    # A pair of two networks of one objective is listed once, in either order.
    of_both = of_both[
        (of_both["objective"] != of_both["objective_b"]) | (of_both["seed"] <= of_both["seed_b"])
    ]
    grouped = of_both.groupby(keys)["value"]
    there = [slug for slug in order if slug in {*of_both["objective"]}]
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
    rows = run._read(rows[rows["epoch"].isna() & _equals(rows["setting"], setting)])
    order = [each.slug for each in run.objectives(where.get("arm", ""))]
    keyed = rows.assign(slug=run.slugs(rows["objective"]), number=_key(rows["seed"]))
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
