"""What the review page is told, and what it can do."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from review_page import OpenPage

from audited_runs import CLASS_NAMES, ESTIMATORS, N_SAMPLES, MakeRun
from laplaceconfidence.records import read_audit
from laplaceconfidence.report import write_report
from laplaceconfidence.review.session import ReviewSession
from laplaceconfidence.review.store_errors import StaleDecisionError

pytest.importorskip("fastapi")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_suspects_come_worst_first(make_run: MakeRun, open_page: OpenPage, estimator: str) -> None:
    page = open_page(make_run(estimator=estimator))
    samples = page.session.samples
    seen = []
    answer = page.next()
    while answer["sample"] is not None:
        seen.append(answer["sample"]["row"])
        answer = page.decide(answer["sample"], "keep").json()
    assert seen == samples.suspects.tolist()
    assert answer["progress"]["n_suspects_decided"] == len(seen) >= 8  # 9 labels are wrong


def test_every_verdict_leads_to_its_label(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    samples = page.session.samples
    for verdict in ("keep", "suggestion", "unsure", "none"):
        sample = page.next()["sample"]
        assert page.decide(sample, verdict).status_code == 200
        row = sample["row"]
        expected = {"keep": samples.given[row], "suggestion": samples.suggested[row]}.get(verdict)
        assert page.session.decision(row).label == expected
    sample = page.next()["sample"]
    (third,) = set(range(3)) - {samples.given[sample["row"]], samples.suggested[sample["row"]]}
    page.decide(sample, "other", label=int(third))
    assert page.session.decision(sample["row"]).label == third


def test_another_class_that_is_the_given_one_means_keep(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    sample = page.next()["sample"]
    page.decide(sample, "other", label=int(page.session.samples.given[sample["row"]]))
    assert page.session.decision(sample["row"]).verdict == "keep"


def test_taking_a_suggestion_that_agrees_means_keep(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    samples = page.session.samples
    trusted = next(row for row in samples.random_order.tolist() if not samples.flagged[row])
    page.decide({"row": trusted, "version": 0}, "suggestion", queue={"view": "random"})
    assert page.session.decision(trusted).verdict == "keep"


def test_two_tabs_do_not_overwrite_each_other(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    sample = page.next()["sample"]  # both tabs see this
    assert page.decide(sample, "keep").status_code == 200
    refused = page.decide(sample, "none")
    assert refused.status_code == 409
    assert refused.json()["sample"]["verdict"] == "keep"
    assert page.session.decision(sample["row"]).verdict == "keep"


def test_two_servers_see_each_others_decisions(make_run: MakeRun, open_page: OpenPage) -> None:
    run = make_run()
    here, there = open_page(run), open_page(read_audit(run.folder))
    sample = here.next()["sample"]
    there.decide(there.next()["sample"], "keep")
    assert here.decide(sample, "none").status_code == 409
    assert here.next()["sample"]["row"] != sample["row"]


def test_undo_brings_the_sample_back(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    sample = page.next()["sample"]
    page.decide(sample, "suggestion")
    answer = page.undo().json()
    assert answer["n_undone"] == 1
    assert answer["sample"]["row"] == sample["row"]
    assert answer["sample"]["verdict"] is None
    assert page.undo("somebody else").json()["n_undone"] == 0


def test_decisions_survive_a_restart(make_run: MakeRun, open_page: OpenPage) -> None:
    run = make_run()
    page = open_page(run)
    sample = page.next()["sample"]
    page.decide(sample, "suggestion")
    again = ReviewSession(read_audit(run.folder))
    assert again.decision(sample["row"]).verdict == "suggestion"
    again.close()


def test_bulk_takes_what_was_previewed_and_is_undone_as_one(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    pair = page.client.get("/api/pairs").json()[0]
    asked = {"given": pair["given"], "suggested": pair["suggested"], "min_probability": 0.2}
    preview = page.client.get("/api/bulk", params=asked).json()
    assert preview["n"] == pair["n"] == len(preview["tiles"])
    body = asked | {"fingerprint": preview["fingerprint"], "who": "ann"}
    assert page.client.post("/api/bulk", json=body).json()["n_stored"] == pair["n"]
    assert page.client.post("/api/bulk", json=body).status_code == 409  # nothing of the preview is left
    assert page.undo().json()["n_undone"] == pair["n"]


def test_bulk_is_refused_if_somebody_decided_in_between(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    pair = page.client.get("/api/pairs").json()[0]
    asked = {"given": pair["given"], "suggested": pair["suggested"], "min_probability": 0.2}
    preview = page.client.get("/api/bulk", params=asked).json()
    page.decide(preview["tiles"][0], "keep")
    body = asked | {"fingerprint": preview["fingerprint"], "who": "ann"}
    assert page.client.post("/api/bulk", json=body).status_code == 409


def test_queues_by_pair_search_and_state(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    samples = page.session.samples
    given, suggested = int(samples.given[samples.suspects[0]]), int(samples.suggested[samples.suspects[0]])
    by_pair = page.next(given=given, suggested=suggested)
    pair = (samples.given[samples.suspects] == given) & (samples.suggested[samples.suspects] == suggested)
    assert by_pair["n_in_queue"] == pair.sum()
    row = int(samples.suspects[3])
    found = page.next(search=f"NUMBER {row},")
    assert (found["n_in_queue"], found["sample"]["row"]) == (1, row)
    assert page.next(search="no such text")["sample"] is None
    page.decide(found["sample"], "keep")
    assert page.next(show="decided")["sample"]["row"] == row
    assert page.next(show="all")["n_in_queue"] == len(samples.suspects)


def test_browsing_goes_round(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    rows = page.session.samples.suspects.tolist()

    def step(after: int, direction: int) -> int:
        query = {"after": after, "direction": direction}
        answer = page.client.post("/api/next", params=query, json={"show": "undecided"})
        return answer.json()["sample"]["row"]

    assert [step(rows[0], 1), step(rows[-1], 1), step(rows[0], -1), step(rows[2], -1)] == [
        rows[1],
        rows[0],
        rows[-1],
        rows[1],
    ]


def test_the_random_queue_estimates_the_noise(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    samples = page.session.samples
    wrong = 0
    answer = page.next(view="random")
    for _ in range(60):
        sample = answer["sample"]
        is_wrong = sample["row"] % 10 == 0
        wrong += is_wrong
        verdict = "suggestion" if is_wrong else "keep"
        answer = page.decide(sample, verdict, queue={"view": "random"}).json()
    random = answer["progress"]["random"]
    assert (random["n"], random["wrong"]) == (60, wrong)
    assert random["low"] < 0.1 < random["high"]
    assert answer["progress"]["calibrated"]
    assert answer["sample"]["calibrated"] is not None
    unsettled = np.setdiff1d(np.arange(len(samples)), samples.random_order[:60])
    expected = (unsettled % 10 == 0).sum()
    assert answer["progress"]["expected_left"] == pytest.approx(expected, abs=3)


def test_a_grid_holds_fifty(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    first = page.client.post("/api/grid", json={"view": "random"}).json()
    second = page.client.post("/api/grid", params={"page": 1}, json={"view": "random"}).json()
    rows = [tile["row"] for tile in first["tiles"] + second["tiles"]]
    assert (len(first["tiles"]), first["n_pages"]) == (50, 2)
    assert rows == page.session.samples.random_order.tolist()
    marked = [(tile["row"], tile["version"]) for tile in first["tiles"][:5]]
    body = {"rows": marked, "verdict": "keep", "who": "ann"}
    assert len(page.client.post("/api/decisions/many", json=body).json()["stored"]) == 5
    assert page.undo().json()["n_undone"] == 5


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_neighbors_have_labels_and_positions(make_run: MakeRun, open_page: OpenPage, estimator: str) -> None:
    page = open_page(make_run(estimator=estimator))
    sample = page.next()["sample"]
    assert sample["neighbors"]
    for near in sample["neighbors"]:
        assert near["position"] == ("agrees" if near["given"] == sample["given"] else "disagrees")
    assert sample["top"][0]["probability"] == pytest.approx(sample["probability"], abs=1e-5)


def test_a_long_text_comes_in_parts(make_run: MakeRun, open_page: OpenPage) -> None:
    long = "".join(chr(97 + i % 26) for i in range(100_000))
    page = open_page(make_run("csv", texts=[long] * 90))
    sample = page.next()["sample"]
    text = sample["text"]
    assert sample["n_characters"] == 100_000
    while part := page.client.get(f"/api/text/{sample['row']}", params={"start": len(text)}).json()["text"]:
        text += part
    assert text == long
    tiles = page.client.post("/api/grid", json={}).json()["tiles"]
    assert max(len(tile["text"]) for tile in tiles) < 1000


def test_class_names_of_every_script_are_given_as_they_are(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    assert tuple(page.client.get("/api/setup").json()["classes"]) == tuple(sorted(CLASS_NAMES))


def test_pictures_are_made_once(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run("parquet"))
    first = page.client.get("/picture/tile/7")
    assert first.headers["content-type"] == "image/jpeg"
    kept = list((page.session.samples.run.folder / "thumbnails").glob("7-160-*"))
    assert len(kept) == 1
    assert page.client.get("/picture/tile/7").content == first.content == kept[0].read_bytes()


def test_pictures_of_the_next_suspects_are_made_ahead(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run("parquet"))
    suspects = page.session.samples.suspects
    page.client.post("/api/next", json={}, params={"after": int(suspects[0])})
    folder = page.session.samples.run.folder / "thumbnails"
    end = time.monotonic() + 20
    while not all(list(folder.glob(f"{row}-640-*")) for row in suspects[2:5]):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_vanished_pictures_are_counted_and_the_rest_works(make_run: MakeRun, open_page: OpenPage) -> None:
    run = make_run("parquet")
    images = run.folder.parent / "data" / "images"
    (images / "0.png").unlink()
    (images / "10.png").write_bytes(b"no image")
    page = open_page(run)
    assert page.client.get("/api/setup").json()["n_lost_pictures"] == 1
    assert page.client.get("/picture/large/0").status_code == 404
    assert page.client.get("/picture/large/10").status_code == 404
    assert page.client.get("/picture/large/20").status_code == 200


def test_links_out_of_the_data_folder_are_counted(
    make_run: MakeRun, open_page: OpenPage, tmp_path: Path
) -> None:
    run = make_run("parquet")
    images = run.folder.parent / "data" / "images"
    for name, target in (("0.png", tmp_path / "elsewhere.png"), ("10.png", images / "20.png")):
        Image.new("RGB", (9, 9)).save(tmp_path / "elsewhere.png")
        (images / name).unlink()
        (images / name).symlink_to(target)
    page = open_page(run)
    setup = page.client.get("/api/setup").json()
    assert (setup["n_lost_pictures"], setup["n_outside_pictures"]) == (0, 1)
    assert page.client.get("/picture/large/0").status_code == 404
    assert page.client.get("/picture/large/10").status_code == 200
    assert "are not followed: 1." in write_report(run.folder).path.read_text(encoding="utf-8")
    images.rename(tmp_path / "moved")
    images.symlink_to(tmp_path / "moved")
    assert open_page(run).client.get("/api/setup").json()["n_outside_pictures"] == N_SAMPLES


def test_a_replaced_picture_is_made_again(make_run: MakeRun, open_page: OpenPage) -> None:
    run = make_run("parquet")
    page = open_page(run)
    before = page.client.get("/picture/tile/7").content
    path = run.folder.parent / "data" / "images" / "7.png"
    Image.new("RGB", (90, 90), "white").save(path)
    assert page.client.get("/picture/tile/7").content != before


@pytest.mark.parametrize(
    "change",
    [
        {"row": 90},
        {"row": -1},
        {"verdict": "maybe"},
        {"verdict": "other"},
        {"verdict": "other", "label": 3},
        {"label": 1},
        {"who": ""},
        {"version": "0"},
        {"extra": 1},
    ],
)
def test_nonsense_is_refused_and_not_stored(
    make_run: MakeRun, open_page: OpenPage, change: dict[str, object]
) -> None:
    page = open_page(make_run())
    sample = page.next()["sample"]
    body = {"row": sample["row"], "verdict": "keep", "version": 0, "who": "ann"} | change
    assert page.client.post("/api/decisions", json=body).status_code == 422
    assert not page.session.is_decided().any()


def test_digits_are_shown_from_the_run_itself(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run("digits"))
    sample = page.next(view="random")["sample"]
    picture = page.client.get(f"/picture/large/{sample['row']}")
    assert sample["picture"]
    assert picture.headers["content-type"] == "image/png"


def test_accepting_many_never_overwrites_what_was_stored_since_the_preview(make_run: MakeRun) -> None:
    session = ReviewSession(make_run())
    given, suggested, *_ = session.queues.pairs("worst", session.is_decided(), 1)[0]
    bulk = session.bulk(given, suggested, 0.2)
    row = int(bulk.rows[-1])
    session.decide(row, "none", label=None, expected_version=0, who="bob", queue="worst")
    with pytest.raises(StaleDecisionError, match=r"bob decided on one of these \d+ samples.*check again"):
        session.accept_bulk(bulk, who="ann")
    assert [(decision.row, decision.who) for decision in session.store.all()] == [(row, "bob")]
    session.close()


def test_of_two_clients_that_race_the_second_is_refused(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    pair = page.client.get("/api/pairs").json()[0]
    asked = {"given": pair["given"], "suggested": pair["suggested"], "min_probability": 0.2}
    for _ in range(30):
        preview = page.client.get("/api/bulk", params=asked).json()
        tile = preview["tiles"][-1]
        together = threading.Barrier(2)

        def accept(body: dict[str, object], start: threading.Barrier = together) -> int:
            start.wait()
            return page.client.post("/api/bulk", json=body).status_code

        def decide(sample: dict[str, object], start: threading.Barrier = together) -> int:
            start.wait()
            return page.decide(sample, "none", who="bob").status_code

        with ThreadPoolExecutor(2) as threads:
            many = threads.submit(accept, asked | {"fingerprint": preview["fingerprint"], "who": "ann"})
            one = threads.submit(decide, tile)
        codes = (many.result(), one.result())
        assert sorted(codes) == [200, 409]
        winner = "ann" if codes[0] == 200 else "bob"
        assert page.session.decision(tile["row"]).who == winner
        assert page.undo(winner).json()["n_undone"] == (preview["n"] if winner == "ann" else 1)


def test_a_server_whose_decisions_were_deleted_says_so(make_run: MakeRun, open_page: OpenPage) -> None:
    run = make_run()
    page = open_page(run)
    sample = page.next()["sample"]
    (run.folder / "decisions.sqlite").unlink()
    for _ in range(2):
        refused = page.decide(sample, "keep")
        assert refused.status_code == 410
        assert "deleted" in refused.json()["message"]
    assert page.undo().status_code == 410
