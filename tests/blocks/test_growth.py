"""Audits that go on from a run: equal to an audit of all data, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from laplaceconfidence import audit
from laplaceconfidence.auditing import block_fits
from laplaceconfidence.blocks.graph_blocks import read_graph
from laplaceconfidence.blocks.kept_index import open_index
from laplaceconfidence.blocks.noise_aware_growth import load_fit
from laplaceconfidence.cli.app import app
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning, RunFolderError
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays

SETTINGS: dict[str, Any] = {
    "estimator": "laplace",
    "n_neighbors": 8,
    "alpha": 0.9,
    "tol": 1e-6,
    "max_iter": 300,
    "random_state": 0,
    "n_jobs": 1,
}
NAMES = np.array(["ape", "bee", "cat"])


def frame(n: int = 700, d: int = 10, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    centers = np.random.default_rng(1).normal(size=(3, d))
    features = (2 * centers[y] + rng.normal(size=(n, d))).astype(np.float32)
    given = np.where(rng.random(n) < 0.15, rng.integers(0, 3, n), y)
    ids = [f"{seed}-{row}" for row in range(n)]
    return pd.DataFrame({"id": ids, "label": NAMES[given], "emb": list(features)})


def written(table: pd.DataFrame, path: Path) -> Path:
    table.to_parquet(path, row_group_size=200)
    return path


def run_of(table: pd.DataFrame, folder: Path, **settings: Any) -> Path:
    folder.mkdir()
    source = written(table, folder / "data.parquet")
    return audit(source, memory="1GB", keep_index=True, **(settings or SETTINGS)).save(folder / "run")


def grown(table: pd.DataFrame, run: Path, folder: Path) -> Any:
    folder.mkdir()
    return audit(written(table, folder / "new.parquet"), since=run, n_jobs=1)


def equals(found: Any, expected: Any, atol: float = 2e-4) -> None:
    np.testing.assert_allclose(found.scores, expected.scores, atol=atol)
    ours, theirs = found.table.sort_index(), expected.table.sort_index()
    words = ["id", "given_label", "predicted_label", "is_label_issue", "is_rare_class_issue"]
    pd.testing.assert_frame_equal(ours[words], theirs[words])


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks and parts, as large data has."""
    monkeypatch.setattr("laplaceconfidence.blocks.plan.MOST_ROWS", 250)
    monkeypatch.setattr("laplaceconfidence.blocks.plan.FEWEST_ROWS", 100)
    monkeypatch.setattr("laplaceconfidence.auditing.block_tables.ROWS_PER_PART", 300)


@pytest.mark.parametrize("d", [10, 140])
def test_new_samples_and_changed_labels_give_what_an_audit_of_all_data_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, d: int
) -> None:
    small_blocks(monkeypatch)
    whole = frame(d=d)
    run = run_of(whole[:600], tmp_path / "first")
    changed = whole[10:40].copy()
    changed["label"] = np.roll(NAMES, 1)[np.searchsorted(NAMES, changed["label"].to_numpy(str))]
    found = grown(pd.concat([changed[:20], whole[600:], changed[20:]]), run, tmp_path / "second")
    whole.loc[changed.index, "label"] = changed["label"]
    expected = audit(written(whole, tmp_path / "all.parquet"), memory="1GB", keep_index=True, **SETTINGS)
    equals(found, expected)
    assert found.diagnostics.recall == 1
    assert found.diagnostics.n_iter < expected.diagnostics.n_iter
    np.testing.assert_allclose(_graph(found), _graph(expected), atol=1e-5)
    samples = SampleArrays.of(read_audit(found.save(tmp_path / "second" / "run")))
    theirs = SampleArrays.of(read_audit(expected.save(tmp_path / "all")))
    for row in (0, 15, 599, 600, 699):
        ours = samples.neighbors(row, 5)
        assert [one.row for one in ours] == [one.row for one in theirs.neighbors(row, 5)]


def _graph(result: Any) -> np.ndarray:
    """The whole graph, by rows of the data."""
    n, work = len(result.data), result.work
    rows = [np.asarray(work.load("shards", block, "rows")) for block in work.parts("shards")]
    position = np.concatenate(rows)
    dense = np.zeros((n, n))
    for block, own in enumerate(rows):
        graph = read_graph(work, block)
        dense[np.ix_(own, position[graph.columns])] = graph.matrix.toarray()
    return dense


