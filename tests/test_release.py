"""README, as a package index shows it: without the repository, so that every link needs an address."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)]*)\)")


def described(folder: Path, project: str) -> str:
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    (folder / "README.md").write_text(README + "[a](#try-it) [b](https://example.org/b)\n", encoding="utf-8")
    text: str = runpy.run_path(str(ROOT / "setup.py"))["described"](folder)
    return text


def test_the_setting_that_the_release_page_names_makes_every_link_absolute(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/release.md").read_text(encoding="utf-8")
    setting = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0]
    repository = tomllib.loads(setting)["project"]["urls"]["Repository"]
    version = tomllib.loads(PROJECT)["project"]["version"]
    text = described(tmp_path, re.sub(r"^\[project\.urls\]\n", setting, PROJECT, flags=re.MULTILINE))
    links = LINK.findall(text)
    pictures = [target for picture, target in links if picture]
    assert len(pictures) == 2
    for picture, target in links[:-2]:
        before = f"{repository}/{'raw' if picture else 'blob'}/v{version}/"
        assert target.startswith(before)
        assert (ROOT / target.removeprefix(before)).exists()
    assert [target for _, target in links[-2:]] == ["#try-it", "https://example.org/b"]
    assert LINK.sub("", text) == LINK.sub("", README + "[a](#try-it) [b](https://example.org/b)\n")


@pytest.mark.parametrize("urls", ["", '[project.urls]\nPaper = "https://example.org"\n'])
def test_links_stay_as_they_are_until_the_repository_is_named(tmp_path: Path, urls: str) -> None:
    project = re.sub(r"^\[project\.urls\]\n.*?\n\n", urls, PROJECT, flags=re.DOTALL | re.MULTILINE)
    assert described(tmp_path, project).startswith(README)


def test_the_links_of_readme_are_all_known_to_what_makes_them_absolute() -> None:
    """No link of another form, such as HTML or a reference, which would stay relative unnoticed."""
    assert not re.search(r"<(a|img)\b|^\[[^\]]+\]:", README, re.MULTILINE)
