"""Write the reference pages: every command with its options, every registered name, every public name.

    python docs/reference.py FOLDER

The pages are Markdown, made of what the code says of itself, so that nothing can be documented twice or
forgotten: whatever lacks its words is refused. `tests/test_documented.py` writes them, and `docs.site` puts
them into the site.
"""

from __future__ import annotations

import argparse
import html
import inspect
import itertools
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import penultimate
from penultimate import shipped
from penultimate.cli import COMMANDS
from penultimate.data.catalog import card
from penultimate.objectives.presets import hyperparameters_of_term
from penultimate.paper.claims.rules import Rule
from penultimate.paper.claims.stated import CLAIMS
from penultimate.paper.page import HERE
from penultimate.plugins import load_plugin
from penultimate.registry import entry, forget, names

EXPLAINED = {
    name: (sentence, equation)
    for name, sentence, equation in re.findall(
        r'id="objective-(\w+)">.*?<dd>(.*?)<div class="equation">(.*?)</div></dd>',
        (HERE / "glossary.html").read_text(encoding="utf-8"),
    )
}
"""The sentence and the equation of an objective, from the glossary of the page of a study."""
KINDS: Mapping[str, str] = {
    "objective": "Objectives",
    "loss": "Losses",
    "head": "Heads",
    "fixed_head": "Fixed heads",
    "penalty": "Penalties",
    "projector": "Projectors",
    "regulariser": "Regularisers",
    "measurement": "Measurements",
    "metric": "Metrics",
    "probe": "Probes",
    "exhibit": "Exhibits",
    "study": "Studies",
    "dataset": "Data sets",
    "backbone": "Backbones",
}
"""The kinds of registered names that have a page, with its title."""
FURTHER = ("index", "commands", "python", "claims", "examples")
"""The pages that do not list the names of a kind."""
INTRODUCTIONS: Mapping[str, str] = {
    "commands": "Every command with all of its arguments, from the parser itself.",
    "python": "What `import penultimate as pu` offers. These names are the public API; others may change.",
    "objectives": "An objective is written as a spec, such as `cosine_softmax(temperature=0.05)`, and `+`"
    " joins several. [How to choose an objective](../explain/objectives.md) says what each is for.",
    "examples": "Objectives of other papers that come with the package as plug-in files. They are loaded only"
    " if they are asked for: `--plugin examples:focal`, or in Python"
    " `penultimate.plugins.load_plugin('examples:focal')`. `penultimate check --example focal` prints a file"
    " to change. [Plug-ins](../plugins.md) says what each kind receives.",
    "claims": "What the study judges, in our words, with the rule of each. [What came out](../results.md) has"
    " the verdicts, and [what nine seeds can tell](../explain/seeds.md) how they are reached.",
    "exhibits": "Every table and figure: `penultimate show NAME`. [The gallery](../gallery/index.md).",
    "studies": "Every built-in study: `penultimate run NAME`, and `penultimate plan NAME` for what it costs.",
    "data-sets": "Every known data set. [Data sets that you have](../data.md) says how to give its folder.",
    "measurements": "What a study may measure: `--set measure=NAME,NAME`.",
}
"""What stands at the head of a page, by its file name."""


OPTION = re.compile(r"(?<![\w'`-])--[a-z][a-z-]*(?: (?:--[a-z][a-z-]*|[A-Z]{2,}\b(?!=)))*")
"""An option in a sentence, with the value or the options that follow it."""


class UndocumentedError(Exception):
    """Something that a user can name has no words of its own."""


