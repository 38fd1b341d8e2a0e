"""Whatever is thrown at it, find_label_issues answers sanely or refuses clearly."""

import warnings
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from laplaceconfidence import find_label_issues
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

BY_FEATURES = [name for name, kind in ESTIMATORS.items() if kind.evidence == "features"]
BY_GRAPH = ["laplace", "refined-cross-entropy"]
BY_PROBABILITIES = [name for name, kind in ESTIMATORS.items() if kind.evidence != "features"]

words = st.one_of(st.none(), st.just(""), st.sampled_from(["a", "b", "猫", "🐈"]), st.text(max_size=4))
numbers = st.one_of(
    st.none(),
    st.integers(-3, 5),
    st.just(float("nan")),
    st.just(2**70),
    st.floats(allow_nan=True, allow_infinity=True),
)
anything = st.one_of(words, numbers, st.booleans(), st.binary(max_size=3), st.tuples(st.integers(0, 2)))
mild = st.floats(-10, 10, width=32)
wild = st.one_of(mild, st.sampled_from([0.0, np.nan, np.inf, -np.inf, 1e38, -1e300, 1e-300, 5e-324]))


def lists_of(kind: st.SearchStrategy[Any], n: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(kind, min_size=n, max_size=n)


def good_labels(n: int) -> st.SearchStrategy[Any]:
    several = [st.sampled_from(["x", "y", "z"]), st.integers(0, 2), st.sampled_from([0, 1, None])]
    return st.one_of([lists_of(kind, n) for kind in several])


def bad_labels(n: int) -> st.SearchStrategy[Any]:
    kinds = [words, numbers, anything, st.booleans(), st.binary(max_size=2), st.integers(-(2**63), 2**63)]
    lists = st.one_of([lists_of(kind, n) for kind in kinds])
    return lists | lists.map(lambda labels: np.array(labels, dtype=object)) | st.just(np.zeros((n, 2)))


def good_matrix(n: int, d: int) -> st.SearchStrategy[Any]:
    return arrays.arrays(np.float32, (n, d), elements=mild)


def bad_matrix(n: int, d: int) -> st.SearchStrategy[Any]:
    return st.one_of(
        good_matrix(n + 1, d),
        arrays.arrays(np.float64, (n, d), elements=wild),
        arrays.arrays(np.float64, (n, d), elements=st.sampled_from([0.0, 1e300, -1e300, 1e-300, 5e-324])),
        arrays.arrays(np.float16, (n, d), elements=st.floats(-10, 10, width=16)),
        arrays.arrays(np.int64, (n, d), elements=st.integers(-(2**63), 2**63 - 1)),
        arrays.arrays(np.bool_, (n, d)),
        st.just(np.full((n, d), "text")),
        st.just(np.zeros((n, d))),
        st.just(np.zeros((n, 0))),
        st.just(np.zeros(n)),
    )


def as_graph(weights: Any) -> Any:
    is_matrix = weights.ndim == 2 and weights.dtype.kind in "fib" and weights.dtype != np.float16
    return sparse.csr_array(weights) if is_matrix else weights


def as_probabilities(weights: Any) -> Any:
    positive = np.abs(weights) + np.float32(0.1)
    return positive / positive.sum(axis=1, keepdims=True)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Everything in order, but for one thing that is spoiled, or all of them."""
    n = draw(st.integers(1, 12))
    spoiled = draw(st.sampled_from(["nothing", "labels", "evidence", "evidence", "settings", "all"]))
    evidence = draw(st.sampled_from(["features", "knn_graph", "pred_probs"]))
    n_columns = {"features": draw(st.integers(1, 3)), "knn_graph": n, "pred_probs": 3}[evidence]
    case: dict[str, Any] = {
        "labels": draw((bad_labels if spoiled in ("labels", "all") else good_labels)(n)),
        "estimator": draw(
            st.sampled_from(
                {"features": BY_FEATURES, "knn_graph": BY_GRAPH, "pred_probs": BY_PROBABILITIES}[evidence]
            )
        ),
    }
    if spoiled in ("evidence", "all"):
        weights = draw(bad_matrix(n, n_columns))
        case[evidence] = as_graph(weights) if evidence == "knn_graph" else weights
    else:
        weights = draw(good_matrix(n, n_columns))
        shaped = {"features": weights, "knn_graph": as_graph(np.abs(weights))}
        case[evidence] = shaped.get(evidence, as_probabilities(weights))
    if evidence == "pred_probs" and draw(st.booleans()):
        case["classes"] = draw(st.sampled_from([[0, 1, 2], ["x", "y", "z"], ["x", "x", "y"], [0, None]]))
    if spoiled in ("settings", "all"):
        case["estimator"] = draw(st.sampled_from([None, "magic", *ESTIMATORS]))
        case["threshold"] = draw(st.sampled_from([None, 0.0, 1.0, 2.0, "a"]))
        case["missing_label"] = draw(st.sampled_from([None, 0, "x", -1, "0"]))
        if draw(st.booleans()):
            case["n_neighbors"] = draw(st.sampled_from([0, 1, 1000, 2.5, None]))
        if draw(st.booleans()):
            case["features"] = draw(good_matrix(n, 2))
    return case


def check_sane(result: AuditResult, n: int) -> None:
    table = result.table
    assert sorted(table.index) == list(range(n))
    labeled = table.given_label.notna()
    assert table.label_score[labeled].between(0, 1).all()
    assert table.label_score[~labeled].isna().all()
    assert not table.is_label_issue[~labeled].any()
    assert table.predicted_label.notna().all()
    assert table.predicted_probability.between(0, 1 + 1e-6).all()
    assert 0 <= result.noise_rate <= 1
    assert result.class_summary.n_issues.sum() == result.n_issues
    assert len(result.corrected_labels()) == n


@settings(max_examples=500, deadline=None)
@given(cases())
@example({"labels": ["x", "y"], "estimator": "noise-aware", "features": np.array([[5e-324], [0.0]])})
@example({"labels": ["x", "y"], "estimator": "noise-aware", "features": np.array([[1.0], [1 + 2.3e-16]])})
@example({"labels": [(0,), None], "estimator": "noise-aware", "features": np.zeros((2, 1))})
@example({"labels": [((0,),), (0,)], "estimator": "noise-aware", "features": np.zeros((2, 1))})
def test_a_sane_answer_or_a_clear_refusal(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = find_label_issues(random_state=0, **case)
        except (InvalidInputError, DataFormatError):
            return
    check_sane(result, len(case["labels"]))
    if result.neighborhood is not None:
        for row in range(len(case["labels"])):
            told = result.explain(row)
            assert told.weight_agreeing + told.weight_disagreeing <= 1 + 1e-6
            assert str(told).startswith(f"Row {row} " if "features" in case else f"Sample {told.id} ")


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 30), st.integers(1, 5), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_well_formed_input_is_never_refused(n: int, d: int, n_classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, size=n)
    labels[:2] = [0, 1]
    features = rng.normal(size=(n, d))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_sane(find_label_issues(labels, features, random_state=0), n)
