"""One reference page per command, read from the commands themselves: usage, help, examples, options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer.main
from generated_pages import write_pages
from sphinx.application import Sphinx

from laplaceconfidence.cli.app import app as command_line

GUIDES = {
    "audit": "[Auditing from the command line](../../guides/audit.md)",
    "train": "[Training settings and presets](../../guides/training.md)",
    "methods": "[Training settings and presets](../../guides/training.md)",
    "bench": "[Comparing estimators and methods](../../guides/bench.md)",
    "report": "[Report, review and export](../../guides/reviewing.md)",
    "review": "[Report, review and export](../../guides/reviewing.md)",
    "export": "[Report, review and export](../../guides/reviewing.md)",
    "diff": "[In a pipeline](../../guides/pipelines.md)",
}

INTRODUCTION = """# Command reference

These pages are generated from the commands themselves; `laplaceconfidence COMMAND --help` shows the same
text. `python -m laplaceconfidence` is the same program. Results go to standard output; progress, notes and
errors go to standard error.
"""
EXIT_CODES = """`laplaceconfidence --version` shows the version; `--help` (`-h`) works for every command.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | an audit meets a condition of `--fail-if`; or an unexpected error, with a traceback: please report it |
| 2 | an argument or a file cannot be used; the message says which, why and what to do |
| 3 | a `bench` is finished, but some of its cells failed |
| 130 | training or a bench was stopped with Ctrl-C or SIGTERM; the same command resumes it |
"""


def commands() -> dict[str, Any]:
    """The sub-commands by name."""
    group: Any = typer.main.get_command(command_line)
    return dict(group.commands)


def options_of(command: Any) -> list[Any]:
    """The options of a command that its help shows."""
    return [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and not getattr(parameter, "hidden", False)
    ]


def _plain(text: str) -> str:
    """Help text with rich's markup as Markdown; names of options are code."""
    text = re.sub(r"\[bold\](.*?)\[/bold\]", r"**\1**", text)
    text = re.sub(r"\[cyan\](.*?)\[/cyan\]", r"`\1`", text)
    text = re.sub(r"(?<!\\)\[/?[a-z]+\]", "", text).replace("\\[", "[")
    prose = re.split(r"(`[^`]*`)", text)
    prose[::2] = [re.sub(r"(?<![\w-])--[a-z][a-z-]*", r"`\g<0>`", part) for part in prose[::2]]
    return "".join(prose).replace("<", "&lt;").replace("*'", "\\*'")


def _cell(text: str) -> str:
    return " ".join(_plain(text).split()).replace("|", "\\|")


def _option_row(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" `{option.metavar or f'<{_type_name(option)}>'}`"
    repeated = " Can be repeated." if option.multiple and "epeat" not in option.help else ""
    return f"| {names}{value} | {_cell(option.help)}{repeated}{_default(option)} |"


def _default(option: Any) -> str:
    """The default as a sentence, unless the help states it or there is none."""
    default = option.default
    if default is None or default in ([], False) or callable(default) or "efault" in option.help:
        return ""
    return f" Default: `{option.opts[-1] if default is True else default}`."


def _type_name(option: Any) -> str:
    annotation = option.type_descriptor.annotation
    return str(getattr(annotation, "__name__", annotation)).lower()


def _text(help_text: str) -> list[str]:
    """Paragraphs of the help; lines that are commands become code."""
    lines: list[str] = []
    in_code = False
    for line in help_text.splitlines():
        command = re.fullmatch(r"\s*\[cyan\](.*)\[/cyan\]\s*", line)
        heading = re.fullmatch(r"\s*\[bold\](.*)\[/bold\]\s*", line)
        if command and not in_code:
            lines += ["", "```console"]
        elif not command and in_code:
            lines.append("```")
        in_code = command is not None
        if command:
            lines.append(f"$ {command[1]}")
        elif heading:
            lines.append(f"## {heading[1]}")
        else:
            lines.append(_plain(line))
    return [*lines, "```"] if in_code else lines


def command_page(name: str, command: Any) -> str:
    """The page of one command as Markdown."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join(
        ["laplaceconfidence", name, *(p.metavar or p.name.upper() for p in arguments), "[OPTIONS]"]
    )
    parts = [f"# {name}\n", "```text", usage, "```\n", *_text(command.help or ""), ""]
    if name in GUIDES:
        parts += [f"Guide: {GUIDES[name]}.\n"]
    if arguments:
        parts += ["## Arguments\n", "| argument | meaning |", "| --- | --- |"]
        parts += [f"| `{p.metavar or p.name.upper()}` | {_cell(p.help or '')} |" for p in arguments]
        parts += [""]
    panels: dict[str, list[Any]] = {}
    for option in options_of(command):
        panels.setdefault(option.rich_help_panel or "Options", []).append(option)
    for panel, options in panels.items():
        parts += [f"## {panel}\n" if panel == "Options" else f"## Options: {panel[0].lower()}{panel[1:]}\n"]
        parts += ["| option | meaning |", "| --- | --- |"]
        parts += [_option_row(option) for option in options]
        parts += [""]
    return "\n".join(parts)


def _index() -> str:
    rows = []
    for name, command in commands().items():
        first = (command.help or "").split("\n\n")[0]
        rows.append(f"| [`{name}`]({name}.md) | {_cell(first)} |")
    return "\n".join(
        [
            INTRODUCTION,
            "| command | what it does |",
            "| --- | --- |",
            *rows,
            "",
            EXIT_CODES,
            "```{toctree}",
            ":hidden:",
            "",
            *commands(),
            "```",
            "",
        ]
    )


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    written = {f"{name}.md": command_page(name, command) for name, command in commands().items()}
    return {"index.md": _index(), **written}


def _write(app: Sphinx) -> None:
    write_pages(Path(app.srcdir) / "reference" / "commands", pages())


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
