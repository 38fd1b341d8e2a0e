"""Names and numbers in help texts, which import nothing heavy, are those of the library."""

from laplaceconfidence.cli.options import (
    FEATURE_ESTIMATORS,
    FEWEST_AUDITED,
    NETWORKS,
    PROBABILITY_ESTIMATORS,
    TRAINING_IMAGE_SIZE,
)
from laplaceconfidence.confidence.noise_aware import settings
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.training import automatic_settings
from laplaceconfidence.training.networks import registry


def test_every_estimator_is_listed_under_what_it_needs() -> None:
    from_features = [name for name, kind in ESTIMATORS.items() if kind.evidence == "features"]
    others = [name for name, kind in ESTIMATORS.items() if kind.evidence != "features"]
    assert sorted(FEATURE_ESTIMATORS) == sorted(from_features)
    assert sorted(PROBABILITY_ESTIMATORS) == sorted(others)


def test_every_network_is_listed() -> None:
    assert sorted(NETWORKS) == sorted(registry.NETWORKS)


def test_numbers_in_help_texts_are_those_of_the_library() -> None:
    assert FEWEST_AUDITED == settings.FEWEST_AUDITED
    assert f"more than {automatic_settings.SMALL} pixels" in TRAINING_IMAGE_SIZE
    assert TRAINING_IMAGE_SIZE.endswith(f"resized to {automatic_settings.SIDE_WITHOUT_GPU}.")
