"""Settings resolved from parameters and data, and their description for resumed runs."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from torch import nn

from laplaceconfidence.exceptions import AdjustedSettingWarning, InvalidInputError
from laplaceconfidence.training.augment.randaugment import RandAugment
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.automatic_settings import automatic_preset
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.inputs import training_data
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.presets import load_preset
from laplaceconfidence.training.run_settings import AUTOMATIC, described, resolve_settings
from laplaceconfidence.training.settings import TrainingSettings
from small_runs import noisy_digits, quick, tiny_mlp

pytestmark = pytest.mark.filterwarnings("ignore::laplaceconfidence.exceptions.LaplaceConfidenceWarning")
AUTOMATIC_PRESETS = ("embeddings-mlp", "image-folder-tiny", "image-folder-small", "image-folder-large")


def test_descriptions_are_the_same_for_the_same_setting_and_differ_otherwise() -> None:
    assert described(Laplace(sharpen=3)) == described(Laplace(sharpen=3))
    assert described(Laplace(sharpen=3)) != described(Laplace(sharpen=2))
    assert described(WeakAugment(padding=1)) != described(WeakAugment(padding=2))
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    assert described(first) == described(first)
    assert described(first) != described(second)
    assert described(tiny_mlp) == "small_runs.tiny_mlp"


def method_of(classifier: RobustClassifier) -> Any:
    images, given, _ = noisy_digits(60)
    return classifier.fit(images, given).settings_["method"]


def test_a_method_by_name_has_the_defaults_of_its_own_class() -> None:
    settings = {"network": tiny_mlp, "rounds": 1, "device": "cpu"}
    assert method_of(RobustClassifier(method="dividemix", **settings)) == described(DivideMix())
    assert method_of(RobustClassifier(method="dividemix", **settings))["warmup"] == 10
    assert method_of(RobustClassifier(method="laplace", **settings)) == described(Laplace())


def test_explicit_settings_are_obeyed_even_where_they_are_defaults_of_another_method() -> None:
    fitted = quick(method=DivideMix(warmup=15), rounds=16, network=tiny_mlp)
    images, given, _ = noisy_digits(60)
    names = [record["phases"][0]["name"] for record in fitted.fit(images, given).history_]
    assert names == ["warm-up"] * 15 + ["mixmatch"]


@pytest.mark.parametrize(
    ("shape", "on_cpu", "on_gpu"),
    [
        ((300,), "embeddings-mlp", "embeddings-mlp"),
        ((1, 8, 8), "image-folder-tiny", "image-folder-tiny"),
        ((3, 32, 32), "image-folder-small", "image-folder-small"),
        ((3, 96, 300), "image-folder-small", "image-folder-small"),
        ((3, 224, 224), "image-folder-small", "image-folder-large"),
    ],
)
def test_the_shape_of_a_sample_and_the_device_select_the_preset(
    shape: tuple[int, ...], on_cpu: str, on_gpu: str
) -> None:
    assert automatic_preset(shape, torch.device("cpu")) == on_cpu
    assert automatic_preset(shape, torch.device("cuda")) == on_gpu
    assert automatic_preset(shape, torch.device("mps")) == on_gpu


def test_large_arrays_get_the_small_network_on_a_cpu_and_the_large_one_on_a_gpu() -> None:
    images, labels = np.zeros((4, 100, 120, 3), np.uint8), np.arange(4) % 2
    cpu = torch.device("cpu")
    data = training_data(images, labels, cpu, n_workers=0, missing_label=None)
    parameters = RobustClassifier().get_params(deep=False)
    with pytest.warns(AdjustedSettingWarning, match="keep their size, .* a small network is trained"):
        assert resolve_settings(parameters, data, cpu, 0).network == "small_resnet"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve_settings(parameters, data, torch.device("cuda"), 0).network == "inception_resnet_v2"
        explicit = parameters | {"network": "preact_resnet18"}
        assert resolve_settings(explicit, data, cpu, 0).network == "preact_resnet18"


@pytest.mark.parametrize("name", AUTOMATIC_PRESETS)
def test_automatic_presets_state_nothing_that_the_classifier_would_ignore(name: str) -> None:
    given, default = load_preset(name).parameters(), RobustClassifier().get_params()
    for setting, value in given.items():
        assert setting in AUTOMATIC or value == default[setting], setting
    assert set(AUTOMATIC) - given.keys() <= {"weak", "channels_last", "precision", "learning_rate_drops"}
    assert load_preset(name).noise is None


def test_a_schedule_and_its_settings_come_together() -> None:
    images, cpu = np.zeros((8, 20, 20, 3), np.uint8), torch.device("cpu")
    data = training_data(images, np.arange(8) % 2, cpu, n_workers=0, missing_label=None)

    def resolved(**given: Any) -> TrainingSettings:
        return resolve_settings(RobustClassifier(**given).get_params(deep=False), data, cpu, 0).training

    assert (resolved().schedule, resolved().learning_rate_drops) == ("one-cycle", ())
    assert resolved().nesterov
    assert not resolved(optimizer="adam").nesterov
    cosine = resolved(schedule="cosine", weight_average=0.9, clip_gradients=2.0, nesterov=True)
    assert (cosine.schedule, cosine.learning_rate_drops) == ("cosine", ())
    assert (cosine.weight_average, cosine.clip_gradients, cosine.nesterov) == (0.9, 2.0, True)
    drops = resolved(learning_rate_drops=[3])
    assert (drops.schedule, drops.learning_rate_drops) == ("step", (3,))
    with pytest.raises(InvalidInputError, match="'learning_rate_drops' parameter must be empty"):
        resolved(schedule="one-cycle", learning_rate_drops=[3])


def test_the_defaults_suit_feature_vectors() -> None:
    X, y = load_digits(return_X_y=True)
    fitted = RobustClassifier(rounds=2, device="cpu").fit(X[:200], y[:200])
    preset = load_preset("embeddings-mlp").parameters()
    assert fitted.settings_["network"] == "mlp"
    assert fitted.settings_["method"] == described(preset["method"])
    assert fitted.settings_["strong"] == described(preset["strong"])
    assert fitted.settings_["training"]["rounds"] == 2
    assert fitted.settings_["training"]["batch_size"] == preset["batch_size"]
    assert (fitted.predict(X[:200]) == y[:200]).mean() > 0.5
    named = RobustClassifier("mlp", rounds=1, device="cpu").fit(X[:100], y[:100])
    assert named.settings_["strong"] == described(preset["strong"])


def test_the_defaults_suit_images() -> None:
    images, given, _ = noisy_digits(150, rate=0.1)
    strong = RandAugment(2)
    fitted = RobustClassifier(rounds=2, strong=strong, device="cpu").fit(images, given)
    preset = load_preset("image-folder-tiny").parameters()
    assert fitted.settings_["network"] == "small_cnn"
    assert fitted.settings_["method"] == described(preset["method"])
    assert fitted.settings_["strong"] == described(strong)  # an explicit value wins
    default = RobustClassifier(rounds=2, device="cpu").fit(images, given)
    assert default.settings_["strong"] == described(preset["strong"])
    losses = [record["phases"][0]["loss"] for record in default.history_]
    assert len(losses) == 2
    assert losses[1] < losses[0]
    assert fitted.settings_["training"]["learning_rate"] == preset["learning_rate"]


def test_parameters_are_copied_and_changed_as_scikit_learn_does() -> None:
    classifier = RobustClassifier(method=Laplace(warmup=4), rounds=7)
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    copy.set_params(method__warmup=3, rounds=2)
    assert (copy.method, copy.rounds) == (Laplace(warmup=3), 2)
    assert classifier.method == Laplace(warmup=4)
    assert RobustClassifier(method="dividemix").set_params(method__ramp=2).method == DivideMix(ramp=2)
    with pytest.raises(
        InvalidInputError, match=r"no setting 'warmpu'. Did you mean 'warmup'\? It has warmup, "
    ):
        copy.set_params(method__warmpu=3)
    with pytest.raises(InvalidInputError, match="'method' parameter must be given by name or as an object"):
        RobustClassifier().set_params(method__warmup=3)


def test_parameters_of_the_estimator_are_obeyed_or_refused() -> None:
    assert Laplace(n_neighbors="auto", alpha="auto")._estimator().get_params()["alpha"] == "auto"  # type: ignore[attr-defined]
    own: Any = Laplace(confidence="noise-aware", n_neighbors=(5, 20), n_components=8)._estimator()
    assert (own.n_neighbors, own.n_components) == ((5, 20), 8)
    with pytest.raises(InvalidInputError, match=r"'alpha' .*the estimator 'noise-aware' does not have it"):
        Laplace(confidence="noise-aware", alpha=0.99)
    with pytest.raises(InvalidInputError, match=r"'n_neighbors' .*left out where 'confidence' is an object"):
        Laplace(confidence=own, n_neighbors=50)


def test_rounds_are_logged_where_that_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    images, given, _ = noisy_digits(60)
    with caplog.at_level("INFO", logger="laplaceconfidence"):
        quick(rounds=2).fit(images, given)
        assert caplog.messages == []
        quick(rounds=2, verbose=1).fit(images, given)
    assert [message.partition(":")[0] for message in caplog.messages] == ["Round 1/2", "Round 2/2"]
    assert "loss " in caplog.messages[0]
