"""`penultimate check FILE`: does a plug-in keep its contract? Every answer is a sentence to act on.

docs/plugins.md says what each kind of plug-in is given and returns, and the checks what is required of it. A
loss, say, returns one value per example, treats all examples and classes alike, follows the dtype and the
device of its logits, has the gradient of its value, and is finite at logits of +-10000. Random numbers come
from the seed alone: a part of an objective draws none, and a backbone or projector draws its initial weights
from torch's default generator. Objectives compute in float32 or float64 whatever the network runs in.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.checking.examination import CheckOutcome, Report, examine
from penultimate.errors import unknown
from penultimate.registry import PLUGIN_KINDS, without_docstrings

if TYPE_CHECKING:
    from penultimate.plugins import Plugin
    from penultimate.registry import Entry

MODULES = {
    **dict.fromkeys(("loss", "head", "fixed_head", "penalty", "regulariser"), "parts"),
    **dict.fromkeys(("backbone", "projector"), "modules"),
    "dataset": "datasets",
    "measurement": "measures",
}
"""The module of each kind's checks."""

__all__ = ["CheckOutcome", "Report", "check_entry", "check_file", "example"]


def check_file(path: Path | str) -> Report:
    """Load a plug-in file and check everything that it registers, in a process of its own.

    The plug-ins stay registered, as after `load_plugin`, whose RequestErrors pass through: a file that cannot
    be loaded has nothing to check. The report lists what is wrong; `report.ok` is True if nothing is.

    >>> import tempfile
    >>> from penultimate import registry
    >>> file = Path(tempfile.mkdtemp()) / "plain.py"
    >>> _ = file.write_text('''from penultimate import register
    ... @register.loss
    ... def plain(logits, targets):
    ...     return -(targets * logits.log_softmax(-1)).sum(-1).mean()
    ... ''')
    >>> print(check_file(file).wrong[0].sentence)
    plain returns [] for 7 examples; return [n], [7] here. Sum over the classes alone: ...
    >>> registry.forget("loss", "plain")
    """
    from penultimate.plugins import in_child, load_plugin

    plugin = load_plugin(path)
    for entry in plugin.entries:
        entry.source_digest()  # a declared file may be missing
    names = [(entry.kind, entry.name) for entry in plugin.entries if entry.kind in MODULES]
    return Report(plugin.path, (*in_child(_findings, names), *_undeclared(plugin)))


def _findings(names: list[tuple[str, str]]) -> list[CheckOutcome]:
    """Return the findings on some plug-ins; what is written meanwhile lies in a folder that goes with it."""
    import tempfile

    from penultimate import registry

    with tempfile.TemporaryDirectory(prefix="penultimate-check-") as tempfile.tempdir:
        return [finding for name in names for finding in check_entry(registry.entry(*name))]


def check_entry(entry: Entry) -> list[CheckOutcome]:
    """Return the findings on one entry of the registry, built in or not, of a kind that plug-ins can have."""
    checks = importlib.import_module(f"penultimate.checking.{MODULES[entry.kind]}").CHECKS
    return examine(entry, *checks[entry.kind])


def _undeclared(plugin: Plugin) -> list[CheckOutcome]:
    """Return the finding that a plug-in's code names a file beside it that is not declared, if it does."""
    tree = without_docstrings(plugin.source)
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    declared = {file for entry in plugin.entries for file in entry.files}
    beside = {file.name for file in plugin.path.parent.iterdir() if file.is_file()}
    first = plugin.entries[0]
    return [
        CheckOutcome(
            first.name,
            first.kind,
            "files",
            True,
            f"{plugin.path.name} names '{name}', which lies beside it. If it reads this file, declare it:"
            f' @register.{first.kind}(files=("{name}",)). Results are computed again when a declared file'
            " changes, and only then.",
        )
        for name in sorted((beside & named) - declared)
    ]


def example(kind: str) -> str:
    """Return a working plug-in file of this kind, with the commands that use it.

    It may also be the name of an objective that comes with the package, such as `focal`.

    >>> example("los")
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown kind of plug-in 'los'. Did you mean 'loss'? ...
    """
    from penultimate import shipped

    if kind not in PLUGIN_KINDS:
        if kind in shipped.every_name():
            return shipped.path_of(kind).read_text(encoding="utf-8")
        raise unknown("kind of plug-in", kind, [*PLUGIN_KINDS, *shipped.every_name()])
    return (Path(__file__).parent / "examples" / f"{kind}.py").read_text(encoding="utf-8")
