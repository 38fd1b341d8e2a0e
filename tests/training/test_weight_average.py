"""Averaged weights: a naive average beside them, and who uses them."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.interface import Evidence, Phase, Plan, State
from laplaceconfidence.training.step import Step
from laplaceconfidence.training.trained_network import TrainedNetwork
from laplaceconfidence.training.weight_average import WeightAverage
from small_runs import noisy_digits, plain_mlp, quick, weights


def naive(steps: list[Tensor], decay: float) -> Tensor:
    average = torch.zeros_like(steps[0])
    for number, values in enumerate(steps, start=1):
        kept = min(decay, (number - 1) / (number + 8))
        average = kept * average + (1 - kept) * values
    return average


def test_the_average_is_that_of_the_steps_and_the_network_gets_its_own_weights_back() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to(torch.bfloat16)
    average, seen = WeightAverage(network, 0.8), []
    assert average.weights()["0.weight"] is not None  # its own, before the first step
    for _ in range(60):
        with torch.no_grad():
            network[0].weight.add_(torch.randn(4, 3))
            network[1].running_mean.add_(torch.randn(4))  # type: ignore[operator]
            network[1].num_batches_tracked.add_(1)  # type: ignore[operator]
        average.update()
        seen.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
    for name in ("0.weight", "1.running_mean"):
        expected = naive([state[name].float() for state in seen], 0.8)
        torch.testing.assert_close(average.state_dict()["values"][name], expected, rtol=1e-5, atol=1e-5)
        assert average.weights()[name].dtype == torch.bfloat16
    with average.in_use():
        assert torch.equal(network[0].weight, average.weights()["0.weight"])
        assert int(network[1].num_batches_tracked) == 60  # type: ignore[arg-type]
    assert torch.equal(network[0].weight, seen[-1]["0.weight"])
    average.restart()
    assert torch.equal(average.weights()["0.weight"], network[0].weight)


@dataclass(frozen=True)
class Recording(CrossEntropy):
    """Remembers the weights after each step, and the outputs that its plans were made from."""

    fresh_in: int = -1
    seen: list[Tensor] = field(default_factory=list, compare=False)
    evidence: list[Any] = field(default_factory=list, compare=False)
    n_networks: ClassVar[int] = 1

    def phases(self, round: int) -> tuple[Phase, ...]:
        fresh = (0,) if round == self.fresh_in else ()
        return (Phase("training", trains=(0,), evidence=(0,), fresh=fresh),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if evidence.round == 1:
            self.evidence.append(evidence.networks[0].probabilities)
        return super().plan(phase, evidence, state)

    def after_step(self, step: Step) -> None:
        self.seen.append(nn.utils.parameters_to_vector(step.trained.module.parameters()).detach().clone())


def vector(run: Any) -> Tensor:
    return nn.utils.parameters_to_vector(run.networks_[0].parameters()).detach()


@pytest.mark.parametrize("fresh_in", [-1, 2])
def test_predictions_and_networks_have_the_averaged_weights(fresh_in: int) -> None:
    X, y, _ = noisy_digits(90)
    method = Recording(fresh_in=fresh_in)
    run = quick(method=method, network=plain_mlp, weight_average=0.9, validation_fraction=0)
    run.fit(X, y, test=(X, y))
    n_steps = len(method.seen) // 3
    counted = method.seen[fresh_in * n_steps if fresh_in > 0 else 0 :]
    torch.testing.assert_close(vector(run), naive(counted, 0.9), rtol=1e-4, atol=1e-6)
    assert run.history_[-1]["test_accuracy"] == pytest.approx(run.score(X, y))
    inputs = run._model.normalized(torch.from_numpy(X).unsqueeze(1))
    with torch.no_grad():
        expected = run.networks_[0].eval()(inputs).softmax(dim=1).numpy()
    np.testing.assert_allclose(run.predict_proba(X), expected, atol=1e-6)


def test_the_chosen_round_keeps_its_averaged_weights() -> None:
    X, y, _ = noisy_digits(90)
    method = Recording()
    run = quick(method=method, network=plain_mlp, weight_average=0.9, validation_fraction=0.3).fit(X, y)
    chosen = run.summary_["chosen_round"]
    n_steps = len(method.seen) // 3
    torch.testing.assert_close(vector(run), naive(method.seen[: chosen * n_steps], 0.9), rtol=1e-4, atol=1e-6)


def test_training_itself_and_the_plans_do_not_use_them_unless_asked() -> None:
    X, y, _ = noisy_digits(90)
    evidence = {}
    for average, of_plans in ((None, False), (0.99, False), (0.99, True)):
        method = Recording()
        more: dict[str, Any] = {"weight_average": average, "average_evidence": of_plans}
        quick(method=method, network=plain_mlp, **more).fit(X, y)
        evidence[average, of_plans] = (method.evidence[0], torch.stack(method.seen))
    plain, trained, averaged = evidence.values()
    assert all(torch.equal(plain[1], other[1]) for other in (trained, averaged))
    np.testing.assert_array_equal(plain[0], trained[0])
    assert np.abs(plain[0] - averaged[0]).max() > 1e-3


def test_a_network_that_only_its_method_changes_predicts_with_its_own_weights() -> None:
    @dataclass(frozen=True)
    class Teacher(CrossEntropy):
        n_networks: ClassVar[int] = 2

        @property
        def predictors(self) -> tuple[int, ...]:
            return (1,)

        def after_step(self, step: Step) -> None:
            step.networks[1].module.load_state_dict(step.networks[0].module.state_dict())

    X, y, _ = noisy_digits(60)
    plain, averaged = (
        quick(method=Teacher(), network=plain_mlp, weight_average=decay, validation_fraction=0).fit(X, y)
        for decay in (None, 0.9)
    )
    half = len(weights(plain)) // 2
    for ours, theirs in zip(weights(plain)[half:], weights(averaged)[half:], strict=True):
        assert torch.equal(ours, theirs)


def test_averaged_teachers_predict_the_pseudo_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """In eval mode and with the averaged weights; the networks are as before afterwards."""
    seen: list[tuple[bool, bool]] = []
    predicted = TrainedNetwork.__call__

    def spied(self: TrainedNetwork, inputs: Any) -> Any:
        if not torch.is_grad_enabled() and self.average is not None:
            weights, own = self.average.weights(), self.module.state_dict()
            seen.append((self.module.training, all(torch.equal(own[name], weights[name]) for name in own)))
        return predicted(self, inputs)

    monkeypatch.setattr(TrainedNetwork, "__call__", spied)
    X, y, _ = noisy_digits(60)
    quick("laplace", own={"warmup": 1, "averaged_teacher": True}, rounds=2, weight_average=0.9).fit(X, y)
    assert seen
    assert set(seen) == {(False, True)}
    with pytest.raises(InvalidInputError, match="'weight_average'"):
        quick("laplace", own={"warmup": 0, "averaged_teacher": True}, rounds=1).fit(X, y)


def test_mixed_precision_sees_the_weights_that_are_in_use() -> None:
    torch.manual_seed(0)
    network, inputs = nn.Linear(4, 4), torch.randn(3, 4)
    average = WeightAverage(network, 0.5)
    average.update()
    with torch.no_grad():
        network.weight.add_(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        before = network(inputs)
        with torch.no_grad(), average.in_use():
            averaged = network(inputs)
        after = network(inputs)
    assert torch.equal(before, after)
    assert not torch.equal(before, averaged)
