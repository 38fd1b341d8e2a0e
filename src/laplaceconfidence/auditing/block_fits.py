"""The estimators that can be fitted in blocks: what each plans, computes and reports."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

from laplaceconfidence.auditing.diagnostics import FitDiagnostics, fit_diagnostics
from laplaceconfidence.blocks.estimate import BlockSettings, estimate
from laplaceconfidence.blocks.executor import Executor
from laplaceconfidence.blocks.inputs import BlockData
from laplaceconfidence.blocks.noise_aware import (
    DIGESTS,
    MOST_ENTRIES,
    SAMPLE_SIZE,
    fit_on_sample,
    write_posteriors,
)
from laplaceconfidence.blocks.plan import BlockPlan, make_plan, plan_for_sample
from laplaceconfidence.blocks.preparation import PREPARED
from laplaceconfidence.blocks.results import write_results
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.graph.neighbors import IVF_FROM, fitting_neighbor_count
from laplaceconfidence.validation import must_be

LAPLACE, NOISE_AWARE = "laplace", "noise-aware"
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
    digests : str
        The stage that keeps digests of the features.
    """

    plan: BlockPlan
    settings: dict[str, Any]
    n_result_parts: int
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

    def run(self, executor: Executor, work: WorkFolder, data: BlockData) -> FitDiagnostics:
        """Compute and write the results of all samples.

        Parameters
        ----------
        executor : Executor
            Where tasks run.
        work : WorkFolder
            Where the parts are.
        data : BlockData
            The data.

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
        )
        settings = BlockSettings(
            n_neighbors=k,
            alpha=float(unfitted.alpha),
            n_components=unfitted.n_components,
            search="exact" if is_exact else "ivf",
            target_recall=unfitted.target_recall,
            tol=unfitted.tol,
            max_iter=unfitted.max_iter,
            random_state=seed,
            rows_per_block=plan.rows_per_block,
            classes_at_once=plan.classes_at_once,
        )
        return cls(plan, asdict(settings))

    def run(self, executor: Executor, work: WorkFolder, data: BlockData) -> FitDiagnostics:
        """Search, build the graph, solve and read the solution."""
        settings = BlockSettings(**self.settings)
        found = estimate(
            executor,
            work,
            data.features,
            data.labels,
            data.n_classes,
            settings,
            with_digests=not data.has_ids,
        )
        write_results(executor, found)
        self.n_result_parts = found.shards.n_blocks
        return FitDiagnostics(
            search=settings.search,
            n_neighbors=settings.n_neighbors,
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

    def run(self, executor: Executor, work: WorkFolder, data: BlockData) -> FitDiagnostics:
        """Fit on the sample, and compute the posteriors of all others."""
        own = {name: value for name, value in self.settings.items() if name not in ("sample_size", "seed")}
        fitted = fit_on_sample(
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
        return fit_diagnostics(fitted.estimator)


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
