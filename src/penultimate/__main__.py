"""The command as a module, `python -m penultimate`, for an environment whose scripts are not on the path."""

from __future__ import annotations

import sys

from penultimate.cli import main

if __name__ == "__main__":
    sys.exit(main())
