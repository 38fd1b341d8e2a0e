"""The estimate over blocks equals the one in memory, and goes on from finished parts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from laplaceconfidence import LaplaceConfidence
from laplaceconfidence.blocks.estimate import BlockEstimate, BlockSettings, estimate
from laplaceconfidence.blocks.executor import LocalExecutor
from laplaceconfidence.blocks.graph_blocks import load_graph
from laplaceconfidence.blocks.search import NEIGHBORS
from laplaceconfidence.blocks.sources import open_features
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.exceptions import InvalidInputError

N, D, C = 900, 12, 5


def blobs(n: int = N, d: int = D, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(C, d))
    y = rng.integers(0, C, n)
    features = (centers[y] + rng.normal(size=(n, d))).astype(np.float32)
    given = np.where(rng.random(n) < 0.2, rng.integers(0, C, n), y)
    given[::50] = -1
    return features, given


def run(
    folder: Path, features: np.ndarray, codes: np.ndarray, n_jobs: int = 1, **changes: Any
) -> BlockEstimate:
    folder.mkdir(exist_ok=True)
    np.save(folder / "x.npy", features)
    settings = BlockSettings(
        **{"n_neighbors": 10, "search": "exact", "tol": 1e-6, "max_iter": 300, "alpha": 0.9}
        | {"rows_per_block": 250, "classes_at_once": 2}
        | changes
    )
    with LocalExecutor(n_jobs) as executor:
        source = open_features(folder / "x.npy", rows_per_piece=200)
        return estimate(executor, WorkFolder.opened(folder / "work", {}), source, codes, C, settings)


def by_row(found: BlockEstimate, name: str) -> np.ndarray:
    values = np.empty(len(found.codes))
    for block in range(found.shards.n_blocks):
        rows = found.rows(block)
        read = found.read_out(block)
        if name == "confidence":
            values[rows] = read.confidence
        else:
            values[rows] = getattr(read, name)(found.codes[rows])[name.endswith("probability")]
    return values


def in_memory(features: Any, codes: np.ndarray, **changes: Any) -> LaplaceConfidence:
    settings = {"n_neighbors": 10, "search": "exact", "tol": 1e-6, "max_iter": 300, "alpha": 0.9} | changes
    return LaplaceConfidence(missing_label=-1, **settings).fit(features, codes)


@pytest.mark.parametrize("n_components", [None, 6])
@pytest.mark.parametrize("d", [D, 140])
def test_it_equals_the_estimate_in_memory(tmp_path: Path, d: int, n_components: int | None) -> None:
    features, codes = blobs(d=d)
    found = run(tmp_path, features, codes, n_components=n_components)
    expected = in_memory(features, codes, n_components=n_components)
    np.testing.assert_allclose(by_row(found, "confidence"), expected.confidence_, atol=2e-4)
    np.testing.assert_array_equal(by_row(found, "predicted"), expected.label_distributions_.argmax(axis=1))
    assert found.recall == pytest.approx(1.0)
    assert found.energy == pytest.approx(expected.energy_, rel=1e-4)
    assert found.converged


def test_blocks_of_the_graph_are_those_of_the_whole_graph(tmp_path: Path) -> None:
    features, codes = blobs()
    found = run(tmp_path, features, codes)
    expected = in_memory(features, codes).affinity_
    rows = np.concatenate([found.rows(block) for block in range(found.shards.n_blocks)])
    assert sorted(rows) == list(range(N))
    for block in range(found.shards.n_blocks):
        graph = load_graph(found.work, block)
        own = sparse.csr_array((N, N), dtype=np.float32).tolil()
        own[np.ix_(found.rows(block), rows[graph.columns])] = graph.matrix.toarray()
        difference = own.tocsr()[found.rows(block)] - expected[found.rows(block)]
        assert abs(difference).max() < 1e-5


def test_an_approximate_search_gives_the_estimate_on_the_neighbors_it_found(tmp_path: Path) -> None:
    features, codes = blobs(n=2_500)
    found = run(tmp_path, features, codes, search="ivf", target_recall=0.9, rows_per_block=1_000)
    assert 0.88 < found.recall < 1
    n = len(codes)
    rows = np.concatenate([found.rows(block) for block in range(found.shards.n_blocks)])
    graph = sparse.lil_array((n, n), dtype=np.float64)
    for block in range(found.shards.n_blocks):
        positions = found.work.load(NEIGHBORS, block, "positions")
        for row, own, similar in zip(
            found.rows(block), positions, found.work.load(NEIGHBORS, block, "similarities"), strict=True
        ):
            assert row not in rows[own[own >= 0]]
            np.testing.assert_allclose(
                similar[own >= 0],
                np.maximum(_cosines(features, row, rows[own[own >= 0]]), -1),
                atol=1e-5,
            )
            graph[row, rows[own[own >= 0]]] = np.maximum(similar[own >= 0], 0)
    expected = LaplaceConfidence(missing_label=-1, alpha=0.9, tol=1e-6, max_iter=300).fit(
        None, codes, knn_graph=graph.tocsr()
    )
    np.testing.assert_allclose(by_row(found, "confidence"), expected.confidence_, atol=2e-4)


def _cosines(features: np.ndarray, row: int, others: np.ndarray) -> np.ndarray:
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    return unit[others] @ unit[row]


def test_sizes_of_blocks_and_threads_do_not_matter(tmp_path: Path) -> None:
    features, codes = blobs()
    first = by_row(run(tmp_path / "a", features, codes), "confidence")
    other = run(tmp_path / "b", features, codes, n_jobs=2, rows_per_block=90, classes_at_once=5)
    np.testing.assert_allclose(by_row(other, "confidence"), first, atol=2e-5)


@pytest.mark.parametrize("classes_at_once", [1, 3])
def test_classes_that_are_solved_for_apart_give_the_same(tmp_path: Path, classes_at_once: int) -> None:
    features, codes = blobs()
    together = run(tmp_path / "a", features, codes)
    apart = run(tmp_path / "b", features, codes, classes_apart=True, classes_at_once=classes_at_once)
    for name in ("confidence", "predicted", "alternatives"):
        np.testing.assert_allclose(by_row(apart, name), by_row(together, name), atol=2e-5)
    assert apart.energy == pytest.approx(together.energy, rel=1e-5)
    assert apart.n_iter == together.n_iter
    assert not list(tmp_path.glob("b/work/classes-*"))


def test_samples_without_similar_ones_and_copies(tmp_path: Path) -> None:
    features, codes = blobs()
    features[:40] = features[0]  # more copies than neighbors
    features[100] = 0
    found = run(tmp_path, features, codes)
    expected = in_memory(features, codes)
    assert np.isnan(by_row(found, "confidence")).sum() == (codes == -1).sum()
    unique = np.arange(40, N)  # which of many copies are neighbors of each other is arbitrary
    assert (
        np.corrcoef(
            np.nan_to_num(by_row(found, "confidence"))[unique], np.nan_to_num(expected.confidence_)[unique]
        )[0, 1]
        > 0.999
    )


def test_equal_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="different between samples"):
        run(tmp_path, np.ones((N, D), dtype=np.float32), blobs()[1])


class _Killed(BaseException):
    pass


@pytest.mark.parametrize(
    ("after", "apart"),
    [(1, False), (5, False), (12, False), (17, False), (22, False), (20, True), (23, True)],
)
def test_a_killed_run_goes_on_and_gives_identical_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, apart: bool
) -> None:
    features, codes = blobs(n=400)
    whole = by_row(run(tmp_path / "whole", features, codes, classes_apart=apart), "confidence")
    save, saved = WorkFolder.save, []

    def save_until_killed(self: WorkFolder, *arguments: Any, **named: Any) -> Any:
        saved.append(arguments[:2])
        if len(saved) == after:
            raise _Killed
        return save(self, *arguments, **named)

    monkeypatch.setattr(WorkFolder, "save", save_until_killed)
    with pytest.raises(_Killed):
        run(tmp_path / "killed", features, codes, classes_apart=apart)
    finished, n_before = set(saved[: after - 1]), len(saved)
    after = -1
    again = by_row(run(tmp_path / "killed", features, codes, classes_apart=apart), "confidence")
    np.testing.assert_array_equal(again, whole)
    redone = finished & set(saved[n_before:])
    # Finished parts are not computed again, but for the chunk of classes that was being solved.
    assert all(stage.startswith(("confidence", "classes")) for stage, _ in redone)


def test_parts_of_other_settings_are_not_used(tmp_path: Path) -> None:
    folder = WorkFolder.opened(tmp_path / "work", {"k": 1})
    folder.save("stage", 0, {"x": np.arange(3)}, {"n": 3})
    assert WorkFolder.opened(tmp_path / "work", {"k": 1}).facts("stage", 0) == {"n": 3}
    assert not WorkFolder.opened(tmp_path / "work", {"k": 2}).is_done("stage", 0)
    assert json.loads((tmp_path / "work" / "settings.json").read_text()) == {"k": 2}


def test_damage_is_noticed(tmp_path: Path) -> None:
    folder = WorkFolder.opened(tmp_path / "work", {})
    folder.save("stage", 0, {"x": np.arange(300), "empty": np.empty(0)}, {})
    assert folder.damage("stage", 0) is None
    path = next((tmp_path / "work" / "stage").glob("*-x.npy"))
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    assert "is not as it was written" in str(folder.damage("stage", 0))
    path.unlink()
    assert folder.damage("stage", 0) is not None
