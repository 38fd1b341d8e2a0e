"""Several views of the same samples: what they add, what is neutral, and what is refused."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from laplaceconfidence import NoiseAwareConfidence, NoisyDataset, audit
from laplaceconfidence.confidence.held_out_folds import make_held_out_folds
from laplaceconfidence.confidence.noise_aware.feature_sets import FeatureSet
from laplaceconfidence.confidence.noise_aware.local_noise import votes_of_all_graphs
from laplaceconfidence.confidence.noise_aware.propagation import close_votes
from laplaceconfidence.confidence.noise_aware.rounds import evidence_of_targets, first_round
from laplaceconfidence.confidence.noise_aware.views import FeatureViews, find_views, side_by_side
from laplaceconfidence.exceptions import InvalidInputError

N, C = 600, 5


def samples(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A view of meaning that confuses classes 0 and 1, one of words that confuses 2 and 3, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(C, size=N)
    of_meaning, of_words = rng.normal(size=(C, 20)), rng.normal(size=(C, 40))
    of_meaning[1], of_words[3] = of_meaning[0], of_words[2]
    meaning = 30 * (of_meaning[truth] + 2.0 * rng.normal(size=(N, 20)))
    words = of_words[truth] + 3.0 * rng.normal(size=(N, 40))
    given = np.where(rng.random(N) < 0.3, rng.integers(C, size=N), truth)
    return meaning, words, truth, given


MEANING, WORDS, TRUTH, GIVEN = samples()


def fitted(X: Any, **settings: Any) -> NoiseAwareConfidence:
    return NoiseAwareConfidence(n_jobs=1, n_rounds=2, **settings).fit(X, GIVEN)


def auroc(model: NoiseAwareConfidence) -> float:
    return float(roc_auc_score(GIVEN == TRUTH, model.confidence_))


@pytest.fixture(scope="module")
def both() -> NoiseAwareConfidence:
    return fitted({"meaning": MEANING, "words": WORDS})


def views_of(*sets: FeatureSet) -> FeatureViews:
    return find_views(
        list(sets),
        None,
        GIVEN,
        C,
        n_neighbors="auto",
        n_components=None,
        search="exact",
        target_recall=0.9,
        knn_graph_kind="similarity",
        n_jobs=1,
        rng=np.random.default_rng(0),
    )


def with_gaps(values: np.ndarray, absent: np.ndarray) -> np.ndarray:
    values = values.copy()
    values[absent] = np.nan
    return values


def test_one_view_is_one_array() -> None:
    alone, named, listed = fitted(WORDS), fitted({"words": WORDS}), fitted([WORDS])
    for other in (named, listed):
        assert np.array_equal(alone.confidence_, other.confidence_)
        assert np.array_equal(alone.label_distributions_, other.label_distributions_)
    assert (alone.view_names_, named.view_names_, listed.view_names_) == (
        ("features",),
        ("words",),
        ("view 1",),
    )
    new = WORDS[:9] + 0.1
    assert np.array_equal(alone.predict_proba(new), named.predict_proba({"words": new}))


def test_two_views_are_better_than_each_and_than_their_concatenation(both: NoiseAwareConfidence) -> None:
    scaled = np.hstack([MEANING / MEANING.std(), WORDS / WORDS.std()])
    assert auroc(both) > max(auroc(fitted(MEANING)), auroc(fitted(WORDS))) + 0.02
    assert auroc(both) > auroc(fitted(np.hstack([MEANING, WORDS])))
    assert auroc(both) > auroc(fitted(scaled)) - 0.002


def test_the_order_of_the_views_hardly_matters(both: NoiseAwareConfidence) -> None:
    reverse = fitted({"words": WORDS, "meaning": MEANING})
    assert np.abs(reverse.confidence_ - both.confidence_).mean() < 0.01
    assert reverse.view_names_ == ("words", "meaning")


def test_weights_name_every_kind_of_evidence_and_sum_to_one(both: NoiseAwareConfidence) -> None:
    assert list(both.view_weights_) == ["meaning", "words", "all views"]
    probes = ["regression", "discriminant"]
    kinds = [*probes, "half-whitened graph of 30 neighbors", "raw graph of 100 neighbors"]
    assert [list(weights) for weights in both.view_weights_.values()] == [kinds, kinds, probes]
    total = sum(weight for weights in both.view_weights_.values() for weight in weights.values())
    assert total == pytest.approx(1)
    assert all(sum(both.view_weights_[name].values()) > 0.1 for name in both.view_names_)


def test_views_that_are_informative_only_together_are_as_good_as_their_concatenation() -> None:
    rng = np.random.default_rng(4)
    hidden, centers = 3 * rng.normal(size=(N, 10)), rng.normal(size=(C, 10))
    first = hidden + centers[TRUTH] + 0.8 * rng.normal(size=(N, 10))
    second = 20 * (hidden @ rng.normal(size=(10, 15)) + 0.5 * rng.normal(size=(N, 15)))
    views = fitted({"first": first, "second": second})
    assert auroc(views) > auroc(fitted(first)) + 0.05
    assert auroc(views) > auroc(fitted(np.hstack([first / first.std(), second / second.std()]))) - 0.002
    assert sum(views.view_weights_["all views"].values()) > 0.5
    assert (views.predict({"first": first, "second": second}) == TRUTH).mean() > 0.9


def test_coordinates_side_by_side_are_the_mean_where_a_sample_is_not_in_a_view() -> None:
    present = np.arange(N) >= 200
    words = np.where(present[:, None], WORDS, 0)
    views = views_of(FeatureSet("meaning", MEANING, None), FeatureSet("words", words, present))
    *each, joint = views.each
    assert [view.is_joint for view in views.each] == [False, False, True]
    assert (joint.present, joint.graphs) == (None, ())
    of_new = [view.axes(values) for view, values in zip(each, (MEANING, words), strict=True)]
    together = side_by_side(of_new, [None, present])
    assert (together.values[:200, of_new[0].shape[1] :] == 0).all()
    assert joint.coordinates == pytest.approx(joint.axes(together.values), abs=1e-4)
    in_none = side_by_side(of_new, [~present, present & (np.arange(N) < 500)])
    assert in_none.present is not None
    assert np.array_equal(np.flatnonzero(~in_none.present), np.arange(500, N))


def test_a_view_of_pure_noise_gets_little_weight_and_costs_nothing() -> None:
    lost = []
    for seed in range(3):
        _, words, truth, given = samples(seed)
        noise = np.random.default_rng(seed + 1).normal(size=(N, 30))
        estimator = NoiseAwareConfidence(n_jobs=1, n_rounds=2, random_state=0)
        alone = roc_auc_score(given == truth, estimator.fit(words, given).confidence_)
        both = estimator.fit({"words": words, "noise": noise}, given)
        assert sum(both.view_weights_["noise"].values()) < 0.2  # 600 labels say no more than that
        lost.append(alone - roc_auc_score(given == truth, both.confidence_))
    assert np.mean(lost) < 0.01


def test_the_neighborhood_is_that_of_the_first_view(both: NoiseAwareConfidence) -> None:
    alone = fitted(MEANING)
    assert both.neighborhood_ is not None
    assert alone.neighborhood_ is not None
    assert (both.neighborhood_.similarities != alone.neighborhood_.similarities).nnz == 0
    assert both.n_features_in_ == 60


def test_samples_that_are_not_in_a_view_are_estimated_from_the_others() -> None:
    absent = np.arange(N) % 2 == 0
    model = fitted({"meaning": MEANING, "words": with_gaps(WORDS, absent)})
    right = GIVEN == TRUTH
    alone = fitted(MEANING)
    assert roc_auc_score(right[~absent], model.confidence_[~absent]) > 0.02 + roc_auc_score(
        right[~absent], alone.confidence_[~absent]
    )
    assert roc_auc_score(right[absent], model.confidence_[absent]) > -0.02 + roc_auc_score(
        right[absent], alone.confidence_[absent]
    )
    new = {"meaning": MEANING[:6], "words": with_gaps(WORDS[:6], absent[:6])}
    assert model.predict_proba(new) == pytest.approx(model.predict_proba(new))
    assert np.isfinite(model.predict_proba(new)).all()


def test_absent_samples_have_the_log_shares_of_the_view_as_evidence() -> None:
    present = np.arange(N) >= 200
    views = views_of(FeatureSet("words", np.where(present[:, None], WORDS, 0), present))
    folds = make_held_out_folds(GIVEN, 5, np.random.default_rng(0))
    evidence, _ = first_round(views, GIVEN, GIVEN, C, folds)
    row = 17
    for other in set(range(5)) - {folds.folds[row]}:
        learned = GIVEN[present & (folds.folds != other) & (folds.folds != folds.folds[row])]
        expected = np.log(np.bincount(learned, minlength=C) / len(learned) + 0.1 / C)
        for part in evidence.per_fold:
            assert part[row, other] == pytest.approx(expected, abs=1e-5)
    soft = np.random.default_rng(2).dirichlet(np.ones(C), size=(N, 5)).astype(np.float32)
    later, _ = evidence_of_targets(views, soft)
    shares = soft[present, 3].sum(axis=0) / soft[present, 3].sum()
    for part in later:
        assert part[row, 3] == pytest.approx(np.log(shares + 0.1 / C), abs=1e-4)


def test_models_of_a_view_do_not_depend_on_samples_outside_it() -> None:
    present = np.arange(N) >= 200
    inside = views_of(FeatureSet("words", np.where(present[:, None], WORDS, 0), present))
    soft = np.random.default_rng(2).dirichlet(np.ones(C), size=(N, 5)).astype(np.float32)
    changed = soft.copy()
    changed[~present] = soft[~present][:, :, ::-1]
    for one, other in zip(
        evidence_of_targets(inside, soft)[0], evidence_of_targets(inside, changed)[0], strict=True
    ):
        # The conjugate gradients stop at a residual of all samples, which differs a little.
        assert np.abs(np.exp(one[present]) - np.exp(other[present])).max() < 0.01


def test_votes_are_a_weighted_geometric_mean_over_the_graphs_a_sample_is_in() -> None:
    present = np.arange(N) >= 200
    views = views_of(
        FeatureSet("meaning", MEANING, None),
        FeatureSet("words", np.where(present[:, None], WORDS, 0), present),
    )
    graphs = [graph for view in views.each for graph in view.graphs]
    each = np.stack([close_votes(graph.closest(), GIVEN, C, views.propagate) for graph in graphs])
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    together = votes_of_all_graphs(views, weights, GIVEN, C)
    of_meaning = np.exp(np.tensordot(weights[:2] / 0.3, np.log(each[:2]), axes=1))
    assert together[:200] == pytest.approx(of_meaning[:200], rel=1e-5)
    of_all = np.exp(np.tensordot(weights, np.log(each), axes=1))
    assert together[200:] == pytest.approx(of_all[200:], rel=1e-5)


def test_the_two_graphs_of_a_view_are_cosines_of_half_whitened_and_of_raw_features() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(80, 5)) * [5, 3, 1, 1, 0.2] + [4, 0, 0, 2, 1]
    views = find_views(
        [FeatureSet("only", features, None)],
        None,
        rng.integers(2, size=80),
        2,
        n_neighbors=(4, 9),
        n_components=None,
        search="exact",
        target_recall=0.9,
        knn_graph_kind="similarity",
        n_jobs=1,
        rng=rng,
    )
    centered = features - features.mean(axis=0)
    _, deviations, axes = np.linalg.svd(centered, full_matrices=False)
    half_whitened = centered @ axes.T / np.sqrt(deviations)
    for graph, vectors, k in zip(views.each[0].graphs, (half_whitened, features), (4, 9), strict=True):
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = unit @ unit.T
        np.fill_diagonal(cosines, -np.inf)
        assert graph.closest_neighbors is not None
        closest = -np.sort(-cosines, axis=1)[:, :k]
        assert graph.closest_neighbors.similarities == pytest.approx(closest, abs=1e-4)
        similarities = graph.neighborhood().similarities
        nearest = np.where(cosines >= closest[:, -1:], np.maximum(cosines, 0), 0)
        assert similarities.toarray() == pytest.approx(np.maximum(nearest, nearest.T), abs=1e-4)
    assert [kind for _, kind in views.evidence_names][2:] == [
        "half-whitened graph of 4 neighbors",
        "raw graph of 9 neighbors",
    ]


def test_new_samples_have_the_views_of_the_fit(both: NoiseAwareConfidence) -> None:
    new = {"words": WORDS[:50], "meaning": MEANING[:50]}  # in another order
    assert (both.predict(new) == TRUTH[:50]).mean() > 0.7
    for wrong, message in [
        (WORDS, "mapping or list of the views of the fit: 'meaning', 'words'"),
        ({"words": WORDS}, "the views of the fit: 'meaning', 'words'"),
        ({"meaning": WORDS, "words": WORDS}, "of 20 features, as in the fit"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            both.predict(wrong)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ({"a": WORDS, "b": MEANING[:-1]}, r"X\['b'\].*has 599.*X\['a'\].*has 600"),
        ({"a": WORDS, "b": np.ones((N, 3))}, r"X\['b'\].*different between samples"),
        ({"a": WORDS, "b": np.full((N, 3), np.nan)}, r"X\['b'\].*at least one sample"),
        ({"a": WORDS, " ": WORDS}, "non-empty names"),
        ({"a": WORDS, 3: WORDS}, "non-empty names"),
        ({"a": WORDS, "a ": WORDS}, "different names"),
        ({"a": WORDS, "all views": WORDS}, "names other than 'all views'"),
        ({}, "at least one view"),
        ({"a": WORDS, "b": WORDS[:, 0]}, r"X\['b'\].*one row per sample"),
        ({"a": WORDS, "b": WORDS.astype(str)}, r"X\['b'\].*numeric"),
        ([WORDS, np.where(np.arange(N)[:, None] == 4, [np.nan, 1, 2], 0.5)], r"X\['view 2'\].*finite"),
    ],
)
def test_views_that_do_not_fit_are_refused(views: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        NoiseAwareConfidence().fit(views, GIVEN)


def test_a_graph_replaces_the_graphs_of_all_views() -> None:
    graph = fitted(MEANING).neighborhood_.similarities
    model = NoiseAwareConfidence(n_jobs=1, n_rounds=1).fit([MEANING, WORDS], GIVEN, knn_graph=graph)
    kinds = {view: list(weights) for view, weights in model.view_weights_.items()}
    assert kinds == {
        "view 1": ["regression", "discriminant", "graph"],
        "view 2": ["regression", "discriminant"],
        "all views": ["regression", "discriminant"],
    }
    assert (model.predict([MEANING[:50], WORDS[:50]]) == TRUTH[:50]).mean() > 0.7


def test_components_are_limited_view_by_view() -> None:
    model = NoiseAwareConfidence(n_jobs=1, n_rounds=1, n_components=30).fit([MEANING, WORDS], GIVEN)
    assert np.isfinite(model.confidence_).all()


def test_an_audit_passes_the_views_of_a_data_set(both: NoiseAwareConfidence) -> None:
    names = tuple("abcde")
    data = NoisyDataset(GIVEN, names, views={"meaning": MEANING, "words": WORDS})
    assert data.features is MEANING
    result = audit(data, n_rounds=2, n_jobs=1)
    assert result.estimator.view_names_ == ("meaning", "words")
    assert np.array_equal(result.estimator.confidence_, both.confidence_)
    part = data.subset(np.arange(40))
    assert part.views is not None
    assert part.features is part.views["meaning"]
    assert len(part.views["words"]) == 40
    assert data.with_features(WORDS).views is None
    with pytest.raises(InvalidInputError, match="one feature set for 'knn-vote'"):
        audit(data, estimator="knn-vote")
    with pytest.raises(InvalidInputError, match=r"'views\['words'\]'.*different between samples"):
        audit(NoisyDataset(GIVEN, names, views={"meaning": MEANING, "words": np.ones((N, 2))}))


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ({}, "at least one feature set"),
        ({"": WORDS}, "non-empty names"),
        ({"a": WORDS[1:]}, r"views\['a'\].*599"),
        ({"a": with_gaps(WORDS, np.arange(N) == 3)}, r"views\['a'\].*finite"),
        ({"a": WORDS, "b": np.where(np.arange(N)[:, None] == 3, [np.nan, 1], 0)}, r"views\['b'\].*finite"),
    ],
)
def test_data_sets_refuse_views_that_do_not_fit(views: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        NoisyDataset(GIVEN, tuple("abcde"), views=views)


def test_features_of_a_data_set_are_its_first_view() -> None:
    with pytest.raises(InvalidInputError, match="the first of 'views'"):
        NoisyDataset(GIVEN, tuple("abcde"), features=WORDS, views={"meaning": MEANING, "words": WORDS})
