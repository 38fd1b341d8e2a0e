"""One contract for every confidence estimator, whatever its evidence."""

import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import check_estimator

from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.evaluation.metrics import auroc, spearman
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.graph.neighborhood import Neighborhood

EVERY = pytest.mark.parametrize("name", sorted(ESTIMATORS))
NEEDS_CONTRAST = {"laplace", "refined-cross-entropy", "noise-aware"}
USES_WEIGHTS = {"laplace", "refined-cross-entropy", "knn-vote"}
REFUSED_WITHOUT_CONTRAST = {"one class", "nothing differs"}  # nothing to spread, or nowhere to spread to


@dataclass(frozen=True)
class Samples:
    """Noisy samples with all three kinds of evidence about them."""

    features: Any
    probabilities: Any
    losses: Any
    labels: Any
    is_right: Any

    def evidence_of(self, name: str) -> Any:
        return getattr(self, ESTIMATORS[name].evidence)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Adjusted settings and iterations that ran out are not what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def digits() -> Samples:
    """The digits with 40% of the labels drawn anew, the true class included."""
    features, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(truth)) < 0.4, rng.integers(0, 10, len(truth)), truth)
    model = LogisticRegression(C=0.1, max_iter=300)
    probabilities = cross_val_predict(model, features / 16, labels, cv=3, method="predict_proba")
    return read_only(features, probabilities, losses_of(probabilities, labels), labels, labels == truth)


@pytest.fixture(scope="module")
def few(digits: Samples) -> Samples:
    return read_only(*(getattr(digits, field)[:300] for field in Samples.__dataclass_fields__))


@pytest.fixture(scope="module")
def fitted_to_few(few: Samples) -> Callable[[str], Any]:
    """``fitted_to_few(name)`` is an estimator fitted to ``few``; tests share it and do not change it."""

    @cache
    def fitted(name: str) -> Any:
        return make(name).fit(few.evidence_of(name), few.labels)

    return fitted


def read_only(*arrays: Any) -> Samples:
    """Samples that no test can change."""
    for array in arrays:
        array.flags.writeable = False
    return Samples(*arrays)


def losses_of(probabilities: Any, labels: Any) -> Any:
    return -np.log(probabilities[np.arange(len(labels)), labels])


def make(name: str, **settings: Any) -> Any:
    """An estimator with a fixed seed."""
    return ESTIMATORS[name](random_state=0, **settings)


def check_results(estimator: Any, n: int, n_classes: int, missing: Any) -> None:
    confidence, distributions = estimator.confidence_, estimator.label_distributions_
    assert confidence.shape == (n,)
    assert confidence.dtype.kind == "f"
    np.testing.assert_array_equal(np.isnan(confidence), missing)
    assert ((confidence[~missing] >= 0) & (confidence[~missing] <= 1)).all()
    assert estimator.classes_.shape == (n_classes,)
    if estimator.evidence == "losses":
        assert distributions is None
    else:
        assert distributions.shape == (n, n_classes)
        assert (distributions >= 0).all()
        np.testing.assert_allclose(distributions.sum(axis=1), 1, atol=1e-5)


@EVERY
def test_results_have_their_shapes_and_ranges(name: str, few: Samples) -> None:
    estimator = make(name)
    assert estimator.fit(few.evidence_of(name), few.labels) is estimator
    check_results(estimator, 300, 10, np.zeros(300, bool))
    assert estimator.classes_.tolist() == list(range(10))


@EVERY
@pytest.mark.parametrize("gap", [None, float("nan"), "", -1])
def test_confidence_is_nan_exactly_where_the_label_is_missing(name: str, gap: Any, few: Samples) -> None:
    missing = np.arange(300) % 6 == 0
    labels = few.labels.astype(str if gap == "" else object)
    labels[missing] = gap
    estimator = make(name, missing_label=-1).fit(few.evidence_of(name), labels)
    check_results(estimator, 300, 10, missing)


@EVERY
@pytest.mark.parametrize(
    "rename",
    [lambda c: f"class {c}", lambda c: c * 7 - 1000, lambda c: np.int8(c), lambda c: c.item()],
    ids=["strings", "negative", "int8", "python"],
)
def test_how_labels_are_written_does_not_matter(
    name: str, rename: Any, few: Samples, fitted_to_few: Callable[[str], Any]
) -> None:
    expected = fitted_to_few(name)
    renamed = make(name).fit(few.evidence_of(name), [rename(label) for label in few.labels])
    np.testing.assert_array_equal(renamed.confidence_, expected.confidence_)
    assert renamed.classes_.tolist() == [rename(label) for label in np.arange(10)]


