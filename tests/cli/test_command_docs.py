"""Every command and option explains itself: the command reference is generated from these texts."""

from typing import Any

import pytest
import typer.main

from laplaceconfidence.cli.app import app
from laplaceconfidence.confidence.registry import ESTIMATORS

COMMAND: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = COMMAND.commands


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    assert COMMANDS[name].help
    for parameter in COMMANDS[name].params:
        assert parameter.help, f"{parameter.name} has no help"


def test_every_estimator_is_named() -> None:
    option = next(parameter for parameter in COMMANDS["audit"].params if parameter.name == "estimator")
    for name in ESTIMATORS:
        assert name in option.help


def test_help_teaches_with_examples(run: Any) -> None:
    done = run("audit", "--help")
    assert done.exit_code == 0
    assert done.stdout.count("laplaceconfidence audit ") >= 4
