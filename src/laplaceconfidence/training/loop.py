"""The training loop, the same for every method: rounds, phases, steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import Interrupted
from laplaceconfidence.run_files import AFTER_TRAINING, AFTER_WARM_UP
from laplaceconfidence.stages import stage
from laplaceconfidence.training.callbacks import Callback, TrainingContext
from laplaceconfidence.training.guards import Guards, check_batches
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem
from laplaceconfidence.training.optimization import Optimization
from laplaceconfidence.training.phase_steps import index_batches, steps
from laplaceconfidence.training.progress import TrainingProgress
from laplaceconfidence.training.run_folder import RunFolder, end_of_plain_training, shown_rows
from laplaceconfidence.training.sample_views import mirrors_images
from laplaceconfidence.training.schedules import progress_of_network
from laplaceconfidence.training.seeds import derived_seed
from laplaceconfidence.training.settings import TrainingSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.training.stopping import StopRequest, stop_on_signals
from laplaceconfidence.training.task import TestSet, TrainingTask
from laplaceconfidence.training.time_left import time_left

RoundListener = Callable[[Mapping[str, Any]], None]
"""Called after every round with its measurements."""

_LOSS_CHECK_STEPS = 20  # on a GPU, reading the loss waits for everything queued before it


class Loop:
    """One run of a method, from the beginning or from the newest checkpoint in its folder.

    Parameters
    ----------
    method : Method
        The training method.
    task : TrainingTask
        Data and networks.
    settings : TrainingSettings
        Schedule, batches, precision and seed.
    folder : RunFolder, optional
        Where the first process writes; the others have none.
    saved_in : Path, optional
        The path of that folder, in every process.
    checkpoint_seconds : float, default=30
        Least time between two checkpoints.
    listeners : sequence of callables, default=()
        Called after every round with its measurements.
    callbacks : sequence of Callback, default=()
        Called after every step and round; they may end the run.
    """

    def __init__(
        self,
        method: Method,
        task: TrainingTask,
        settings: TrainingSettings,
        *,
        folder: RunFolder | None = None,
        saved_in: Path | None = None,
        checkpoint_seconds: float = 30.0,
        listeners: Sequence[RoundListener] = (),
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.method, self.task, self.settings = method, task, settings
        self._folder = folder  # only the first process has one
        self._saved_in = saved_in  # the same in all processes
        self._checkpoint_seconds = checkpoint_seconds
        # Only the first process calls them.
        self._listeners = listeners if task.team.is_first else ()
        self._callbacks = callbacks if task.team.is_first else ()
        self._train_labels = task.labels[task.train_rows.numpy()]
        self.problem = Problem(
            labels=torch.from_numpy(self._train_labels).to(task.device),
            n_classes=len(task.class_names),
            rounds=settings.rounds,
            batch_size=settings.batch_size,
            seed=settings.seed,
            sample_shape=task.samples.shape,
            mirrors=mirrors_images(task.views.weak),
            audited=None if task.audited is None else task.audited[task.train_rows].to(task.device),
        )
        self._optimization = Optimization(task.networks, settings, task.device, task.team)
        self._guards = Guards(task.class_names)
        self._stop = StopRequest()
        self._end_of_plain_training = end_of_plain_training(method, settings.rounds)
        self.n_plain_rounds = 0 if self._end_of_plain_training is None else self._end_of_plain_training[0]
        self._saved_at = time.monotonic()
        given = self._train_labels[self._train_labels != MISSING]
        self._given_counts = torch.from_numpy(np.bincount(given, minlength=self.problem.n_classes))
        self.progress = TrainingProgress(state=self._on_device(method.initial_state(self.problem)))
        self.best_weights: list[dict[str, Tensor]] | None = None
        self._best_is_saved = True
        self._trains_from_best = any(
            phase.best_evidence or any(copied.best for copied in phase.copies)
            for round in range(settings.rounds)
            for phase in method.phases(round)
        )

    def run(self) -> TrainingProgress:
        """Train all rounds, and load the networks of the chosen one (the last one without validation)."""
        self._resume()
        rounds = self.settings.rounds
        with (
            torch.random.fork_rng(),
            stop_on_signals(self._saved_in is not None) as self._stop,
            stage("training", total=rounds) as advance,
        ):
            advance(self.progress.round)
            try:
                while self.progress.round < rounds and not self.progress.is_stopped:
                    self._run_round()
                    advance(1)
            finally:
                for callback in self._callbacks:
                    callback.on_training_end()
        self._load_weights(self.best_weights or self._optimization.weights_for_predictions())
        self._optimization.end_averages()
        self._keep_features(AFTER_TRAINING, self.predictors[0])
        return self.progress

    # Rounds and phases

    def _run_round(self) -> None:
        self._round_start, progress = time.perf_counter(), self.progress
        phases = self.method.phases(progress.round)
        while progress.phase < len(phases):
            phase = phases[progress.phase]
            if progress.plan is None:
                progress.begin_phase(phase, self._make_plan(phase))
                self._renew(phase)
                self._copy_weights(phase)
            assert progress.plan is not None
            learning_rate = self._train(phases, progress.plan)
            if progress.target_counts is not None:
                counts = self.task.team.sum(progress.target_counts).cpu()
                self._guards.check_targets(counts, self._given_counts, progress.round)
            record = progress.finish_phase(phase, self.task.team, learning_rate)
            self._guards.check_loss(record["loss"], progress.round, phase.trains[0])
        self._finish_round()

    def _make_plan(self, phase: Phase) -> Plan:
        progress, task = self.progress, self.task
        if (progress.round, progress.phase) == self._end_of_plain_training:
            before = max(progress.round - 1, 0)
            self._keep_features(AFTER_WARM_UP, self.method.predictors_in(before)[0])
        use_best = phase.best_evidence and self.best_weights is not None
        averaged = self.settings.average_evidence and not use_best
        with self._best_weights_in(phase.evidence) if use_best else nullcontext():
            observed = {
                network: task.observe(network, self.settings, task.train_rows, averaged=averaged)
                for network in phase.evidence
            }
        seed = derived_seed(self.settings.seed, "plan", progress.round, progress.phase)
        inputs = partial(task.inputs, task.train_rows, self.settings)
        evidence = Evidence(
            observed, self._train_labels, self.problem, progress.round, seed, inputs, task.modules
        )

        def planned() -> dict[str, Any]:
            with stage("plan"):
                plan = self.method.plan(phase, evidence, progress.state)
            self._guards.check_plan(plan, progress.round)
            return {"plan": plan.as_dict(), "state": progress.state, "modules": task.weights_of_modules()}

        result = task.team.on_first(planned, task.device)
        progress.state = self._on_device(result["state"])
        task.load_modules(result["modules"])
        return Plan(**result["plan"]).to(task.device)

    @contextmanager
    def _best_weights_in(self, networks: Sequence[int]) -> Iterator[None]:
        """Inside the block, these networks have the weights of the best round so far."""
        assert self.best_weights is not None
        modules = {network: self.task.networks[network].module for network in networks}
        own = {network: _copied(module.state_dict()) for network, module in modules.items()}
        for network, module in modules.items():
            module.load_state_dict(self.best_weights[network])
        try:
            yield
        finally:
            for network, module in modules.items():
                module.load_state_dict(own[network])

    def _renew(self, phase: Phase) -> None:
        for network in phase.fresh:
            seed = derived_seed(
                self.settings.seed, "network", network, self.progress.round, self.progress.phase
            )
            fresh = self.task.rebuild(network, seed)
            self.task.networks[network].module.load_from(fresh, phase.fresh_parts)
            self._optimization.restart(network)

    def _copy_weights(self, phase: Phase) -> None:
        for copied in phase.copies:
            weights = self.task.networks[copied.source].module.state_dict()
            if copied.best:
                best = self.best_weights or self._optimization.weights_for_predictions()
                weights = best[copied.source]
            self.task.networks[copied.target].module.load_state_dict(weights)
            self._optimization.restart(copied.target)

    def _train(self, phases: Sequence[Phase], plan: Plan) -> float:
        """Train the current phase; returns the mean learning rate of its steps."""
        progress, settings = self.progress, self.settings
        phase = phases[progress.phase]
        order_seed = derived_seed(settings.seed, "order", progress.round, progress.phase)
        batches = index_batches(phase, plan, settings.batch_size, order_seed, self.task.weights)
        for number, network in enumerate(self.task.networks):
            network.begin_phase(number in phase.trains)
        n_steps = len(next(iter(batches.values())))
        check_batches(
            min(len(batch) for stream in batches.values() for batch in stream) // self.task.team.size,
            any(self.task.networks[network].normalizes_batches for network in phase.trains),
        )
        rates = self._learning_rates(phases, n_steps)
        with stage(str(phase), total=n_steps) as advance:
            advance(progress.step)
            for step in steps(self.task, self.problem, progress, phase, plan, batches):
                loss = self._optimize(step, rates[progress.step])
                advance(1)
                self._call_after_step(phase, n_steps, loss)
                self._check_between_steps(loss, phase)
        return fmean(rate for step_rates in rates for rate in step_rates.values())

    def _learning_rates(self, phases: Sequence[Phase], n_steps: int) -> list[dict[int, float]]:
        """The learning rates of the steps of this phase, by network, each for the middle of its step."""
        round, number = self.progress.round, self.progress.phase
        trained, own = phases[number].trains, phases[number].learning_rate
        if (share := phases[number].relative_learning_rate) is not None:
            own = share * self.settings.learning_rate
        if own is not None:
            return [dict.fromkeys(trained, own)] * n_steps
        middles = [(step + 0.5) / n_steps for step in range(n_steps)]
        progress_of = partial(progress_of_network, round=round, phases=phases, phase=number)
        return [
            {network: self._learning_rate_at(progress_of(network, fraction=middle)) for network in trained}
            for middle in middles
        ]

    def _learning_rate_at(self, progress: float) -> float:
        """The learning rate by the schedule, which is spread over the current stage."""
        current = self.method.stage(self.progress.round)
        rounds = self.settings.rounds - current.first_round if current.rounds is None else current.rounds
        return self.settings.learning_rate_at(progress - current.first_round, rounds)

    # Steps

    def _optimize(self, step: Step, learning_rates: Mapping[int, float]) -> Tensor:
        """One step of the method; returns its loss, 0 if it had none."""
        trained, losses = step.phase.trains, []
        self._optimization.set_learning_rates(learning_rates)
        for loss in self._losses(step):
            self._optimization.clear_gradients(trained)
            gradients = self._optimization.step(loss, trained, step.variables)
            step.gradients = gradients or {}
            step.is_made = step.is_made or gradients is not None
            losses.append(loss.detach())
        self.method.after_step(step)
        if step.is_made:
            self._optimization.update_averages(trained)
        total = torch.stack(losses).sum() if losses else torch.zeros((), device=self.task.device)
        measured = {"loss": total, **step.measures} if losses else step.measures
        self.progress.add_step(measured, step.target_counts)
        return total

    def _losses(self, step: Step) -> Iterator[Tensor]:
        """The losses of the method for one batch, each computed when the step before it is made."""
        losses = self.method.losses(step)
        while True:
            with self.settings.autocast(self.task.device):
                loss = next(losses, None)
            if loss is None:
                return
            # Processes average their gradients; shares of one batch may differ in size by a sample.
            yield loss * step.batch.weight

    def _check_between_steps(self, loss: Tensor, phase: Phase) -> None:
        """Stop if the loss is not finite, or if the run was asked to stop."""
        progress, team, device = self.progress, self.task.team, self.task.device
        if device.type == "cpu" or progress.step % _LOSS_CHECK_STEPS == 0:
            lost = team.any(not bool(torch.isfinite(loss)), device)
            self._guards.check_loss(float("nan") if lost else float(loss), progress.round, phase.trains[0])
        if team.any(self._stop.pending, device):
            self._save()
            assert self._saved_in is not None
            raise Interrupted(progress.round, self._saved_in)

    # The end of a round

    def _finish_round(self) -> None:
        progress, task = self.progress, self.task
        record: dict[str, Any] = {
            "round": progress.round + 1,
            "learning_rate": self._learning_rate_at(progress.round),
            "phases": list(progress.phase_records),
        }
        current = self.method.stage(progress.round)
        if not current.counts:
            record["counts"] = False
        if 0 < progress.round == current.first_round and not self.method.stage(progress.round - 1).counts:
            progress.best = self.best_weights = None
        if len(task.validation_rows):
            accuracy = self._accuracy(task.validation_rows, task.labels[task.validation_rows.numpy()])
            record["validation_accuracy"] = accuracy
            if progress.choose(accuracy, len(task.validation_rows)):
                self.best_weights = [_copied(state) for state in self._optimization.weights_for_predictions()]
                self._best_is_saved = False
        if task.test is not None:
            record["test_accuracy"] = self._test_accuracy(task.test)
        if task.further_tests:
            record["further_test_accuracies"] = {
                name: self._test_accuracy(test) for name, test in task.further_tests.items()
            }
        seconds = time.perf_counter() - self._round_start
        self._write_round(record, seconds)
        progress.finish_round(record, seconds)
        # A network that has just started anew predicts less well than the one before it.
        if len(task.validation_rows) and current.first_round == 0:
            accuracies = [past["validation_accuracy"] for past in progress.history]
            self._guards.check_held_out(accuracies, self.n_plain_rounds, len(task.validation_rows))
        self._call_after_round(record)
        is_last = progress.round == self.settings.rounds or progress.is_stopped
        if is_last or time.monotonic() - self._saved_at >= self._checkpoint_seconds:
            self._save()
        for listener in self._listeners:
            listener(record)

    # Callbacks

    def _call_after_step(self, phase: Phase, n_steps: int, loss: Tensor) -> None:
        if not self._callbacks:
            return
        context = self._context(phase.name, self.progress.step, n_steps, loss)
        for callback in self._callbacks:
            callback.on_step_end(context)
        self.progress.stop_reason = context.stop_reason

    def _call_after_round(self, record: Mapping[str, Any]) -> None:
        progress, team = self.progress, self.task.team
        if self._callbacks:
            context = self._context(record["phases"][-1]["name"], 0, 0, None)
            context.record = record
            context.time_left = time_left(self.method, self.settings.rounds, progress.seconds)
            for callback in self._callbacks:
                callback.on_round_end(context)
            progress.stop_reason = context.stop_reason
        progress.stop_reason = team.on_first(lambda: progress.stop_reason, self.task.device)
        progress.is_stopped = progress.stop_reason is not None

    def _context(self, phase: str, step: int, n_steps: int, loss: Tensor | None) -> TrainingContext:
        progress = self.progress
        return TrainingContext(
            round=progress.round + 1 if loss is not None else progress.round,
            rounds=self.settings.rounds,
            phase=phase,
            step=step,
            n_steps=n_steps,
            loss=loss,
            history=tuple(progress.history),
            networks=tuple(network.module.backbone for network in self.task.networks),
            stop_reason=progress.stop_reason,
        )

    # Measurements

    @property
    def predictors(self) -> tuple[int, ...]:
        """The networks that predict in the chosen round, which is the last one if none was chosen."""
        best = self.progress.best
        chosen = self.progress.round if best is None else best["round"]
        return self.method.predictors_in(max(chosen - 1, 0))

    def _accuracy(self, rows: Tensor, labels: Any, samples: Any = None) -> float:
        predictors = self.method.predictors_in(self.progress.round)
        predicted = self.task.mean_probabilities(predictors, self.settings, rows, samples).argmax(axis=1)
        return float((predicted == labels)[labels != MISSING].mean())

    def _test_accuracy(self, test: TestSet) -> float:
        return self._accuracy(torch.arange(len(test.samples)), test.labels, test.samples)

    def _write_round(self, record: Mapping[str, Any], seconds: float) -> None:
        if self._folder is None:
            return
        progress, task = self.progress, self.task
        if progress.confidences:
            columns: dict[str, Any] = {"id": task.ids[task.train_rows.numpy()]}
            columns |= {name: values.numpy() for name, values in sorted(progress.confidences.items())}
            self._folder.write_confidences(progress.round, columns)
        self._folder.write_metrics([*progress.history, record])
        self._folder.write_timings([*progress.seconds, seconds])

    def _keep_features(self, name: str, network: int) -> None:
        """Features of some training samples for the report; all processes take part, the first one writes."""
        if self._saved_in is None:
            return
        rows = shown_rows(self.task.train_rows, self.settings.seed)
        features = self.task.observe(network, self.settings, rows).features
        if self._folder is not None:
            self._folder.write_features(name, rows.numpy(), features, rounds=self.progress.round)

    # Checkpoints

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        progress = self.progress.as_dict(self.task.team)
        if self._folder is None:
            return
        with stage("checkpoint"):
            # Before the checkpoint that refers to it: a run killed in between makes the same choice again.
            if not self._best_is_saved:
                self._folder.save_best({"networks": self.best_weights, **(self.progress.best or {})})
                self._best_is_saved = True
            # The file of the best round may be newer than the checkpoint: training must not depend on it.
            best = {"best_weights": self.best_weights} if self._trains_from_best else {}
            self._folder.save_checkpoint(
                {
                    **best,
                    "networks": [network.module.state_dict() for network in self.task.networks],
                    "modules": self.task.weights_of_modules(),
                    "optimization": self._optimization.state_dict(),
                    "reported": sorted(self._guards.reported),
                    "progress": progress,
                }
            )

    def _resume(self) -> None:
        """Resume from the newest whole checkpoint, if there is one."""
        if self._saved_in is None:
            return
        team, folder = self.task.team, self._folder
        content = team.on_first(lambda: folder.load_checkpoint() if folder else None, self.task.device)
        if content is None:
            return
        self._load_weights(content["networks"])
        self.task.load_modules(content["modules"])
        self._optimization.load_state_dict(content["optimization"])
        self._guards.reported = set(content["reported"])
        self.progress = TrainingProgress.from_dict(content["progress"], self.task.device, team)
        if "best_weights" in content:
            self.best_weights = content["best_weights"]
        elif self.progress.best is not None:
            best = team.on_first(lambda: folder.load_best() if folder else None, self.task.device)
            self.best_weights = None if best is None else best["networks"]
            if best is None:
                self.progress.best = None

    def _load_weights(self, weights: Sequence[Mapping[str, Tensor]]) -> None:
        for network, state in zip(self.task.networks, weights, strict=True):
            network.module.load_state_dict(state)

    def _on_device(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: value.to(self.task.device) for name, value in state.items()}


def _copied(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in state.items()}