def test_run_after_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    whole = frame()
    run = run_of(whole[:600], tmp_path / "0")
    for number, rows in enumerate([slice(600, 640), slice(640, 640), slice(640, 700)], 1):
        some = whole[rows] if rows.start < rows.stop else whole[:5]  # known already, and as they were
        found = grown(some, run, tmp_path / str(number))
        run = found.save(tmp_path / str(number) / "run")
    equals(found, audit(written(whole, tmp_path / "all.parquet"), memory="1GB", **SETTINGS))


def test_more_new_samples_around_an_old_one_than_it_has_neighbors(tmp_path: Path) -> None:
    whole = frame(640)
    rng, center = np.random.default_rng(2), whole["emb"][0]
    for row in range(600, 640):
        whole.at[row, "emb"] = (center + 0.05 * rng.normal(size=len(center))).astype(np.float32)
    found = grown(whole[600:], run_of(whole[:600], tmp_path / "first"), tmp_path / "second")
    expected = audit(written(whole, tmp_path / "all.parquet"), memory="1GB", keep_index=True, **SETTINGS)
    equals(found, expected)
    np.testing.assert_allclose(_graph(found), _graph(expected), atol=1e-5)


def test_an_approximate_search(tmp_path: Path) -> None:
    whole = frame(3_000)
    settings = {**SETTINGS, "search": "ivf", "target_recall": 0.9}
    run = run_of(whole[:2_900], tmp_path / "first", **settings)
    found = grown(whole[2_900:], run, tmp_path / "second")
    assert 0.8 < found.diagnostics.recall <= 1
    expected = audit(written(whole, tmp_path / "all.parquet"), memory="1GB", **settings)
    assert np.corrcoef(found.scores, expected.scores)[0, 1] > 0.99


def test_principal_axes_stay_those_of_the_run(tmp_path: Path) -> None:
    whole = frame(d=20)
    run = run_of(whole[:650], tmp_path / "first", **SETTINGS, n_components=6)
    found = grown(whole[650:], run, tmp_path / "second")
    expected = audit(written(whole, tmp_path / "all.parquet"), memory="1GB", n_components=6, **SETTINGS)
    assert np.corrcoef(found.scores, expected.scores)[0, 1] > 0.98


def test_ids_made_of_content_recognize_samples(tmp_path: Path) -> None:
    whole = frame().drop(columns="id")
    run = run_of(whole[:600], tmp_path / "first")
    found = grown(whole[590:], run, tmp_path / "second")  # ten of them are known
    assert len(found.data) == 700
    equals(found, audit(written(whole, tmp_path / "all.parquet"), memory="1GB", **SETTINGS))


def test_more_than_a_fifth_of_new_samples_is_told(tmp_path: Path) -> None:
    run = run_of(frame(300), tmp_path / "first")
    with pytest.warns(LaplaceConfidenceWarning, match="100 of 400 samples came after the last full audit"):
        grown(frame(100, seed=5), run, tmp_path / "second")


def test_what_was_fitted_is_applied_to_new_samples_and_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_fits, "SAMPLE_SIZE", 400)
    whole = frame()
    run = run_of(whole[:600], tmp_path / "first", random_state=0, n_jobs=1)
    before = audit(written(whole[:600], tmp_path / "b.parquet"), memory="1GB", random_state=0, n_jobs=1)
    changed = whole[10:40].assign(label="ape")
    found = grown(pd.concat([whole[600:], changed]), run, tmp_path / "second")
    fit = load_fit(open_index(run).work, 1)
    given = np.searchsorted(NAMES, whole["label"].to_numpy(str))
    features = np.stack(whole["emb"])
    same = np.r_[0:10, 40:600]
    np.testing.assert_array_equal(found.scores[same], before.scores[same])
    _, expected = fit.posterior(fit.probabilities(features[600:]), given[600:])
    np.testing.assert_allclose(found.scores[600:], expected, atol=1e-6)
    rows = np.arange(10, 40)
    outside = rows[~np.isin(rows, fit.rows)]
    _, expected = fit.posterior(fit.probabilities(features[outside]), np.zeros(len(outside), dtype=np.int64))
    np.testing.assert_allclose(found.scores[outside], expected, atol=1e-6)
    inside = rows[np.isin(rows, fit.rows)]
    places = np.searchsorted(fit.rows, inside)
    # A label that is as it was gets the confidence it had.
    p = fit.probabilities_in_sample(places)
    np.testing.assert_allclose(fit.posterior(p, fit.given[places])[1], fit.confidence[places], atol=1e-3)
    _, expected = fit.posterior(p, np.zeros(len(inside), dtype=np.int64))
    np.testing.assert_allclose(found.scores[inside], expected, atol=1e-6)
    assert (found.table.sort_index()["given_label"][10:40] == "ape").all()
    again = grown(whole[5:12], found.save(tmp_path / "second" / "run"), tmp_path / "third")
    np.testing.assert_allclose(again.scores[10:12], before.scores[10:12], atol=1e-3)
    assert again.statement.headline.startswith("About")


