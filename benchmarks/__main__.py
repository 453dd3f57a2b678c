"""`make bench`: every benchmark in this folder, one after another.

    python -m benchmarks [--quick] [NAME ...]

Each is a module with `main(arguments)`; it prints our time beside its peer's, interleaved in one run, as
medians and their ratio. Nothing here is a test: a slow machine fails nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path


def main() -> None:
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    asked = [word for word in sys.argv[1:] if not word.startswith("-")]
    names = sorted(
        module.name
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if not module.name.startswith("_")
    )
    unknown = set(asked) - set(names)
    if unknown:
        sys.exit(f"unknown benchmark: {', '.join(sorted(unknown))}; known: {', '.join(names)}")
    for name in asked or names:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main(options)


if __name__ == "__main__":
    main()