def said(words: str | None, of: str) -> str:
    """Return words as one line of Markdown; raise UndocumentedError where there are none."""
    line = " ".join((words or "").split())
    if not line or line == argparse.SUPPRESS:
        raise UndocumentedError(f"{of} is documented nowhere: say what it is in its docstring, title or help")
    return line.replace("|", "\\|").replace("<", "&lt;")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a Markdown table, without the columns that are empty."""
    columns = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    head, *rows = zip(*columns, strict=True)
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def spelling(action: argparse.Action) -> str:
    """Return how an argument is written: `--out FOLDER`, or `STUDY` for one without dashes."""
    value = action.metavar or action.dest
    if isinstance(value, tuple):
        value = " ".join(value)
    if not action.option_strings:
        return f"`{value.upper()}`"
    listed = ", ".join(action.option_strings)
    return f"`{listed}`" if action.nargs == 0 else f"`{listed} {value.upper()}`"


def as_code(words: str) -> str:
    """Return words with the options in them as code."""
    return OPTION.sub(r"`\g<0>`", words)


def command(name: str, words: str, parser: argparse.ArgumentParser) -> list[str]:
    """Return the section of a command, and those of the commands below it, such as `data check`."""
    rows = [
        (spelling(action), as_code(said(action.help, f"{spelling(action)} of the command {name}")))
        for action in parser._actions
        if action.dest != "help"
    ]
    lines = ["", f"## penultimate {name}", "", said(words, f"the command {name}"), ""]
    lines += table(("argument", "what it does"), rows) if rows else ["It takes no arguments."]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below, its_parser in action.choices.items():
                lines += command(f"{name} {below}", its_parser.description or "", its_parser)
    return lines


def commands() -> list[str]:
    """Return the page of all commands with all of their options."""
    lines = ["# Commands"]
    for name, each in COMMANDS.items():
        parser = argparse.ArgumentParser()
        each.takes(parser)
        lines += command(name, each.text, parser)
    return lines


def registered(kind: str, title: str) -> list[str]:
    """Return the page of the registered names of one kind."""
    entries = [entry(kind, name) for name in names(kind)]
    rows = [(f"`{each.name}`", said(each.summary, f"the {kind} {each.name}"), each.paper) for each in entries]
    return [f"# {title}", "", *table(("name", "what it is", "source"), rows)]


def objectives() -> list[str]:
    """Return the page of objectives, with the equation and the hyperparameters of each."""
    lines = registered("objective", KINDS["objective"])
    for name in names("objective"):
        preset, explained = entry("objective", name).resolve(), EXPLAINED.get(name)
        lines += [
            "",
            f"## {name}",
            "",
            said(html.unescape(explained[0]) if explained else preset.summary, name),
            "",
        ]
        if explained:
            lines += ["```{raw} html", explained[1], "```", ""]
        rows = [
            (f"`{each.name}`", f"{each.default}", said(each.meaning, f"{each.name} of the objective {name}"))
            for each in preset.hyperparameters
        ]
        lines += table(("hyperparameter", "default", "meaning"), rows) if rows else []
    return lines


def examples() -> list[str]:
    """Return the page of the objectives that ship as plug-in files, each with what its file says of it."""
    lines = ["# Objectives that ship as examples"]
    for file, listed in shipped.contents().items():
        plugin = load_plugin(f"{shipped.PREFIX}{file}")
        try:
            module = inspect.getmodule(plugin.entries[0].target)
            title, _, text = (inspect.getdoc(module) or "").partition("\n\n")
            lines += ["", f"## examples:{file}", "", said(title, f"the example {file}"), ""]
            lines += documented(text)
            for name in listed:
                (its,) = (each for each in plugin.entries if each.name == name)
                kind = its.kind.replace("_", " ").capitalize()
                lines += ["", f"### {name}", "", f"{kind}. {its.paper}.", ""]
                lines += documented(inspect.getdoc(its.target) or "")
                rows = [
                    (
                        f"`{each.name}`",
                        f"{each.default:g}",
                        str(each.interval),
                        ", ".join(map(str, each.grid)),
                    )
                    for each in hyperparameters_of_term(name)
                ]
                heads = ("hyperparameter", "default", "range", "values that a search tries")
                lines += table(heads, rows) if rows else []
        finally:
            for each in plugin.entries:
                forget(each.kind, each.name)
    return lines


def data_sets() -> list[str]:
    """Return the page of data sets, with what is known of each."""
    lines = registered("dataset", KINDS["dataset"])
    for name in names("dataset"):
        its = card(name)
        sizes = ", ".join(f"{count:,} {split}" for split, count in its.sizes.items()) or "as the folder has"
        rows = (
            ("classes", str(its.classes)),
            ("images", sizes),
            ("accuracy", its.accuracy),
            ("classes of pretraining", said(its.relation or "not related", name)),
            ("licence", said(its.licence or "that of its publisher", name)),
            ("source", said(its.citation or "drawn by this package", name)),
        )
        lines += ["", f"## {name}", "", said(its.title, f"the data set {name}"), ""]
        lines += table(("", ""), rows)
    return lines


def claims() -> list[str]:
    """Return the page of claims, with the rule of each in words."""
    lines = ["# Claims", ""]
    rows = []
    for claim in CLAIMS:
        rule = rule_in_words(claim.rule)
        whose = "ours" if claim.ours else "the paper's"
        named = f"{said(claim.says, claim.key)}<br>`{claim.key}`"  # six columns leave no room for words
        rows.append(
            (named, rule[:1].upper() + rule[1:], f"{whose}, {claim.where}; judged since {claim.since}")
        )
    return [*lines, *table(("claim", "rule", "source"), rows)]


def rule_in_words(rule: Rule) -> str:
    """Return the words of a rule: the first sentence of what it is, or of what made it."""
    maker = getattr(sys.modules[rule.__module__], rule.__qualname__.partition(".")[0])
    words = " ".join(said(inspect.getdoc(maker), f"the rule {maker.__name__}").split()).partition(". ")[0]
    return words.removeprefix("Make the rule that ").removeprefix("Judge that ").rstrip(".")


def documented(text: str) -> list[str]:
    """Return a docstring as Markdown: prose, indented text as it stands, and examples as code."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(">>>"):
            lines += ["```pycon", paragraph, "```", ""]
        elif paragraph.startswith(" "):
            lines += ["```text", inspect.cleandoc(paragraph), "```", ""]
        else:
            parts = " ".join(paragraph.split()).split("`")
            prose = [re.sub(r"([\\*_\[\]<>|$~#])", r"\\\1", part) for part in parts[::2]]
            code = [f"`{part}`" for part in parts[1::2]]
            mixed = [each for pair in itertools.zip_longest(prose, code, fillvalue="") for each in pair]
            lines += ["".join(mixed), ""]
    return lines


