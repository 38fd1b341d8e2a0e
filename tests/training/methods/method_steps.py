"""One step with linear networks, for comparing losses with formulas that are written out."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.training.augment.protocol import Augmentation, Unchanged
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.methods.interface import Method, Phase, Plan, Problem
from laplaceconfidence.training.sample_views import SampleViews
from laplaceconfidence.training.step import Batch, Step
from laplaceconfidence.training.trained_network import Outputs

C = 3


class LinearNetwork:
    """Stands in for a network: one matrix, the inputs as features, and one head."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.randn(4, C, generator=generator, requires_grad=True)
        self.projection = torch.randn(4, 128, generator=generator, requires_grad=True)

    def __call__(self, inputs: Tensor) -> Tensor:
        return inputs @ self.weight

    def outputs(self, inputs: Tensor) -> Outputs:
        return Outputs(self(inputs), inputs, {"projection": inputs @ self.projection})

    def evaluating(self) -> AbstractContextManager[None]:
        return nullcontext()


def batch_of(index: Tensor, X: Tensor, labels: Tensor, strong: Augmentation) -> Batch:
    views = SampleViews(Unchanged(), (strong,), torch.zeros(1, 4), torch.ones(1, 4))
    generator = torch.Generator().manual_seed(0)
    return Batch(index, labels[index], X[index], views, generator, Team(), whole=True, weight=1.0)


def step_of(
    method: Method,
    phase: Phase,
    plan: Plan,
    batches: dict[str, Any],
    strong: Augmentation | None = None,
    **more: Any,
) -> Step:
    labels = torch.arange(12) % C
    problem = Problem(labels, C, rounds=20, batch_size=6, seed=0, sample_shape=(3,))
    networks: Any = (LinearNetwork(1), LinearNetwork(2))
    generator = torch.Generator().manual_seed(3)
    X = torch.randn(12, 4, generator=torch.Generator().manual_seed(4))
    parts = {
        name: batch_of(torch.tensor(index), X, labels, strong or Unchanged())
        for name, index in batches.items()
    }
    usual: dict[str, Any] = {"round": 5, "progress": 5.5}
    if "state" not in more:
        usual["state"] = method.initial_state(problem)
    return Step(
        phase=phase,
        plan=plan,
        problem=problem,
        networks=networks,
        batches=parts,
        generator=generator,
        team=Team(),
        **(usual | more),
    )


def whole_batch_step(method: Method, phase: Phase, plan: Plan | None = None, **more: Any) -> Step:
    """All twelve samples in one batch."""
    plan = Plan({"samples": torch.arange(12)}) if plan is None else plan
    return step_of(method, phase, plan, {"samples": list(range(12))}, **more)


def softmax(values: Any) -> Any:
    """Rows of probabilities, by numpy."""
    numbers = values.detach().numpy() if isinstance(values, Tensor) else values
    exponentials = np.exp(numbers - numbers.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)
