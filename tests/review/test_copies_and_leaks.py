"""Outliers, copies and leaks in the review: queues, decisions, undo, and what they mean for labels."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from review_page import OpenPage, Page

from audited_runs import make_audit_with_other_issues
from laplaceconfidence.export import plan_export
from laplaceconfidence.records import AuditRun
from laplaceconfidence.review.outcome import review_outcome
from laplaceconfidence.review.session import ReviewSession
from laplaceconfidence.review.store import FILE

QUEUE = {"view": "copies", "given": None, "suggested": None, "search": "", "show": "undecided"}


@pytest.fixture
def run(tmp_path: Path) -> AuditRun:
    return make_audit_with_other_issues(tmp_path)


@pytest.fixture
def page(run: AuditRun, open_page: OpenPage) -> Page:
    return open_page(run)


def decide_copies(page: Page, copies: dict[str, Any], verdict: str, **more: Any) -> Any:
    body = {"row": copies["row"], "verdict": verdict, "fingerprint": copies["fingerprint"], "who": "ann"}
    return page.client.post("/api/copies", json=body | {"queue": QUEUE} | more)


def verdicts(page: Page, subject: str) -> dict[int, str | None]:
    return {one.row: one.verdict for one in page.session.store.all() if one.subject == subject}


def test_the_queues_begin_with_what_matters_most(page: Page) -> None:
    assert {
        name: rows.tolist() for name, rows in page.session.queues.rows_of.items() if name != "random"
    } == {
        "worst": page.session.samples.suspects.tolist(),
        "ranked": page.session.samples.first_rows.tolist(),
        "disputed": [],
        "uncertain": [],
        "unlabeled": [],
        "outliers": [94],
        "copies": [2, 1, 4],  # conflicting labels first
        "leaks": [4, 5, 92, 93],
        "images": [],
        "empty": [],
        "missing": [],
        "groups": [],
        "rare": [],
        "order": [],
    }
    html = page.client.get("/").text
    assert [f'data-view="{name}"' in html for name in ("outliers", "copies", "leaks", "unlabeled")] == [
        True,
        True,
        True,
        False,
    ]


def test_a_run_without_them_has_no_such_queues(make_run: Any, open_page: OpenPage) -> None:
    html = open_page(make_run("csv")).client.get("/").text
    assert not [name for name in ("outliers", "copies", "leaks") if f'data-view="{name}"' in html]


def test_copies_are_shown_together(page: Page) -> None:
    shown = page.next(view="copies")["sample"]
    assert [copy["row"] for copy in shown["copies"]] == [2, 91]
    assert shown["n_copies"] == shown["n_conflicting"] == 2
    assert shown["best"] == 2
    wholly_leaked = page.client.post("/api/sample/93", json=QUEUE).json()["sample"]
    assert [copy["row"] for copy in wholly_leaked["copies"]] == [4, 92, 93]
    assert wholly_leaked["row"] == 4
    assert {copy["leak"]["id"] for copy in wholly_leaked["copies"]} == {"t001"}
    assert page.client.post("/api/sample/7", json=QUEUE).status_code == 422


def test_the_recommended_copy_is_the_one_an_export_would_keep(page: Page, run: AuditRun) -> None:
    for row in (1, 91):
        page.session.decide(row, "keep", label=None, expected_version=0, who="ann", queue="worst")
    is_kept = plan_export(run, copies="keep-one").is_kept
    for found in page.session.issues.copies:
        assert is_kept[page.session.best_copy(found.rows)]
    assert page.session.best_copy(np.array([2, 91])) == 91


def test_keeping_one_drops_the_others_and_is_undone_as_one(page: Page) -> None:
    page.next(view="copies")
    copies = page.client.post("/api/sample/4", json=QUEUE).json()["sample"]
    answer = decide_copies(page, copies, "keep-one", kept=92).json()
    assert answer["n_stored"] == 3
    assert verdicts(page, "copies") == {4: "drop", 92: "keep", 93: "drop"}
    log = list(page.session.store.log())
    assert len({entry["batch"] for entry in log}) == 1
    assert log[0]["shown"] == {
        "given": "pear",
        "copies": [4, 92, 93],
        "n_copies": 3,
        "kept": 92,
    }
    assert answer["progress"]["other_issues"]["copies"] == [1, 3]
    undone = page.client.post("/api/undo", json={"who": "ann", "queue": QUEUE}).json()
    assert undone["n_undone"] == 3
    assert undone["subject"] == "copies"
    assert undone["sample"]["row"] == 4
    assert set(verdicts(page, "copies").values()) == {None}
    assert undone["progress"]["other_issues"]["copies"] == [0, 3]


def test_who_comes_second_is_told_and_nothing_is_stored(run: AuditRun, open_page: OpenPage) -> None:
    first, second = open_page(run), open_page(run)
    seen = second.next(view="copies")["sample"]
    assert decide_copies(first, first.next(view="copies")["sample"], "keep", who="bob").status_code == 200
    answer = decide_copies(second, seen, "keep-one", kept=2)
    assert answer.status_code == 409
    assert "bob decided" in answer.json()["message"]
    assert verdicts(second, "copies") == {2: "keep", 91: "keep"}
    assert len(list(second.session.store.log())) == 2


def test_a_copy_that_is_left_out_already_cannot_be_the_one_that_stays(page: Page) -> None:
    page.session.decide(92, "drop", label=None, expected_version=0, who="ann", queue="leaks")
    copies = page.client.post("/api/sample/4", json=QUEUE).json()["sample"]
    assert copies["best"] != 92
    answer = decide_copies(page, copies, "keep-one", kept=92)
    assert answer.status_code == 422
    assert "left out for another reason" in answer.json()["message"]
    assert verdicts(page, "copies") == {}


@pytest.mark.parametrize(
    "change",
    [{"kept": 7}, {"kept": None}, {"verdict": "keep", "kept": 2}, {"verdict": "suggestion"}, {"row": 7}],
)
def test_requests_that_mean_nothing_are_refused(page: Page, change: dict[str, Any]) -> None:
    copies = page.next(view="copies")["sample"]
    answer = decide_copies(page, copies, change.pop("verdict", "keep-one"), **({"kept": 2} | change))
    assert answer.status_code == 422
    assert not list(page.session.store.log())


def test_copies_are_not_decided_on_one_by_one(page: Page) -> None:
    answer = page.decide({"row": 2, "version": 0}, "drop", queue=QUEUE)
    assert answer.status_code == 422
    assert "decided on together" in answer.json()["message"]


def test_that_a_copy_stays_says_nothing_about_its_label(page: Page) -> None:
    before = page.session.progress()
    decide_copies(page, page.next(view="copies")["sample"], "keep")
    after = page.session.progress()
    assert after.by_verdict == before.by_verdict
    assert after.expected_left == before.expected_left
    assert not page.session.is_decided("worst").any()
    assert page.session.is_decided("copies")[[2, 91]].all()


def test_a_dropped_sample_needs_no_other_decision(page: Page) -> None:
    session = page.session
    before = session.progress().expected_left
    session.decide(4, "drop", label=None, expected_version=0, who="ann", queue="leaks")
    assert session.is_decided("worst")[4]
    assert not session.is_decided("copies")[4]  # of three copies, two are left
    session.decide(92, "none", label=None, expected_version=0, who="ann", queue="worst")
    assert session.is_decided("copies")[4]  # only one is left
    expected = before - (1 - session.samples.confidence[[4, 92]]).sum()
    assert session.progress().expected_left == pytest.approx(expected)
    assert session.is_decided("leaks")[92]


def test_dropped_samples_do_not_end_the_random_sample(page: Page) -> None:
    session = page.session
    order = session.samples.random_order.tolist()
    leaked = order.index(5)
    session.decide(5, "drop", label=None, expected_version=0, who="ann", queue="leaks")
    for row in order[: leaked + 3]:
        if row != 5:
            session.decide(row, "keep", label=None, expected_version=0, who="ann", queue="random")
    assert session.random_sample().rows.tolist() == [row for row in order[: leaked + 3] if row != 5]


def test_leaks_are_dropped_or_kept(page: Page) -> None:
    shown = page.next(view="leaks")["sample"]
    assert shown["leak"] == {"id": "t001", "label": "plum", "text": "Test text 1", "picture": False}
    queue = QUEUE | {"view": "leaks"}
    answer = page.decide(shown, "drop", queue=queue).json()
    assert answer["stored"]["verdict"] == "drop"
    assert answer["sample"]["row"] == 5
    assert page.decide(answer["sample"], "suggestion", queue=queue).status_code == 422
    assert page.decide({"row": 7, "version": 0}, "drop", queue=queue).status_code == 422
    many = {"rows": [[92, 0], [93, 0]], "verdict": "keep", "who": "ann", "queue": queue}
    assert page.client.post("/api/decisions/many", json=many).status_code == 200
    assert verdicts(page, "leaks") == {4: "drop", 92: "keep", 93: "keep"}
    assert verdicts(page, "label") == {}


def test_outliers_are_judged_by_their_label_or_dropped(page: Page) -> None:
    queue = QUEUE | {"view": "outliers"}
    shown = page.next(view="outliers")["sample"]
    assert shown["row"] == 94
    page.decide(shown, "drop", queue=queue)
    assert verdicts(page, "label") == {94: "drop"}
    assert page.session.progress().by_verdict["drop"] == 1
    outcome = review_outcome(page.session.samples.run)
    assert "s094" not in outcome.labels  # dropping does not say what the label is


def test_undo_in_another_queue_says_where_it_was(page: Page) -> None:
    page.decide(page.next(view="leaks")["sample"], "drop", queue=QUEUE | {"view": "leaks"})
    undone = page.undo().json()  # in the queue of suspects
    assert undone["subject"] == "leaks"
    assert undone["sample"] is None


def test_a_search_finds_sets_by_any_of_their_copies(page: Page) -> None:
    assert page.next(view="copies", search="s093")["sample"]["row"] == 4
    assert page.next(view="copies", search="s007")["sample"] is None


OLD_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE decisions (
    row INTEGER PRIMARY KEY, version INTEGER NOT NULL, verdict TEXT, label INTEGER,
    who TEXT NOT NULL, at TEXT NOT NULL, queue TEXT NOT NULL
);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL, sample_id TEXT NOT NULL,
    version INTEGER NOT NULL, verdict TEXT, label INTEGER, who TEXT NOT NULL, at TEXT NOT NULL,
    queue TEXT NOT NULL, before TEXT, batch TEXT NOT NULL, undoes TEXT, shown TEXT NOT NULL
);
CREATE TRIGGER log_stays BEFORE UPDATE ON log
BEGIN SELECT RAISE(ABORT, 'the log of decisions only grows'); END;
CREATE TRIGGER log_is_kept BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'the log of decisions only grows'); END;
"""


