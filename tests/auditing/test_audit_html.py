"""What a notebook shows of an audit, its figures, and its run folder."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from audited_runs import CLASS_NAMES, noisy_blobs
from html_pages import EVIL, Page
from laplaceconfidence import NoisyDataset, audit, find_label_issues
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.cli.app import app
from laplaceconfidence.exceptions import MissingDependencyError, RunFolderError
from laplaceconfidence.export.original import original_of
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.session import ReviewSession

SETTINGS: dict[str, Any] = {"estimator": "laplace", "n_neighbors": 6, "alpha": 0.9}


def text_frame(texts: list[str] | None = None) -> pd.DataFrame:
    features, given, _ = noisy_blobs()
    frame = pd.DataFrame(features, columns=["emb_0", "emb_1", "emb_2"])
    frame["mood"] = [(EVIL, *CLASS_NAMES[1:])[code] for code in given]
    frame["review"] = texts or [f"Text number {row}, <b>bold</b>" for row in range(len(frame))]
    return frame


def audited_texts() -> AuditResult:
    return audit(text_frame(), label="mood", features="emb_*", text="review", **SETTINGS)


def audited_pictures() -> AuditResult:
    features, given, _ = noisy_blobs()
    images = np.random.default_rng(0).integers(0, 256, (len(given), 8, 8, 3)).astype(np.uint8)
    return audit(NoisyDataset.from_arrays(given, features, images=images), **SETTINGS)


def test_labels_and_texts_stay_text() -> None:
    page = Page(audited_texts()._repr_html_())
    assert {tag for tag, _ in page.tags} & {"script", "img", "link"} == set()
    assert "9 of 90 labels (10%) are flagged" in page.text
    assert "not estimated by this estimator" in page.text
    assert "<b>bold</b>" in page.text
    assert "<script>" in page.text
    assert "estimator: laplace" in page.text


def test_pictures_are_part_of_the_page() -> None:
    html = audited_pictures()._repr_html_()
    addresses = [attributes["src"] for tag, attributes in Page(html).tags if tag == "img"]
    assert len(addresses) == 9
    assert all(address is not None and address.startswith("data:image/png;base64,") for address in addresses)
    assert "http" not in html


def test_at_most_ten_suspects_are_shown_and_long_texts_cut() -> None:
    frame = text_frame(["word " * 5_000] * 90)
    frame.loc[:29, "mood"] = frame["mood"].to_numpy()[1:31]  # one row on: another class
    result = audit(frame, label="mood", features="emb_*", text="review", threshold=0.9, **SETTINGS)
    assert result.n_issues > 10
    page = Page(result._repr_html_())
    assert f"(10 of {result.n_issues})" in page.text
    assert len(page.text) < 10_000


def test_the_noise_rate_is_shown_with_its_bracket() -> None:
    features, given, _ = noisy_blobs()
    result = find_label_issues(given, features, random_state=0)
    text = Page(result._repr_html_()).text
    assert result.statement.headline in text
    assert all(said in text for fact in result.statement.facts for said in fact)


def test_an_audit_without_suspects() -> None:
    features, _, true = noisy_blobs()
    page = Page(find_label_issues(true, features, **SETTINGS)._repr_html_())
    assert "None of 90 labels is flagged" in page.text
    assert "Labels to look at first (10 of 90)" in page.text
    assert "Most confused classes" not in page.text


def test_suspects_at_a_glance() -> None:
    result = audited_texts()
    frame = result.suspects(5)
    assert frame.index.tolist() == result.table.index[:5].tolist()
    assert frame.columns.tolist() == [
        *("id", "given_label", "predicted_label", "predicted_probability", "label_score", "text")
    ]
    assert (frame["label_score"] == result.table["label_score"].head(5).round(4)).all()
    assert len(result.suspects(100)) == result.n_issues


PLOTS: tuple[Callable[..., Any], ...] = (
    AuditResult.plot_scores,
    AuditResult.plot_confusion,
    AuditResult.plot_classes,
)


@pytest.fixture
def pyplot() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")
    matplotlib.use(before)


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.__name__)
def test_plots_are_drawn_into_new_or_given_axes(plot: Callable[..., Any], pyplot: Any) -> None:
    result = audited_texts()
    new = plot(result)
    assert new.figure.number in pyplot.get_fignums()
    _, given = pyplot.subplots()
    assert plot(result, ax=given) is given
    assert given.has_data()


@pytest.mark.parametrize("plot", PLOTS[1:], ids=lambda plot: plot.__name__)
def test_names_of_classes_are_no_formulas(plot: Callable[..., Any], pyplot: Any) -> None:
    _, given = pyplot.subplots()
    given.plot([0, 1], [0, 1])
    given.figure.canvas.draw()  # makes ticks that are used again
    names = plot(audited_texts(), ax=given).get_yticklabels()
    assert any("$x$" in name.get_text() for name in names)
    assert not any(name.get_parse_math() for name in names)


def test_plots_show_the_numbers_of_the_audit(pyplot: Any) -> None:
    result = audited_texts()
    trusted, flagged = result.plot_scores().containers
    assert sum(bar.get_height() for bar in trusted) == 81
    assert sum(bar.get_height() for bar in flagged) == 9
    numbers = [int(text.get_text()) for text in result.plot_confusion().texts]
    assert sorted(numbers) == sorted(result.confused_pairs["n_issues"])
    shares = [bar.get_width() for bar in result.plot_classes().containers[0]]
    assert np.allclose(shares, 100 * result.class_summary["issue_share"])


def test_plots_name_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = audited_texts()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingDependencyError, match=r"matplotlib: pip install 'laplaceconfidence\[review\]'"
    ):
        result.plot_scores()


@pytest.mark.parametrize("make", [audited_texts, audited_pictures])
def test_a_saved_audit_goes_through_report_review_and_export(
    make: Callable[[], AuditResult], tmp_path: Path
) -> None:
    from typer.testing import CliRunner

    pytest.importorskip("jinja2")
    result = make()
    folder = result.save(tmp_path / "run")
    reported = CliRunner().invoke(app, ["report", str(folder)])
    assert reported.exit_code == 0, reported.output
    assert (folder / "report.html").is_file()
    session = ReviewSession(read_audit(folder))
    session.close()
    words = [
        "--policy",
        "reviewed-then-confident",
        "--min-probability",
        "0.1",
        "-o",
        str(tmp_path / "new.npz"),
    ]
    exported = CliRunner().invoke(app, ["export", str(folder), *words])
    assert exported.exit_code == 0, exported.output
    with np.load(tmp_path / "new.npz", allow_pickle=False) as arrays:
        assert len(arrays["features"]) == 90
        assert (
            arrays["labels"].astype(str) == result.corrected_labels(min_probability=0.1).astype(str)
        ).all()


def test_a_saved_audit_is_not_replaced_by_accident(tmp_path: Path) -> None:
    result = audited_texts()
    result.save(tmp_path / "run")
    with pytest.raises(RunFolderError):
        result.save(tmp_path / "run")
    result.save(tmp_path / "run", overwrite=True)


def test_data_read_from_a_file_is_found_there_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text_frame().to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    result = audit("data.csv", label="mood", features="emb_*", text="review", **SETTINGS)
    run = read_audit(result.save(tmp_path / "run"))
    assert not (run.folder / "data.npz").exists()
    monkeypatch.chdir("/")
    original = original_of(SampleArrays.of(run))
    assert original.lost is None
    assert original.path == tmp_path / "data.csv"


@pytest.mark.parametrize(
    "classes",
    [["b", "a", "none of these"], [5, 3, 4]],
    ids=["an order of their own", "numbers, one without a label"],
)
def test_the_data_of_a_saved_audit_keeps_its_classes(classes: list[Any], tmp_path: Path) -> None:
    features, given, _ = noisy_blobs()
    labels = np.array(classes)[given % 2]
    result = find_label_issues(labels, features, classes=classes, **SETTINGS)
    run = read_audit(result.save(tmp_path / "run"))
    original = original_of(SampleArrays.of(run))
    assert original.lost is None
    assert original.dataset.class_names == tuple(map(str, classes))
    assert original.dataset.labels.tolist() == result.dataset.labels.tolist()
