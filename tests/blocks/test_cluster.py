"""Audits on a Dask cluster: the same answer as here, also if a worker dies, and clear messages."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

pytest.importorskip("distributed")

from laplaceconfidence import audit
from laplaceconfidence.blocks import cluster as cluster_module
from laplaceconfidence.blocks.cluster import ClusterExecutor, connected
from laplaceconfidence.cli.app import app
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.records import read_audit
from laplaceconfidence.stages import observing

SETTINGS: dict[str, Any] = {"estimator": "laplace", "n_neighbors": 6, "alpha": 0.4, "random_state": 3}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with connected("local:2", memory=2 * 10**9) as found:
        found.wait_for_workers(2)
        yield found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 2_400)
    features = (3 * rng.normal(size=(3, 5))[y] + rng.normal(size=(2_400, 5))).astype(np.float32)
    labels = np.where(rng.random(2_400) < 0.1, rng.integers(0, 3, 2_400), y)
    table = pd.DataFrame({"label": labels, "emb": list(features)})
    table.to_parquet(tmp_path / "x.parquet", row_group_size=600)
    return tmp_path / "x.parquet"


class _KillsAWorker:
    """Kills one worker process a moment after a stage has begun."""

    def __init__(self, client: Any, stage: str, seconds: float) -> None:
        self._pids = list(client.run(os.getpid).values())
        self._stage, self._seconds = stage, seconds
        self.timer: threading.Timer | None = None

    def started(self, name: str, total: int | None) -> None:
        if name == self._stage:
            self.timer = threading.Timer(self._seconds, os.kill, (self._pids[0], signal.SIGKILL))
            self.timer.start()

    def advanced(self, name: str, amount: int) -> None:
        pass

    def finished(self, name: str, seconds: float) -> None:
        if name == self._stage and self.timer is not None:
            self.timer.join()


def _process_of(block: int) -> int:
    return os.getpid()


def test_a_block_stays_on_its_worker(client: Any) -> None:
    with ClusterExecutor(client) as executor:
        calls = [(block,) for block in range(5)]
        first, second = (executor.gather(executor.submit_each("some", _process_of, calls)) for _ in range(2))
    assert first == second
    assert len(set(first[:2])) == 1
    assert len(set(first)) == 2


def test_workers_that_come_later_get_blocks(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "SECONDS_BETWEEN_LOOKS", 0)
    with ClusterExecutor(client) as executor:
        executor._places = executor._places[:1]  # as if the other worker had not been there yet
        calls = [(block,) for block in range(4)]
        assert len(set(executor.gather(executor.submit_each("some", _process_of, calls)))) == 2


@pytest.mark.parametrize(("apart", "seconds"), [(False, 0.3), (True, 0.01)])
def test_two_workers_of_which_one_is_killed_give_the_answer_of_this_process(
    client: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool, seconds: float
) -> None:
    expected = audit(data, memory="1GB", n_jobs=1, **SETTINGS)
    client.wait_for_workers(2)
    if not apart:
        monkeypatch.setattr(cluster_module, "SECONDS_PER_STEP", 0.0)  # as if messages took no time
    killer = _KillsAWorker(client, "solve", seconds)
    with observing(killer):
        found: Any = audit(data, client=client, work=tmp_path / "work", **SETTINGS)
    assert killer.timer is not None
    assert found.plan.classes_apart == apart
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)
    columns = ["id", "predicted_label", "is_label_issue"]  # equal scores but for roundings can change places
    pd.testing.assert_frame_equal(found.table[columns].sort_index(), expected.table[columns].sort_index())


def test_a_shared_value_outlives_its_workers() -> None:
    with connected("local:1", memory=10**9) as client:
        client.wait_for_workers(1)
        with ClusterExecutor(client) as executor:
            shared = executor.share(np.arange(5))
            assert executor.gather([executor.submit("sum", np.sum, shared)]) == [10]
            (pid,) = client.run(os.getpid).values()
            os.kill(pid, signal.SIGKILL)
            assert executor.gather([executor.submit("sum", np.sum, shared)]) == [10]


def test_four_workers(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = audit(data, memory="1GB", n_jobs=1, **SETTINGS)
    monkeypatch.setattr(cluster_module, "SECONDS_PER_STEP", 0.0)  # each for its rows
    with connected("local:4", memory=10**9) as four:
        four.wait_for_workers(4)
        assert len(set(four.run(os.getpid).values())) == 4
        found: Any = audit(data, client=four, work=tmp_path / "work", **SETTINGS)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)


def test_a_scheduler_and_a_worker_that_were_started_apart(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    scheduler = [*dask, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    worker = [*dask, "worker", "--scheduler-file", str(file), "--nthreads", "1", "--memory-limit", "2GB"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    processes = [subprocess.Popen(scheduler, **quiet)]
    try:
        _wait_for(file.is_file)
        processes.append(subprocess.Popen([*worker, "--no-dashboard", "--no-nanny"], **quiet))
        with connected(str(file)) as client:
            client.wait_for_workers(1, timeout=120)
            address = client.scheduler.address
        common = ["--label", "label", "--features", "emb", "--estimator", "laplace", "--n-neighbors", "6"]
        places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "run")]
        found = CliRunner().invoke(app, ["audit", str(data), *common, "--cluster", address, *places])
        assert found.exit_code == 0, found.output
        assert read_audit(tmp_path / "run").record.n_samples == 2_400
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def _wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_dask_arrays_and_data_frames(client: Any, data: Path, tmp_path: Path) -> None:
    import dask.array as da
    import dask.dataframe as dd

    table = pd.read_parquet(data)[:600]
    features = np.stack(table["emb"])
    settings: dict[str, Any] = {"random_state": 3}  # the default estimator, which takes few tasks
    expected: Any = audit((features, table["label"].to_numpy()), memory="1GB", n_jobs=1, **settings)
    client.wait_for_workers(2)
    arrays = da.from_array(features, chunks=(250, 3)), da.from_array(table["label"].to_numpy(), chunks=250)
    found: Any = audit(arrays, client=client, work=tmp_path / "arrays", n_jobs=1, **settings)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    columns = {f"e{i}": features[:, i] for i in range(features.shape[1])}
    frame = dd.from_pandas(pd.DataFrame({"label": table["label"], **columns}), npartitions=2)
    found = audit(frame, features="e*", client=client, work=tmp_path / "frame", n_jobs=1, **settings)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)


def test_a_scheduler_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "SECONDS_TO_CONNECT", 0.5)
    with pytest.raises(InvalidInputError, match="cannot be reached"), connected("tcp://127.0.0.1:9"):
        pass
    with pytest.raises(InvalidInputError, match="scheduler file"), connected("nothing.json"):
        pass
    with pytest.raises(InvalidInputError, match="local:N"), connected("local:zero"):
        pass


class _FakeClient:
    def __init__(self, version: str | None = None, limit: int = 10**10, n: int = 1) -> None:
        self._version, self._limit, self._n = version, limit, n

    def scheduler_info(self, **_: Any) -> dict[str, Any]:
        workers = {f"tcp://w{i}": {"nthreads": 1, "memory_limit": self._limit} for i in range(self._n)}
        return {"workers": workers}

    def run(self, function: Any, *arguments: Any) -> dict[str, Any]:
        own = function(*arguments)
        return {"tcp://w0": own if self._version is None else self._version}

    def submit(self) -> None:
        raise AssertionError


def test_workers_that_cannot_be_used(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="has no workers"):
        ClusterExecutor(_FakeClient(n=0))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"tcp://w0 has laplaceconfidence 0\.0\.1"):
        ClusterExecutor(_FakeClient("0.0.1"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"distributed\.Client"):
        ClusterExecutor("tcp://w0")  # type: ignore[arg-type]
    arguments: dict[str, Any] = {"work": tmp_path / "work", **SETTINGS}
    with pytest.raises(InvalidInputError, match="'memory' parameter must be at least"):
        audit(data, client=_FakeClient(limit=10**8), **arguments)
    with pytest.raises(InvalidInputError, match="at most what the smallest worker has"):
        audit(data, client=_FakeClient(), memory="50GB", **arguments)
    with pytest.raises(InvalidInputError, match="'work' parameter must be a folder that all workers see"):
        audit(data, client=_FakeClient(), **SETTINGS)
