"""``--help`` of every command: complete sentences, no markup left over, and valid examples."""

import re
import shlex
from typing import Any

import pytest
import typer.main
from rich.text import Text

from laplaceconfidence.cli.app import app

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def examples(name: str) -> list[str]:
    """The commands among the examples, such as 'audit digits -k 10'."""
    help = COMMANDS[name].help.split("[bold]Examples[/bold]")
    return re.findall(r"laplaceconfidence (.*)", Text.from_markup(help[1]).plain) if len(help) > 1 else []


EXAMPLES = [example for name in COMMANDS for example in examples(name)]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_written_in_sentences(name: str) -> None:
    assert COMMANDS[name].help.split("\n\n")[0].endswith("."), "the first paragraph is shown in the overview"
    for parameter in COMMANDS[name].params:
        text = parameter.help or ""
        assert len(text.split()) > 1, f"{parameter.name} has no help"
        assert text.endswith("."), f"{parameter.name}: {text}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_shown_without_markup(run: Any, name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert not re.search(r"\[/?(bold|cyan)\]|\\\[", done.stdout)


@pytest.mark.parametrize("name", ["audit", "train", "predict", "bench"])
def test_help_teaches_with_examples(name: str) -> None:
    assert sum(example.split()[0] == name for example in examples(name)) >= 4


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_in_the_help_are_valid(example: str) -> None:
    name, *words = shlex.split(example)
    parsed = COMMANDS[name].make_context(name, list(words))  # refuses unknown options
    assert set(words[:1]) <= {str(value) for value in parsed.params.values()}


def test_an_example_with_an_unknown_option_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option: --neighbours") as refusal:
        COMMANDS["audit"].make_context("audit", ["digits", "--neighbours", "5"])
    assert type(refusal.value).__name__ == "NoSuchOption"  # of click, which newer versions of typer contain