@EVERY
def test_two_classes_may_be_booleans(name: str, few: Samples) -> None:
    labels = few.labels < 5
    evidence = few.evidence_of(name)
    if ESTIMATORS[name].evidence == "probabilities":
        evidence = np.stack([evidence[:, 5:].sum(axis=1), evidence[:, :5].sum(axis=1)], axis=1)
    estimator = make(name).fit(evidence, labels)
    check_results(estimator, 300, 2, np.zeros(300, bool))
    assert estimator.classes_.tolist() == [False, True]


@EVERY
def test_it_is_a_scikit_learn_estimator(name: str) -> None:
    estimator = ESTIMATORS[name](missing_label=-1)
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert copy.get_params()["missing_label"] == -1
    assert copy.set_params(missing_label="?").missing_label == "?"
    assert type(estimator).__name__ in repr(estimator)
    assert not [attribute for attribute in vars(estimator) if attribute.endswith("_")]
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(no_such_setting=1)


@pytest.mark.parametrize("name", ["knn-vote", "largest-component", "noise-aware", "refined-cross-entropy"])
def test_scikit_learn_has_no_complaint_about_those_that_take_features(name: str) -> None:
    refused = {} if name in USES_WEIGHTS else dict.fromkeys(CHECKS_OF_WEIGHTS, "refuses sample_weight")
    check_estimator(ESTIMATORS[name](), expected_failed_checks=refused)


CHECKS_OF_WEIGHTS = (
    "check_all_zero_sample_weights_error",
    "check_sample_weights_pandas_series",
    "check_sample_weights_not_an_array",
    "check_sample_weights_list",
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
)


@EVERY
def test_parameters_are_the_same_for_all(name: str) -> None:
    settings = inspect.signature(ESTIMATORS[name]).parameters
    assert {"missing_label", "n_jobs", "random_state"} <= set(settings)
    fit = inspect.signature(ESTIMATORS[name]().fit)
    fit.bind("X", "y", sample_weight=None)
    with pytest.raises(TypeError, match="too many positional"):
        fit.bind("X", "y", None)


@EVERY
def test_threads_do_not_change_the_result(name: str, few: Samples) -> None:
    one, two = (make(name, n_jobs=n).fit(few.evidence_of(name), few.labels).confidence_ for n in (1, 2))
    # Where BLAS divides a product among threads it may round differently, and fits go on from there.
    np.testing.assert_allclose(one, two, atol=2e-3)


@EVERY
def test_weights_are_used_or_refused(name: str, few: Samples) -> None:
    evidence, labels = few.evidence_of(name), few.labels
    ones, few_wrong = np.ones(300), np.where(few.is_right, 1.0, 0.0)
    if name not in USES_WEIGHTS:
        kind = type(make(name)).__name__
        make(name).fit(evidence, labels, sample_weight=None)
        with pytest.raises(InvalidInputError, match=f"'sample_weight' parameter must be None for {kind}"):
            make(name).fit(evidence, labels, sample_weight=ones)
        return
    plain = make(name).fit(evidence, labels).confidence_
    np.testing.assert_allclose(
        make(name).fit(evidence, labels, sample_weight=ones).confidence_, plain, atol=1e-6
    )
    without_wrong = make(name).fit(evidence, labels, sample_weight=few_wrong).confidence_
    assert auroc(without_wrong, few.is_right) > auroc(plain, few.is_right)
    for bad in (-ones, 0 * ones, ones * np.nan, ones[:-1], ones[:, None]):
        with pytest.raises(InvalidInputError, match="'sample_weight'"):
            make(name).fit(evidence, labels, sample_weight=bad)


@EVERY
def test_the_neighbors_used_are_kept(name: str, fitted_to_few: Callable[[str], Any]) -> None:
    neighborhood = fitted_to_few(name).neighborhood_
    if ESTIMATORS[name].evidence != "features":
        assert neighborhood is None
        return
    assert isinstance(neighborhood, Neighborhood)
    assert len(neighborhood) == 300
    for matrix in (neighborhood.similarities, neighborhood.weights):
        assert matrix.shape == (300, 300)
        assert (matrix.data >= 0).all()
        assert (matrix.diagonal() == 0).all()
    np.testing.assert_array_equal(neighborhood.weights.indices, neighborhood.similarities.indices)
    np.testing.assert_array_equal(neighborhood.weights.indptr, neighborhood.similarities.indptr)
    assert (neighborhood.weights.sum(axis=1) > 0).all()
    assert sum(neighborhood.of(7).shares) == pytest.approx(1)


