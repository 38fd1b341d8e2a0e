"""Many classes narrowed to candidates."""

import numpy as np

from laplaceconfidence.confidence.noise_aware.candidates import likely_classes, narrow, widen
from laplaceconfidence.confidence.noise_aware.noise_model import Pool


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_many_classes_are_narrowed_without_losing_the_given_one() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, 100)).astype(np.float32)
    codes = rng.integers(0, 100, 20)
    candidates = likely_classes([scores], codes)
    assert (candidates == codes[:, None]).any(axis=1).all()
    assert (candidates == scores.argmax(axis=1)[:, None]).any(axis=1).all()
    p = Pool(np.ones(1), np.zeros(100), np.eye(100)).probabilities([narrow(scores, candidates)], candidates)
    wide = widen(p, candidates, 100)
    np.testing.assert_allclose(wide.sum(axis=1), 1, atol=1e-5)
    rows = np.arange(20)
    np.testing.assert_allclose(wide[rows, codes], softmax(scores)[rows, codes], rtol=0.3)
