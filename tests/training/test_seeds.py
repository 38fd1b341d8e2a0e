"""Seeds: one for every purpose."""

import numpy as np

from laplaceconfidence.training.seeds import derived_seed, root_seed


def test_seeds_depend_on_all_that_they_are_for() -> None:
    seeds = {derived_seed(0, "order", r, p) for r in range(10) for p in range(10)}
    assert len(seeds) == 100
    assert derived_seed(0, "order", 1) != derived_seed(0, "plan", 1)
    assert derived_seed(0, "order", 1) != derived_seed(1, "order", 1)
    assert derived_seed(5, "x") == derived_seed(5, "x")
    assert root_seed(7) == 7
    assert root_seed(np.random.default_rng(1)) == root_seed(np.random.default_rng(1))
