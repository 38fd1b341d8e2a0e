"""Exports after the source was reordered, has grown or shrunk, or has other labels than those audited."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_plan import reviewed
from typer.testing import CliRunner

from audited_runs import CLASS_NAMES, MakeRun, make_audit
from laplaceconfidence.cli.app import app
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.export.correction import correct
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.session import ReviewSession


def table_of(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


@pytest.mark.parametrize("has_ids", [True, False])
def test_every_row_and_column_of_a_changed_table_is_kept(
    make_run: MakeRun, tmp_path: Path, has_ids: bool
) -> None:
    source = tmp_path / "data" / "texts.csv"
    run = make_run("csv")
    if not has_ids:  # audit the same table without its ids
        table_of(source).drop(columns="id").to_csv(source, index=False)
        words = ["audit", str(source), "--features", "emb_*", "--estimator", "laplace", "-k", "6"]
        done = CliRunner().invoke(app, [*words, "--alpha", "0.9", "-o", str(tmp_path / "again")])
        assert done.exit_code == 0, done.stderr
        run = read_audit(tmp_path / "again")
    taken, none, relabeled, gone = reviewed(run, "suggestion", "none", "suggestion", "suggestion")
    samples = SampleArrays.of(run)
    before = table_of(source)
    now = before.assign(checked="yes").drop(index=gone)
    third = next(
        name
        for name in CLASS_NAMES
        if name not in (before.label[relabeled], samples.class_names[samples.suggested[relabeled]])
    )
    now.loc[relabeled, "label"] = third
    new = now.iloc[[0, 1]].copy()
    new["label"], new["text"] = ["a new class", CLASS_NAMES[0]], ["a new text", "another"]
    new["emb_0"] = ["99.5", "98.5"]
    if has_ids:
        new["id"] = ["n1", "n2"]
    now = pd.concat([new, now.sample(frac=1, random_state=0)], ignore_index=True)
    now.to_csv(source, index=False)
    exported = write_export(plan_export(run), tmp_path / "corrected.csv")
    kept = now[now.text != before.text[none]].reset_index(drop=True)
    expected = kept.label.where(
        kept.text != before.text[taken], samples.class_names[samples.suggested[taken]]
    )
    found = table_of(tmp_path / "corrected.csv")
    assert found.equals(kept.assign(label=expected))
    changes = exported.changes
    assert (changes.n_new, changes.n_gone, changes.n_relabeled, changes.n_not_applied) == (2, 1, 1, 1)
    trail = pd.read_csv(exported.trail)
    assert sorted(trail.action) == ["changed", "dropped"]
    assert now.text[trail.row].tolist() == [before.text[row] for row in trail_order(run, [taken, none])]


def trail_order(run: Any, rows: list[int]) -> list[int]:
    return [row for row in SampleArrays.of(run).order.tolist() if row in rows]


def test_the_command_says_what_changed(make_run: MakeRun, tmp_path: Path) -> None:
    source = tmp_path / "data" / "texts.csv"
    run = make_run("csv")
    (taken,) = reviewed(run, "suggestion")
    table = table_of(source)
    samples = SampleArrays.of(run)
    suggested = samples.class_names[samples.suggested[taken]]
    table.loc[taken, "label"] = suggested  # corrected by hand in the meantime
    new = table.iloc[:1].assign(id="n1")
    pd.concat([table.drop(index=[50, 51]), new]).to_csv(source, index=False)
    words = ["export", str(run.folder), "--dry-run"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "89 samples: 0 labels changed." in told
    assert (
        "Since the audit: 1 sample is new and keeps its label; 2 samples are gone; "
        "1 label is already corrected in the source." in told
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_too_different_data_is_refused(tmp_path: Path, kind: str) -> None:
    run = make_audit(tmp_path, kind)
    source = Path(run.record.source["source"])
    if kind == "csv":
        table_of(source).iloc[:40].to_csv(source, index=False)
    elif kind == "parquet":
        table = pd.read_parquet(source)
        table.assign(label=(table["label"] + 1) % 3).to_parquet(source)
    else:
        with np.load(source) as arrays:
            np.savez(source, features=arrays["features"] + 1, labels=arrays["labels"])
    reason = {
        "csv": "50 of 90 samples are gone",
        "parquet": "90 of 90 labels are not",
        "npz": "90 of 90 samples",
    }
    with pytest.raises(DataFormatError, match=reason[kind]):
        correct(plan_export(run))


def test_a_class_that_the_source_no_longer_has_can_be_assigned(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("csv")
    samples = SampleArrays.of(run)
    row = int(np.flatnonzero(samples.given == 0)[0])
    session = ReviewSession(run)
    session.decide(row, "other", label=2, expected_version=0, who="ann", queue="worst")
    session.close()
    source = tmp_path / "data" / "texts.csv"
    table = table_of(source)
    table[table.label != samples.class_names[2]].to_csv(source, index=False)
    write_export(plan_export(run), tmp_path / "corrected.csv")
    found = table_of(tmp_path / "corrected.csv").set_index("id")
    assert found.label[samples.ids[row]] == samples.class_names[2]
    write_export(plan_export(run), tmp_path / "arrays.npz")
    back = read_dataset(tmp_path / "arrays.npz")
    assert set(back.class_names) == set(CLASS_NAMES)
    assert len(back) == len(found)


def test_labels_that_were_verified_before_the_audit_are_exported(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("csv")
    taken, none = reviewed(run, "suggestion", "none")
    samples = SampleArrays.of(run)
    source = str(tmp_path / "data" / "texts.csv")
    words = ["audit", source, "--features", "emb_*", "--estimator", "laplace", "-k", "6", "--alpha", "0.9"]
    done = CliRunner().invoke(app, [*words, "--decisions", str(run.folder), "-o", str(tmp_path / "again")])
    assert done.exit_code == 0, done.stderr
    exported = write_export(plan_export(read_audit(tmp_path / "again")), tmp_path / "corrected.csv")
    found = table_of(tmp_path / "corrected.csv").set_index("id")
    assert found.label[samples.ids[taken]] == samples.class_names[samples.suggested[taken]]
    assert samples.ids[none] not in found.index
    assert pd.read_csv(exported.trail).why.unique().tolist() == ["verified before this audit"]


def test_images_keep_their_ids_in_a_folder_that_sorts_them_anew(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("folder")
    (taken,) = reviewed(run, "suggestion")
    new = tmp_path / "data" / "photos" / "class a" / "new.png"
    new.write_bytes(next(new.parent.glob("*.png")).read_bytes())
    np.save(tmp_path / "data" / "features.npy", np.random.default_rng(0).normal(size=(91, 3)))
    exported = write_export(plan_export(run), tmp_path / "sorted")
    assert exported.changes.n_new == 1
    back = read_dataset(tmp_path / "sorted")
    samples = SampleArrays.of(run)
    assert set(back.sample_ids) == {*samples.ids, "class a/new.png"}
    row = back.sample_ids.tolist().index(samples.ids[taken])
    assert back.class_names[back.labels[row]] == samples.class_names[samples.suggested[taken]]
    # A new image at the place that the corrected one has left is another sample.
    place = tmp_path / "sorted" / samples.ids[taken]
    place.write_bytes(new.read_bytes())
    again = read_dataset(tmp_path / "sorted")
    assert len(set(again.sample_ids)) == len(again) == 92
    assert f"{samples.ids[taken]}-2" in again.sample_ids


def test_decisions_about_listed_images_find_them_from_another_folder(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run("parquet")
    taken, other = reviewed(run, "suggestion", "keep")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_export(plan_export(run), elsewhere / "corrected.parquet")
    words = ["audit", str(elsewhere / "corrected.parquet"), "--estimator", "knn-vote", "-k", "6"]
    done = CliRunner().invoke(app, [*words, "--decisions", str(run.folder), "-o", str(tmp_path / "again")])
    assert done.exit_code == 0, done.stderr
    assert "2 verified labels used: 2 as given, 0 different." in done.stdout
    issues = read_audit(tmp_path / "again").issues
    assert {taken, other} <= set(issues.index[issues.label_score == 1])
