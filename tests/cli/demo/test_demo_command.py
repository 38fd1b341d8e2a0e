"""``laplaceconfidence demo``: it works, says what it should, and overwrites nothing."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from laplaceconfidence import folder_lock
from laplaceconfidence.cli.demo.experiment import DemoOutcome, run_demo
from laplaceconfidence.cli.demo.training import TrainingOutcome
from laplaceconfidence.records import read_audit, write_audit
from laplaceconfidence.records.run_folder import reserved_place


@pytest.fixture(scope="module")
def outcome() -> DemoOutcome:
    return run_demo(seed=0)


@pytest.fixture(autouse=True)
def trained_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training takes a minute: its outcome is fixed here, and test_demo_training runs a short version."""
    outcome = TrainingOutcome(plain=0.372, robust=0.969, n_train=1438, n_wrong=1008, n_test=359)
    monkeypatch.setattr("laplaceconfidence.cli.demo.training.run_training_demo", lambda seed: outcome)


def test_the_wrong_labels_are_found_and_correcting_them_helps(outcome: DemoOutcome) -> None:
    ours, paper, vote, losses = outcome.scores
    assert ours.auroc > 0.99
    assert ours.auroc >= max(paper.auroc, vote.auroc, losses.auroc)
    assert ours.precision > 0.9
    assert ours.recall > 0.9
    assert outcome.n_found / outcome.n_wrong == pytest.approx(ours.recall)
    assert outcome.n_wrong_after < 0.2 * outcome.n_wrong
    accuracy = outcome.accuracy
    assert accuracy["given"] < accuracy["corrected"] <= accuracy["true"] + 0.01


def test_the_results_are_printed_in_plain_words(
    run: Any, outcome: DemoOutcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laplaceconfidence.cli.demo.experiment.run_demo", lambda seed: outcome)
    done = run("demo")
    assert done.exit_code == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert re.search(
        r"It found \d+ of the \d+ wrong labels, and \d+% of the labels it flagged are really", told
    )
    for word in ("kNN vote", "Gaussian mixture of losses", "AUROC", "corrected labels", "true labels"):
        assert word in told
    assert "about 7 of 10 labels were wrong" in told
    assert "the network memorizes them and reads 37 of 100 new digits correctly" in told
    assert "it reads 97 of 100" in told
    record = read_audit(tmp_path / "laplaceconfidence-demo").record
    assert record.source == {"source": "data.npz", "demo": True, "seed": 0}
    assert (tmp_path / "laplaceconfidence-demo" / "report.html").is_file()
    assert "laplaceconfidence review laplaceconfidence-demo" in told


def test_training_can_be_left_out_and_needs_torch(
    run: Any, outcome: DemoOutcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laplaceconfidence.cli.demo.experiment.run_demo", lambda seed: outcome)
    assert "labels were wrong" not in run("demo", "--no-training").stdout
    monkeypatch.setitem(sys.modules, "torch", None)
    done = run("demo")
    assert done.exit_code == 0
    assert "labels were wrong" not in done.stdout
    assert "pip install 'laplaceconfidence[train]'" in done.stderr


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_it_works_without_the_review_extra(
    run: Any, outcome: DemoOutcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setattr("laplaceconfidence.cli.demo.experiment.run_demo", lambda seed: outcome)
    for name in [name for name in sys.modules if name == module or name.startswith(f"{module}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    done = run("demo", "--no-training")
    assert done.exit_code == 0, done.stderr
    assert "pip install 'laplaceconfidence[review]'" in done.stderr
    assert "laplaceconfidence report laplaceconfidence-demo" in done.stdout
    assert not (tmp_path / "laplaceconfidence-demo" / "report.html").exists()


def test_it_replaces_earlier_demonstrations_and_nothing_else(
    run: Any, outcome: DemoOutcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laplaceconfidence.cli.demo.experiment.run_demo", lambda seed: outcome)
    assert run("demo").exit_code == 0
    assert run("demo").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["laplaceconfidence-demo"]
    (tmp_path / "laplaceconfidence-demo" / "decisions.sqlite").write_text("mine")
    done = run("demo")
    assert "Written to laplaceconfidence-demo-2/" in done.stdout
    assert (tmp_path / "laplaceconfidence-demo" / "decisions.sqlite").read_text() == "mine"
    assert run("demo", "--out", "laplaceconfidence-demo-2").exit_code == 2
    assert run("demo", "--out", "laplaceconfidence-demo-2", "--overwrite").exit_code == 0


@pytest.mark.parametrize("options", [(), ("--overwrite",), ("--out", "laplaceconfidence-demo")])
def test_while_another_one_runs_it_is_refused_at_once(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
    with reserved_place(tmp_path / "laplaceconfidence-demo"):
        done = run("demo", *options)
    assert done.exit_code == 2
    assert "Another process is writing a run into" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_appears_while_it_works_is_not_replaced(
    run: Any, outcome: DemoOutcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(seed: int) -> DemoOutcome:
        write_audit(outcome.result, tmp_path / "laplaceconfidence-demo", warnings=("of somebody else",))
        return outcome

    monkeypatch.setattr("laplaceconfidence.cli.demo.experiment.run_demo", meanwhile)
    done = run("demo", "--no-training")
    assert done.exit_code == 2
    assert "already holds a run" in done.stderr
    assert read_audit(tmp_path / "laplaceconfidence-demo").record.warnings == ("of somebody else",)
