"""Where the rows of a study come from, gathered from the metas of its finished steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

from penultimate.networks.key import NetworkKey
from penultimate.records.reading import StudyFolder


def provenance(folder: StudyFolder) -> dict[str, Any]:
    """Return what a study's steps record: machine, packages, commit, data digests, durations, gaps."""
    contents = {step_id: meta.content for step_id, meta in folder.metas().items()}
    first: dict[str, Any] = next(iter(contents.values()), {})
    data = [facts for facts in contents.values() if facts["step"] == "data"]
    seconds: Counter[str] = Counter()
    for facts in contents.values():
        seconds[facts["step"]] += facts["seconds"]
    undefined = {step_id: facts["undefined"] for step_id, facts in contents.items() if "undefined" in facts}
    diverged = folder.diverged()

    def by(column: str, fact: str) -> dict[str, Any]:
        return {facts["columns"][column]: facts[fact] for facts in contents.values() if fact in facts}

    def by_split(fact: str) -> dict[str, Any]:
        splits = ((of["config"]["name"], *each) for of in data for each in of.get(fact, {}).items())
        return {f"{name}, {split}": found for name, split, found in splits}

    failed = folder.description.get("failed", {})
    optional = {
        **{fact: by_split(fact) for fact in ("left_out", "remarks")},
        **{
            fact: {of["config"]["name"]: of[fact] for of in data if of.get(fact)}
            for fact in ("copies", "images")
        },
        "prepared": by("objective", "preparation"),
        **{fact: by("objective", fact) for fact in ("noted", "speed")},
        "failed": {step_id: facts for step_id, facts in failed.items() if step_id not in contents},
        "classes_not_validated": by("target", "classes_not_validated"),
    }
    return {
        "command": folder.description["command"],
        "commit": sorted({facts["commit"] for facts in contents.values() if facts["commit"]}),
        "dirty": any(facts["dirty"] for facts in contents.values()),
        "hosts": sorted({facts["host"] for facts in contents.values()}),
        "device": ", ".join(sorted({facts["device"] for facts in contents.values() if "device" in facts})),
        **{name: first.get(name, "") for name in ("processor", "threads", "python")},
        "packages": first.get("packages", {}),
        "data": {
            f"{of['config']['name']} (draw {of['config']['draw']})": of["content_digest"] for of in data
        },
        **{fact: found for fact, found in optional.items() if found},
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "steps": {name: list(pair) for name, pair in folder.counts().items()},
        "diverged": diverged,
        "diverged_networks": {
            step_id: [vars(key) for key in _networks(folder, step_id, contents[step_id]["columns"])]
            for step_id in diverged
        },
        "undefined": undefined,
        # Step ids shorten names, so the network and the target are said beside the reason.
        "undefined_of": {
            step_id: {
                "network": contents[step_id]["columns"].get("objective"),
                "target": contents[step_id]["columns"].get("target"),
            }
            for step_id in undefined
        },
    }


def _networks(folder: StudyFolder, step_id: str, columns: dict[str, Any]) -> list[NetworkKey]:
    """Return the network that a finished step belongs to, in each of its arms."""
    names = (columns.get("objective") or "", columns.get("backbone") or "")
    return [NetworkKey(*names, arm, columns.get("seed"), columns.get("draw")) for arm in folder.arms(step_id)]
