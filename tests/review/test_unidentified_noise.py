"""The review of an audit that cannot tell wrong labels from overlapping classes."""

import re
from pathlib import Path

import numpy as np
import pytest
from review_page import QUEUE, OpenPage

from audited_runs import confusable_points
from laplaceconfidence import find_label_issues
from laplaceconfidence.auditing.statement import EVIDENCE_ALONE
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.export import plan_export
from laplaceconfidence.records import AuditRun, read_audit

pytest.importorskip("fastapi")


@pytest.fixture
def audited(tmp_path: Path) -> AuditRun:
    features, labels, _ = confusable_points()
    with pytest.warns(LaplaceConfidenceWarning):
        result = find_label_issues(labels, features, random_state=0)
    return read_audit(result.save(tmp_path / "run"))


def test_the_random_sample_is_offered_first_and_the_range_is_stated(
    audited: AuditRun, open_page: OpenPage
) -> None:
    page = open_page(audited)
    html = page.client.get("/").text
    assert re.findall(r'data-view="(\w+)"', html) == ["random", "ranked"]
    statement = audited.record.statement
    assert statement.headline in html
    assert str(statement.verifying) in html
    assert EVIDENCE_ALONE in html
    progress = page.next(view="random")["progress"]
    assert progress["expected_left"] < progress["most_left"] == statement.n_at_most
    assert {name: n for name, n in progress["n_left"].items() if n} == {
        "ranked": statement.n_listed,
        "random": 100,
    }


def test_labels_are_queued_by_rank_with_suggestions_of_the_evidence(
    audited: AuditRun, open_page: OpenPage
) -> None:
    page = open_page(audited)
    truth, seen, right = confusable_points()[2], [], 0
    answer = page.next(view="ranked")
    while answer["sample"] is not None:
        sample = answer["sample"]
        seen.append(sample["row"])
        assert sample["suggested"] != sample["given"]
        if len(seen) <= 20:
            right += sample["suggested"] == str(truth[sample["row"]])
            assert sample["top"][0]["name"] == sample["suggested"]
            assert sample["probability"] == pytest.approx(sample["top"][0]["probability"])
        assert sample["confidence"] is None  # with a label that all probabilities beside it leave out
        answer = page.decide(sample, "suggestion", queue=QUEUE | {"view": "ranked"}).json()
    assert seen == audited.issues.index[: audited.record.statement.n_listed].tolist()
    assert right > 18
    progress = answer["progress"]
    assert progress["n_ranked_decided"] == progress["n_ranked"] == len(seen)
    assert progress["n_left"]["ranked"] == 0 < progress["n_left"]["random"]
    assert progress["most_left"] == 0  # as many were found as there are at most
    decided = page.session.decision(seen[0])
    assert decided is not None
    assert (decided.verdict, decided.label) == ("suggestion", truth[seen[0]])


def test_a_random_sample_replaces_the_range(audited: AuditRun, open_page: OpenPage) -> None:
    page = open_page(audited)
    truth = confusable_points()[2]
    answer = page.next(view="random")
    for _ in range(100):
        row = answer["sample"]["row"]
        verdict = {"verdict": "other", "label": int(truth[row])}
        answer = page.decide(answer["sample"], queue=QUEUE | {"view": "random"}, **verdict).json()
    progress = answer["progress"]
    assert progress["most_left"] is None
    assert progress["calibrated"]
    assert progress["n_left"]["random"] == 0
    wrong = (confusable_points()[1] != truth).sum()
    found = progress["random"]["wrong"]
    assert abs(progress["expected_left"] + found - wrong) < 20


@pytest.mark.parametrize("policy", ["reviewed-only", "reviewed-then-confident", "drop"])
def test_no_policy_applies_what_nobody_decided(audited: AuditRun, policy: str) -> None:
    more = {"min_probability": 0.0} if policy == "reviewed-then-confident" else {}
    plan = plan_export(audited, policy=policy, **more)  # type: ignore[arg-type]
    assert len(plan.trail) == 0
    assert np.array_equal(plan.codes, plan.samples.given)
    assert plan.is_kept.all()
