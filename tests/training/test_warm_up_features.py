"""Features learned on wrong labels still tell which labels are wrong."""

import numpy as np

from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.evaluation.metrics import auroc
from laplaceconfidence.training.warm_up_features import WarmUp


def test_wrong_labels_are_told_from_right_ones() -> None:
    digits = load_digits().subset(np.arange(800))
    noisy = add_noise(digits, "symmetric", 0.4, random_state=0)
    features = WarmUp(device="cpu", n_jobs=1).features(noisy)
    assert features.shape == (800, 128)
    confidence = LaplaceConfidence().fit(features, noisy.labels).confidence_
    assert auroc(confidence, noisy.labels == noisy.true_labels) > 0.95


def test_the_seed_fixes_the_features() -> None:
    digits = load_digits().subset(np.arange(100))
    one, same, other = (
        WarmUp(epochs=1, device="cpu", n_jobs=1, random_state=seed).features(digits) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_any_network_and_plain_arrays() -> None:
    rng = np.random.default_rng(0)
    warm_up = WarmUp("mlp", epochs=1, device="cpu", n_jobs=1)
    assert warm_up.features(rng.normal(size=(30, 5)), ["a", "b", None] * 10).shape == (30, 256)
