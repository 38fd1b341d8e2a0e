"""Names that help texts list without importing anything heavy are those of the registries."""

from laplaceconfidence.cli.options import FEATURE_ESTIMATORS, NETWORKS, PROBABILITY_ESTIMATORS
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.training.networks import registry


def test_every_estimator_is_listed_under_what_it_needs() -> None:
    from_features = [name for name, kind in ESTIMATORS.items() if kind.evidence == "features"]
    others = [name for name, kind in ESTIMATORS.items() if kind.evidence != "features"]
    assert sorted(FEATURE_ESTIMATORS) == sorted(from_features)
    assert sorted(PROBABILITY_ESTIMATORS) == sorted(others)


def test_every_network_is_listed() -> None:
    assert sorted(NETWORKS) == sorted(registry.NETWORKS)
