"""Build the documentation site: `make docs`, or `python -m docs.site FOLDER`.

The pages written by hand are copied beside those that are made of the registries (`docs.reference`), of kept
rows (`docs.gallery`) and of notebooks (`docs.notebooks`), and Sphinx builds them with every warning an error.
Nothing is fetched.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from docs.notebooks import NOTEBOOKS
from docs.notebooks import page as notebook_page

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs"
COPIED = (".md", ".png", ".svg", ".css", ".js")
FROM_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository that are pages of the site."""
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def with_links(text: str, place: Path, to: Path) -> str:
    """Return a page's text whose links hold on the site.

    A link to a page stays. A link to a file that the site does not have becomes that file's name, because the
    site knows no address of the repository.
    """

    def link(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = (place.parent / target).resolve()
        if path.is_relative_to(PAGES) and path.suffix in COPIED:
            there = path.relative_to(PAGES)
        elif path in NOTEBOOKS:
            there = path.relative_to(PAGES).with_suffix(".md")
        elif path.name in FROM_ROOT and path.parent == ROOT:
            there = Path(FROM_ROOT[path.name])
        elif path == PAGES / "decisions":
            there = Path("decisions/README.md")
        else:
            return f"{words} (`{path.relative_to(ROOT)}`)" if words.strip("`") != path.name else words
        return f"[{words}]({os.path.relpath(there, to.parent)}{anchor})"

    return LINK.sub(link, text)


def stage(source: Path) -> None:
    """Write every page of the site into one folder."""
    from docs import gallery, reference

    shutil.rmtree(source, ignore_errors=True)
    for path in sorted(PAGES.rglob("*")):
        there = path.relative_to(PAGES)
        if path.suffix in COPIED or path.name == "conf.py":
            (source / there).parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".md":
                text = with_links(path.read_text(encoding="utf-8"), path, there)
                (source / there).write_text(text, encoding="utf-8")
            else:
                shutil.copy2(path, source / there)
    for path in NOTEBOOKS:
        there = path.relative_to(PAGES).with_suffix(".md")
        text = with_links(notebook_page(path), path, there)
        (source / there).write_text(text, encoding="utf-8")
    for name, page in FROM_ROOT.items():
        text = with_links((ROOT / name).read_text(encoding="utf-8"), ROOT / name, Path(page))
        (source / page).write_text(text, encoding="utf-8")
    reference.write(source / "reference")
    gallery.write(source / "gallery", source / "_static")


def render(folder: Path) -> int:
    """Build the site in `folder/html` from the pages in `folder/source`; return Sphinx's exit code."""
    from sphinx.cmd.build import build_main

    options = ["-q", "-W", "--keep-going", "-n", "-b", "html", "-d", str(folder / "doctrees")]
    return int(build_main([*options, str(folder / "source"), str(folder / "html")]))


def build(folder: Path) -> int:
    """Stage the pages and build the site; return Sphinx's exit code."""
    stage(folder / "source")
    code = render(folder)
    if code == 0:
        print(f"the site: {folder / 'html' / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"))
