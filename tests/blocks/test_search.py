"""The search in blocks reaches the recall by codes or vectors, and depends on data and seed only."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laplaceconfidence.blocks import effort, search, times
from laplaceconfidence.blocks.cluster import connected
from laplaceconfidence.blocks.effort import CHOSEN
from laplaceconfidence.blocks.estimate import BlockEstimate, BlockSettings, estimate
from laplaceconfidence.blocks.executor import Executor, LocalExecutor
from laplaceconfidence.blocks.search import NEIGHBORS
from laplaceconfidence.blocks.sources import open_features
from laplaceconfidence.blocks.work_folder import WorkFolder

N, K, TARGET = 3_000, 8, 0.93


def samples(d: int = 24, n: int = N) -> np.ndarray:
    """Groups that vary in ten directions."""
    rng = np.random.default_rng(0)
    within = rng.normal(size=(n, 10)) @ rng.normal(size=(10, d))
    groups = 3 * rng.normal(size=(20, d))[rng.integers(0, 20, n)]
    return (groups + within + 0.1 * rng.normal(size=(n, d))).astype(np.float32)


def without_structure(d: int, n: int = 1_200) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


def run(
    folder: Path,
    features: np.ndarray,
    executor: Executor | None = None,
    stating: Any = None,
    **changes: Any,
) -> BlockEstimate:
    folder.mkdir(exist_ok=True)
    np.save(folder / "x.npy", features)
    settings = BlockSettings(
        **{"n_neighbors": K, "search": "ivf", "target_recall": TARGET, "max_iter": 5, "tol": 0.5}
        | {"rows_per_block": 700, "classes_at_once": 3}
        | changes
    )
    source = open_features(folder / "x.npy", rows_per_piece=1_000)
    work = WorkFolder.opened(folder / "work", {})
    codes = np.arange(len(features)) % 3
    with LocalExecutor(1) as local:
        return estimate(executor or local, work, source, codes, 3, settings, stating=stating)


def neighbors(found: BlockEstimate) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the neighbors of every row, and their similarities."""
    blocks = range(found.shards.n_blocks)
    rows = np.concatenate([found.rows(block) for block in blocks])
    positions, similarities = (
        np.concatenate([found.work.load(NEIGHBORS, block, name) for block in blocks])
        for name in ("positions", "similarities")
    )
    order = np.argsort(rows)
    return np.where(positions >= 0, rows[positions], -1)[order], similarities[order]


