"""A classifier that is hardly hurt by wrong labels, with the interface of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.augment.protocol import Augmentation
from laplaceconfidence.training.build_task import build_task
from laplaceconfidence.training.describe import described
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.inputs import ImageSize, TrainingData, training_data, unlabeled_samples
from laplaceconfidence.training.loop import Loop, RoundListener
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.methods.registry import build_method
from laplaceconfidence.training.networks.registry import NetworkSpec
from laplaceconfidence.training.notebook import NotebookSummary
from laplaceconfidence.training.results import final_results, summarize, write_results
from laplaceconfidence.training.run_folder import RunFolder, stored_settings
from laplaceconfidence.training.samples import Samples
from laplaceconfidence.training.seeds import root_seed
from laplaceconfidence.training.settings import TrainingSettings, choose_device, torch_threads
from laplaceconfidence.training.task import TestSet
from laplaceconfidence.validation import check_integer, check_real, must_be

_METHOD_PARAMETERS = (
    "warmup",
    "passes",
    "n_neighbors",
    "alpha",
    "n_components",
    "sharpen",
    "confidence",
    "n_networks",
    "prior_weight",
    "entropy_penalty",
)
_LOOP_PARAMETERS = (
    "rounds",
    "batch_size",
    "optimizer",
    "learning_rate",
    "momentum",
    "weight_decay",
    "learning_rate_drops",
    "drop_factor",
    "precision",
    "channels_last",
    "compile",
    "eval_batch_size",
)


class RobustClassifier(NotebookSummary, ClassifierMixin, BaseEstimator):
    """Train networks on labels nobody trusts; the defaults are the paper's settings for CIFAR.

    Parameters
    ----------
    network : a name ("preact_resnet18", "inception_resnet_v2", "small_cnn", "mlp"), "package.module:factory",
        a factory called with ``(n_classes, input_shape)``, or a ``torch.nn.Module``.
    method : "laplace", "cross_entropy", "co_teaching", "dividemix" or a ``Method``.
    rounds, warmup : all rounds, and how many of them are warm-up.
    n_neighbors, alpha, n_components : of the graph, as in ``LaplaceConfidence``.
    sharpen : power to which pseudo-labels are raised; 1 leaves them alone.
    strong, weak : augmentations by name, or callables ``(images, generator) -> images``.
    confidence : an estimator by name ("laplace", "gaussian-mixture", ...: see ``confidence.registry``) or any
        object with the ConfidenceEstimator protocol. Those that take losses see the mean of the last five.
    n_networks : two networks that judge each other's labels, or one that judges its own.
    passes : passes over the data for each network and round.
    prior_weight, entropy_penalty : weight of the uniform-prior term; whether warm-up fines overconfidence
        (for asymmetric and real-world noise).
    method_options : settings that only the chosen method has, by name.
    validation_fraction : part of the given labels that is held out and chooses the round whose networks are
        kept; 0 keeps the last.
    learning_rate_drops, drop_factor : rounds (or shares of all rounds) from which the rate is multiplied.
    precision : "float32", "bfloat16" or "float16" (mixed). ``channels_last`` and ``compile`` are for speed.
    feature_layer : name of the module whose input are the features; the last linear layer otherwise.
    image_size : side or (height, width) that image files are resized to.
    n_workers : processes that read samples of datasets too large for memory.
    n_jobs : threads of torch; ``None`` leaves what it has.
    missing_label : a value of ``y`` that means "no label", besides ``None``, NaN and "". Such samples are
        trained on their pseudo-labels.
    out : folder for everything the run leaves (see ``run_folder``). An unfinished run in it with the same
        settings is resumed, and ends with the very weights it would have had.
    checkpoint_seconds : least time between two checkpoints.

    Attributes
    ----------
    classes_ : (C,) the classes. ``n_features_in_`` is set for feature vectors.
    confidence_ : (n,) how far each given label is to be trusted, NaN where there was none.
    refined_labels_ : (n,) the labels as the networks and the confidence would have them.
    history_ : what was measured, a dict for each round.
    summary_ : the chosen round and the accuracies; test accuracies are never used to choose.
    networks_ : the trained modules.
    """

    def __init__(
        self,
        network: NetworkSpec = "preact_resnet18",
        method: str | Method = "laplace",
        *,
        rounds: int = 400,
        warmup: int = 15,
        n_neighbors: int | str = 50,
        alpha: float | str = 0.99,
        n_components: int | None = None,
        sharpen: float = 2,
        strong: str | Augmentation = "randaugment",
        weak: str | Augmentation = "auto",
        confidence: Any = "laplace",
        n_networks: int = 2,
        passes: int = 2,
        prior_weight: float = 1.0,
        entropy_penalty: bool = False,
        method_options: dict[str, Any] | None = None,
        validation_fraction: float = 0.1,
        batch_size: int = 128,
        optimizer: str = "sgd",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        learning_rate_drops: tuple[float, ...] = (0.75,),
        drop_factor: float = 0.1,
        precision: str = "float32",
        channels_last: bool = False,
        compile: bool = False,
        eval_batch_size: int = 512,
        feature_layer: str | None = None,
        device: Any = "auto",
        image_size: ImageSize = None,
        n_workers: int = 0,
        n_jobs: int | None = None,
        missing_label: Any = None,
        random_state: Any = 0,
        out: str | Path | None = None,
        checkpoint_seconds: float = 30.0,
    ) -> None:
        self.network = network
        self.method = method
        self.rounds = rounds
        self.warmup = warmup
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_components = n_components
        self.sharpen = sharpen
        self.strong = strong
        self.weak = weak
        self.confidence = confidence
        self.n_networks = n_networks
        self.passes = passes
        self.prior_weight = prior_weight
        self.entropy_penalty = entropy_penalty
        self.method_options = method_options
        self.validation_fraction = validation_fraction
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.learning_rate_drops = learning_rate_drops
        self.drop_factor = drop_factor
        self.precision = precision
        self.channels_last = channels_last
        self.compile = compile
        self.eval_batch_size = eval_batch_size
        self.feature_layer = feature_layer
        self.device = device
        self.image_size = image_size
        self.n_workers = n_workers
        self.n_jobs = n_jobs
        self.missing_label = missing_label
        self.random_state = random_state
        self.out = out
        self.checkpoint_seconds = checkpoint_seconds

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        test: Any = None,
        further_tests: Mapping[str, Any] | None = None,
        listeners: Sequence[RoundListener] = (),
    ) -> Self:
        """Train on arrays ``X`` with labels ``y``, on a NoisyDataset, or on a dataset of ``(input, label)``.

        Images are (n, height, width) or (n, height, width, channels), feature vectors (n, d). The accuracy on
        ``test`` (a pair, a NoisyDataset or a dataset) is reported after every round and used for nothing, and
        so are those of ``further_tests``, by their names.
        ``listeners`` are called with what was measured after every round.
        """
        device = choose_device(self.device)
        n_workers = check_integer(self.n_workers, "n_workers", minimum=0)
        fraction = check_real(self.validation_fraction, "validation_fraction", at_least=0, below=1)
        check_real(self.checkpoint_seconds, "checkpoint_seconds", at_least=0)
        method = build_method(self.method, self._changed_for_method(), self.method_options)
        data = training_data(
            X,
            y,
            device,
            n_workers=n_workers,
            missing_label=self.missing_label,
            image_size=self.image_size,
        )
        if len(data.class_names) < 2:
            raise must_be("y", "labels of at least two classes", list(data.class_names))
        settings = TrainingSettings(
            **{name: self._plain(name) for name in _LOOP_PARAMETERS}, seed=self._seed()
        )
        with torch_threads(self.n_jobs):
            task = build_task(
                data,
                None if test is None else self._test_set(test, data, device),
                {name: self._test_set(more, data, device) for name, more in (further_tests or {}).items()},
                method,
                settings,
                network=self.network,
                feature_layer=self.feature_layer,
                weak=self.weak,
                strong=self.strong,
                validation_fraction=fraction,
                device=device,
            )
            folder = self._open_folder(task.team, method, settings, data)
            with nullcontext() if folder is None else closing(folder):
                loop = Loop(
                    method,
                    task,
                    settings,
                    folder=folder,
                    saved_in=None if self.out is None else Path(self.out),
                    checkpoint_seconds=self.checkpoint_seconds,
                    listeners=listeners,
                )
                self.history_ = loop.run().history
                self._keep(loop, data, folder)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """(m, C) the mean prediction of the networks."""
        check_is_fitted(self)
        samples = self._samples(X)
        rows = torch.arange(len(samples))
        return self._task.mean_probabilities(self._predictors, self._settings, rows, samples)

    def predict(self, X: Any) -> NDArray[Any]:
        """(m,) the most probable classes."""
        codes = self.predict_proba(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[codes]
        return predicted

    def embed(self, X: Any, network: int = 0) -> FloatArray:
        """(m, d) the penultimate features that one of the networks gives."""
        check_is_fitted(self)
        check_integer(network, "network", minimum=0, maximum=len(self.networks_) - 1)
        samples = self._samples(X)
        rows = torch.arange(len(samples))
        return self._task.observe(network, self._settings, rows, samples).features

    def _samples(self, X: Any) -> Samples:
        samples = unlabeled_samples(
            X, self._task.device, n_workers=self.n_workers, image_size=self.image_size
        )
        if samples.shape != self._task.samples.shape:
            raise must_be(
                "X", f"made of samples of shape {self._task.samples.shape}, as in fit", samples.shape
            )
        return samples

    def _keep(self, loop: Loop, data: TrainingData, folder: RunFolder | None) -> None:
        results = final_results(loop)
        self.classes_ = data.class_values
        self.confidence_ = results.confidence
        self.refined_labels_ = data.class_values[results.refined]
        self.summary_ = summarize(loop)
        self.networks_ = [network.module.backbone for network in loop.task.networks]
        if len(loop.task.samples.shape) == 1:
            self.n_features_in_ = loop.task.samples.shape[0]
        self._task, self._settings, self._predictors = loop.task, loop.settings, loop.method.predictors
        write_results(folder, loop, results, self.summary_)

    def _changed_for_method(self) -> dict[str, Any]:
        """The method's parameters that are not at their defaults."""
        signature = inspect.signature(type(self).__init__).parameters
        values = {name: getattr(self, name) for name in _METHOD_PARAMETERS}
        return {name: value for name, value in values.items() if not _same(value, signature[name].default)}

    def _plain(self, name: str) -> Any:
        value = getattr(self, name)
        return tuple(value) if name == "learning_rate_drops" else value

    def _seed(self) -> int:
        """The seed of this run; without one, that of the run in the folder, so that it can go on."""
        if self.random_state is None and self.out is not None:
            stored = stored_settings(self.out)
            if stored is not None:
                return int(stored["training"]["seed"])
        return root_seed(self.random_state)

    def _test_set(self, test: Any, data: TrainingData, device: torch.device) -> TestSet:
        X, y = test if isinstance(test, tuple) else (test, None)
        found = training_data(
            X,
            y,
            device,
            n_workers=self.n_workers,
            missing_label=self.missing_label,
            image_size=self.image_size,
            classes=data.class_values,
        )
        if found.class_names != data.class_names:
            raise must_be("test", f"labeled with the classes {data.class_names}", found.class_names)
        return TestSet(found.samples, found.labels)

    def _open_folder(
        self, team: Team, method: Method, settings: TrainingSettings, data: TrainingData
    ) -> RunFolder | None:
        """The folder of the run, in the process that writes."""
        if self.out is None or not team.is_first:
            return None
        return RunFolder(
            self.out,
            {
                "method": described(method),
                "training": asdict(settings),
                "network": described(self.network),
                "feature_layer": self.feature_layer,
                "weak": described(self.weak),
                "strong": described(self.strong),
                "validation_fraction": self.validation_fraction,
                "image_size": described(self.image_size),
                "data": data.fingerprint(),
            },
        )


def _same(value: Any, default: Any) -> bool:
    return isinstance(value, type(default) | type(None) | int | float | str) and bool(value == default)
