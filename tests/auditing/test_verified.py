"""Labels that a person has verified: certain themselves, and used for the others."""

from dataclasses import replace

import numpy as np
import pytest

from audited_runs import confusable_points, noisy_blobs
from laplaceconfidence import NoiseAwareConfidence, NoisyDataset, audit
from laplaceconfidence.auditing.review_sample import answer_certainty, choose_for_review, drawn_order
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError


def test_verified_labels_are_certain() -> None:
    features, given, true = noisy_blobs()
    data = NoisyDataset.from_arrays(given, features)
    result = audit(
        data,
        audited={0: int(true[0]), 1: int(given[1]), 2: None},
        estimator="laplace",
        n_neighbors=6,
        alpha=0.9,
    )
    table = result.table
    assert table.loc[[0, 1], "label_score"].tolist() == [1.0, 1.0]
    assert table.loc[0, "given_label"] == table.loc[0, "predicted_label"] == true[0]
    assert not table.loc[[0, 1, 2], "is_label_issue"].any()
    assert np.isnan(table.loc[2, "label_score"])
    assert data.labels[0] == given[0]


def test_verified_labels_change_the_scores_of_their_neighbors() -> None:
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=(30, 2)) + 9, rng.normal(size=(30, 2)) - 9]).astype(np.float32)
    labels = np.repeat([0, 1], 30)
    labels[:14] = 1  # nearly half of the first cluster is mislabeled
    before = audit(NoisyDataset.from_arrays(labels, features), estimator="laplace", n_neighbors=8, alpha=0.9)
    after = audit(
        NoisyDataset.from_arrays(labels, features),
        audited=dict.fromkeys(range(7), 0),
        estimator="laplace",
        n_neighbors=8,
        alpha=0.9,
    )
    rest = np.arange(7, 14)
    assert after.table.loc[rest, "label_score"].mean() < before.table.loc[rest, "label_score"].mean()


def test_an_estimator_that_learns_from_verified_labels_gets_them() -> None:
    features, given, true = noisy_blobs(4)
    data = NoisyDataset.from_arrays(given, features)
    audited: dict[int, object] = {row: int(true[row]) for row in range(0, 60)}
    result = audit(data, estimator=NoiseAwareConfidence(random_state=0), audited={**audited, 61: None})
    assert (result.table.loc[list(audited), "label_score"] == 1).all()
    assert (result.predicted == true)[62:].mean() > 0.9


def test_labels_that_were_corrected_are_not_to_look_at_again() -> None:
    features, given, true = noisy_blobs(4)
    wrong = np.flatnonzero(given != true)
    audited: dict[int, object] = {int(row): int(true[row]) for row in wrong}
    statement = audit(NoisyDataset.from_arrays(given, features), audited=audited, random_state=0).statement
    assert statement.n_corrected == len(wrong)
    assert f"{len(wrong)} labels were corrected" in statement.headline
    without = replace(statement, n_corrected=0)
    assert statement.n_at_most == max(0, without.n_at_most - len(wrong))


def test_labels_of_unknown_classes_and_rows_are_refused() -> None:
    features, given, _ = noisy_blobs()
    data = NoisyDataset.from_arrays(given, features)
    for wrong in ({0: 7}, {90: 0}, {"0": 0}):
        with pytest.raises(InvalidInputError, match="audited"):
            audit(data, audited=wrong)  # type: ignore[arg-type]


def test_the_draw_is_uniform() -> None:
    labels = np.zeros(40, dtype=np.int64)
    labels[:5] = MISSING
    counts = np.zeros(40)
    for seed in range(2_000):
        rows = drawn_order(labels, 7, seed=seed)[:7]
        assert len(set(rows.tolist())) == 7
        counts[rows] += 1
    assert (counts[:5] == 0).all()
    expected = 2_000 * 7 / 35
    statistic = ((counts[5:] - expected) ** 2 / expected).sum()
    assert statistic < 65  # chi square with 34 degrees of freedom: beyond in one of 1,000


def test_a_large_sample_is_half_random_and_half_uncertain() -> None:
    features, given, _ = noisy_blobs()
    result = audit(NoisyDataset.from_arrays(given, features), random_state=0)
    few = choose_for_review(result, 30, seed=3)
    assert len(few.at_random) == 30
    assert len(few.uncertain) == 0
    chosen = choose_for_review(result, 70, seed=3, verified=[5])
    assert (len(chosen.at_random), len(chosen.uncertain)) == (50, 20)
    # What is drawn at random does not depend on what is uncertain.
    assert (
        chosen.at_random.tolist()
        == drawn_order(result.dataset.labels, 70, seed=3, verified=[5])[:50].tolist()
    )
    rest = sorted(set(range(90)) - {5} - set(chosen.at_random.tolist()))
    certainty = answer_certainty(result)
    assert chosen.uncertain.tolist() == sorted(rest, key=lambda row: certainty[row])[:20]
    assert np.allclose(certainty, result.distributions.max(axis=1))
    with pytest.raises(InvalidInputError, match="at most the 90 labels"):
        choose_for_review(result, 91, seed=0)


def test_certainty_leaves_out_the_given_label_where_the_noise_is_not_identified() -> None:
    features, given, _ = confusable_points()
    result = audit(NoisyDataset.from_arrays(given, features), random_state=0)
    assert result.statement.is_unidentified
    assert result.support is not None
    chosen = choose_for_review(result, 150, seed=0)
    assert (len(chosen.at_random), len(chosen.uncertain)) == (100, 50)
    certainty = answer_certainty(result)
    assert certainty.mean() < result.distributions.max(axis=1).mean()
    is_given = result.support > 0.5
    assert np.allclose(certainty[is_given], result.support[is_given])
