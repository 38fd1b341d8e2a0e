"""The report of a bench: who wins, every table and figure, safe and on its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench_runs import CLASSES, make_bench
from laplaceconfidence.evaluation.grid import Outcome
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records.bench_run import append_outcome
from laplaceconfidence.report import write_report

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

METRICS = {
    "confidence-auroc",
    "confidence-average-precision",
    "confidence-calibration-error",
    "confidence-seconds",
    "training-last-rounds-accuracy",
    "training-chosen-round-accuracy",
    "training-best-round-accuracy",
    "training-seconds",
}


def test_headline_tables_and_figures(tmp_path: Path) -> None:
    folder = make_bench(tmp_path / "bench").folder
    report = write_report(folder, tmp_path / "r.html", figures=tmp_path / "figures")
    html = report.path.read_text(encoding="utf-8")
    assert "Estimators: laplace is best under all 2 noises by AUROC." in html
    assert "laplace is best under all 2 noises by test accuracy, mean of the last 10 rounds." in html
    assert "<strong>0.905 ± 0.007</strong>" in html
    assert "for comparison only" in html
    assert {path.stem for path in report.figures} == METRICS
    assert {path.suffix for path in report.figures} == {".pdf", ".png"}
    assert all(path.stat().st_size > 1000 for path in report.figures)


def test_it_stands_alone_with_alternative_texts_and_nothing_of_the_data_is_markup(tmp_path: Path) -> None:
    html = write_report(make_bench(tmp_path / "bench").folder).path.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert CLASSES[1].replace("&", "&amp;") in html
    assert not re.search(r'(src|href)="(?!#|data:)', html)
    labels = re.findall(r'role="img" aria-label="([^"]+)"', html)
    assert len(labels) == len(METRICS)
    assert "The best by noise: symmetric 20%: laplace with 0.905 ± 0.007;" in labels[0]
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_an_unfinished_bench_is_reported_as_far_as_it_is(tmp_path: Path) -> None:
    run = make_bench(tmp_path / "bench", n_done=3)
    append_outcome(run.folder, Outcome(run.cells[3], error="<b>diverged</b>"))
    html = write_report(run.folder).path.read_text(encoding="utf-8")
    assert "not finished: 3 of 16 cells so far" in html
    assert "Cells that failed" in html
    assert "<b>" not in html


def test_a_bench_without_a_finished_cell_has_nothing_to_report(tmp_path: Path) -> None:
    run = make_bench(tmp_path / "bench", n_done=0)
    with pytest.raises(RunFolderError, match="no finished cell"):
        write_report(run.folder)


def test_no_torch_is_needed(tmp_path: Path) -> None:
    folder = make_bench(tmp_path / "bench").folder
    script = (
        f"import sys; from laplaceconfidence.report import write_report; write_report({str(folder)!r}); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
