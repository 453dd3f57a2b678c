"""The example that comes with the package: two trained networks and two tasks, evaluated without a download.

`make example` trains the networks again (three minutes on one core). The tasks are drawn by the embedded
world.

    python -m penultimate.evaluation.example STORE      # copies the networks of a finished run
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from penultimate.errors import RequestError
from penultimate.files import atomic_write, digest_file

NAME = "example"
"""The default name of the example's study and of its folder."""
FOLDER = Path(__file__).parent / "example_networks"
NETWORKS = {"softmax": "softmax", "squared error": "squared_error"}
"""The networks of the example, and their folders: one study, one seed, two objectives."""
TASKS = ("cyrillic", "typeface")
"""Letters of a script that the networks have never seen, and which face drew a letter."""


def with_example(
    networks: Mapping[str, str], data: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the networks and the tasks of the example, followed by the user's own."""
    ours = {name: f"folder:{FOLDER / folder}" for name, folder in NETWORKS.items()}
    tasks = dict.fromkeys(TASKS, "")
    for name in [*(networks.keys() & ours.keys()), *(data.keys() & tasks.keys())]:
        what = "network" if name in ours else "data set"
        raise RequestError(f"the example has a {what} called '{name}' already; give yours another name")
    return {**ours, **networks}, {**tasks, **data}


def collect(store: Path, to: Path = FOLDER) -> None:
    """Copy the card and the weights of each network from a store, and record where they come from."""
    record = json.loads((to / "provenance.json").read_text("utf-8"))
    for folder in NETWORKS.values():
        (step,) = (store / "steps").glob(f"train.{folder}-s0.*")
        meta = json.loads((step / "meta.json").read_text("utf-8"))
        for path in sorted(step.glob("network.*")):
            atomic_write(to / folder / path.name, path.read_bytes())
        files = {path.name: digest_file(path) for path in sorted((to / folder).iterdir())}
        told = {key: meta[key] for key in ("packages", "commit")}
        record["networks"][folder] = {"step": meta["id"], **told, "files": files}
    atomic_write(to / "provenance.json", f"{json.dumps(record, indent=1, sort_keys=True)}\n".encode())


if __name__ == "__main__":
    collect(Path(sys.argv[1]))
