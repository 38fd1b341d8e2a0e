"""The estimators that can be fitted in blocks: what each plans, computes and reports."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from laplaceconfidence.arrays import IntArray, row_blocks
from laplaceconfidence.auditing.diagnostics import FitDiagnostics, fit_diagnostics
from laplaceconfidence.blocks.estimate import (
    SOLUTION,
    BlockEstimate,
    BlockSettings,
    estimate,
    solve_and_read,
)
from laplaceconfidence.blocks.executor import Executor
from laplaceconfidence.blocks.graph_blocks import GRAPH
from laplaceconfidence.blocks.growth import add_samples, start_from
from laplaceconfidence.blocks.inputs import BlockData
from laplaceconfidence.blocks.kept_index import KeptIndex
from laplaceconfidence.blocks.lists import SHARDS, TRAINED, Shards, load_lists
from laplaceconfidence.blocks.new_samples import ROWS_PER_BATCH, NewSamples
from laplaceconfidence.blocks.noise_aware import (
    DIGESTS,
    MOST_ENTRIES,
    SAMPLE_SIZE,
    fit_on_sample,
    write_posteriors,
)
from laplaceconfidence.blocks.noise_aware_growth import MODEL, add_results, load_fit, save_fit
from laplaceconfidence.blocks.plan import BlockPlan, make_plan, plan_for_sample
from laplaceconfidence.blocks.preparation import AXES, PREPARED
from laplaceconfidence.blocks.results import RESULTS, SHOWN, write_results
from laplaceconfidence.blocks.search import NEIGHBORS, SearchSettings, vectors_at
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.graph.neighbors import IVF_FROM, fitting_neighbor_count
from laplaceconfidence.validation import must_be

LAPLACE, NOISE_AWARE = "laplace", "noise-aware"
Stating = Callable[[str], None]
_Kind = TypeVar("_Kind")


class BlockFit(Protocol):
    """A fit in blocks.

    Attributes
    ----------
    plan : BlockPlan
        Sizes of blocks, and what the fit is expected to take.
    settings : dict
        What its parts depend on, as JSON can store it.
    n_result_parts : int
        Number of parts of the results, known after ``run``.
    kept : dict
        What another fit that goes on from this one needs to know, and under "stages" the stages that it
        needs; empty where nothing is kept.
    digests : str
        The stage that keeps digests of the features.
    """

    plan: BlockPlan
    settings: dict[str, Any]
    n_result_parts: int
    kept: dict[str, Any]
    digests: ClassVar[str]

    @staticmethod
    def unfitted(settings: Mapping[str, Any]) -> Any:
        """Make the estimator whose settings are checked and recorded.

        Parameters
        ----------
        settings : mapping of str to object
            Its settings.

        Returns
        -------
        ConfidenceEstimator
        """

    @classmethod
    def planned(cls, unfitted: Any, data: BlockData, seed: int, memory: int, executor: Executor) -> Self:
        """Plan the fit.

        Parameters
        ----------
        unfitted : ConfidenceEstimator
            What ``unfitted`` returned.
        data : BlockData
            The data.
        seed : int
            Seed.
        memory : int
            Bytes that a process may use.
        executor : Executor
            Where tasks will run.

        Returns
        -------
        BlockFit
        """

    def run(
        self,
        executor: Executor,
        work: WorkFolder,
        data: BlockData,
        *,
        keep: bool = False,
        stating: Stating | None = None,
    ) -> FitDiagnostics:
        """Compute and write the results of all samples.

        Parameters
        ----------
        executor : Executor
            Where tasks run.
        work : WorkFolder
            Where the parts are.
        data : BlockData
            The data.
        keep : bool, default=False
            Whether another fit is to go on from this one.
        stating : callable or None, default=None
            Called with sentences about what is known only while the fit runs.

        Returns
        -------
        FitDiagnostics
        """

    def grow(
        self, executor: Executor, index: KeptIndex, work: WorkFolder, new: NewSamples, labels: IntArray
    ) -> FitDiagnostics:
        """Go on from a finished fit, with samples and labels that came later; this fit is kept as well.

        Parameters
        ----------
        executor : Executor
            Where tasks run.
        index : KeptIndex
            The finished fit.
        work : WorkFolder
            Where the parts are written.
        new : NewSamples
            The samples that came.
        labels : ndarray of int32, shape (n,)
            Codes of all labels as they are now, by row.

        Returns
        -------
        FitDiagnostics
        """


@dataclass(slots=True)
class LaplaceFit:
    """The paper's estimator, on the graph of all samples; ``BlockFit`` describes the methods."""

    plan: BlockPlan
    settings: dict[str, Any]
    n_result_parts: int = 0
    kept: dict[str, Any] = field(default_factory=dict)
    digests: ClassVar[str] = PREPARED

    @staticmethod
    def unfitted(settings: Mapping[str, Any]) -> LaplaceConfidence:
        """Make the estimator, with settings that can be used in blocks."""
        made = _made(LaplaceConfidence, LAPLACE, settings)
        made._check_settings()
        for name in ("n_neighbors", "alpha"):
            if isinstance(value := getattr(made, name), str):
                raise must_be(name, "a number where an audit runs in blocks", value)
        if made.dtype == "float64":
            raise must_be("dtype", "'float32' or 'auto' where an audit runs in blocks", made.dtype)
        return made

    @classmethod
    def planned(
        cls, unfitted: LaplaceConfidence, data: BlockData, seed: int, memory: int, executor: Executor
    ) -> Self:
        """Choose the sizes of blocks."""
        n, k = len(data), fitting_neighbor_count(unfitted.n_neighbors, len(data))
        is_exact = unfitted.search == "exact" or (unfitted.search == "auto" and n < IVF_FROM)
        plan = make_plan(
            n,
            data.features.n_features,
            unfitted.n_components or data.features.n_features,
            data.n_classes,
            k,
            memory=memory,
            n_threads=executor.threads_per_worker,
            n_processes=executor.n_workers // executor.threads_per_worker,
            exact=is_exact,
            seconds_per_step=executor.seconds_per_step,
        )
        settings = BlockSettings(
            n_neighbors=k,
            alpha=float(unfitted.alpha),
            n_components=unfitted.n_components,
            search="exact" if is_exact else unfitted.search,
            target_recall=unfitted.target_recall,
            tol=unfitted.tol,
            max_iter=unfitted.max_iter,
            random_state=seed,
            rows_per_block=plan.rows_per_block,
            classes_at_once=plan.classes_at_once,
            classes_apart=plan.classes_apart,
        )
        return cls(plan, asdict(settings))

    def run(
        self,
        executor: Executor,
        work: WorkFolder,
        data: BlockData,
        *,
        keep: bool = False,
        stating: Stating | None = None,
    ) -> FitDiagnostics:
        """Search, build the graph, solve and read the solution."""
        found = estimate(
            executor,
            work,
            data.features,
            data.labels,
            data.n_classes,
            BlockSettings(**self.settings),
            with_digests=not data.has_ids,
            keep_solution=keep,
            stating=stating,
        )
        return self._finished(executor, found, keep=keep)

    def grow(
        self, executor: Executor, index: KeptIndex, work: WorkFolder, new: NewSamples, labels: IntArray
    ) -> FitDiagnostics:
        """Search the new samples, change the graph, and solve from the last solution."""
        settings, kept, about = BlockSettings(**self.settings), index.work, index.facts["fit"]
        starts, n_lists, before = np.array(about["starts"]), int(about["n_lists"]), index.labels
        _refuse_other_features(kept, starts, new)
        lists = load_lists(kept, wide=about["wide"])
        search = SearchSettings(settings.n_neighbors, n_lists)
        shards, recall = add_samples(executor, kept, work, lists, starts, new.vectors(new.added), search)
        work.take(kept, TRAINED, 0)
        if settings.n_components is not None:
            work.take(kept, AXES, 0)
        rows = [np.asarray(work.load(SHARDS, block, "rows")) for block in range(shards.n_blocks)]
        start = start_from(
            kept, [before[own] for own in rows[: len(starts) - 1]], [labels[own] for own in rows]
        )
        found = solve_and_read(
            executor,
            work,
            shards,
            labels,
            index.facts["audit"]["n_classes"],
            # As precise as the solution it starts from, which may have stopped earlier than at ``tol``.
            replace(settings, tol=max(settings.tol, about["residual"])),
            recall=about["recall"] if recall is None else recall,
            n_lists=n_lists,
            is_exact=n_lists == len(lists.centers),
            start=start,
            keep_solution=True,
        )
        return self._finished(executor, found, keep=True, wide=about["wide"])

    def _finished(
        self, executor: Executor, found: BlockEstimate, *, keep: bool, wide: bool | None = None
    ) -> FitDiagnostics:
        write_results(executor, found)
        self.n_result_parts = found.shards.n_blocks
        if keep:
            solutions = [f"{SOLUTION}-{number}" for number in range(found.last_chunk + 1)]
            axes = [] if self.settings["n_components"] is None else [AXES]
            self.kept = {
                "stages": [TRAINED, *axes, SHARDS, NEIGHBORS, GRAPH, SHOWN, *solutions],
                "starts": found.shards.starts.tolist(),
                "n_lists": found.n_lists,
                "wide": found.work.facts(TRAINED, 0)["wide"] if wide is None else wide,
                "recall": found.recall,
                "residual": found.residual,
            }
        return FitDiagnostics(
            search="exact" if found.is_exact else "ivf",
            n_neighbors=self.settings["n_neighbors"],
            recall=found.recall,
            n_iter=found.n_iter,
            residual=found.residual,
            converged=found.converged,
            energy=found.energy,
        )


