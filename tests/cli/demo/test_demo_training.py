"""The training part of the demonstration, shortened: it trains both ways on the same noisy labels."""

import numpy as np
import pytest

from laplaceconfidence.cli.demo import training as demo_training
from laplaceconfidence.training import presets
from laplaceconfidence.training.preset_tables import Preset


def test_both_ways_of_training_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    load = presets.load_preset

    def short(name: str) -> Preset:
        return load(name, ["rounds=2", "method.warmup=1", "n_jobs=1"])

    monkeypatch.setattr(presets, "load_preset", short)
    digits = demo_training.load_digits().subset(np.arange(600))
    monkeypatch.setattr(demo_training, "load_digits", lambda: digits)
    outcome = demo_training.run_training_demo(seed=0)
    assert (outcome.n_train, outcome.n_test) == (480, 120)
    assert 0.65 < outcome.n_wrong / outcome.n_train < 0.8
    # How far the long run gets is what benchmarks/training_digits.py measures; guessing gives 0.1.
    assert outcome.plain > 0.12
    assert outcome.robust > 0.12