def test_a_file_of_the_first_format_is_read_and_continued(run: AuditRun) -> None:
    session = ReviewSession(run)  # for the name of the audit
    audit = session.store._connection.execute("SELECT value FROM about WHERE key = 'audit'").fetchone()[0]
    session.close()
    (run.folder / FILE).unlink()
    old = sqlite3.connect(run.folder / FILE)
    old.executescript(OLD_TABLES)
    old.executemany("INSERT INTO about VALUES (?, ?)", [("format_version", "1"), ("audit", audit)])
    when = "2026-01-01T00:00:00.000+00:00"
    old.execute("INSERT INTO decisions VALUES (2, 1, 'none', NULL, 'ann', ?, 'worst')", [when])
    old.execute(
        "INSERT INTO log VALUES (1, 2, 's002', 1, 'none', NULL, 'ann', ?, 'worst', NULL, 'b1', NULL, '{}')",
        [when],
    )
    old.commit()
    old.close()

    assert not plan_export(run).is_kept[2]
    session = ReviewSession(run)
    decision = session.decision(2)
    assert decision is not None
    assert (decision.verdict, decision.version, decision.subject) == ("none", 1, "label")
    session.decide_copies(1, "keep-one", kept=1, fingerprint=session.copies(1).fingerprint, who="ann")
    assert [entry["subject"] for entry in session.store.log()] == ["label", "copies", "copies"]
    assert len(session.undo(who="ann")) == 2
    assert [one.row for one in session.undo(who="ann")] == [2]
    assert session.decision(2).verdict is None  # type: ignore[union-attr]
    session.close()
    found = sqlite3.connect(run.folder / FILE)
    assert found.execute("SELECT value FROM about WHERE key = 'format_version'").fetchone() == ("2",)
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        found.execute("DELETE FROM log")
    found.close()