def exact(features: np.ndarray) -> np.ndarray:
    """Similarities of the true neighbors."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    similar = unit @ unit.T
    np.fill_diagonal(similar, -np.inf)
    return -np.sort(-similar, axis=1)[:, :K]


def true_recall(found: BlockEstimate, features: np.ndarray) -> float:
    return float((neighbors(found)[1] >= exact(features)[:, -1:] - 1e-5).mean())


@pytest.fixture
def codes_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "nanoseconds", lambda n_lists, *_, coded: n_lists if coded else 1e9)


@pytest.fixture
def codes_do_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "nanoseconds", lambda n_lists, *_, coded: 1e9 if coded else n_lists)


@pytest.mark.usefixtures("codes_pay")
@pytest.mark.parametrize("d", [24, 160])
@pytest.mark.parametrize("rows_per_block", [300, 10_000])
def test_codes_reach_the_recall_and_similarities_are_exact(
    tmp_path: Path, d: int, rows_per_block: int
) -> None:
    features = samples(d)
    found = run(tmp_path, features, rows_per_block=rows_per_block)
    assert found.work.facts(CHOSEN, 0)["axes_per_code"] in (1, 2)
    assert found.recall >= TARGET - 0.005
    assert true_recall(found, features) > TARGET - 0.03
    indices, similarities = neighbors(found)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    np.testing.assert_allclose(similarities, np.einsum("id,ikd->ik", unit, unit[indices]), atol=1e-5)
    assert (indices != np.arange(N)[:, None]).all()
    assert all(len(set(own)) == K for own in indices.tolist())


@pytest.mark.usefixtures("codes_do_not_pay")
@pytest.mark.parametrize("d", [24, 160])
def test_vectors_are_scanned_where_codes_do_not_pay(tmp_path: Path, d: int) -> None:
    features = samples(d)
    found = run(tmp_path, features)
    assert found.work.facts(CHOSEN, 0)["axes_per_code"] is None
    assert not (found.work.path / "codes-2").exists()
    assert found.recall >= TARGET - 0.005
    assert true_recall(found, features) > TARGET - 0.03


@pytest.mark.usefixtures("codes_pay")
def test_vectors_are_scanned_where_codes_do_not_reach_the_recall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "_CANDIDATES", {2: 1, 1: 1})
    features = without_structure(24)
    found = run(tmp_path, features, target_recall=0.99)
    assert found.work.facts(CHOSEN, 0)["axes_per_code"] is None
    assert true_recall(found, features) > 0.98


@pytest.mark.parametrize("d", [12, 160])
def test_an_exact_search_is_exact(tmp_path: Path, d: int) -> None:
    features = without_structure(d)
    found = run(tmp_path, features, search="exact")
    assert found.is_exact
    assert found.recall == 1
    np.testing.assert_allclose(neighbors(found)[1], exact(features), atol=1e-5)


def test_samples_without_structure_are_searched_exactly_if_that_is_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = without_structure(24)
    assert run(tmp_path / "auto", features, search="auto").is_exact
    assert not run(tmp_path / "ivf", features, search="ivf").is_exact
    monkeypatch.setattr(times, "EXACT_NANOSECONDS", 1e9)
    assert not run(tmp_path / "slow", features, search="auto").is_exact


def test_the_time_that_is_left_is_stated_once_the_search_is_chosen(tmp_path: Path) -> None:
    said: list[str] = []
    run(tmp_path / "ivf", samples(), stating=said.append)
    run(tmp_path / "exact", samples(), stating=said.append, search="exact")
    assert said[0].startswith("Search: by ")
    assert said[1].startswith("Search: exact; about ")
    assert all(one.endswith(" are left.") for one in said)


@pytest.mark.usefixtures("codes_pay")
def test_threads_and_workers_do_not_matter(tmp_path: Path) -> None:
    features = samples(160)
    expected = neighbors(run(tmp_path / "one", features))
    with LocalExecutor(2) as executor:
        threads = neighbors(run(tmp_path / "threads", features, executor))
    np.testing.assert_array_equal(threads[0], expected[0])
    np.testing.assert_array_equal(threads[1], expected[1])
    from laplaceconfidence.blocks.cluster import ClusterExecutor

    with connected("local:2", memory=2 * 10**9) as client:
        client.wait_for_workers(2)
        workers = neighbors(run(tmp_path / "workers", features, ClusterExecutor(client)))
    np.testing.assert_array_equal(workers[0], expected[0])
    np.testing.assert_array_equal(workers[1], expected[1])


class _Killed(BaseException):
    pass


@pytest.mark.usefixtures("codes_pay")
@pytest.mark.parametrize("stage", ["axes of codes-2", "codes-2", "trials-2", CHOSEN, NEIGHBORS])
def test_a_run_that_was_killed_searches_as_it_had_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    features = samples()
    expected = neighbors(run(tmp_path / "whole", features))
    save, saved = WorkFolder.save, []

    def save_until_killed(self: WorkFolder, *arguments: Any, **named: Any) -> Any:
        saved.append(arguments[:2])
        if arguments[0] == stage and arguments[1] == (1 if stage in ("codes-2", NEIGHBORS) else 0):
            raise _Killed
        return save(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(WorkFolder, "save", save_until_killed)
        with pytest.raises(_Killed):
            run(tmp_path / "killed", features)
    # The rest is computed with other numbers of queries at once, as on another machine.
    monkeypatch.setattr(search, "_QUERIES_AT_ONCE", 100)
    found = neighbors(run(tmp_path / "killed", features))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
