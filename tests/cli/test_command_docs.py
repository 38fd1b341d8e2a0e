"""Every command and option is explained, in --help and in docs/commands.md."""

from pathlib import Path
from typing import Any

import pytest
import typer.main

from laplaceconfidence.cli.app import app
from laplaceconfidence.confidence.registry import ESTIMATORS

DOCS = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
COMMAND: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = COMMAND.commands


def section(name: str) -> str:
    return DOCS.split(f"\n## {name}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option":
            assert parameter.help, f"{parameter.name} has no help"
            for option in parameter.opts:
                assert f"`{option}" in section(name), f"docs/commands.md says nothing about {option}"


def test_the_options_of_all_commands_are_documented() -> None:
    for parameter in COMMAND.params:
        for option in parameter.opts:
            assert f"`{option}`" in DOCS


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_documented_that_does_not_exist(name: str) -> None:
    existing = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    rows = [line for line in section(name).splitlines() if line.startswith("| `-")]
    documented = {word.strip("`,|").split()[0] for line in rows for word in line.split("|")[1].split(", ")}
    assert {word.strip().strip("`") for word in documented} <= existing | {""}


def test_every_estimator_is_named() -> None:
    option = next(parameter for parameter in COMMANDS["audit"].params if parameter.name == "estimator")
    for name in ESTIMATORS:
        assert name in option.help
        assert f"`{name}`" in section("audit")