def public() -> list[str]:
    """Return the page of the names of `import penultimate as pu`, with their signatures and docstrings."""
    lines = ["# Python"]
    for name in sorted(penultimate.__all__):
        if name.startswith("__"):
            continue
        value = getattr(penultimate, name)
        is_error = isinstance(value, type) and issubclass(value, Exception)
        signature = str(inspect.signature(value)) if callable(value) and not is_error else ""
        said(inspect.getdoc(value), f"pu.{name}")
        lines += ["", f"## pu.{name}", "", "```text", f"{name}{signature}", "```", ""]
        lines += documented(inspect.getdoc(value) or "")
    return lines


def pages() -> dict[str, list[str]]:
    """Return the lines of every page, by its file name."""
    made = {"commands": commands(), "python": public()}
    made |= {title.lower().replace(" ", "-"): registered(kind, title) for kind, title in KINDS.items()}
    made |= {"objectives": objectives(), "data-sets": data_sets(), "claims": claims(), "examples": examples()}
    for name, words in INTRODUCTIONS.items():
        made[name][1:1] = ["", words]
    index = ["# Reference", "", "These pages are made from the registries, so that nothing is forgotten.", ""]
    index += [*(f"- [{lines[0].removeprefix('# ')}]({name}.md)" for name, lines in made.items()), ""]
    index += ["```{toctree}", ":hidden:", "", *made, "```"]
    return {f"{name}.md": lines for name, lines in {"index": index, **made}.items()}


def write(folder: Path) -> None:
    """Write every page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in pages().items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the reference pages.")
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
