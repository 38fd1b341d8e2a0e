"""Tables of a bench against naive aggregates, and their formats read back."""

import csv
import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.evaluation.bench_metrics import METRICS
from laplaceconfidence.evaluation.grid import Cell, Entry, Grid, Outcome
from laplaceconfidence.evaluation.table_formats import as_csv, as_latex, as_markdown
from laplaceconfidence.evaluation.tables import Table, build_tables, leader_sentence, summarize_seeds

NOISES = ("symmetric:0.2", "asymmetric:0.4")


def outcome(contender: str, noise: str, seed: int, auroc: float | None, seconds: float = 1.0) -> Outcome:
    return Outcome(Cell("confidence", contender, noise, seed, "blobs"), {"auroc": auroc, "seconds": seconds})


def tables_of(outcomes: list[Outcome], contenders: tuple[str, ...] = ("a", "b_c")) -> dict[str, Table]:
    where = frozenset(("blobs", noise) for noise in NOISES)
    entries = tuple(Entry("confidence", name, where) for name in contenders)
    grid = Grid({"blobs": NOISES}, (0, 1), entries)
    return {table.metric.name: table for table in build_tables(outcomes, "confidence", grid)}


OUTCOMES = [
    outcome("a", NOISES[0], 0, 0.9),
    outcome("a", NOISES[0], 1, 0.8),
    outcome("a", NOISES[1], 0, 0.6, seconds=250.0),
    outcome("b_c", NOISES[0], 0, 0.7),
    outcome("b_c", NOISES[1], 0, 0.65),
    outcome("b_c", NOISES[1], 1, None),
]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_mean_and_deviation_are_those_of_numpy(values: list[float]) -> None:
    found = summarize_seeds([*values, float("nan")])
    assert found is not None
    assert found.n == len(values)
    assert found.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    if len(values) == 1:
        assert found.deviation is None
    else:
        assert found.deviation == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)


def test_cells_are_grouped_by_contender_and_noise() -> None:
    table = tables_of(OUTCOMES)["auroc"]
    first, second = table.columns
    assert table.text("a", first) == "0.850 ± 0.071"
    assert table.text("a", second) == "0.600"
    assert table.text("b_c", second) == "0.650"
    assert table.best(first) == {"a"}
    assert table.best(second) == {"b_c"}
    assert table.wins() == {"a": 1, "b_c": 1}


def test_lowest_is_best_where_it_is() -> None:
    table = tables_of(OUTCOMES)["seconds"]
    assert table.best(table.columns[1]) == {"b_c"}
    assert table.best(table.columns[0]) == {"a", "b_c"}
    assert table.text("a", table.columns[1]) == "250"


def test_what_looks_equal_shares_the_lead_and_one_alone_has_none() -> None:
    table = tables_of([outcome("a", NOISES[0], 0, 0.90001), outcome("b_c", NOISES[0], 0, 0.89999)])["auroc"]
    assert table.best(table.columns[0]) == {"a", "b_c"}
    assert table.best(table.columns[1]) == frozenset()
    assert table.text("a", table.columns[1]) == "–"
    assert table.n_compared == 1


def test_nothing_is_summarized_as_nothing() -> None:
    assert summarize_seeds([]) is None
    assert summarize_seeds([float("nan")]) is None
    table = tables_of([])["auroc"]
    assert leader_sentence(table) == "There is nothing to compare yet."
    assert as_csv([table]).count("\n") == 1
    assert "–" in as_markdown([table])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"a": (0.9, 0.9), "b": (0.8, 0.8)}, "a is best under all 2 noises by AUROC."),
        ({"a": (0.9, 0.7), "b": (0.8, 0.8)}, "a and b are best under 1 of 2 noises each by AUROC."),
        ({"a": (0.9, 0.9), "b": (0.9, 0.8)}, "a is best under all 2 noises by AUROC."),
        ({"a": (0.9, 0.9), "b": (0.9, 0.9)}, "a and b are best under all 2 noises by AUROC."),
        ({"a": (0.9, 0.9)}, "a is the only contender."),
    ],
)
def test_the_verdict_names_who_leads_most_often(values: dict[str, tuple[float, float]], said: str) -> None:
    outcomes = [
        outcome(name, noise, 0, value)
        for name, own in values.items()
        for noise, value in zip(NOISES, own, strict=True)
    ]
    assert leader_sentence(tables_of(outcomes, tuple(values))["auroc"]) == said


def test_csv_holds_every_digit() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(list(tables_of(OUTCOMES).values())))))
    aurocs = {(r["contender"], r["noise"]): r for r in rows if r["metric"] == "auroc"}
    assert len(aurocs) == 4
    assert float(aurocs["a", NOISES[0]]["mean"]) == np.mean([0.9, 0.8])
    assert float(aurocs["a", NOISES[0]]["standard_deviation"]) == pytest.approx(np.std([0.9, 0.8], ddof=1))
    assert aurocs["a", NOISES[1]]["standard_deviation"] == ""
    assert aurocs["b_c", NOISES[1]]["seeds"] == "1"
    assert [key for key, row in aurocs.items() if row["is_best"] == "true"] == [
        ("a", NOISES[0]),
        ("b_c", NOISES[1]),
    ]


def test_markdown_and_latex_mark_the_best_and_escape() -> None:
    tables = list(tables_of(OUTCOMES).values())
    markdown = as_markdown(tables[:1])
    assert "| a | **0.850 ± 0.071** | 0.600 |" in markdown
    latex = as_latex(tables)
    assert r"a & \textbf{0.850 $\pm$ 0.071} & 0.600 \\" in latex
    assert r"b\_c & 0.700 & \textbf{0.650} \\" in latex
    assert r"symmetric 20\%" in latex
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 2
    assert not re.search(r"(?<!\\)[_#]", latex)


def test_every_metric_of_training_says_that_the_best_round_is_for_comparison_only() -> None:
    titles = {metric.name: metric.title for metric in METRICS["training"]}
    assert "for comparison only" in titles["best_round_accuracy"]
    assert next(iter(titles)) == "last_rounds_accuracy"


def test_accuracies_on_further_test_sets_have_tables_of_their_own() -> None:
    cell = Cell("training", "a", NOISES[0], 0, "photographs")
    scores = {"last_rounds_accuracy": 0.5, "chosen_round_top_5_accuracy": 0.9, "seconds": 1.0}
    on_other = {"last_rounds_accuracy@ILSVRC12": 0.25, "chosen_round_top_5_accuracy@ILSVRC12": 0.75}
    grid = Grid(
        {"photographs": NOISES}, (0,), (Entry("training", "a", frozenset({(cell.data, cell.noise)})),)
    )
    found = {
        table.metric.title: table.text("a", table.columns[0])
        for table in build_tables([Outcome(cell, {**scores, **on_other})], "training", grid)
    }
    assert found == {
        "Test accuracy, mean of the last 10 rounds": "50.00",
        "Test accuracy on ILSVRC12, mean of the last 10 rounds": "25.00",
        "Top-5 test accuracy, chosen round": "90.00",
        "Top-5 test accuracy on ILSVRC12, chosen round": "75.00",
        "Seconds": "1.00",
    }