@pytest.mark.parametrize("name", sorted(USES_WEIGHTS))
def test_the_neighbors_kept_have_the_weights_of_the_samples(name: str, few: Samples) -> None:
    weights = np.where(np.arange(300) % 3 == 0, 0.0, 2.0)
    estimator = make(name).fit(few.evidence_of(name), few.labels, sample_weight=weights)
    used = estimator.neighborhood_.weights
    assert (used[:, weights == 0].data == 0).all()
    assert (used[:, weights > 0].data > 0).all()


@EVERY
def test_same_seed_same_result_and_fitting_again_forgets(
    name: str, few: Samples, fitted_to_few: Callable[[str], Any]
) -> None:
    first = fitted_to_few(name)
    again = clone(first)
    again.fit(few.evidence_of(name)[:200], few.labels[:200])
    again.fit(few.evidence_of(name), few.labels)
    np.testing.assert_array_equal(first.confidence_, again.confidence_)


@EVERY
def test_settings_are_left_as_they_were(name: str, few: Samples) -> None:
    estimator = make(name)
    before = repr(estimator.get_params())
    estimator.fit(few.evidence_of(name), few.labels)
    assert repr(estimator.get_params()) == before


@EVERY
def test_the_order_of_the_samples_does_not_matter(
    name: str, few: Samples, fitted_to_few: Callable[[str], Any]
) -> None:
    order = np.random.default_rng(1).permutation(300)
    expected = fitted_to_few(name).confidence_
    permuted = make(name).fit(few.evidence_of(name)[order], few.labels[order]).confidence_
    if name == "noise-aware":  # draws its folds by row, so that another order means other folds
        assert spearman(permuted, expected[order]) > 0.94
        return
    np.testing.assert_allclose(permuted, expected[order], atol=1e-4)


@EVERY
def test_right_labels_are_trusted_more_than_wrong_ones(name: str, digits: Samples) -> None:
    confidence = make(name).fit(digits.evidence_of(name), digits.labels).confidence_
    assert auroc(confidence, digits.is_right) > 0.85


@EVERY
def test_a_fitted_estimator_can_be_pickled(name: str, fitted_to_few: Callable[[str], Any]) -> None:
    estimator = fitted_to_few(name)
    copy = pickle.loads(pickle.dumps(estimator))  # noqa: S301
    np.testing.assert_array_equal(copy.confidence_, estimator.confidence_)
    assert copy.get_params() == estimator.get_params()
    if estimator.neighborhood_ is not None:
        np.testing.assert_array_equal(copy.neighborhood_.weights.data, estimator.neighborhood_.weights.data)
    assert not hasattr(clone(copy), "confidence_")


@EVERY
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_arrays_passed_in_are_not_changed(name: str, dtype: Any, few: Samples) -> None:
    evidence, labels = few.evidence_of(name).astype(dtype), few.labels.copy()
    before = evidence.copy()
    evidence.flags.writeable = labels.flags.writeable = False
    estimator = make(name).fit(evidence, labels)
    np.testing.assert_array_equal(evidence, before)
    np.testing.assert_array_equal(labels, few.labels)
    assert not np.shares_memory(estimator.confidence_, evidence)


@EVERY
def test_lists_and_pandas_are_welcome(name: str, few: Samples, fitted_to_few: Callable[[str], Any]) -> None:
    pd = pytest.importorskip("pandas")
    evidence = few.evidence_of(name)
    expected = fitted_to_few(name).confidence_
    frame = pd.Series(evidence) if evidence.ndim == 1 else pd.DataFrame(evidence)
    for given, labels in [(evidence.tolist(), few.labels.tolist()), (frame, pd.Series(few.labels))]:
        np.testing.assert_allclose(make(name).fit(given, labels).confidence_, expected, atol=1e-6)


# Hard cases: few samples, one class, nothing to tell samples apart. Every confidence is still a probability.


def small(n: int, labels: Any, seed: int = 0, **columns: Any) -> Samples:
    labels = np.asarray(labels)
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(labels.max() + 1), n)
    evidence = {
        "features": rng.normal(size=(n, 4)) + 1,
        "probabilities": probabilities,
        "losses": losses_of(probabilities, labels),
    } | columns
    return Samples(labels=labels, is_right=np.ones(n, bool), **evidence)


