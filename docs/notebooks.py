"""Execute the tutorial notebooks and store what they show; make pages of them for the site.

    python -m docs.notebooks            # every notebook of docs/tutorials, in a temporary folder each

A notebook is JSON, and its code is plain Python, so that this needs no Jupyter: the cells of a notebook run
one after another with the same names, and what Jupyter would show is kept.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tutorials"
NOTEBOOKS = tuple(sorted(FOLDER.glob("*.ipynb")))
MARKDOWN, CODE = "markdown", "code"


def cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    listed: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return listed


def source(cell: dict[str, Any]) -> str:
    """Return the text of a cell."""
    return "".join(cell["source"])


def shown(value: object) -> dict[str, list[str]]:
    """Return what Jupyter shows of a value: its text (of frames whole, at any width), and any HTML."""
    bundle = {"text/plain": value.to_string() if hasattr(value, "to_string") else repr(value)}
    if callable(drawn := getattr(value, "_repr_html_", None)):
        bundle["text/html"] = drawn()
    return {kind: text.splitlines(keepends=True) for kind, text in bundle.items()}


def executed(code: str, names: dict[str, Any], title: str) -> list[dict[str, Any]]:
    """Run a cell with these names, and return its outputs in the form of a notebook."""
    *statements, last = ast.parse(code).body or [ast.Pass()]
    printed = io.StringIO()
    outputs: list[dict[str, Any]] = []
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(statements, []), title, "exec"), names)
            value = eval(compile(ast.Expression(last.value), title, "eval"), names)
        else:
            exec(compile(ast.Module([*statements, last], []), title, "exec"), names)
            value = None
        bundle = None if value is None else shown(value)
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if bundle is not None:
        outputs.append({"data": bundle, "metadata": {}, "output_type": "execute_result"})
    return outputs


def run(path: Path, folder: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Run the code of a notebook in a folder; yield each of its cells with the outputs that it gives."""
    names: dict[str, Any] = {"__name__": "__main__"}
    listed = cells(path)
    with contextlib.chdir(folder):
        for number, cell in enumerate(listed, 1):
            if cell["cell_type"] == CODE:
                yield cell, executed(source(cell), names, f"{path.name}, cell {number}")


def refresh(path: Path) -> None:
    """Execute a notebook in an empty folder, and store its outputs."""
    document = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        outputs = [found for _, found in run(path, Path(folder))]
    code = [cell for cell in document["cells"] if cell["cell_type"] == CODE]
    for number, (cell, found) in enumerate(zip(code, outputs, strict=True), 1):
        numbered = [
            {**each, "execution_count": number} if each["output_type"] == "execute_result" else each
            for each in found
        ]
        cell |= {"execution_count": number, "outputs": numbered}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def text_of(output: dict[str, Any]) -> str:
    """Return the text of an output, which stands beside any HTML."""
    return "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])


def page(path: Path) -> str:
    """Return a notebook as a page of MyST: its words, its code, and what came out."""
    lines = []
    for cell in cells(path):
        if cell["cell_type"] == MARKDOWN:
            lines += [source(cell), ""]
            continue
        lines += ["```python", source(cell), "```", ""]
        for output in cell["outputs"]:
            drawn = "".join(output.get("data", {}).get("text/html", ()))
            body = drawn or f"<pre>{html.escape(text_of(output))}</pre>"
            shown = f'<div class="cell_output"><div class="output">{body}</div></div>'
            lines += ["`````{raw} html", shown, "`````", ""]  # the theme scrolls it, by keyboard too
    name = path.name
    return "\n".join([*lines, f"This page is the notebook `docs/tutorials/{name}`.", ""])


if __name__ == "__main__":
    for one in [Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        try:
            refresh(one)
        except Exception:
            traceback.print_exc()
            sys.exit(f"{one.name} failed; it is left as it was")
