"""What a run trains: samples, labels, the split of the data, views and networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from laplaceconfidence.arrays import FloatArray, IntArray, StrArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.stages import stage
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.inputs import TrainingData
from laplaceconfidence.training.methods.interface import Method, NetworkEvidence
from laplaceconfidence.training.networks.registry import NetworkSpec
from laplaceconfidence.training.run_settings import RunSettings
from laplaceconfidence.training.sample_views import (
    SampleViews,
    build_augmentations,
    crop_of,
    input_statistics,
    network_shape,
)
from laplaceconfidence.training.samples import ResidentSamples, Samples, reduced
from laplaceconfidence.training.seeds import derived_seed
from laplaceconfidence.training.settings import TrainingSettings
from laplaceconfidence.training.trained_network import (
    HeadedNetwork,
    TrainedNetwork,
    build_module,
    combine_predictions,
    feature_count,
)
from laplaceconfidence.validation import must_be

_STATISTICS_FROM = 10_000  # samples at most; 512 where they are not in memory
_LONGEST_SIDE = 96  # of images that are all in memory, to be described by their patches


@dataclass(frozen=True, slots=True, eq=False)
class TestSet:
    """Samples whose accuracy is reported and used for nothing else."""

    __test__ = False  # pytest takes the name for a test

    samples: Samples
    labels: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTask:
    """Everything a run needs besides the method and the settings."""

    samples: Samples
    labels: IntArray  # (n,) given, -1 where missing
    ids: StrArray
    class_names: tuple[str, ...]
    train_rows: Tensor  # which samples are trained on; methods number them from 0
    validation_rows: Tensor  # which are held out to choose the checkpoint
    views: SampleViews
    networks: tuple[TrainedNetwork, ...]
    rebuild: Callable[[int, int], HeadedNetwork]  # (number of the network, seed) -> new weights
    device: torch.device
    team: Team
    weights: Tensor | None = None  # of the training part; how often its samples are trained on
    test: TestSet | None = None
    further_tests: Mapping[str, TestSet] = field(default_factory=dict)  # by name
    sums_logits: bool = False  # how several networks predict; see Method
    modules: Mapping[str, nn.Module] = field(default_factory=dict)  # the method's own
    audited: Tensor | None = None  # (n,) codes of labels that a person has verified; see Problem

    def observe(
        self,
        network: int,
        settings: TrainingSettings,
        rows: Tensor,
        samples: Samples | None = None,
        *,
        averaged: bool = True,
    ) -> NetworkEvidence:
        """Features, class probabilities and outputs of heads of one network, in the order of ``rows``.

        Eval mode, no augmentation; every process computes its share. The samples are the training samples
        unless others are given. Averaged weights are used if they are kept and ``averaged`` is true.
        """
        observed, team = self.networks[network], self.team
        source = self.samples if samples is None else samples
        team.average_buffers(observed.module)
        if observed.average is not None:
            observed.average.synchronize(team)
        was_training = observed.module.training
        observed.train(False)
        batches = torch.split(team.own_rows(rows), settings.eval_batch_size)
        features: list[Tensor] = []
        probabilities: list[Tensor] = []
        heads: dict[str, list[Tensor]] = {name: [] for name in observed.module.heads}
        with (
            stage("features", total=len(rows)) as advance,
            torch.no_grad(),
            settings.autocast(self.device),
            observed.averaged() if averaged else nullcontext(),
        ):
            for inputs in source.batches(batches, seed=settings.seed):
                outputs = observed.outputs(self.views.normalized(inputs))
                features.append(outputs.features)
                probabilities.append(outputs.logits.softmax(dim=1))
                for name, output in outputs.heads.items():
                    heads[name].append(output.float())
                advance(len(inputs))
        observed.train(was_training)
        of_heads = {name: _gathered(parts, team) for name, parts in heads.items()}
        return NetworkEvidence(_gathered(features, team), _gathered(probabilities, team), of_heads)

    def weights_of_modules(self) -> dict[str, dict[str, Tensor]]:
        """The states of the method's own modules."""
        return {name: module.state_dict() for name, module in self.modules.items()}

    def load_modules(self, weights: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Give the method's own modules the states that ``weights_of_modules`` gave."""
        for name, module in self.modules.items():
            module.load_state_dict(weights[name])

    def inputs(self, rows: Tensor, settings: TrainingSettings) -> FloatArray:
        """Training samples as they were given, read in this process; large images are reduced in size."""
        batches = self.samples.batches(torch.split(rows, settings.eval_batch_size), seed=settings.seed)
        inputs: FloatArray = torch.cat([reduced(batch.cpu(), _LONGEST_SIDE) for batch in batches]).numpy()
        return inputs

    def mean_probabilities(
        self,
        predictors: tuple[int, ...],
        settings: TrainingSettings,
        rows: Tensor,
        samples: Samples | None = None,
    ) -> FloatArray:
        """Class probabilities of the networks that predict, combined as the method says: shape (n, C)."""
        each = [self.observe(network, settings, rows, samples).probabilities for network in predictors]
        return self.combined(each)

    def combined(self, probabilities: Sequence[FloatArray]) -> FloatArray:
        """One prediction from those of several networks: the mean, or the softmax of the summed logits."""
        smallest = float(np.finfo(np.float32).tiny)
        # Logarithms of probabilities are logits up to a constant per sample, which the softmax removes.
        logits = [torch.from_numpy(one).clamp_min(smallest).log() for one in probabilities]
        combined: FloatArray = combine_predictions(logits, sums_logits=self.sums_logits).numpy()
        return combined


def split_validation(labels: IntArray, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to train on and rows to hold out: ``fraction`` of those that have a label, chosen at random."""
    labeled = np.flatnonzero(labels != MISSING)
    n_held_out = round(fraction * len(labeled))
    if n_held_out >= len(labeled):
        raise must_be(
            "validation_fraction", f"small enough to leave one of {len(labeled)} labels to train on", fraction
        )
    chosen = np.random.default_rng(derived_seed(seed, "validation")).permutation(labeled)[:n_held_out]
    held_out = np.sort(chosen)
    kept = np.setdiff1d(np.arange(len(labels)), held_out)
    return torch.from_numpy(kept), torch.from_numpy(held_out)


def build_task(
    data: TrainingData,
    test: TestSet | None,
    further_tests: Mapping[str, TestSet],
    run: RunSettings,
    device: torch.device,
) -> TrainingTask:
    """Everything a run needs; the networks are initialized from the seed of the settings."""
    settings = run.training
    team = Team.current()
    for tested in (*([test] if test else []), *further_tests.values()):
        if tested.samples.shape != data.samples.shape:
            rule = f"made of samples of shape {data.samples.shape}, as 'X'"
            raise must_be("test", rule, tested.samples.shape)
    train_rows, validation_rows = split_validation(data.labels, run.validation_fraction, settings.seed)
    augmentations = build_augmentations(run.weak, run.strong, data.samples.shape)
    _check_audited(data, run.method)
    mean, deviation = _statistics(data.samples, train_rows, settings.seed)
    crop = crop_of(run.weak)
    _check_crop(crop, data.samples.shape)
    views = SampleViews(*augmentations, mean.to(device), deviation.to(device), settings.channels_last, crop)
    build = _module_builder(data, run.method, run.network, run.feature_layer, crop)
    if isinstance(run.network, nn.Module) and _starts_anew(run.method, settings.rounds):
        build(0, settings.seed, again=True)  # one that cannot be reset fails now, not in the middle of a run
    networks = []
    for number in range(run.method.n_networks):
        module = build(number, derived_seed(settings.seed, "network", number)).to(device)
        if settings.channels_last:
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if team.size > 1 and device.type == "cuda":
            module = nn.SyncBatchNorm.convert_sync_batchnorm(module)  # type: ignore[no-untyped-call]
        networks.append(TrainedNetwork(module, device, team, compiled=settings.compile))
    return TrainingTask(
        samples=data.samples,
        labels=data.labels,
        ids=data.ids,
        class_names=data.class_names,
        train_rows=train_rows,
        validation_rows=validation_rows,
        views=views,
        networks=tuple(networks),
        rebuild=partial(build, again=True),
        device=device,
        team=team,
        weights=None if data.weights is None else torch.from_numpy(data.weights)[train_rows],
        test=test,
        further_tests=further_tests,
        sums_logits=run.method.sums_logits,
        modules=_method_modules(run.method, len(data.class_names), settings.seed, device),
        audited=None if data.audited is None else torch.from_numpy(data.audited),
    )


def _check_crop(crop: int | None, sample_shape: tuple[int, ...]) -> None:
    if crop is not None and len(sample_shape) == 3 and crop > min(sample_shape[1:]):
        rule = f"a crop of at most the size of the images, {sample_shape[1]} x {sample_shape[2]}"
        advice = "Resize image files to a larger 'image_size', or take a smaller crop (weak.resized_crop)."
        raise must_be("weak", rule, crop, advice)


def _check_audited(data: TrainingData, method: Method) -> None:
    if data.audited is not None and not method.takes_audited:
        rule = f"left out for the method {type(method).__name__}, which does not use verified labels"
        advice = "To train on them, put them in place of the given labels."
        raise must_be("audited", rule, f"{int((data.audited != MISSING).sum())} labels", advice)


def _method_modules(method: Method, n_classes: int, seed: int, device: torch.device) -> dict[str, nn.Module]:
    """The method's own modules, with weights from the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(derived_seed(seed, "modules"))
        return {name: module.to(device) for name, module in method.modules(n_classes).items()}


class _Builder(Protocol):
    """Builds a network from its number and a seed, for the first time or again."""

    def __call__(self, number: int, seed: int, *, again: bool = False) -> HeadedNetwork: ...


def _module_builder(
    data: TrainingData,
    method: Method,
    network: NetworkSpec,
    feature_layer: str | None,
    crop: int | None = None,
) -> _Builder:
    """The function that builds the networks of a run."""
    shape, n_classes = network_shape(data.samples.shape, crop), len(data.class_names)

    def build(number: int, seed: int, *, again: bool = False) -> HeadedNetwork:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            # A module of the user's keeps its weights in the first network at first: they may be pretrained.
            module = build_module(
                network, n_classes, shape, reinitialize=again or number > 0, feature_layer=feature_layer
            )
            if heads := method.heads(feature_count(module, shape), n_classes):
                module.heads.update(heads)
        return module

    return build


def _starts_anew(method: Method, rounds: int) -> bool:
    """Whether a network gets new weights somewhere in the run."""
    return any(phase.fresh for round in range(rounds) for phase in method.phases(round))


def _statistics(samples: Samples, rows: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Mean and deviation of the inputs, from a random part of the training samples."""
    n_seen = _STATISTICS_FROM if isinstance(samples, ResidentSamples) else 512
    order = torch.from_numpy(np.random.default_rng(derived_seed(seed, "statistics")).permutation(len(rows)))
    seen = rows[order[:n_seen]]
    inputs: list[Any] = [batch.cpu() for batch in samples.batches(torch.split(seen, 256), seed)]
    return input_statistics(torch.cat(inputs))


def _gathered(parts: list[Tensor], team: Team) -> FloatArray:
    gathered: FloatArray = team.gather_rows(torch.cat(parts)).cpu().numpy()
    return gathered
