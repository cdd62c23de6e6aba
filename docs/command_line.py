"""The tables of docs/command-line.md: `python -m docs.command_line` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from flmarket_sim.cli.app import app

PAGE = Path(__file__).with_name("command-line.md")
BETWEEN = re.compile(r"(<!-- made by:.*?-->\n).*?(<!-- end -->)", re.DOTALL)
# Options that the page explains once.
EVERYWHERE = {"--help", "--quiet", "--verbose", "--no-plugins", "--json"}


def commands(group: Any, before: str = "flmarket") -> Iterator[tuple[str, Any]]:
    """Every command with its full name, in the order of the help; groups come apart,
    and one that does something alone is a command too."""
    context = group.make_context(before, [], resilient_parsing=True)
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])  # imports the file of the command
        if getattr(command, "hidden", False):
            continue
        if getattr(command, "invoke_without_command", False):
            yield f"{before} {name}", command
        if hasattr(command, "commands"):
            yield from commands(command, f"{before} {name}")
        else:
            yield f"{before} {name}", command


def first_sentence(text: str | None) -> str:
    plain = " ".join((text or "").split("\n\n")[0].split())
    return plain.replace("|", "\\|").replace("] [", "; ")  # two brackets are a link in Markdown


def overview() -> str:
    """A line for each command."""
    lines = ["| command | what it does |", "|---|---|"]
    for name, command in commands(get_command(app)):
        link = name.replace(" ", "-")
        lines.append(f"| [`{name}`](#{link}) | {first_sentence(command.help)} |")
    return "\n".join(lines)


def details() -> str:
    """A section for each command: how it is called, and its options."""
    parts = []
    for name, command in commands(get_command(app)):
        context = command.make_context(name, [], resilient_parsing=True)
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p not in arguments and not _said_once(p)]
        call = " ".join([name, *(_argument(argument) for argument in arguments)])
        parts.append(f"### {name}\n\n    {call}{' [OPTIONS]' if options else ''}\n")
        parts.append(_prose(command.help))
        rows = [f"| `{_argument(a)}` | {first_sentence(a.help)} |" for a in arguments]
        for option in options:
            shown, meaning = option.get_help_record(context)
            rows.append(f"| `{shown.replace('|', '/')}` | {first_sentence(meaning)} |")
        if rows:
            parts.append("\n".join(["| argument or option | meaning |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts).rstrip()


def _said_once(option: Any) -> bool:
    return not EVERYWHERE.isdisjoint(option.opts) or getattr(option, "hidden", False)


def _argument(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _prose(text: str | None) -> str:
    paragraphs = (" ".join(part.split()) for part in (text or "").split("\n\n"))
    return "".join(f"{_wrapped(part)}\n\n" for part in paragraphs if part).rstrip("\n") + "\n"


def _wrapped(text: str) -> str:
    lines = [""]
    for word in text.split():
        fits = len(lines[-1]) + len(word) < 100
        lines[-1:] = [f"{lines[-1]} {word}".strip()] if fits else [lines[-1], word]
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with its tables as they are now, in the order in which it marks them."""
    made = iter((overview(), details()))
    return BETWEEN.sub(lambda mark: f"{mark[1]}{next(made)}\n{mark[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