def test_damage_is_noticed_and_the_index_rebuilt(tmp_path: Path) -> None:
    whole = frame()
    run = run_of(whole[:600], tmp_path / "first")
    path = run / "index" / "shards" / "00000-vectors.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.unlink()
    path.write_bytes(bytes(content))
    with pytest.warns(LaplaceConfidenceWarning, match=r"00000-vectors\.npy is not as .* It is rebuilt from"):
        found = grown(whole[600:], run, tmp_path / "second")
    equals(found, audit(written(whole, tmp_path / "all.parquet"), memory="1GB", **SETTINGS))
    (tmp_path / "first" / "data.parquet").unlink()
    with pytest.warns(LaplaceConfidenceWarning), pytest.raises(InvalidInputError, match="existing file"):
        grown(whole[600:], run, tmp_path / "third")


def test_what_does_not_fit_to_the_run_is_refused(tmp_path: Path) -> None:
    whole = frame()
    run = run_of(whole[:600], tmp_path / "run-of")

    def refused(table: pd.DataFrame, message: str, name: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            grown(table, run, tmp_path / name)

    new = whole[600:]
    refused(new.assign(label="dog"), "of the 3 classes of .*the new class 'dog'", "a")
    refused(new.assign(id="same"), "id 'same' occurs more than once", "b")
    refused(new.drop(columns="id"), "'id' parameter must be as in .* has such a column", "c")
    refused(new.rename(columns={"emb": "vector"}), "the columns of", "d")
    refused(frame(50, d=11), "10 per sample, as in", "e")
    refused(whole[:5].assign(emb=whole["emb"][5:10].to_list()), "other features of the sample .0-", "f")
    source = written(new, tmp_path / "new.parquet")
    with pytest.raises(
        InvalidInputError, match="'n_neighbors' parameter must be left out where an audit goes"
    ):
        audit(source, since=run, n_neighbors=5)
    with pytest.raises(InvalidInputError, match="'memory' parameter must be left out"):
        audit(source, since=run, memory="1GB")
    with pytest.raises(InvalidInputError, match="'true_label' parameter must be left out"):
        audit(source, since=run, true_label="label")
    plain = audit(written(whole, tmp_path / "all.parquet"), memory="1GB", **SETTINGS).save(tmp_path / "plain")
    with pytest.raises(RunFolderError, match=r"keeps no index .*--keep-index"):
        audit(source, since=plain)
    with pytest.raises(RunFolderError, match="no such folder"):
        audit(source, since=tmp_path / "nothing")
    assert not list(tmp_path.glob("run-of/.*"))  # nothing is left behind


def test_the_command(tmp_path: Path) -> None:
    whole = frame()
    sources = [written(whole[:600], tmp_path / "a.parquet"), written(whole[600:], tmp_path / "b.parquet")]
    common = ["--label", "label", "--features", "emb"]
    settings = ["--estimator", "laplace", "--n-neighbors", "8"]
    runs = [tmp_path / "first", tmp_path / "second"]
    first = CliRunner().invoke(
        app, ["audit", str(sources[0]), *common, *settings, "--keep-index", "--out", str(runs[0])]
    )
    assert first.exit_code == 0, first.output
    second = ["audit", str(sources[1]), *common, "--since", str(runs[0]), "--out", str(runs[1])]
    found = CliRunner().invoke(app, second)
    assert found.exit_code == 0, found.output
    assert read_audit(runs[1]).record.n_samples == 700
    assert (runs[1] / "index").is_dir()
    refused = CliRunner().invoke(app, [*second, "--overwrite", "--n-neighbors", "5"])
    assert refused.exit_code != 0
    again = CliRunner().invoke(app, [*second, "--overwrite"])
    assert again.exit_code == 0, again.output
    report = CliRunner().invoke(app, ["report", str(runs[1])])
    assert report.exit_code == 0, report.output
    assert not list(tmp_path.glob(".*"))
