"""`penultimate check FILE`: does a plug-in keep its contract? Every answer is a sentence to act on.

What each kind of plug-in is, and what is required of it:

loss      f(logits [n k], targets [n k], *, hyperparameter=default) -> [n]. Targets are distributions, one-hot
          or soft. It depends on each example alone and treats classes alike, in the dtype and on the device
          of the logits; its gradient is that of its value; it is finite at logits of +-1e4, and lower where
          the correct class is likelier. Under `@with_class_counts` it is f(logits, targets, class_counts [k],
          *, ...), with the number of training images of each class.
head      f(features [n m], weight [k m], bias [k], *, hyperparameter=default) -> logits [n k]. The same, and
          finite with a finite gradient where all features of an example are zero.
          A head whose weight is constructed and not trained is f(num_classes, num_features, generator, *,
          hyperparameter=default) -> weight [k m], float32; whatever it draws comes from the generator.
projector  f(num_features, *, hyperparameter=default) -> an nn.Module with `num_features`; called with the
          body's features [n m], it returns what the head is given, [n num_features]. As for a backbone,
          everything that it has learnt is in its state_dict, and in eval() each example is treated alone.
regulariser  f(features [n m], targets [n k], head, *, hyperparameter=default) -> [n], where the features are
          the body's, before any projector, and `head.weight` [k m] and `head.bias` [k] are the final
          layer's; or f(logits [n k], head, *, ...) -> [n]. It may compare the examples of a batch; what it
          gives an example does not depend on their order, and one example alone has a value. One of the
          weight alone has the same value for every example.
dataset   f(draw) -> {split: ImageSet} or (split, ImageSet) pairs, with a `card` (a DatasetCard) that
          describes them. The images are a function of the draw; ids are unique across the splits.
backbone  f(*, hyperparameter=default) -> an nn.Module with `num_features`; called with float images
          [n 3 h w], it returns features [n num_features]. Everything that it has learnt is in its state_dict,
          every parameter is used, and in eval() each image is treated alone.

measurement  f(inputs: Inputs, *, setting=default), a generator of Number, Arrays, Undefined and Fact under
          @register.measurement(version=, per=, needs=, yields=): see `penultimate.measures`. What it yields
          is declared, and the same every time.

Random numbers come from the seed alone: a loss, head or regulariser draws none, and a backbone or
projector draws its initial weights from torch's default generator. Objectives compute in float32 or float64
whatever the network runs in, so a loss need not support half precision. No tensor library is imported until
a file is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.checking.report import CheckOutcome, Report, render_report
from penultimate.errors import unknown
from penultimate.registry import PLUGIN_KINDS

if TYPE_CHECKING:
    from penultimate.plugins import Plugin
    from penultimate.registry import Entry

CHECKS = {
    "loss": "parts:LOSS_CHECKS",
    "head": "parts:HEAD_CHECKS",
    "fixed_head": "parts:FIXED_HEAD_CHECKS",
    "penalty": "parts:PENALTY_CHECKS",
    "projector": "backbones:PROJECTOR_CHECKS",
    "regulariser": "parts:REGULARISER_CHECKS",
    "dataset": "datasets:DATASET_CHECKS",
    "backbone": "backbones:BACKBONE_CHECKS",
    "measurement": "measures:MEASUREMENT_CHECKS",
}
"""The module and the name of each kind's checks."""

__all__ = ["CheckOutcome", "Report", "check_entry", "check_file", "example", "render_report"]


def check_file(path: Path | str) -> Report:
    """Load a plug-in file and check everything that it registers.

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
    plain returns [] for 7 examples; return [n], [7] here. Reduce nothing: leave out .mean() ...
    >>> registry.forget("loss", "plain")
    """
    from penultimate.plugins import in_child, load_plugin

    plugin = load_plugin(path)
    for entry in plugin.entries:
        entry.source_digest()  # a declared file may be missing
    names = [(entry.kind, entry.name) for entry in plugin.entries if entry.kind in CHECKS]
    return Report(plugin.path, plugin.digest, (*in_child(_findings, names), *_undeclared(plugin)))


def _findings(names: list[tuple[str, str]]) -> list[CheckOutcome]:
    """Return the findings on some plug-ins; what is written meanwhile lies in a folder that goes with it."""
    import tempfile

    from penultimate import registry

    with tempfile.TemporaryDirectory(prefix="penultimate-check-") as tempfile.tempdir:
        return [finding for name in names for finding in check_entry(registry.entry(*name))]


def _undeclared(plugin: Plugin) -> list[CheckOutcome]:
    """Return the finding that a plug-in's code names a file beside it that is not declared, if it does."""
    import ast

    from penultimate.registry import without_docstrings

    tree = without_docstrings(plugin.source)
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    declared = {file for entry in plugin.entries for file in entry.files}
    beside = {file.name for file in plugin.path.parent.iterdir() if file.is_file()}
    first = plugin.entries[0]
    for name in sorted((beside & named) - declared):
        said = (
            f"{plugin.path.name} names '{name}', which lies beside it. If it reads this file, declare it:"
            f' @register.{first.kind}(files=("{name}",)). Results are computed again when a declared file'
            " changes, and only then."
        )
        return [CheckOutcome(first.name, first.kind, "files", True, said)]
    return []


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


def check_entry(entry: Entry) -> list[CheckOutcome]:
    """Return the findings on one entry of the registry, built in or not, of a kind that plug-ins can have."""
    import importlib

    from penultimate.checking.examination import examine

    module, _, checks = CHECKS[entry.kind].partition(":")
    if entry.kind == "loss" and getattr(entry.resolve(), "needs_class_counts", False):
        checks = f"COUNTED_{checks}"
    return examine(entry, getattr(importlib.import_module(f"penultimate.checking.{module}"), checks))
