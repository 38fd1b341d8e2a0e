"""``laplaceconfidence methods``: the list, one method, and a name that does not exist."""

from typing import Any

import pytest

from laplaceconfidence.training.methods.registry import METHODS, settings_of


def test_all_methods_are_listed_with_their_facts(run: Any) -> None:
    done = run("methods")
    assert done.exit_code == 0, done.stderr
    for name, kind in METHODS.items():
        assert name in done.stdout
        assert kind.facts is not None
        assert kind.facts.paper.split()[0] in done.stdout
    assert "noise rate" in done.stdout
    assert "2020" in done.stdout


@pytest.mark.parametrize("name", sorted(METHODS))
def test_one_method_is_shown_with_its_settings_and_their_published_values(run: Any, name: str) -> None:
    done = run("methods", name)
    assert done.exit_code == 0, done.stderr
    assert all(f"method.{setting}" in done.stdout for setting in settings_of(name))
    for entry in METHODS[name].published:
        assert f"{entry.data}, {entry.noise}" in done.stdout
        assert f"({entry.source})" in done.stdout


def test_published_values_are_written_as_train_takes_them(run: Any) -> None:
    text = " ".join(run("methods", "dividemix").stdout.split())
    assert "CIFAR-10, symmetric 90% (paper) method.unlabelled_weight=50, method.threshold=0.6" in text
    assert "learning_rate_drops=[150]" in text


def test_a_wrong_name_gets_the_right_one(run: Any) -> None:
    done = run("methods", "divide_mix")
    assert done.exit_code == 2
    assert "Did you mean 'dividemix'?" in done.stderr
