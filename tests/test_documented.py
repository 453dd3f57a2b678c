"""Every command, option, registered name and public name has words of its own on a page of the reference."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from penultimate import registry
from penultimate.cli import COMMANDS
from penultimate.paper.claims.stated import CLAIMS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reference() -> Any:
    """docs/reference.py, which writes the pages."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_everything_that_a_user_can_name_is_on_a_page(reference: Any, tmp_path: Path) -> None:
    reference.write(tmp_path)
    text = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert all(f"## penultimate {name}\n" in text["commands.md"] for name in COMMANDS)
    assert "## penultimate data get\n" in text["commands.md"]
    assert "`--gpus SHARE`" in text["commands.md"]
    assert "with `--plugin FILE` if it is your own" in text["commands.md"]
    assert "; `--set --help` lists them" in text["commands.md"]
    assert all(f"<br>`{claim.key}` | " in text["claims.md"] for claim in CLAIMS)
    assert "## pu.evaluate\n" in text["python.md"]
    for kind, title in reference.KINDS.items():
        page = text[f"{title.lower().replace(' ', '-')}.md"]
        assert all(f"| `{name}` | " in page for name in registry.names(kind))


def test_a_command_an_option_and_a_name_without_words_are_refused(
    reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = COMMANDS["status"]
    for changed, told in (
        (dataclasses.replace(status, text=""), "the command status"),
        (dataclasses.replace(status, takes=lambda parser: parser.add_argument("--mute")), "`--mute MUTE`"),
    ):
        monkeypatch.setitem(reference.COMMANDS, "status", changed)
        with pytest.raises(reference.UndocumentedError, match=told):
            reference.commands()
    monkeypatch.setitem(
        registry._table,
        ("loss", "mute"),
        registry.Entry("mute", "loss", "penultimate.objectives.losses:mute"),
    )
    with pytest.raises(reference.UndocumentedError, match="the loss mute"):
        reference.registered("loss", "Losses")


def test_every_kind_that_a_plug_in_or_a_paper_registers_by_name_has_a_page(reference: Any) -> None:
    of_papers = {"page", "reference", "printed"}
    assert set(reference.KINDS) == set(registry.KINDS) - of_papers
