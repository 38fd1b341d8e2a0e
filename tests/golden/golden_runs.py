"""The training runs of the golden test, in the words of the present interface."""

from typing import Any

from laplaceconfidence.training import RobustClassifier

SHARED: dict[str, Any] = {
    "rounds": 3,
    "batch_size": 32,
    "learning_rate": 0.05,
    "device": "cpu",
    "n_jobs": 1,
    "random_state": 3,
}
BENCH_CHANGES = ("rounds=3", "laplace.warmup=1", "dividemix.warmup=1", "passes=1", "batch_size=128")


def classifiers() -> dict[str, tuple[RobustClassifier, bool]]:
    """By name: the classifier, and whether it takes feature vectors."""
    cnn = SHARED | {"network": "small_cnn", "strong": "randaugment"}
    vectors = SHARED | {"network": "mlp", "weak": "none", "strong": "mask"}
    return {
        "laplace": (RobustClassifier(**cnn, warmup=1, n_neighbors=10), False),
        "laplace mixture": (
            RobustClassifier(**cnn, warmup=1, confidence="gaussian-mixture", entropy_penalty=True),
            False,
        ),
        "laplace vectors": (
            RobustClassifier(
                **vectors,
                warmup=1,
                passes=1,
                confidence="noise-aware",
                method_options={"confidence_from": "inputs", "weak_statistics": True, "mixing": "mixup"},
            ),
            True,
        ),
        "cross_entropy": (RobustClassifier(**cnn, method="cross_entropy"), False),
        "co_teaching": (RobustClassifier(**cnn, method="co_teaching", method_options={"ramp": 2}), False),
        "dividemix": (RobustClassifier(**cnn, method="dividemix", warmup=1, learning_rate_drops=(2,)), False),
    }
