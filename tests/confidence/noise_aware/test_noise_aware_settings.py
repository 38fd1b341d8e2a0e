"""The settings of the noise-aware estimator: fixed, all of them used, and all of them explained."""

import ast
import dataclasses
from itertools import pairwise
from pathlib import Path

import pytest

from laplaceconfidence.confidence.noise_aware import settings
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS

PACKAGE = Path(settings.__file__).parent
GROUPS = [field.name for field in dataclasses.fields(SETTINGS)]


def names(group: str) -> list[str]:
    return [field.name for field in dataclasses.fields(getattr(SETTINGS, group))]


@pytest.mark.parametrize("group", GROUPS)
def test_settings_cannot_be_changed(group: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(SETTINGS, group, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(getattr(SETTINGS, group), names(group)[0], 0)


@pytest.mark.parametrize("group", GROUPS)
def test_every_setting_is_read_somewhere(group: str) -> None:
    sources = [path.read_text() for path in PACKAGE.glob("*.py") if path.name != "settings.py"]
    read = {
        node.attr
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
    }
    assert set(names(group)) <= read


@pytest.mark.parametrize("group", GROUPS)
def test_every_setting_says_what_it_does_and_where_it_comes_from(group: str) -> None:
    tree = ast.parse(Path(settings.__file__).read_text())
    kind = type(getattr(SETTINGS, group)).__name__
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind).body
    explained = {
        line.target.id: after.value.value
        for line, after in pairwise(body)
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
    }
    assert set(explained) == set(names(group))
    sources = ("recipe", "decision", "not tuned", "safety", "textbook", "set with", "cost")
    assert [name for name, line in explained.items() if not any(s in line.lower() for s in sources)] == []
