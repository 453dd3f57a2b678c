"""Command that prints the completion of this command for a shell."""

from __future__ import annotations

import argparse

from penultimate.command import Command, say_as_it_is
from penultimate.errors import unknown

BASH = """_penultimate() {{
  local current=${{COMP_WORDS[COMP_CWORD]}}
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) COMPREPLY=($(compgen -W "{names}" -- "$current")) ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && COMPREPLY=($(compgen -W "{names}" -- "$current"))
}}
complete -o default -F _penultimate penultimate"""
CASE = '    {name}) COMPREPLY=($(compgen -W "{words}" -- "$current")) ;;'
ZSH = "#compdef penultimate\nautoload -U +X bashcompinit && bashcompinit\n"
FISH = "complete -c penultimate -n __fish_use_subcommand -a {name} -d '{text}' -f"
FISH_WORDS = "complete -c penultimate -n '__fish_seen_subcommand_from {name}' -a '{words}'"
SHELLS = ("bash", "zsh", "fish")
STUDIES = ("run", "plan")


def _takes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", default="bash", help=", ".join(SHELLS))


def words_of(command: Command) -> list[str]:
    """Return what may follow a command: its options, and names if it takes names of one kind."""
    from penultimate.registry import names

    parser = argparse.ArgumentParser(prog=command.name, add_help=True)
    command.takes(parser)
    options = [option for action in parser._actions for option in action.option_strings]
    listed = {
        **dict.fromkeys(STUDIES, "study"),
        **dict.fromkeys(("show", "why"), "exhibit"),
        "portrait": "objective",
        "tune": "objective",
    }
    named = names(listed[command.name]) if command.name in listed else ()
    return [*named, *(option for option in options if option.startswith("--"))]


def script(shell: str, commands: list[Command]) -> str:
    """Return the completion of a shell; raises RequestError for another shell."""
    if shell not in SHELLS:
        raise unknown("shell", shell, SHELLS)
    words = {command.name: " ".join(words_of(command)) for command in commands}
    if shell == "fish":
        lines = [
            FISH.format(name=command.name, text=command.text.replace("'", "\\'")) for command in commands
        ]
        return "\n".join([*lines, *(FISH_WORDS.format(name=name, words=of) for name, of in words.items())])
    cases = "\n".join(CASE.format(name=name, words=of) for name, of in words.items())
    return (ZSH if shell == "zsh" else "") + BASH.format(cases=cases, names=" ".join(words))


def completion(commands: list[Command]) -> Command:
    """Return the command that prints the completion of these commands, and of itself."""

    def do(options: argparse.Namespace) -> int:
        say_as_it_is(script(options.shell, [*commands, own]))
        return 0

    text = 'Print the completion for a shell: eval "$(penultimate completion bash)".'
    own = Command("completion", text, _takes, do)
    return own
