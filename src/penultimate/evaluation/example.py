"""The example that comes with the package: two trained networks and two tasks, evaluated without a download.

`make example` trains the networks again (three minutes on one core) and puts them into the folder
`example_networks`, with a record of where they come from. The tasks are drawn by the embedded world.

    python -m penultimate.evaluation.example STORE      # copies the networks of a finished run
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from penultimate.errors import RequestError
from penultimate.files import atomic_write, digest_file
from penultimate.networks.sources import OF_TRAINING

NAME = "example"
"""The default name of the example's study and of its folder."""
FOLDER = Path(__file__).parent / "example_networks"
PROVENANCE = "provenance.json"
NETWORKS = {"softmax": "softmax", "squared error": "squared_error"}
"""The networks of the example, and their folders: one study, one seed, two objectives."""
TASKS = ("cyrillic", "typeface")
"""Letters of a script that the networks have never seen, and which face drew a letter."""
COMMAND = "penultimate run quickstart --only softmax,squared_error --seeds 0 --set measure=accuracy"
"""The command that trains the networks again."""


def example() -> tuple[dict[str, str], dict[str, str]]:
    """Return the networks and the tasks of the example, as `evaluate` takes them.

    >>> networks, tasks = example()
    >>> [*networks], [*tasks]
    (['softmax', 'squared error'], ['cyrillic', 'typeface'])
    """
    networks = {name: f"folder:{FOLDER / folder}" for name, folder in NETWORKS.items()}
    return networks, dict.fromkeys(TASKS, "")


def with_example(
    networks: Mapping[str, str], data: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the networks and the tasks of the example, followed by the user's own."""
    ours, tasks = example()
    for what, own, known in (("network", networks, ours), ("data set", data, tasks)):
        for name in own:
            if name in known:
                raise RequestError(
                    f"the example has a {what} called '{name}' already; give yours another name"
                )
    return {**ours, **networks}, {**tasks, **data}


def collect(store: Path, to: Path = FOLDER) -> None:
    """Copy the trained networks from a store, with their provenance; raise RequestError without one of each.

    Only the card and the weights of each are copied, as the training left them.
    """
    record: dict[str, object] = {"command": COMMAND, "make": "make example", "networks": {}}
    of_networks: dict[str, object] = {}
    for folder in NETWORKS.values():
        found = sorted((store / "steps").glob(f"train.{folder}-s0.*/{OF_TRAINING}"))
        if len(found) != 1:
            raise RequestError(
                f"'{store}' holds {len(found)} trainings of {folder} with seed 0, and one is expected:"
                f" {COMMAND}"
            )
        step = found[0].parent
        meta = json.loads((step / "meta.json").read_text("utf-8"))
        for path in sorted(step.glob("network.*")):
            (to / folder).mkdir(parents=True, exist_ok=True)
            atomic_write(to / folder / path.name, path.read_bytes())
        of_networks[folder] = {
            "step": meta["id"],
            "packages": meta["packages"],
            "commit": meta["commit"],
            "files": {path.name: digest_file(path) for path in sorted((to / folder).iterdir())},
        }
    text = json.dumps({**record, "networks": of_networks}, indent=1, sort_keys=True)
    atomic_write(to / PROVENANCE, (text + "\n").encode())


if __name__ == "__main__":
    collect(Path(sys.argv[1]))
