"""Folds of the given labels, and comparisons on labels that were held out."""

import numpy as np

from laplaceconfidence.confidence.held_out_folds import make_held_out_folds, stratified_folds


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