HARD_CASES = {
    "fewer samples than neighbors": small(6, [0, 1, 0, 1, 0, 1]),
    "two samples": small(2, [0, 1]),
    "a class with one member": small(30, [0] * 15 + [1] * 14 + [2]),
    "every class with one member": small(5, range(5)),
    "one class": small(20, [0] * 20, losses=np.arange(20.0)),
    "duplicates": small(
        24,
        [0, 1, 2] * 8,
        features=np.repeat(np.eye(3), 8, axis=0),
        probabilities=np.repeat(np.eye(3), 8, axis=0),
        losses=np.repeat([0.0, 1.0, 2.0], 8),
    ),
    "nothing differs": small(
        20,
        [0, 1] * 10,
        features=np.ones((20, 4)),
        probabilities=np.full((20, 2), 0.5),
        losses=np.full(20, 0.7),
    ),
    "zeros": small(
        20,
        [0, 1] * 10,
        features=np.vstack([np.zeros((8, 4)), np.eye(4)[np.arange(12) % 4]]),
        probabilities=np.repeat([[0.0, 1.0]], 20, axis=0),
        losses=np.zeros(20),
    ),
    "one wild value": small(
        20,
        [0, 1] * 10,
        features=np.vstack([np.full((1, 4), 1e30), np.random.default_rng(0).normal(size=(19, 4))]),
        losses=np.append(np.linspace(0, 1, 19), 1e30),
    ),
}


@EVERY
@pytest.mark.parametrize("case", HARD_CASES)
def test_hard_cases_give_probabilities(name: str, case: str) -> None:
    samples = HARD_CASES[case]
    estimator = make(name)
    if name in NEEDS_CONTRAST and case in REFUSED_WITHOUT_CONTRAST:
        with pytest.raises(InvalidInputError, match=r"'[Xy]'"):
            estimator.fit(samples.evidence_of(name), samples.labels)
        return
    estimator.fit(samples.evidence_of(name), samples.labels)
    n = len(samples.labels)
    check_results(estimator, n, samples.labels.max() + 1, np.zeros(n, bool))


# Bad input: a message that names the parameter and shows the value.


@EVERY
def test_lengths_that_differ_are_both_shown(name: str, few: Samples) -> None:
    with pytest.raises(InvalidInputError, match=r"'X' has 300, 'y' has 299"):
        make(name).fit(few.evidence_of(name), few.labels[:299])
    with pytest.raises(InvalidInputError, match=r"'X' has 299, 'y' has 300"):
        make(name).fit(few.evidence_of(name)[:299], few.labels)


@EVERY
def test_values_that_are_not_finite_are_counted_and_located(name: str, few: Samples) -> None:
    evidence = few.evidence_of(name).astype(float)
    evidence[7:9] = np.nan
    evidence[50] = np.inf
    width = evidence[0].size
    with pytest.raises(InvalidInputError, match=rf"'X'.*{2 * width} NaN and {width} infinite.*row 7"):
        make(name).fit(evidence, few.labels)


@EVERY
@pytest.mark.parametrize("shape", [(), (300,), (300, 1), (300, 10), (300, 10, 1)])
def test_evidence_of_another_shape_is_refused(name: str, shape: Any, few: Samples) -> None:
    evidence = {"losses": (300,), "probabilities": (300, 10)}.get(ESTIMATORS[name].evidence)
    if shape == evidence or (evidence is None and len(shape) == 2):
        return
    with pytest.raises(ValueError, match=r"(?i)dim|shape"):
        make(name).fit(np.full(shape, 0.1), few.labels)


@EVERY
def test_evidence_that_is_not_numeric_is_refused(name: str, few: Samples) -> None:
    with pytest.raises(ValueError, match=r"numeric|convert|dtype"):
        make(name).fit(np.full_like(few.evidence_of(name), "word", dtype=object), few.labels)


@EVERY
def test_empty_input_is_refused(name: str, few: Samples) -> None:
    with pytest.raises(ValueError):
        make(name).fit(few.evidence_of(name)[:0], few.labels[:0])
    with pytest.raises(ValueError):
        make(name).fit(few.evidence_of(name), [])


@EVERY
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.linspace(0, 1, 300), "integers"),
        ([None] * 300, "missing|two classes"),
        (np.full(300, np.nan), "missing|two classes"),
        (np.full(300, -1), "missing|two classes"),
        (None, "y"),
        (np.zeros((300, 2), int), "shape"),
        (np.array([1, "a"] * 150, dtype=object), "all strings or all integers"),
    ],
    ids=["floats", "all None", "all NaN", "all missing_label", "none", "matrix", "mixed"],
)
def test_labels_that_break_a_rule_are_named(name: str, labels: Any, message: str, few: Samples) -> None:
    with pytest.raises(ValueError, match=message):
        make(name, missing_label=-1).fit(few.evidence_of(name), labels)
