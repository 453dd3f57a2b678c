"""A linear probe on the features of several networks together: what one knows and another does not.

In a study, joined(join=('softmax+squared_error', 'softmax+softmax')) joins each network with one of the next
seed, so that both pairs differ in their initial weights, and only the objectives tell them apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from penultimate.errors import RequestError, unknown
from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.networks.key import NetworkKey
from penultimate.registry import register

WORDS = (
    "A linear probe on the features of several networks side by side, each network scaled to the same total"
    " variance."
)


def members(join: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names that a text joins with "+"; a name may itself contain one.

    An objective may be called by its spec without settings, if no other one has the same.

    >>> members("softmax+squared_error", ["softmax", "squared_error(kappa=9)"])
    ('softmax', 'squared_error(kappa=9)')
    >>> members("a+b+c", ["a+b", "c"])
    ('a+b', 'c')
    """
    known = {name: name for name in names}
    short = [_short(name) for name in names]
    known |= {each: name for each, name in zip(short, names, strict=True) if short.count(each) == 1 and each}
    parts = [part.strip() for part in str(join).split("+")]
    found: list[str] = []
    while parts:
        for count in range(len(parts), 0, -1):
            name = next(
                (
                    known[text]
                    for text in ("+".join(parts[:count]), " + ".join(parts[:count]))
                    if text in known
                ),
                "",
            )
            if name:
                break
        else:
            raise RequestError(f"join '{join}': {unknown('network', parts[0], known)}")
        found.append(name)
        parts = parts[count:]
    if len(found) < 2:
        raise RequestError(f"join '{join}' names one network; two or more are joined: 'a+b'")
    return tuple(found)


def _short(name: str) -> str:
    return name.partition("(")[0] if name.endswith(")") else name


def chosen(join: str, keys: Sequence[NetworkKey]) -> list[tuple[NetworkKey, ...]]:
    """Return the networks that are joined with each other, once for each seed.

    The second network is of the next seed after the first's, and so on; the last seed is followed by the
    first. Raise RequestError if a network would be joined with itself.
    """
    of_name: dict[str, list[NetworkKey]] = {}
    for key in sorted(keys, key=lambda each: -1 if each.seed is None else each.seed):
        of_name.setdefault(key.objective, []).append(key)
    names = members(join, of_name)
    seeds = min(len(of_name[name]) for name in names)
    groups = [
        tuple(of_name[name][(first + place) % len(of_name[name])] for place, name in enumerate(names))
        for first in range(seeds)
    ]
    for group in groups:
        if len({*group}) < len(group):
            raise RequestError(f"join '{join}' joins '{group[0]}' with itself; it takes a seed for each part")
    return groups


@register.measurement(
    version=1,
    per="study_target",
    needs=(
        Features("train", common=True, named_by="join"),
        Features("test", common=True, named_by="join"),
    ),
    yields=(
        *(
            Yield(f"joined_{accuracy}", "fraction", better="high", words=WORDS, called="joined transfer")
            for accuracy in ("top1", "mean_per_class")
        ),
        Yield(
            "joined_predictions",
            "points",
            {
                **{"ids": "id images", "networks": "text networks"},
                **dict.fromkeys(("labels", "linear"), "whole images"),
            },
            words="What the probe on joined features predicts of each test image.",
        ),
    ),
    each=("join",),
    seconds=2.0,
)
def joined(inputs: Inputs, *, join: str) -> Iterator[Number | Arrays | Undefined]:
    """Linear transfer of several networks' features together, by the protocol of each network's own probe.

    `join` names them: 'a+b'. All see the same images, those of the study's first draw.
    """
    import numpy as np

    from penultimate.features.joining import join_features
    from penultimate.probes.linear import LinearProbe

    banks = {split: inputs.all_features(split) for split in ("train", "test")}
    setting = {"join": join.replace("=", ":").replace(",", ";")}  # what a row's condition may hold
    for group in chosen(join, [*banks["train"]]):
        of_split = [{str(key): banks[split][key] for key in group} for split in ("train", "test")]
        train, test = join_features(*of_split)
        probe = LinearProbe(metric=inputs.accuracy, seed=group[0].seed or 0)
        try:
            probe.fit(train.features, train.labels)
        except UndefinedError as error:
            yield Undefined(f"joined ({join}) on '{inputs.target}': {error}")
            return
        value = probe.score(test.features, test.labels, inputs.accuracy)
        yield Number(
            f"joined_{inputs.accuracy}",
            value,
            "fraction",
            "test",
            setting=setting,
            network=group[0],
            other=group[1],
        )
        ids = np.arange(len(test)) if test.ids is None else test.ids
        arrays = {"ids": ids, "labels": test.labels, "linear": probe.predict(test.features)}
        arrays["networks"] = np.array([key.objective for key in group])
        if len(banks["train"]) == len(group):  # with several seeds they would fill the disk
            yield Arrays("joined_predictions", arrays, "test", setting, *group[:2])