@dataclass(slots=True)
class NoiseAwareFit:
    """The noise-aware estimator, fitted on a sample; ``BlockFit`` describes the methods."""

    plan: BlockPlan
    settings: dict[str, Any]
    n_result_parts: int = 0
    kept: dict[str, Any] = field(default_factory=dict)
    digests: ClassVar[str] = DIGESTS

    @staticmethod
    def unfitted(settings: Mapping[str, Any]) -> NoiseAwareConfidence:
        """Make the estimator."""
        made = _made(NoiseAwareConfidence, NOISE_AWARE, settings)
        made._check_settings()
        return made

    @classmethod
    def planned(
        cls, unfitted: NoiseAwareConfidence, data: BlockData, seed: int, memory: int, executor: Executor
    ) -> Self:
        """Choose the sizes of the sample and of batches."""
        size = min(len(data), SAMPLE_SIZE, max(1_000, MOST_ENTRIES // data.n_classes))
        plan = plan_for_sample(
            len(data),
            data.features.n_features,
            data.n_classes,
            size,
            memory=memory,
            n_threads=executor.threads_per_worker,
            n_processes=executor.n_workers // executor.threads_per_worker,
            n_blocks=len(data.features.pieces),
        )
        own = {name: value for name, value in unfitted.get_params().items() if name not in _SET_HERE}
        described = {name: value if _is_plain(value) else repr(value) for name, value in own.items()}
        return cls(plan, {**described, "sample_size": size, "seed": seed})

    def run(
        self,
        executor: Executor,
        work: WorkFolder,
        data: BlockData,
        *,
        keep: bool = False,
        stating: Stating | None = None,
    ) -> FitDiagnostics:
        """Fit on the sample, and compute the posteriors of all others."""
        own = {name: value for name, value in self.settings.items() if name not in ("sample_size", "seed")}
        estimator, fitted = fit_on_sample(
            data.features,
            data.labels,
            data.n_classes,
            size=self.settings["sample_size"],
            seed=self.settings["seed"],
            rows_per_batch=self.plan.rows_per_block,
            settings=own,
        )
        write_posteriors(
            executor,
            work,
            data.features,
            data.labels,
            fitted,
            rows_per_batch=self.plan.rows_per_block,
            with_digests=not data.has_ids,
        )
        self.n_result_parts = len(data.features.pieces)
        found = fit_diagnostics(estimator)
        if keep:
            save_fit(work, fitted)
            reported = asdict(replace(found, calibration=None))
            self.kept = {"stages": [MODEL, RESULTS], "diagnostics": reported}
        return found

    def grow(
        self, executor: Executor, index: KeptIndex, work: WorkFolder, new: NewSamples, labels: IntArray
    ) -> FitDiagnostics:
        """Apply what was fitted to new samples and labels; it is not fitted again."""
        fitted = load_fit(index.work, executor.n_workers)
        self.n_result_parts = add_results(index.work, work, fitted, new, labels, len(index.labels))
        work.take(index.work, MODEL, 0)
        self.kept = index.facts["fit"]
        reported = dict(self.kept["diagnostics"])
        bracket = reported.pop("noise_rate_bracket")
        return FitDiagnostics(**reported, noise_rate_bracket=None if bracket is None else tuple(bracket))


FITS: dict[str, type[LaplaceFit] | type[NoiseAwareFit]] = {NOISE_AWARE: NoiseAwareFit, LAPLACE: LaplaceFit}
_SET_HERE = ("missing_label", "random_state")


def _made(kind: type[_Kind], name: str, settings: Mapping[str, Any]) -> _Kind:
    known = inspect.signature(kind).parameters
    for setting, value in settings.items():
        if setting not in known or setting in _SET_HERE:
            raise must_be(setting, f"left out for {name!r}, which has no such setting", value)
    return kind(**settings)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, list))


def _refuse_other_features(kept: WorkFolder, starts: IntArray, new: NewSamples) -> None:
    """Raise where a sample that the run knows has other features than it had."""
    if not len(new.known):
        return
    n_blocks = len(starts) - 1
    rows = np.concatenate([kept.load(SHARDS, block, "rows") for block in range(n_blocks)])
    position_of = np.empty(len(rows), dtype=np.int64)
    position_of[rows] = np.arange(len(rows))
    order = np.argsort(position_of[new.places])
    shards = Shards(starts, starts[:0], starts[:0])
    for some in row_blocks(len(order), ROWS_PER_BATCH):
        own = order[some]
        before = vectors_at(kept, shards, position_of[new.places[own]])
        by_row = np.sort(new.known[own])
        now = new.vectors(by_row)[np.searchsorted(by_row, new.known[own])]
        other = np.abs(before - now).max(axis=1) > 1e-4
        if other.any():
            id = new.ids[int(new.known[own[int(np.argmax(other))]])]
            raise must_be(
                "features",
                "those of the run for a sample that it knows",
                f"other features of the sample {id!r}",
                "Give a sample whose content changed an id of its own, or audit all data together.",
            )
