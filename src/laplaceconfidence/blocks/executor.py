"""Where tasks over blocks run: in threads of this process, or on a Dask cluster (``cluster.py``).

A task is a function of a module of this package with arguments that can be sent. Results of ``submit`` stay
where they were computed and can be arguments of other tasks; ``gather`` brings small ones here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Protocol, Self

from laplaceconfidence.blocks.block_cache import limit_cache
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads, thread_count

Task = Callable[..., Any]


class Executor(Protocol):
    """Runs tasks.

    Attributes
    ----------
    n_workers : int
        How many tasks run at the same time.
    threads_per_worker : int
        How many of them run in one process.
    memory_per_worker : int or None
        Bytes that a process may use, where they are limited.
    n_ahead : int
        Steps that an iterative computation submits before it looks at a result, where looking takes time.
    seconds_per_step : float
        How long a step waits for messages.
    """

    n_workers: int
    threads_per_worker: int
    memory_per_worker: int | None
    n_ahead: int
    seconds_per_step: float

    def prepare(self, cache: int) -> None:
        """Set how many bytes of blocks every process keeps between tasks.

        Parameters
        ----------
        cache : int
            Number of bytes.
        """

    def share(self, value: Any) -> Any:
        """Send a value that many tasks use to the processes that need it, once.

        Parameters
        ----------
        value : object
            The value.

        Returns
        -------
        object
            An argument of tasks that stands for it.
        """

    def submit(self, name: str, task: Task, *arguments: Any) -> Any:
        """Run a task when its arguments are there.

        Parameters
        ----------
        name : str
            Name of the stage.
        task : callable
            The task, which must not change its arguments.
        *arguments : object
            Its arguments; results of other tasks may be among them, or in lists.

        Returns
        -------
        object
            Stands for the result.
        """

    def submit_each(self, name: str, task: Task, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run a task once per block, which takes less time than to submit each of them.

        Calls of the same place among as many run where the earlier ones did, so that a block stays there.

        Parameters
        ----------
        name : str
            Name of the stage.
        task : callable
            The task, which must not change its arguments.
        calls : sequence of tuple
            The arguments of every call, in the order of the blocks; all of the same number.

        Returns
        -------
        list of object
            Stand for the results.
        """

    def gather(self, results: Sequence[Any]) -> list[Any]:
        """Wait for results.

        Parameters
        ----------
        results : sequence of object
            What ``submit`` returned.

        Returns
        -------
        list of object
        """

    def completed(self, results: Sequence[Any]) -> Any:
        """Iterate over results in the order in which they are finished.

        Parameters
        ----------
        results : sequence of object
            What ``submit`` returned.

        Returns
        -------
        iterator
        """


class LocalExecutor:
    """Runs tasks in threads of this process, each with one thread of faiss and BLAS.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_workers = self.threads_per_worker = thread_count(n_jobs)
        self.memory_per_worker: int | None = None
        self.n_ahead = 0
        self.seconds_per_step = 0.0
        self._pool = ThreadPoolExecutor(self.n_workers, initializer=_one_faiss_thread)
        self._limits = ExitStack()

    def __enter__(self) -> Self:
        self._limits.enter_context(limited_threads(1))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        limit_cache(0)  # forget the blocks of this run
        self._limits.close()

    def prepare(self, cache: int) -> None:
        """Set the size of the cache, as ``Executor`` says."""
        limit_cache(cache)

    def share(self, value: Any) -> Any:
        """Return the value itself: all tasks run in this process."""
        return value

    def submit(self, name: str, task: Task, *arguments: Any) -> Future[Any]:
        """Run a task in a thread, as ``Executor`` says."""
        # Tasks start in the order in which they were submitted, and a task only waits for earlier ones.
        return self._pool.submit(_run, task, arguments)

    def submit_each(self, name: str, task: Task, calls: Sequence[tuple[Any, ...]]) -> list[Future[Any]]:
        """Run a task once per block, as ``Executor`` says."""
        return [self.submit(name, task, *arguments) for arguments in calls]

    def gather(self, results: Sequence[Future[Any]]) -> list[Any]:
        """Wait for results, as ``Executor`` says."""
        return [result.result() for result in results]

    def completed(self, results: Sequence[Future[Any]]) -> Any:
        """Iterate over finished results, as ``Executor`` says."""
        return as_completed(results)


class SerialExecutor:
    """Runs tasks at once, in the thread that submits them; ``Executor`` describes the methods.

    A task can use one to do in one go what otherwise is spread over many tasks.
    """

    n_workers = threads_per_worker = 1
    memory_per_worker: int | None = None
    n_ahead = 0
    seconds_per_step = 0.0

    def prepare(self, cache: int) -> None:
        """Set the size of the cache, as ``Executor`` says."""
        limit_cache(cache)

    def share(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def submit(self, name: str, task: Task, *arguments: Any) -> Any:
        """Run a task; its result stands for itself."""
        return task(*arguments)

    def submit_each(self, name: str, task: Task, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run a task once per block."""
        return [task(*arguments) for arguments in calls]

    def gather(self, results: Sequence[Any]) -> list[Any]:
        """Return the results, which are here already."""
        return list(results)

    def completed(self, results: Sequence[Any]) -> Any:
        """Iterate over the results."""
        return iter(results)


def run_parts(
    executor: Executor, work: WorkFolder, name: str, task: Task, parts: Sequence[tuple[Any, ...]]
) -> list[Facts]:
    """Run a stage: one task per part that is not finished yet, with progress.

    Parameters
    ----------
    executor : Executor
        Where the tasks run.
    work : WorkFolder
        Where the parts are.
    name : str
        Name of the stage.
    task : callable
        Called with the folder, the number of the part and the arguments of the part; it saves the part and
        returns its facts.
    parts : sequence of tuple
        The arguments of every part.

    Returns
    -------
    list of dict
        The facts of all parts, in order.
    """
    missing = [part for part in range(len(parts)) if not work.is_done(name, part)]
    with stage(name, total=len(parts)) as advance:
        if len(missing) < len(parts):
            advance(len(parts) - len(missing))
        wait_for(
            executor, {executor.submit(name, task, work, part, *parts[part]): 1 for part in missing}, advance
        )
    return [work.facts(name, part) for part in range(len(parts))]


def wait_for(executor: Executor, amounts: Mapping[Any, int], advance: Callable[[int], None]) -> None:
    """Wait for tasks with progress; where one fails, the others are canceled.

    Parameters
    ----------
    executor : Executor
        Where the tasks run.
    amounts : mapping of object to int
        What ``submit`` returned, and how much of the work each of them is.
    advance : callable
        Called with the amount of every task that is finished.
    """
    try:
        for finished in executor.completed(list(amounts)):
            executor.gather([finished])  # raises at once where a task failed
            advance(amounts[finished])
    except BaseException:
        for result in amounts:
            result.cancel()
        raise


def _run(task: Task, arguments: tuple[Any, ...]) -> Any:
    return task(*(_value(argument) for argument in arguments))


def _value(argument: Any) -> Any:
    if isinstance(argument, Future):
        return argument.result()
    if isinstance(argument, list):
        return [_value(one) for one in argument]
    return argument


def _one_faiss_thread() -> None:
    import faiss

    faiss.omp_set_num_threads(1)  # counts for the calling thread only
