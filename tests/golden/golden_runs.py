"""The training runs of the golden test, in the words of the present interface."""

from typing import Any

from laplaceconfidence.training import RobustClassifier
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.laplace import Laplace

SHARED: dict[str, Any] = {
    "rounds": 3,
    "batch_size": 32,
    "learning_rate": 0.05,
    "learning_rate_drops": (0.75,),
    "channels_last": False,
    "device": "cpu",
    "n_jobs": 1,
    "random_state": 3,
}
BENCH_CHANGES = ("rounds=3", "laplace.warmup=1", "dividemix.warmup=1", "laplace.passes=1", "batch_size=128")


def classifiers() -> dict[str, tuple[RobustClassifier, bool]]:
    """By name: the classifier, and whether it takes feature vectors."""
    cnn = SHARED | {"network": "small_cnn", "weak": WeakAugment(padding=1), "strong": "randaugment"}
    vectors = SHARED | {"network": "mlp", "weak": "none", "strong": "mask"}
    mixture = Laplace(warmup=1, confidence="gaussian-mixture", entropy_penalty=True)
    from_inputs = Laplace(
        warmup=1,
        passes=1,
        confidence="noise-aware",
        confidence_from="inputs",
        weak_statistics=True,
        mixing="mixup",
    )
    return {
        "laplace": (RobustClassifier(**cnn, method=Laplace(warmup=1, n_neighbors=10)), False),
        "laplace mixture": (RobustClassifier(**cnn, method=mixture), False),
        "laplace vectors": (RobustClassifier(**vectors, method=from_inputs), True),
        "cross_entropy": (RobustClassifier(**cnn, method="cross_entropy"), False),
        "co_teaching": (RobustClassifier(**cnn, method=CoTeaching(ramp=2)), False),
        "dividemix": (
            RobustClassifier(**(cnn | {"learning_rate_drops": (2,)}), method=DivideMix(warmup=1)),
            False,
        ),
    }
