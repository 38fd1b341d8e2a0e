"""Fixtures that run the command line in this process, in a temporary folder."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from laplaceconfidence.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command with the given arguments; exceptions that it does not report are raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAPLACECONFIDENCE_DATA", str(tmp_path_factory.mktemp("data")))
    monkeypatch.setenv("COLUMNS", "200")

    def run_command(*words: object) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)

    return run_command


@pytest.fixture
def table(tmp_path: Path) -> pd.DataFrame:
    """60 reviews of two moods, with 3 wrong labels and one missing; also in reviews.csv."""
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    frame = pd.DataFrame(np.eye(2)[truth] + rng.normal(scale=0.1, size=(60, 2)), columns=["emb_0", "emb_1"])
    frame["mood"] = np.array(["bad", "[red]good"])[truth]
    frame["truth"] = frame["mood"]
    frame.loc[[4, 10], "mood"] = "[red]good"
    frame.loc[[21], "mood"] = "bad"
    frame.loc[[30], "mood"] = None
    frame["review"] = [f"review {row}\nwith\ttwo lines \x1b[31m" for row in range(60)]
    frame["number"] = [f"r{row}" for row in range(60)]
    frame.to_csv(tmp_path / "reviews.csv", index=False)
    return frame
