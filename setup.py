"""Give the built package the text of README, with links that hold where the repository is not at hand.

`Repository` of `[project.urls]` in pyproject.toml is the one place that names the repository.
Without it, links stay relative.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def described(root: Path) -> str:
    """Return README with absolute links to the files of this version, which is tagged `v` and its number."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project.get("urls", {}).get("Repository", "").rstrip("/")

    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if not repository or "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({repository}/{kind}/v{project['version']}/{target})"

    return LINK.sub(link, (root / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    from setuptools import setup

    setup(long_description=described(Path(__file__).parent), long_description_content_type="text/markdown")
