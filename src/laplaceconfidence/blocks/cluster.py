"""Tasks on a Dask cluster. Nothing of a run is lost with a worker: Dask computes its parts again."""

from __future__ import annotations

import math
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from laplaceconfidence.blocks.block_cache import limit_cache
from laplaceconfidence.blocks.executor import Task
from laplaceconfidence.exceptions import InvalidInputError, MissingDependencyError
from laplaceconfidence.memory import keep_freed_memory
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    from distributed import Client, Future

SHARE_OF_WORKER = 0.6  # of its memory limit; Dask begins to move data to disk at 0.6, to pause at 0.8
SECONDS_TO_CONNECT = 10
SECONDS_PER_STEP = 0.05  # of the solver, with few workers: messages that one iteration waits for, measured
N_AHEAD = 2  # iterations of the solver that are submitted before one is known to be finished
SECONDS_BETWEEN_LOOKS = 10  # at the workers, which come and go on clusters that scale by themselves
RETRIES = 3  # of a task whose worker died; Dask's own default


class ClusterExecutor:
    """Runs tasks on the workers of a Dask client; ``Executor`` describes the methods.

    Parameters
    ----------
    client : distributed.Client
        A client that is connected.

    Raises
    ------
    InvalidInputError
        If there are no workers, or one has another version of this package.
    """

    def __init__(self, client: Client) -> None:
        _require_distributed()
        if not hasattr(client, "scheduler_info") or not hasattr(client, "submit"):
            rule = "a distributed.Client"
            raise must_be("client", rule, type(client).__name__, "Client('tcp://host:8786') makes one.")
        self._client = client
        self.n_ahead = N_AHEAD
        self.seconds_per_step = SECONDS_PER_STEP
        self._name = secrets.token_hex(4)
        self._number = 0
        workers = _workers(client)
        if not workers:
            raise InvalidInputError(
                "The 'client' has no workers. Start some, such as 'dask worker ADDRESS' on every machine, or "
                "wait for them with client.wait_for_workers(n)."
            )
        _check_versions(client)
        self.threads_per_worker = max(int(worker["nthreads"]) for worker in workers.values())
        self._places, self._looked = _one_per_thread(workers), time.monotonic()
        self.n_workers = len(self._places)
        limits = [int(worker["memory_limit"]) for worker in workers.values() if worker.get("memory_limit")]
        self.memory_per_worker = math.floor(SHARE_OF_WORKER * min(limits)) if limits else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(Exception):  # the cluster may be gone, and the run finished or failed for that reason
            self._client.run(_release)

    def prepare(self, cache: int) -> None:
        """Set the size of the cache of every worker."""
        self._client.run(limit_cache, cache)

    def share(self, value: Any) -> Any:
        """Make a value the result of a task: unlike scattered data, it is made again if its workers die."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.submit("share", _itself, value)

    def submit(self, name: str, task: Task, *arguments: Any) -> Future:
        """Run a task on a worker; the dashboard shows it under the name of its stage."""
        return self._client.submit(
            _run, task, *arguments, key=self._next_key(name), pure=False, retries=RETRIES
        )

    def submit_each(self, name: str, task: Task, calls: Sequence[tuple[Any, ...]]) -> list[Future]:
        """Run a task once per block, always on the same worker unless workers come and go.

        Left to itself, the scheduler runs a task where most of its vectors are, and more and more blocks come
        together on one worker.
        """
        if time.monotonic() - self._looked > SECONDS_BETWEEN_LOOKS:
            self._places = _one_per_thread(_workers(self._client)) or self._places
            self._looked = time.monotonic()
        results: list[Future] = []
        places = len(self._places)
        for place, address in enumerate(self._places):
            some = calls[-(-place * len(calls) // places) : -(-(place + 1) * len(calls) // places)]
            if some:
                keys = [self._next_key(name) for _ in some]
                results += self._client.map(
                    _run,
                    [task] * len(some),
                    *zip(*some, strict=True),
                    key=keys,
                    pure=False,
                    retries=RETRIES,
                    workers=[address],
                    allow_other_workers=True,
                )
        return results

    def _next_key(self, name: str) -> str:
        """Return a new key; Dask groups tasks by what is before the last part."""
        self._number += 1
        return f"{name.replace(' ', '_')}-{self._name}{self._number:08d}"

    def gather(self, results: Sequence[Future]) -> list[Any]:
        """Bring results here."""
        from distributed import KilledWorker

        try:
            found: list[Any] = self._client.gather(list(results))
        except KilledWorker as error:
            stage_name = str(error.task).rsplit("-", 1)[0]
            raise InvalidInputError(
                f"Workers died again and again while they computed {stage_name!r}, most often because they "
                "ran out of memory. Allow the audit less than it had ('memory'), or give the workers more "
                "('dask worker --memory-limit'); finished parts are kept."
            ) from error
        return found

    def completed(self, results: Sequence[Future]) -> Iterator[Future]:
        """Iterate over finished results."""
        from distributed import as_completed

        return iter(as_completed(list(results)))


@contextmanager
def connected(address: str, *, memory: int | None = None) -> Iterator[Client]:
    """Connect to a cluster, or start workers on this machine, for the duration of a ``with`` block.

    Parameters
    ----------
    address : str
        Such as "tcp://host:8786", a scheduler file (.json), or "local:2", which starts two workers here.
    memory : int or None, default=None
        Memory of every worker that is started here, in bytes.

    Yields
    ------
    distributed.Client

    Raises
    ------
    InvalidInputError
        If the scheduler cannot be reached.
    """
    _require_distributed()
    from distributed import Client, LocalCluster

    if address.startswith("local:"):
        number = address.removeprefix("local:")
        if not number.isdigit() or int(number) < 1:
            raise must_be("cluster", "'local:N' with a number of workers of at least 1", address)
        with (
            LocalCluster(
                n_workers=int(number),
                threads_per_worker=1,
                memory_limit="auto" if memory is None else math.ceil(memory / SHARE_OF_WORKER),
                dashboard_address=None,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    where = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    if "scheduler_file" in where and not Path(address).is_file():
        raise must_be("cluster", "an existing scheduler file", address)
    try:
        client = Client(**where, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInputError(
            f"The scheduler {address!r} cannot be reached ({error}). Check the address and that it runs "
            "('dask scheduler' starts one and prints its address), and that no firewall is in between; "
            "'local:2' starts workers on this machine."
        ) from error
    with client:
        yield client


_before_run: list[Callable[[], Any]] = []  # what makes a worker as it was, while tasks run on it


def _run(task: Task, *arguments: Any) -> Any:
    import faiss

    if not _before_run:  # finding the libraries takes longer than many tasks
        from threadpoolctl import threadpool_limits

        _before_run.extend([threadpool_limits(limits=1).restore_original_limits, keep_freed_memory()])
    faiss.omp_set_num_threads(1)  # counts for the calling thread only
    return task(*arguments)


def _itself(value: Any) -> Any:
    return value


def _release() -> None:
    """Leave a worker as it was before this run."""
    limit_cache(0)
    while _before_run:
        _before_run.pop()()


def _one_per_thread(workers: dict[str, dict[str, Any]]) -> list[str]:
    """Addresses of workers, each as often as it has threads."""
    return [address for address, worker in sorted(workers.items()) for _ in range(int(worker["nthreads"]))]


def _workers(client: Client) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = client.scheduler_info(n_workers=-1)["workers"]
    return found


def _check_versions(client: Client) -> None:
    own = _own_version()
    try:
        theirs: dict[str, str] = client.run(_own_version)
    except Exception as error:  # whatever the workers raise where the package is not installed
        raise InvalidInputError(
            f"The workers cannot import laplaceconfidence ({error}). Install version {own} on every machine: "
            "pip install 'laplaceconfidence[cluster]'."
        ) from error
    for address, their_version in theirs.items():
        if their_version != own:
            raise InvalidInputError(
                f"The worker {address} has laplaceconfidence {their_version}, but {own} runs here. Install "
                "the same version on every machine."
            )


def _own_version() -> str:
    return version("laplaceconfidence")


def _require_distributed() -> None:
    if find_spec("distributed") is None:
        raise MissingDependencyError(
            "A cluster needs Dask, which is not installed: pip install 'laplaceconfidence[cluster]'"
        )
