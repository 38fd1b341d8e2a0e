"""Times of the parts of an estimate: each part once, and nothing that is not part of one."""

import pytest

from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.evaluation.bench_file import read_bench_file
from laplaceconfidence.evaluation.confidence_cells import ConfidenceCells
from laplaceconfidence.evaluation.estimate_times import PARTS, EstimateTimer
from laplaceconfidence.evaluation.grid import Cell


def test_parts_are_means_over_estimates() -> None:
    timer = EstimateTimer(n_samples=90)
    for seconds in (1.0, 3.0):
        for name, total, taken in (
            ("features", 90, 10 * seconds),  # outputs of the network for the training samples
            ("features", 20, 1000.0),  # for test samples: not part of an estimate
            ("features", None, seconds),  # PCA
            ("index", None, seconds),
            ("neighbors", 90, seconds),
            ("affinity", None, seconds),
            ("solve", 10, 2 * seconds),
        ):
            timer.started(name, total)
            timer.finished(name, taken)
    assert timer.scores(0.5) == {
        "seconds_features": 20 + 2 + 0.5,
        "seconds_search": 4,
        "seconds_graph": 2,
        "seconds_solve": 4,
        "seconds_estimate": 32.5,
    }
    assert EstimateTimer(5).scores() == {}


def test_cells_of_graph_estimators_have_them_and_others_do_not() -> None:
    cells = ConfidenceCells(load_digits(), n_jobs=1)
    scores = cells.measure(Cell("confidence", "laplace", "symmetric:0.2", 0, "digits"))
    parts = [float(scores[name] or 0) for name in ("seconds_features", *PARTS)]
    assert all(part > 0 for part in parts)
    assert sum(parts) == pytest.approx(scores["seconds_estimate"])
    assert sum(parts) < float(scores["seconds"] or 0)
    other = cells.measure(Cell("confidence", "self-confidence", "symmetric:0.2", 0, "digits"))
    assert "seconds_search" not in other


def test_the_table_of_times_shows_all_parts() -> None:
    assert {"seconds_features", *PARTS} <= set(read_bench_file("table-time").metrics)
