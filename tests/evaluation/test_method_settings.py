"""Which settings a training method gets in a cell of a bench: preset, published ones, file, contender."""

from typing import Any

import pytest

pytest.importorskip("torch")

from laplaceconfidence.evaluation.contenders import Contender
from laplaceconfidence.evaluation.method_settings import (
    CellSettings,
    cell_settings,
    closest_published,
    rounds_for_passes,
    work_of,
)
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.methods.mlnt import MLNT


def settings(
    kind: str,
    noise: str,
    published: Any = "all",
    own: dict[str, Any] | None = None,
    *,
    data: str = "CIFAR-10",
    training: dict[str, Any] | None = None,
    shared: dict[str, Any] | None = None,
    passes: float | None = None,
) -> CellSettings:
    return cell_settings(
        Contender("training", kind, kind, own or {}, training or {}),
        preset="cifar10-sym20",
        data=data,
        noise=Noise.parse(noise),
        published=published,
        shared=shared or {},
        passes=passes,
    )


def test_settings_follow_the_noise_as_published() -> None:
    weights = {
        noise: settings("dividemix", noise).preset.method.get("unlabelled_weight")
        for noise in ("symmetric:0.2", "symmetric:0.5", "symmetric:0.9", "asymmetric:0.4")
    }
    assert weights == {
        "symmetric:0.2": 0.0,
        "symmetric:0.5": 25.0,
        "symmetric:0.9": 50.0,
        "asymmetric:0.4": 0.0,
    }
    found = settings("dividemix", "symmetric:0.5")
    assert found.preset.training.rounds == 301
    assert found.preset.training.learning_rate == 0.02
    assert found.origin == "published for CIFAR-10, symmetric 50% (paper)"
    ours = settings("laplace", "asymmetric:0.4").preset
    assert (ours.method["n_neighbors"], ours.method["entropy_penalty"]) == (2, True)
    assert settings("laplace", "symmetric:0.5", data="CIFAR-100").preset.method["n_neighbors"] == 2


def test_later_settings_win() -> None:
    found = settings(
        "dividemix",
        "symmetric:0.5",
        own={"unlabelled_weight": 1.0},
        shared={"rounds": 20, "batch_size": 32},
        training={"batch_size": 16},
    ).preset
    assert found.method["unlabelled_weight"] == 1.0
    assert (found.training.rounds, found.training.batch_size) == (20, 16)
    assert found.training.learning_rate == 0.02


def test_only_the_settings_of_the_method_or_none_at_all() -> None:
    own = settings("dividemix", "symmetric:0.9", "method")
    assert own.preset.method["threshold"] == 0.6
    assert own.preset.training.rounds == 400  # of the preset
    none = settings("dividemix", "symmetric:0.9", "none")
    assert none.preset.method == {"name": "dividemix"}
    assert none.origin == ""


def test_under_other_noise_only_the_shared_settings_are_taken_over() -> None:
    found = settings("dividemix", "symmetric:0.4")
    assert "unlabelled_weight" not in found.preset.method
    assert found.preset.training.rounds == 301
    assert found.origin.endswith("symmetric 50% (paper), without those of the method itself")
    assert settings("dividemix", "symmetric:0.5", data="digits").origin == ""


def test_the_closest_published_settings() -> None:
    entry, is_exact = closest_published(DivideMix.published, "CIFAR-10", Noise.parse("asymmetric:0.3"))
    assert entry is not None
    assert (entry.noise, entry.rates, is_exact) == ("asymmetric", (0.4,), False)
    entry, is_exact = closest_published(Laplace.published, "Mini-WebVision", Noise.parse("none"))
    assert entry is not None
    assert (entry.noise, is_exact) == ("real", True)
    assert closest_published((), "CIFAR-10", Noise.parse("none")) == (None, False)


def test_equal_passes_set_the_rounds() -> None:
    assert rounds_for_passes(CrossEntropy(), 30) == 30
    assert rounds_for_passes(MLNT(), 30) == 60  # mentor and student; the teacher is an average
    # Five rounds of one pass, then two passes in each round.
    assert rounds_for_passes(Laplace(warmup=5, passes=2), 25) == 15
    assert rounds_for_passes(Laplace(warmup=5, passes=2), 26) == 16
    found = settings("laplace", "symmetric:0.5", own={"warmup": 5}, passes=25).preset
    assert found.training.rounds == 15
    with pytest.raises(InvalidInputError, match="passes"):
        settings("laplace", "symmetric:0.5", training={"rounds": 3}, passes=25)


def test_work_is_counted_in_plain_passes() -> None:
    assert work_of(CrossEntropy(), 30) == pytest.approx(30)
    # Two networks: warm-up once each; then twice each at a forward pass per network more, and a look at all.
    robust = 2 * (2 * (1 + 2 / 3) + 1 / 3)
    assert work_of(Laplace(warmup=1, passes=2), 3) == pytest.approx(2 + 2 * robust)


def test_parameters_of_one_estimator_do_not_reach_another() -> None:
    found = settings("laplace", "symmetric:0.5", own={"confidence": "gaussian-mixture"}).preset.method
    assert found == {
        "name": "laplace",
        "confidence": "gaussian-mixture",
        "sharpen": 2.0,
        "warmup": 15,
        "passes": 2,
        "entropy_penalty": False,
    }
