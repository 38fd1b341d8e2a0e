"""A few hundred noisy digits and a network that trains on them in a blink, for the tests of training."""

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.methods.registry import METHODS, build_method


def noisy_digits(n: int = 240, rate: float = 0.4, seed: int = 0) -> tuple[Any, Any, Any]:
    """Images (n, 8, 8) as bytes, labels of which some are random, and the true ones."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[:n]
    true = y[rows].astype(np.int64)
    given = np.where(rng.random(n) < rate, rng.integers(0, 10, n), true)
    return (X[rows].reshape(n, 8, 8) * 15).astype(np.uint8), given, true


def tiny_mlp(n_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    """No batch normalization: processes then compute exactly what one process would."""
    n_inputs = int(np.prod(input_shape))
    return nn.Sequential(
        nn.Flatten(), nn.Linear(n_inputs, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, n_classes)
    )


def shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """A random augmentation that costs nothing."""
    shift = int(torch.randint(-1, 2, (1,), generator=generator))
    return images.roll(shift, dims=-1)


# Every phase of a method within three rounds; a noise rate is given, because estimating it takes seconds.
QUICK: dict[str, dict[str, Any]] = {
    "laplace": {"warmup": 1, "n_neighbors": 10},
    "co_teaching": {"forget_rate": 0.3, "ramp": 2},
    "dividemix": {"warmup": 1},
    "co_teaching_plus": {"forget_rate": 0.3, "ramp": 2, "initial": 1},
    "pencil": {"warmup": 1, "correction": 1, "final": 1},
    "m_correction": {"warmup": 1},
    "curriculum": {"noise_rate": 0.3, "warmup": 1},
    "topofilter": {"warmup": 1, "every": 1},
    "d2l": {"warmup": 0, "window": 1, "n_deviations": 0},
    "laplacenet": {"warmup": 1, "n_neighbors": 10},
    "moit": {"warmup": 1, "n_neighbors": 10, "memory_from": 1, "memory_per_class": 10},
    "moit_plus": {
        "warmup": 1,
        "n_neighbors": 10,
        "memory_per_class": 10,
        "moit_rounds": 2,
        "bootstrap_from": 0,
    },
    "ngc": {"warmup": 1, "n_neighbors": 10},
    "augdesc": {"warmup": 1},
    "ncr": {"warmup": 1},
    "forward_correction": {"estimation_rounds": 1},
    "itlm": {"kept_share": 0.5, "retrainings": 1},
    "incv": {"iterations": 1, "selection_rounds": 1, "ramp": 1, "candidates_from": 0},
    "mlnt": {"synthetic_sets": 2},
    "selfie": {"noise_rate": 0.3, "history": 2, "warmup": 1, "restarts": 1},
}


def quick(method: Any = "laplace", own: dict[str, Any] | None = None, **settings: Any) -> RobustClassifier:
    """A run of a second or less; ``own`` are settings of a method given by name."""
    if isinstance(method, str) and method in METHODS:
        method = build_method(method, QUICK.get(method, {}) | (own or {}))
    usual: dict[str, Any] = {
        "network": tiny_mlp,
        "rounds": 3,
        "batch_size": 32,
        "learning_rate": 0.05,
        "learning_rate_drops": (0.75,),
        "weak": shifted,
        "strong": shifted,
        "device": "cpu",
        "n_jobs": 1,  # threads would only wait for each other in such small networks
        "checkpoint_seconds": 0,
    }
    return RobustClassifier(method=method, **(usual | settings))


def weights(classifier: RobustClassifier) -> list[Tensor]:
    return [tensor for network in classifier.networks_ for tensor in network.state_dict().values()]


def normalized_mlp(n_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    """With batch normalization, which fails on a batch of one sample."""
    n_inputs = int(np.prod(input_shape))
    return nn.Sequential(
        nn.Flatten(), nn.Linear(n_inputs, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, n_classes)
    )


def plain_mlp(n_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    """Neither batch normalization nor dropout, whose masks differ between processes."""
    n_inputs = int(np.prod(input_shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, 32), nn.ReLU(), nn.Linear(32, n_classes))
