"""Self-confidence and normalized margin against loops and cleanlab, and probabilities that are none."""

from typing import Any

import numpy as np
import pytest

from laplaceconfidence.confidence.normalized_margin import NormalizedMargin
from laplaceconfidence.confidence.probabilities import check_pred_probs
from laplaceconfidence.confidence.self_confidence import SelfConfidence
from laplaceconfidence.exceptions import InvalidInputError

BOTH = pytest.mark.parametrize("estimator", [SelfConfidence, NormalizedMargin])


def probabilities(n: int = 40, n_classes: int = 4, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(n_classes, 0.5), n), np.append(
        np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)
    )


def test_self_confidence_is_the_probability_of_the_label() -> None:
    p, y = probabilities()
    estimator = SelfConfidence().fit(p, y)
    np.testing.assert_allclose(estimator.confidence_, [p[i, y[i]] for i in range(len(y))])
    np.testing.assert_allclose(estimator.label_distributions_, p)


def test_normalized_margin_is_the_lead_over_the_strongest_rival() -> None:
    p, y = probabilities()
    expected = [(p[i, y[i]] - max(p[i, c] for c in range(4) if c != y[i]) + 1) / 2 for i in range(len(y))]
    np.testing.assert_allclose(NormalizedMargin().fit(p, y).confidence_, expected)


@pytest.mark.parametrize(
    ("estimator", "method"), [(SelfConfidence, "self_confidence"), (NormalizedMargin, "normalized_margin")]
)
def test_scores_are_those_of_cleanlab(estimator: Any, method: str) -> None:
    rank = pytest.importorskip("cleanlab.rank")
    p, y = probabilities()
    theirs = rank.get_label_quality_scores(y, p, method=method)
    np.testing.assert_allclose(estimator().fit(p, y).confidence_, theirs)


@BOTH
def test_a_class_without_labels_is_fine_where_the_columns_are_named(estimator: Any) -> None:
    p, y = probabilities()
    present = y != 2
    with pytest.raises(InvalidInputError, match=r"shape \(\d+, 4\).*'y' holds 3 classes.*'classes'"):
        estimator().fit(p[present], y[present])
    named = estimator(classes=[0, 1, 2, 3]).fit(p[present], y[present])
    np.testing.assert_allclose(named.confidence_, estimator().fit(p, y).confidence_[present])
    assert named.classes_.tolist() == [0, 1, 2, 3]


@BOTH
def test_named_columns_may_come_in_any_order(estimator: Any) -> None:
    p, y = probabilities()
    names = np.array(["d", "b", "a", "c"])
    confidence = estimator(classes=names).fit(p, names[y]).confidence_
    np.testing.assert_allclose(confidence, estimator().fit(p, y).confidence_)


@BOTH
def test_labels_outside_the_named_columns_are_refused(estimator: Any) -> None:
    p, y = probabilities()
    with pytest.raises(InvalidInputError, match=r"'y'.*3 classes.*3"):
        estimator(classes=[0, 1, 2]).fit(p[:, :3], y)
    with pytest.raises(InvalidInputError, match="'classes' names 5 classes"):
        estimator(classes=range(5)).fit(p, y)


@BOTH
def test_one_class_is_certain(estimator: Any) -> None:
    assert estimator().fit(np.ones((3, 1)), ["a", "a", None]).confidence_[:2].tolist() == [1, 1]


@BOTH
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_may_be_off_by_rounding(estimator: Any, dtype: Any) -> None:
    p, y = probabilities(n_classes=40, n=100)
    fitted = estimator().fit(p.astype(dtype), y)
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.confidence_, estimator().fit(p, y).confidence_, atol=2e-3)


@BOTH
def test_what_is_no_probability_is_shown(estimator: Any) -> None:
    p, y = probabilities()
    negative = p.copy()
    negative[5, :2] = -0.25, p[5, :2].sum() + 0.25
    with pytest.raises(
        InvalidInputError, match=r"\(40, 4\) with 1 such rows; the first is row 5, with -0.25"
    ):
        estimator().fit(negative, y)
    with pytest.raises(InvalidInputError, match=r"summing to 1.*\(40, 4\) with 40 rows.*row 0.*sum 2"):
        estimator().fit(2 * p, y)
    with pytest.raises(InvalidInputError, match="softmax"):
        estimator().fit(np.log(p), y)


def test_probabilities_beside_other_evidence_follow_the_same_rule_under_their_own_name() -> None:
    p, _ = probabilities()
    np.testing.assert_allclose(check_pred_probs(p.astype(np.float32), 40, 4).sum(axis=1), 1)
    for wrong, message in (
        (2 * p, r"'pred_probs'.*summing to 1.*row 0.*sum 2"),
        (np.log(p), r"'pred_probs'.*negative.*softmax"),
        (p[:, :3], r"'pred_probs'.*one column.*\(40, 3\).*4 classes"),
        (p[:39], r"'y' has 40, 'pred_probs' has 39"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            check_pred_probs(wrong, 40, 4)
