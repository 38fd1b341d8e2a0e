"""The loop with the method "laplace" against the paper's Algorithm 1 written out in one piece."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.training.methods.interface import Phase, Plan
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.phase_steps import index_batches
from laplaceconfidence.training.seeds import derived_seed
from small_runs import noisy_digits, quick

SEED, ROUNDS, WARMUP, PASSES, T, BATCH, RATE, K = 5, 5, 2, 2, 3, 32, 0.05, 12


def small_network(n_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    """With batch normalization: the modes in which networks guess targets make a difference."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(input_shape[0], 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, n_classes)
    )


def dimmed(inputs: Tensor, generator: torch.Generator) -> Tensor:
    return inputs * 0.9


def brightened(inputs: Tensor, generator: torch.Generator) -> Tensor:
    return inputs * 1.3 + 0.1


def algorithm_one(raw: Tensor, labels: Tensor, *, penalty: bool, n_networks: int) -> list[nn.Module]:
    """Arrays in memory, no options: what the loop must come to."""
    scale = _Standardizer(raw)
    networks = []
    for m in range(n_networks):
        torch.manual_seed(derived_seed(SEED, "network", m))
        networks.append(small_network(10, (64,)))
    optimizers = [
        torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4) for net in networks
    ]
    one_hot = torch.eye(10)[labels.clamp_min(0)]
    everything = torch.arange(len(labels))
    for r in range(ROUNDS):
        rate = RATE if r < 0.75 * ROUNDS else 0.1 * RATE
        for m, net in enumerate(networks):
            peer = networks[n_networks - 1 - m]
            for group in optimizers[m].param_groups:
                group["lr"] = rate
            rows, confidence = everything[labels >= 0], None
            if r >= WARMUP:
                rows = everything
                peer.eval()
                with torch.no_grad():
                    features = peer[:4](scale(raw)).numpy()
                fitted = LaplaceConfidence(K, 0.9, missing_label=-1, max_iter=30).fit(
                    features, labels.numpy()
                )
                confidence = torch.from_numpy(np.nan_to_num(fitted.confidence_)).float()
            for other in networks:
                other.train(other is net)
            phase = Phase("training", trains=(m,), passes=PASSES if r >= WARMUP else 1)
            order = index_batches(phase, Plan.over(rows), BATCH, derived_seed(SEED, "order", r, m))
            for batch in order["samples"]:
                optimizers[m].zero_grad()
                weak = scale(raw[batch] * 0.9)
                if confidence is None:
                    p = net(weak).softmax(dim=1)
                    loss = -(one_hot[batch] * p.log()).sum(dim=1).mean()
                    if penalty:
                        loss = loss + (p * p.log()).sum(dim=1).mean()
                else:
                    with torch.no_grad():
                        guess = sum(other(weak).softmax(dim=1) for other in networks) / n_networks
                        guess = guess**T / (guess**T).sum(dim=1, keepdim=True)
                    w = confidence[batch].unsqueeze(1)
                    target = w * one_hot[batch] + (1 - w) * guess
                    p = net(scale(raw[batch] * 0.9 * 1.3 + 0.1)).softmax(dim=1)
                    loss = -(target * p.log()).sum(dim=1).mean()
                    loss = loss + sum(0.1 * torch.log(0.1 / p.mean(dim=0)[c]) for c in range(10))
                loss.backward()
                optimizers[m].step()
    return networks


class _Standardizer:
    def __init__(self, X: Tensor) -> None:
        self.mean = X.double().mean(dim=0).float()
        deviation = X.double().std(dim=0, correction=0)
        self.deviation = torch.where(deviation > 1e-6, deviation, 1.0).float()

    def __call__(self, X: Tensor) -> Tensor:
        return (X - self.mean) / self.deviation


def noisy_features() -> tuple[Tensor, Any]:
    images, given, _ = noisy_digits(160)
    given = given.copy()
    given[::9] = -1
    return torch.from_numpy(images.reshape(160, 64) / 255).float(), given


@pytest.mark.parametrize(("penalty", "n_networks"), [(False, 2), (True, 2), (False, 1)])
def test_the_loop_computes_algorithm_one(penalty: bool, n_networks: int) -> None:
    X, given = noisy_features()
    run = quick(
        network=small_network,
        rounds=ROUNDS,
        own={
            "warmup": WARMUP,
            "passes": PASSES,
            "sharpen": T,
            "n_neighbors": K,
            "alpha": 0.9,
            "entropy_penalty": penalty,
            "n_networks": n_networks,
        },
        batch_size=BATCH,
        learning_rate=RATE,
        weak=dimmed,
        strong=brightened,
        validation_fraction=0,
        missing_label=-1,
        random_state=SEED,
    ).fit(X.numpy(), given)
    naive = algorithm_one(X, torch.from_numpy(given), penalty=penalty, n_networks=n_networks)
    for ours, theirs in zip(run.networks_, naive, strict=True):
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-3, atol=1e-4)


def test_phases_of_the_paper() -> None:
    method = Laplace(warmup=2)
    assert method.phases(1) == (Phase("warm-up", trains=(0,)), Phase("warm-up", trains=(1,)))
    assert method.phases(2) == (
        Phase("robust", trains=(0,), passes=2, evidence=(1,)),
        Phase("robust", trains=(1,), passes=2, evidence=(0,)),
    )
    assert Laplace(warmup=0, n_networks=1).phases(0) == (
        Phase("robust", trains=(0,), passes=2, evidence=(0,)),
    )
