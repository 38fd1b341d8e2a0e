"""The report of an audit: one file, whole, safe and complete."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from audited_runs import ESTIMATORS, MakeRun, make_audit_with_other_issues
from laplaceconfidence.auditing.statement import EVIDENCE_ALONE
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records import AuditRun
from laplaceconfidence.report import write_report
from laplaceconfidence.report.audit_page import audit_page
from laplaceconfidence.report.writing import _environment

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


class Page(HTMLParser):
    """The elements, texts and addresses of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(path: Path) -> tuple[str, Page]:
    html = path.read_text(encoding="utf-8")
    return html, Page(html)


def test_the_report_stands_alone(make_run: MakeRun) -> None:
    report = write_report(make_run("parquet").folder)
    html, page = page_of(report.path)
    assert not page.attributes("script")
    assert not page.attributes("link")
    addresses = [a.get("src") or a.get("href") or a.get("xlink:href") or "" for _, a in page.tags]
    assert all(address.startswith(("data:", "#")) for address in addresses if address)
    assert not re.search(r"url\((?!#)", html)
    assert len(html) < 2_000_000


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_label_is_escaped_and_shown(make_run: MakeRun, estimator: str) -> None:
    _, page = page_of(write_report(make_run("csv", estimator=estimator).folder).path)
    assert not page.attributes("script")
    assert not page.attributes("b")
    text = "".join(page.texts)
    for name in ("<script>alert(1)</script>", '猫 🐈 & "co"', "it's --> $x$ a/b", "<b>bold</b>"):
        assert name in text


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimate_flags_and_list_are_stated(make_run: MakeRun, estimator: str) -> None:
    run = make_run("csv", estimator=estimator)
    _, page = page_of(write_report(run.folder).path)
    text = "".join(page.texts)
    assert run.record.statement.headline in text
    assert all(said in text for fact in run.record.statement.facts for said in fact)
    n_flagged = int(run.issues.is_label_issue.sum())
    assert f"{n_flagged} (" in text
    assert "where another class is more probable" in text


def test_labels_are_listed_by_rank_where_the_noise_is_not_identified(tmp_path: Path) -> None:
    from audited_runs import confusable_points
    from laplaceconfidence import find_label_issues
    from laplaceconfidence.exceptions import LaplaceConfidenceWarning

    features, labels, _ = confusable_points()
    ids = [
        f"a rather long beginning that all ids share, batch {row % 3}, sample {row:04d}" for row in range(240)
    ]
    with pytest.warns(LaplaceConfidenceWarning):
        result = find_label_issues(labels, features, ids=ids, random_state=0)
    _, page = page_of(write_report(result.save(tmp_path / "run")).path)
    text = "".join(page.texts)
    assert "Between 1.3% and 34% of 240 labels may be wrong" in text
    assert "First verify 100 labels drawn at random" in text
    assert re.search(r"The first 48 of \d+ labels to look at", text)
    assert "only their order counts" in text
    assert EVIDENCE_ALONE in text
    assert "· confidence" not in text  # beside a probability that leaves the given label out
    articles = [a["aria-label"] or "" for a in page.attributes("article")]
    told = [re.fullmatch(r"Sample (.*), labeled (\d), suggested (\d)", label) for label in articles]
    assert [found[1] for found in told if found] == result.table["id"].head(48).tolist()
    assert all(found and found[2] != found[3] for found in told)
    shown = {a["title"] for a in page.attributes("span") if a.get("title")}
    assert shown == set(result.table["id"].head(48))


def test_pictures_and_figures_have_alternative_texts(make_run: MakeRun) -> None:
    _, page = page_of(write_report(make_run("parquet").folder).path)
    pictures = page.attributes("img")
    assert len(pictures) > 9
    assert all(picture["alt"] for picture in pictures)
    figures = [a for a in page.attributes("div") if a.get("role") == "img"]
    assert len(figures) == 2
    assert all(figure["aria-label"] for figure in figures)


def test_ids_are_unique(make_run: MakeRun) -> None:
    html, _ = page_of(write_report(make_run("csv").folder).path)
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_figures_are_written_as_pdf_and_png(make_run: MakeRun, tmp_path: Path) -> None:
    report = write_report(make_run("csv").folder, tmp_path / "r.html", figures=tmp_path / "figures")
    assert {path.name for path in report.figures} == {
        "confidence.pdf",
        "confidence.png",
        "confusion.pdf",
        "confusion.png",
    }
    assert all(path.stat().st_size > 1000 for path in report.figures)


