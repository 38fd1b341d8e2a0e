"""A fit that would not fit into memory is refused at once; the numbers behind it are not too small."""

import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laplaceconfidence import KNNVote, LaplaceConfidence, LargestComponent, NoiseAwareConfidence, memory
from laplaceconfidence.confidence import inputs
from laplaceconfidence.exceptions import InvalidInputError

FEATURE_ESTIMATORS = (KNNVote, LaplaceConfidence, LargestComponent, NoiseAwareConfidence)


def many_classes(n_samples: int, n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_samples, 4)), np.arange(n_samples) % n_classes


@pytest.mark.parametrize("kind", FEATURE_ESTIMATORS)
@pytest.mark.parametrize(("n_samples", "n_classes"), [(20_000, 10_000), (100_000, 100_000)])
@pytest.mark.filterwarnings("ignore::laplaceconfidence.exceptions.LaplaceConfidenceWarning")
def test_too_many_samples_and_classes_are_refused_at_once(
    kind: Any, n_samples: int, n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "available_memory", lambda: 1_500_000_000)
    X, y = many_classes(n_samples, n_classes)
    start = time.monotonic()
    with pytest.raises(InvalidInputError, match=r"needs about [\d,.]+ GB of memory.*1\.5 GB are available"):
        kind().fit(X, y)
    assert time.monotonic() - start < 5


def test_as_many_classes_as_samples_raise_the_question_of_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "available_memory", lambda: 1000)
    with pytest.raises(InvalidInputError, match="is 'y' the right column"):
        KNNVote().fit(*many_classes(100, 90))
    with pytest.raises(InvalidInputError) as caught:
        KNNVote().fit(*many_classes(100, 5))
    assert "right column" not in str(caught.value)


@pytest.mark.parametrize("available", [None, 10 * 100 * 5])
def test_what_fits_or_is_not_known_is_fitted(available: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "available_memory", lambda: available)
    assert KNNVote().fit(*many_classes(100, 5)).label_distributions_.shape == (100, 5)


@pytest.mark.parametrize("kind", FEATURE_ESTIMATORS)
def test_the_stated_memory_is_enough(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stated: list[int] = []

    def nothing_left(self: object, n: int, c: int, *, per_probability: int, per_class_pair: int = 0) -> None:
        stated.append(per_probability * n * c + per_class_pair * c * c)

    module = kind.__module__
    monkeypatch.setattr(f"{module}.check_memory", nothing_left)
    X, y = many_classes(3000, 750)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        try:
            kind().fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 1.3 * stated[0]  # besides the probabilities there are the neighbors


def test_a_container_has_what_its_limit_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_CONTROL_GROUP", tmp_path)
    machine = memory.available_memory()
    assert machine is not None
    assert machine > 0
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("3000\n")
    (tmp_path / "memory.stat").write_text("anon 2000\ninactive_file 1000\n")
    assert memory.available_memory() == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._of_the_container() is None
