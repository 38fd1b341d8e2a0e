"""Methods that need the noise rate estimate it where it is not given, and say so."""

import logging
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from laplaceconfidence.exceptions import Interrupted
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.curriculum import CurriculumLoss
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.methods.selfie import SELFIE
from small_runs import noisy_digits, quick, weights

RUN: dict[str, Any] = {"network": "mlp", "rounds": 6, "learning_rate": 0.05, "validation_fraction": 0}


@pytest.mark.parametrize(
    "method", [CoTeaching(ramp=4), CurriculumLoss(warmup=4), SELFIE(warmup=4, restarts=0)]
)
def test_the_rate_is_estimated_at_the_end_of_the_plain_phase(
    method: Method, caplog: pytest.LogCaptureFixture
) -> None:
    # By then the networks have memorized many of the labels that they were trained on.
    X, given, true = noisy_digits(600, rate=0.4)
    with caplog.at_level(logging.INFO, logger="laplaceconfidence"):
        history = quick(method=method, **RUN).fit(X, given).history_
    rates = [record["phases"][0].get("noise_rate") for record in history]
    assert rates[:4] == [None] * 4
    assert rates[4] == rates[5] == pytest.approx((given != true).mean(), abs=0.1)
    notes = [line for line in caplog.messages if "noise rate was not given" in line]
    assert len(notes) == 1
    assert f"{rates[4]:.1%}" in notes[0]
    assert ("'forget_rate'" if isinstance(method, CoTeaching) else "'noise_rate'") in notes[0]


def test_the_estimate_survives_being_stopped(tmp_path: Path) -> None:
    X, given, _ = noisy_digits(100)
    method = CoTeaching(ramp=1)
    whole = quick(method=method).fit(X, given)
    stopped = quick(method=method, out=tmp_path / "run")
    for _ in range(2):
        with pytest.raises(Interrupted):
            stopped.fit(X, given, listeners=[lambda record: signal.raise_signal(signal.SIGTERM)])
    stopped.fit(X, given)
    assert whole.history_ == stopped.history_
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(stopped), strict=True))


def test_a_given_rate_is_used_and_nothing_estimated() -> None:
    X, given, _ = noisy_digits(60)
    history = quick(method=CoTeaching(forget_rate=0.5, ramp=1)).fit(X, given).history_
    assert all("noise_rate" not in record["phases"][0] for record in history)
    assert all(phase.evidence == () for number in range(20) for phase in CoTeaching(0.5).phases(number))
