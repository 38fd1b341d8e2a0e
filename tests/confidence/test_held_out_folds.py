"""Folds of the given labels, and comparisons on labels that were held out."""

import numpy as np
import pytest

from laplaceconfidence.confidence.held_out_folds import clearly_worse, make_held_out_folds, stratified_folds


def test_folds_are_even_in_every_class() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 4, 203)
    folds = stratified_folds(codes, 5, np.random.default_rng(0))
    for code in range(-1, 4):
        sizes = np.bincount(folds[codes == code], minlength=5)
        assert sizes.max() - sizes.min() <= 1


def test_a_pair_holds_out_both_folds_and_no_other() -> None:
    rng = np.random.default_rng(0)
    folds = make_held_out_folds(rng.integers(0, 3, 60), 5, np.random.default_rng(0))
    visible, numbers = folds.visible_without_pairs(), folds.pair_numbers()
    for sample in range(60):
        for fold in range(5):
            if fold == folds.folds[sample]:
                continue
            hidden = set(folds.folds[visible[:, numbers[sample, fold]] == 0].tolist())
            assert hidden == {fold, folds.folds[sample]}


def test_a_loss_is_clear_beyond_two_standard_errors() -> None:
    rng = np.random.default_rng(0)
    better = rng.normal(size=400)
    noise = rng.normal(size=400)
    noise = (noise - noise.mean()) / noise.std()  # a mean difference has the standard error 1 / 20
    assert not clearly_worse(better - 0.099 + noise, better)
    assert clearly_worse(better - 0.101 + noise, better)
    assert not clearly_worse(better + 0.3 + noise, better)


def test_a_tie_is_not_clearly_worse() -> None:
    assert not clearly_worse(np.zeros(9), np.zeros(9))


@pytest.mark.parametrize("n_folds", [3, 5])
def test_values_at_the_own_fold_and_means_over_the_others(n_folds: int) -> None:
    rng = np.random.default_rng(0)
    folds = make_held_out_folds(rng.integers(0, 3, 40), n_folds, rng)
    values = rng.normal(size=(40, n_folds, 2)).astype(np.float32)
    own, means = folds.at_own_fold(values), folds.mean_over_others(values)
    for sample, fold in enumerate(folds.folds):
        np.testing.assert_array_equal(own[sample], values[sample, fold])
        others = np.delete(values[sample], fold, axis=0)
        np.testing.assert_allclose(means[sample], others.mean(axis=0), rtol=1e-5, atol=1e-6)
