"""Published figures beside measured ones: only in the same cell, told apart, and with their source."""

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from bench_runs import NOISES, bench_record, blobs_record
from laplaceconfidence.evaluation.bench_file import bench_names, read_bench_file
from laplaceconfidence.evaluation.bench_metrics import METRICS
from laplaceconfidence.evaluation.contenders import Contender
from laplaceconfidence.evaluation.grid import Outcome
from laplaceconfidence.evaluation.published_results import published_results, row_of_method
from laplaceconfidence.evaluation.table_formats import as_csv, as_latex, as_markdown
from laplaceconfidence.evaluation.tables import Table
from laplaceconfidence.records.bench_run import BenchRun, ContenderRecord


def measured(published_as: str | None = "CIFAR-10") -> list[Table]:
    """Tables of two methods, of which one has published figures under one of two noises."""
    columns = [f"blobs, {noise}" for noise in NOISES]
    record = bench_record(
        data={"blobs": blobs_record(published_as=published_as)},
        contenders=tuple(
            ContenderRecord(
                task="training", name=name, kind=name, settings={c: {} for c in columns}, published_as=row
            )
            for name, row in (("dividemix", "DivideMix"), ("a & b_c", None))
        ),
    )
    run = BenchRun(Path("x"), record, {})
    scores = {"best_round_accuracy": 0.9, "last_rounds_accuracy": 0.8}
    outcomes = {cell: Outcome(cell, dict(scores)) for cell in run.cells if cell.noise == NOISES[0]}
    return BenchRun(Path("x"), record, outcomes).tables()


def test_figures_are_those_of_the_paper() -> None:
    found = published_results()
    best = found["CIFAR-10", "symmetric:0.9", "LaplaceConfidence", "best_round_accuracy"]
    assert best.value == pytest.approx(0.947)
    assert "Table 1" in best.source
    assert found["CIFAR-100", "symmetric:0.9", "DivideMix", "last_rounds_accuracy"].value == pytest.approx(
        0.31
    )
    top_5 = found["Mini-WebVision", "none", "LaplaceConfidence", "chosen_round_top_5_accuracy@ILSVRC12"]
    assert top_5.value == pytest.approx(0.9412)
    assert ("CIFAR-10", "asymmetric:0.4", "Mixup", "best_round_accuracy") not in found
    names = {metric.name for metric in METRICS["training"]}
    assert {metric.partition("@")[0] for *_, metric in found} <= names
    assert all(0 < one.value < 1 for key, one in found.items() if not key[3].startswith("seconds"))


def test_only_a_method_with_its_usual_settings_has_the_row_of_the_method() -> None:
    assert Contender("training", "x", "dividemix").published_row() == "DivideMix"
    assert Contender("training", "x", "dividemix").published_row("method") is None
    assert Contender("training", "x", "dividemix", published="all").published_row("none") == "DivideMix"
    assert Contender("training", "x", "dividemix", {"ramp": 3}).published_row() is None
    assert Contender("training", "x", "dividemix", {}, {"rounds": 3}).published_row() is None
    assert Contender("confidence", "laplace", "laplace").published_row() is None
    assert Contender("training", "x", "laplace", {"n_networks": 1}, published_as="y").published_row() == "y"


def test_every_method_with_a_row_exists_or_is_planned() -> None:
    pytest.importorskip("torch")
    from laplaceconfidence.training.methods.registry import METHODS

    rows = {row for _, _, row, _ in published_results()}
    for method in METHODS:
        row = row_of_method(method)
        assert row is None or row in rows


def test_rows_that_benches_of_the_package_name_were_published() -> None:
    rows = {row for _, _, row, _ in published_results()}
    for name in bench_names():
        for table in read_bench_file(name).contender:
            assert table.published_as is None or table.published_as in rows


def test_published_figures_are_beside_measured_ones_and_told_apart() -> None:
    tables = measured()
    best = next(table for table in tables if table.metric.name == "best_round_accuracy")
    markdown = as_markdown([best])
    assert "| symmetric 20% | published | asymmetric 40% | published |" in markdown
    assert "| dividemix | **90.00** | *96.1* | – | *93.4* |" in markdown.replace("90.00 ± 0.00", "90.00")
    assert "| a & b_c | **90.00** | – | – | – |" in markdown.replace("90.00 ± 0.00", "90.00")
    assert "Published: Chen et al., LaplaceConfidence, Table 1" in markdown
    rows = list(csv.DictReader(io.StringIO(as_csv([best]))))
    by_cell = {(row["contender"], row["noise"]): row for row in rows}
    assert float(by_cell["dividemix", "symmetric:0.2"]["published"]) == pytest.approx(0.961)
    assert by_cell["dividemix", "asymmetric:0.4"]["mean"] == ""
    assert by_cell["a & b_c", "symmetric:0.2"]["published"] == ""


def test_other_data_have_no_published_figures() -> None:
    assert not any(table.published for table in measured(None))
    assert not any(table.published for table in measured("digits"))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    latex = as_latex(measured())
    assert r"\multicolumn{2}{c}{blobs}" in latex
    assert r"\quad\textit{published} & Best & \textit{96.1} & \textit{93.4} \\" in latex
    (tmp_path / "tables.tex").write_text(latex, encoding="utf-8")
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{tables.tex}\end{document}"
    )
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 1000
