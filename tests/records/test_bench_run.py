"""A bench on disk: goes on after a kill, keeps every whole line, and refuses other settings."""

import json
from pathlib import Path

import pytest

from bench_runs import COLUMNS, bench_record, blobs_record, contender_record, make_bench
from laplaceconfidence.evaluation.grid import Outcome, Shard
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records.audit_run import read_audit
from laplaceconfidence.records.bench_run import (
    append_outcome,
    open_bench,
    read_bench,
    shard_folder,
    write_tables,
)
from laplaceconfidence.records.run_folder import check_place


def test_what_was_done_is_there_again(tmp_path: Path) -> None:
    run = make_bench(tmp_path / "bench", n_done=5)
    again = open_bench(tmp_path / "bench", bench_record())
    assert again.done == run.cells[:5]
    assert not again.is_finished
    assert again.record == run.record
    assert make_bench(tmp_path / "whole").is_finished


def test_half_a_last_line_is_dropped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    run = make_bench(tmp_path, n_done=3)
    results = tmp_path / "results.jsonl"
    for torn in (b'{"task": "confi', '{"task": "ü'.encode()[:-1]):
        with results.open("ab") as file:
            file.write(torn)
        assert read_bench(tmp_path).done == run.cells[:3]  # reading leaves it: somebody may be writing
        assert results.read_bytes().endswith(torn)
        open_bench(tmp_path, bench_record())
        assert results.read_bytes().endswith(b"}\n")
    append_outcome(tmp_path, Outcome(run.cells[3], {"auroc": 0.5}))
    assert read_bench(tmp_path).done == run.cells[:4]


def test_a_damaged_line_in_the_middle_is_said(tmp_path: Path) -> None:
    make_bench(tmp_path, n_done=3)
    results = tmp_path / "results.jsonl"
    results.write_text(results.read_text().replace('"seed"', '"sead"', 1))
    with pytest.raises(RunFolderError, match=r"results\.jsonl"):
        read_bench(tmp_path)


def test_other_settings_are_shown_and_refused(tmp_path: Path) -> None:
    make_bench(tmp_path, n_done=1)
    other = bench_record(
        data={"blobs": blobs_record(source="other.npz", noises=["symmetric:0.2"])},
        contenders=(
            *bench_record().contenders[:2],
            contender_record("training", "cross_entropy", rounds=9),
            contender_record("training", "laplace", rounds=3),
        ),
        seeds=(0,),
    )
    with pytest.raises(RunFolderError) as error:
        open_bench(tmp_path, other)
    message = str(error.value)
    assert "data.blobs.source: 'blobs.npz' there, 'other.npz' now" in message
    assert "data.blobs.noises: ['symmetric:0.2', 'asymmetric:0.4'] there, ['symmetric:0.2'] now" in message
    assert "contender.cross_entropy.blobs, symmetric:0.2.rounds: 3 there, 9 now" in message
    assert "seeds: [0, 1] there, [0] now" in message
    assert "another folder" in message


def test_more_cells_may_be_added(tmp_path: Path) -> None:
    run = make_bench(tmp_path)
    created = run.record.created
    more = (*bench_record().contenders, contender_record("confidence", "noise-aware"))
    grown = bench_record(seeds=(0, 1, 2), contenders=more)
    run = open_bench(tmp_path, grown)
    assert len(run.cells) == 2 * 3 * 5
    assert len(run.done) == 2 * 2 * 4
    assert read_bench(tmp_path).record.seeds == (0, 1, 2)
    assert run.record.created == created


def test_failed_cells_count_as_not_done_until_they_are(tmp_path: Path) -> None:
    run = make_bench(tmp_path, n_done=1)
    cell = run.cells[1]
    append_outcome(tmp_path, Outcome(cell, error="diverged"))
    run = read_bench(tmp_path)
    assert cell not in run.done
    assert [outcome.error for outcome in run.failed] == ["diverged"]
    append_outcome(tmp_path, Outcome(cell, {"auroc": 0.5}))
    run = read_bench(tmp_path)
    assert cell in run.done
    assert not run.failed


def test_tables_are_written(tmp_path: Path) -> None:
    run = make_bench(tmp_path)
    write_tables(tmp_path, run.tables())
    assert "## Training methods: Test accuracy, chosen round" in (tmp_path / "tables.md").read_text()
    assert "confidence,auroc,laplace,blobs,symmetric:0.2,2," in (tmp_path / "tables.csv").read_text()
    assert r"\textbf{90.50 $\pm$ 0.71}" in (tmp_path / "tables.tex").read_text()


def test_foreign_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="holds other files"):
        open_bench(tmp_path, bench_record())
    with pytest.raises(RunFolderError, match="holds other files"):
        open_bench(tmp_path / "thesis.txt", bench_record())


def test_an_audit_neither_reads_nor_replaces_a_bench(tmp_path: Path) -> None:
    make_bench(tmp_path / "bench")
    with pytest.raises(RunFolderError, match="'bench', not 'audit'"):
        read_audit(tmp_path / "bench")
    with pytest.raises(RunFolderError, match="would be lost"):
        check_place(tmp_path / "bench", overwrite=True)


@pytest.mark.parametrize("change", [{"format_version": 99}, {"data": None}, {"kind": "audit"}])
def test_a_damaged_or_newer_record_is_said_to_be_so(tmp_path: Path, change: dict[str, object]) -> None:
    make_bench(tmp_path, n_done=1)
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RunFolderError, match=r"Upgrade|damaged|not the record"):
        read_bench(tmp_path)


def test_shards_are_read_together_and_an_error_never_hides_a_result(tmp_path: Path) -> None:
    run = make_bench(tmp_path, n_done=2)
    for number, outcome in (
        (1, Outcome(run.cells[2], {"auroc": 0.5}, machine="one")),
        (2, Outcome(run.cells[2], error="late")),
        (2, Outcome(run.cells[3], error="diverged")),
    ):
        folder = shard_folder(tmp_path, Shard(number, 2))
        folder.mkdir(parents=True, exist_ok=True)
        append_outcome(folder, outcome)
    run = read_bench(tmp_path)
    assert run.done == run.cells[:3]
    assert run.outcomes[run.cells[2]].machine == "one"
    assert [outcome.cell for outcome in run.failed] == [run.cells[3]]


def test_contenders_are_measured_only_where_they_are_stated(tmp_path: Path) -> None:
    record = bench_record(
        contenders=(contender_record("training", "a"), contender_record("training", "b", COLUMNS[1:]))
    )
    cells = open_bench(tmp_path, record).cells
    assert [cell.noise for cell in cells if cell.contender == "b"] == ["asymmetric:0.4"] * 2
    assert len(cells) == 6
    assert read_bench(tmp_path).record == record


def test_a_bench_of_an_earlier_version_is_said_to_be_one(tmp_path: Path) -> None:
    make_bench(tmp_path)
    path = tmp_path / "bench.json"
    content = json.loads(path.read_text())
    del content["data"]
    path.write_text(json.dumps(content | {"source": {}}))
    with pytest.raises(RunFolderError, match="earlier version"):
        read_bench(tmp_path)