def test_a_report_does_not_keep_the_audit_from_being_replaced(make_run: MakeRun) -> None:
    from laplaceconfidence.records.run_folder import check_place

    run = make_run("parquet")
    assert write_report(run.folder).path.parent == run.folder
    check_place(run.folder, overwrite=True)


def test_missing_pictures_leave_a_note(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("parquet")
    for path in (tmp_path / "data" / "images").iterdir():
        path.unlink()
    _, page = page_of(write_report(run.folder).path)
    text = "".join(page.texts)
    assert "90 image files were moved or deleted" in text
    assert "picture not found" in text


def test_long_texts_are_cut_and_reachable(make_run: MakeRun) -> None:
    run = make_run("csv", texts=["word " * 20_000] * 90)
    html, page = page_of(write_report(run.folder).path)
    assert len(html) < 3_000_000
    assert len(page.attributes("details")) == 9
    assert "Full text (100,000 characters)" in "".join(page.texts)


def test_digits_are_shown(make_run: MakeRun) -> None:
    _, page = page_of(write_report(make_run("digits").folder).path)
    assert all(picture["src"].startswith("data:image/png") for picture in page.attributes("img"))  # type: ignore[union-attr]
    assert page.attributes("img")


def test_an_audit_without_suspects_has_a_report(tmp_path: Path) -> None:
    from audited_runs import noisy_blobs
    from laplaceconfidence.auditing.issues import find_label_issues
    from laplaceconfidence.records import write_audit

    features, _, true = noisy_blobs()
    run = write_audit(
        find_label_issues(true, features, estimator="laplace", n_neighbors=6, alpha=0.9), tmp_path / "run"
    )
    _, page = page_of(write_report(run.folder).path)
    assert "None of 90 labels is flagged" in "".join(page.texts)


def test_what_is_no_run_is_said_so(tmp_path: Path, make_run: MakeRun) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        write_report(tmp_path)
    run = make_run("csv")
    with pytest.raises(RunFolderError, match="existing folder"):
        write_report(run.folder, tmp_path / "missing" / "report.html")
    (run.folder / "evidence.parquet").unlink()
    with pytest.raises(RunFolderError, match=r"evidence\.parquet is missing"):
        write_report(run.folder)


def test_copies_leaks_and_outliers_are_shown_with_what_to_do(tmp_path: Path) -> None:
    _, page = page_of(write_report(make_audit_with_other_issues(tmp_path).folder).path)
    text = " ".join("".join(page.texts).split())
    assert "7 samples in 3 sets of copies, 1 with conflicting labels" in text
    assert "4 samples are also in the test set" in text
    assert "1 outlier" in text
    for command in ("review run --queue copies", "export run --copies keep-one", "export run --leaks drop"):
        assert f"laplaceconfidence {command}" in text
    assert text.index("s091") < text.index("s090")  # conflicting labels first
    assert "in the test set: id t000" in text
    assert "Test text 0" in text
    assert not page.attributes("b")


def test_a_run_without_other_problems_says_so_in_a_line(make_run: MakeRun) -> None:
    run = make_run("npz")
    for column in ("is_outlier_issue", "is_near_duplicate_issue", "has_conflicting_duplicate"):
        run.issues[column] = False
    run.issues["near_duplicate_set"] = float("nan")
    text = " ".join(_other_problems(run).split())
    assert "No sample is an outlier, a near-duplicate of another." in text
    run.__dict__["issues"] = run.issues[[*run.issues.columns[:6]]]
    assert _other_problems(run) == ""


def _other_problems(run: AuditRun) -> str:
    """The section of the report, without its tags; empty where there is none."""
    page = audit_page(run)
    drawn = {d.name: {"title": d.title, "alt": d.alt, "svg": ""} for d in page.drawings}
    html = _environment().get_template(page.template).render(folder="run", figures=drawn, **page.content)
    found = re.search(r'<section aria-labelledby="h-issues">(.*?)</section>', html, re.DOTALL)
    return "" if found is None else re.sub(r"<[^>]+>", "", found[1])
