"""A classifier for training data with wrong labels, with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch

from laplaceconfidence.encoders.torch_device import choose_device
from laplaceconfidence.run_files import MODEL
from laplaceconfidence.stages import showing_log
from laplaceconfidence.training.automatic_settings import automatic_image_size
from laplaceconfidence.training.callbacks import Callback, LogRounds
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.inputs import ImageSize, TrainingData, audited_codes, training_data
from laplaceconfidence.training.loop import Loop, RoundListener
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.methods.registry import build_method, change_method
from laplaceconfidence.training.network_classifier import NetworkClassifier
from laplaceconfidence.training.networks.registry import NetworkSpec
from laplaceconfidence.training.notebook import NotebookSummary
from laplaceconfidence.training.raw_samples import encode_like_fit, fit_encoder
from laplaceconfidence.training.results import (
    add_top_5,
    final_results,
    top_5_accuracies,
    trained_model,
    training_summary,
    write_results,
)
from laplaceconfidence.training.run_folder import RunFolder, stored_settings
from laplaceconfidence.training.run_settings import is_automatic, resolve_settings
from laplaceconfidence.training.sample_views import View
from laplaceconfidence.training.sample_weights import ClassWeight, combined_weights
from laplaceconfidence.training.seeds import root_seed
from laplaceconfidence.training.settings import torch_threads
from laplaceconfidence.training.task import TestSet, build_task
from laplaceconfidence.validation import check_integer, check_real, must_be


class RobustClassifier(NotebookSummary, NetworkClassifier):
    """Train networks on labels of which some are wrong.

    Parameters that are "auto" are taken from the preset that suits the data and the machine: a perceptron for
    feature vectors, a small convolutional network for images of up to 96 pixels and, on a GPU,
    Inception-ResNet-v2 for larger ones, each with a schedule and settings of the method. Without a GPU, large
    images get the small network as well, with a warning. ``settings_`` shows the values after ``fit``.
    Explicit values are always obeyed.

    Parameters
    ----------
    network : str, callable or torch.nn.Module, default="auto"
        "preact_resnet18", "inception_resnet_v2", "small_resnet", "small_cnn" or "mlp";
        "package.module:factory"; a factory that is called with ``(n_classes, input_shape)``; or a module.
    method : str or Method, default="auto"
        The training method with its settings, such as ``Laplace(warmup=10)`` or
        ``DivideMix(unlabelled_weight=0)``; or its name, such as "dividemix", for the defaults of its class.
        ``laplaceconfidence methods`` lists all names.
    rounds : int, default="auto"
        All rounds, the warm-up of the method included.
    batch_size : int, default="auto"
        Samples per step, in all processes together.
    optimizer : {"sgd", "adam"}, default="sgd"
        The optimizer of all networks.
    learning_rate : float, default="auto"
        The highest learning rate: without a warm-up of the learning rate, that of the first round.
    momentum : float, default=0.9
        Momentum of SGD; the first beta of Adam.
    weight_decay : float, default=5e-4
        Weight decay of the optimizer.
    schedule : {"step", "cosine", "one-cycle"}, default="auto"
        "step" lowers the learning rate at ``learning_rate_drops``. "cosine" and "one-cycle" change it in
        every step: it falls to 0 along half a cosine, or along a line after a rise.
    learning_rate_drops : sequence of float, default="auto"
        Rounds at which the schedule "step" multiplies the learning rate by ``drop_factor``; numbers below 1
        are shares of all rounds.
    drop_factor : float, default=0.1
        See ``learning_rate_drops``.
    learning_rate_warmup : float or None, default="auto"
        Share of all rounds over which the learning rate rises from 0; ``None`` is 0.3 for "one-cycle" and 0
        for the other schedules.
    nesterov : bool, default="auto"
        Whether SGD uses Nesterov momentum.
    clip_gradients : float or None, default="auto"
        Largest norm of the gradient of each network; ``None`` does not limit it.
    weight_average : float or None, default="auto"
        Decay, such as 0.999, of an exponential moving average of the weights of each network. Predictions,
        accuracies and ``networks_`` then have the averaged weights; the steps of the training do not.
    average_evidence : bool, default="auto"
        Whether methods make their plans (confidences, splits) from outputs of the averaged weights, too.
    weak, strong : str or callable, default="auto"
        The views of the samples. Weak: "none" or a callable ``(images, generator) -> images``. Strong:
        "randaugment", "autoaugment", "augmix", "none" or a callable for images, "mask", "none" or a callable
        for feature vectors; it is applied to the weak view. A tuple has several strong views, for methods
        that use more than one.
    precision : {"float32", "bfloat16", "float16", "fast"}, default="auto"
        Precision of the forward passes; "bfloat16" and "float16" are mixed precision. "fast" is "bfloat16" on
        processors and GPUs that have instructions for it, which halves the time, and otherwise "float32".
    channels_last : bool, default="auto"
        Whether images are stored with their channels last, which is faster on most machines.
    compile : bool, default=False
        Whether the networks are compiled with ``torch.compile``.
    eval_batch_size : int, default=512
        Samples per forward pass without gradients.
    validation_fraction : float, default=0.1
        Share of the given labels that is held out to choose the round whose networks are kept; 0 keeps the
        last round.
    feature_layer : str, optional
        Name of the module whose input is used as features; by default the last linear layer.
    class_weight : {"balanced"}, mapping of classes to float, or None, default=None
        How often samples of a class are trained on, relative to the others. "balanced" gives all classes
        the same number of samples in a pass, by their given labels.
    device : str or torch.device, default="auto"
        "auto" takes a GPU if there is one.
    image_size : int, CenterSquare or tuple of int, optional
        Side or (height, width) that image files are resized to; ``CenterSquare(320)`` of
        ``laplaceconfidence.data.images`` resizes the shorter side and keeps the center. By default they
        keep their size, except that files of more than 96 pixels are resized to 64 where ``network`` is
        "auto" and there is no GPU.
    n_workers : int, default=0
        Processes that read samples of data sets too large for memory.
    n_jobs : int, optional
        Number of torch threads; ``None`` leaves it to torch.
    missing_label : Any, optional
        A value of ``y`` that means "no label", besides ``None``, NaN and "". Such samples are trained on
        their pseudo-labels.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of everything that is random.
    out : str or pathlib.Path, optional
        Folder for checkpoints, metrics, confidences, results and, in ``model/``, what ``save`` writes. An
        unfinished run in it with the same settings is resumed, and ends with the same weights as without
        the interruption.
    checkpoint_seconds : float, default=30
        Least time between two checkpoints.
    callbacks : sequence of Callback, default=()
        Called after every step and round, such as ``EarlyStopping`` and ``TensorBoardLogger``.
    verbose : int, default=0
        1 logs every round as one line of level INFO to the logger "laplaceconfidence", and shows it on
        ``sys.stderr`` where no handler would show it; 0 logs nothing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes as they were given.
    n_features_in_ : int
        Number of features; only for feature vectors.
    confidence_ : ndarray of shape (n_samples,)
        Estimated probability that each given label is correct, NaN where no label was given.
    refined_labels_ : ndarray of shape (n_samples,)
        The class with the largest weight in w * given + (1 - w) * prediction, where w is the confidence.
    settings_ : dict
        Every setting of the run as it was resolved, as text and numbers.
    history_ : list of dict
        Measurements, one entry per round.
    summary_ : dict
        The chosen round and the accuracies; test accuracies are never used to choose.
    networks_ : list of torch.nn.Module
        The trained networks.
    """

    def __init__(
        self,
        network: NetworkSpec = "auto",
        method: str | Method = "auto",
        *,
        rounds: int | str = "auto",
        batch_size: int | str = "auto",
        optimizer: str = "sgd",
        learning_rate: float | str = "auto",
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        schedule: str = "auto",
        learning_rate_drops: Sequence[float] | str = "auto",
        drop_factor: float = 0.1,
        learning_rate_warmup: float | str | None = "auto",
        nesterov: bool | str = "auto",
        clip_gradients: float | str | None = "auto",
        weight_average: float | str | None = "auto",
        average_evidence: bool | str = "auto",
        weak: View = "auto",
        strong: View | Sequence[View] = "auto",
        precision: str = "auto",
        channels_last: bool | str = "auto",
        compile: bool = False,
        eval_batch_size: int = 512,
        validation_fraction: float = 0.1,
        feature_layer: str | None = None,
        class_weight: ClassWeight = None,
        device: Any = "auto",
        image_size: ImageSize = None,
        n_workers: int = 0,
        n_jobs: int | None = None,
        missing_label: Any = None,
        random_state: Any = 0,
        out: str | Path | None = None,
        checkpoint_seconds: float = 30.0,
        callbacks: Sequence[Callback] = (),
        verbose: int = 0,
    ) -> None:
        self.network = network
        self.method = method
        self.rounds = rounds
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.learning_rate_drops = learning_rate_drops
        self.drop_factor = drop_factor
        self.learning_rate_warmup = learning_rate_warmup
        self.nesterov = nesterov
        self.clip_gradients = clip_gradients
        self.weight_average = weight_average
        self.average_evidence = average_evidence
        self.weak = weak
        self.strong = strong
        self.precision = precision
        self.channels_last = channels_last
        self.compile = compile
        self.eval_batch_size = eval_batch_size
        self.validation_fraction = validation_fraction
        self.feature_layer = feature_layer
        self.class_weight = class_weight
        self.device = device
        self.image_size = image_size
        self.n_workers = n_workers
        self.n_jobs = n_jobs
        self.missing_label = missing_label
        self.random_state = random_state
        self.out = out
        self.checkpoint_seconds = checkpoint_seconds
        self.callbacks = callbacks
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``method__warmup=3`` changes a setting of the method.

        Parameters
        ----------
        **params : Any
            Parameters of the classifier, or settings of its method with the prefix ``method__``.

        Returns
        -------
        RobustClassifier
        """
        own = {name: value for name, value in params.items() if not name.startswith("method__")}
        super().set_params(**own)
        of_method = {name.removeprefix("method__"): params[name] for name in params.keys() - own.keys()}
        if of_method:
            self.method = change_method(self.method, of_method)
        return self

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        audited: Mapping[int, Any] | None = None,
        test: Any = None,
        further_tests: Mapping[str, Any] | None = None,
        listeners: Sequence[RoundListener] = (),
    ) -> Self:
        """Train the networks.

        Parameters
        ----------
        X : array-like, NoisyDataset or torch.utils.data.Dataset
            Images (n, height, width), or with 1, 3 or 4 channels last or first, feature vectors (n, d), or a
            data set that has labels. Tensors of images have their channels first. Texts (a list of strings,
            or a data set with texts) and columns of different kinds are encoded first; ``predict`` and a
            saved model then take raw samples, too.
        y : array-like of shape (n_samples,), optional
            The given labels of arrays.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample is trained on, relative to the others: a sample of weight 2 occurs in a
            pass twice as often as one of weight 1, one of weight 0 never. Accuracies and confidences count
            every sample once.
        audited : mapping of int to label, optional
            Labels that a person has verified, by row; None where no class fits. For methods that learn from
            them besides the given labels (``laplaceconfidence methods`` names them); others raise
            ``InvalidInputError``.
        test : tuple (X, y), NoisyDataset or torch.utils.data.Dataset, optional
            Data whose accuracy is reported after every round and used for nothing else.
        further_tests : mapping of str to such data, optional
            More of the same, by name.
        listeners : sequence of callables, default=()
            Called after every round with its measurements, a dict.

        Returns
        -------
        RobustClassifier
        """
        device = choose_device(self.device)
        check_integer(self.n_workers, "n_workers", minimum=0)
        check_real(self.checkpoint_seconds, "checkpoint_seconds", at_least=0)
        check_integer(self.verbose, "verbose", minimum=0)
        if not isinstance(self.callbacks, Sequence):
            raise must_be("callbacks", "a list of objects of subclasses of Callback", self.callbacks)
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                raise must_be("callbacks", "objects of subclasses of Callback", callback)
        if not is_automatic(self.method):
            build_method(self.method)  # fails before anything is read
        self._image_size = self.image_size
        if self.image_size is None and is_automatic(self.network):
            self._image_size = automatic_image_size(X, device)
        X, encoder = fit_encoder(X, self.n_jobs)
        data = replace(self._read(X, y, device), encoder=encoder)
        if len(data.class_names) < 2:
            raise must_be("y", "labels of at least two classes", list(data.class_names))
        weights = combined_weights(sample_weight, self.class_weight, data.labels, data.class_values)
        data = replace(data, weights=weights, audited=audited_codes(audited, data))
        parameters = self.get_params(deep=False) | {"image_size": self._image_size}
        settings = resolve_settings(parameters, data, device, self._seed())
        self.settings_ = settings.as_dict()
        with torch_threads(self.n_jobs), showing_log() if self.verbose else nullcontext():
            tests = {name: self._test_set(more, data, device) for name, more in (further_tests or {}).items()}
            first_test = None if test is None else self._test_set(test, data, device)
            task = build_task(data, first_test, tests, settings, device)
            folder = self._open_folder(task.team, data)
            with nullcontext() if folder is None else closing(folder):
                loop = Loop(
                    settings.method,
                    task,
                    settings.training,
                    folder=folder,
                    saved_in=None if self.out is None else Path(self.out),
                    checkpoint_seconds=self.checkpoint_seconds,
                    listeners=listeners,
                    callbacks=[*self.callbacks, *([LogRounds()] if self.verbose else [])],
                )
                self.history_ = loop.run().history
                self._keep(loop, data, folder, settings.network)
        return self

    def _read(self, X: Any, y: Any, device: torch.device, classes: Any = None) -> TrainingData:
        return training_data(
            X,
            y,
            device,
            n_workers=self.n_workers,
            missing_label=self.missing_label,
            image_size=self._image_size,
            classes=classes,
        )

    def _test_set(self, test: Any, data: TrainingData, device: torch.device) -> TestSet:
        X, y = test if isinstance(test, tuple) else (test, None)
        found = self._read(encode_like_fit(X, data.encoder), y, device, classes=data.class_values)
        if found.class_names != data.class_names:
            raise must_be("test", f"labeled with the classes {data.class_names}", found.class_names)
        return TestSet(found.samples, found.labels)

    def _keep(self, loop: Loop, data: TrainingData, folder: RunFolder | None, network: NetworkSpec) -> None:
        results = final_results(loop)
        self.confidence_ = results.confidence
        self.refined_labels_ = data.class_values[results.refined]
        self.summary_ = training_summary(loop, results.check)
        add_top_5(self.summary_, top_5_accuracies(loop))
        self._given_codes = loop.task.labels
        self._use(trained_model(loop, data, network, self.feature_layer))
        if folder is not None:
            self._leave_model(folder.path / MODEL)
        write_results(folder, loop, results, self.summary_)

    def _seed(self) -> int:
        """The seed of this run; without one, that of the run in the folder, so that it can be resumed."""
        if self.random_state is None and self.out is not None:
            stored = stored_settings(self.out)
            if stored is not None:
                return int(stored["training"]["seed"])
        return root_seed(self.random_state)

    def _open_folder(self, team: Team, data: TrainingData) -> RunFolder | None:
        """The folder of the run, in the process that writes."""
        if self.out is None or not team.is_first:
            return None
        return RunFolder(self.out, self.settings_ | {"data": data.fingerprint()})
