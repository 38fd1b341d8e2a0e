"""RobustClassifier: what goes in, what comes out, and what bad input gets."""

import functools
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch.utils.data import Dataset

from laplaceconfidence.confidence.knn_vote import KNNVote
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, RunFolderError, TrainingStopped
from laplaceconfidence.training import inputs
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.run_folder import read_checkpoint
from small_runs import noisy_digits, quick, shifted, weights


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few samples make the guards speak
        yield


class Pairs(Dataset[tuple[Any, Any]]):
    """A map-style dataset as people write them."""

    def __init__(self, images: Any, labels: Any) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Any, Any]:
        return Image.fromarray(self.images[row]), self.labels[row]


def test_arrays_a_noisy_dataset_and_a_torch_dataset_train_alike() -> None:
    images, given, _ = noisy_digits(80)
    names = [str(digit) for digit in range(10)]
    data = NoisyDataset.from_arrays(given, images=images[..., None], class_names=names)
    tensor = torch.from_numpy(images).unsqueeze(1)
    runs = [
        quick().fit(images, given),
        quick().fit(images[..., None], given.tolist()),
        quick().fit(tensor, torch.from_numpy(given)),
        quick().fit(Pairs(images, given)),
        quick().fit(data),
    ]
    for run in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(weights(runs[0]), weights(run), strict=True))
    np.testing.assert_array_equal(runs[0].predict(images), runs[3].predict(Pairs(images, given)))
    np.testing.assert_array_equal(runs[4].predict(data), runs[0].predict(images))


@pytest.mark.parametrize("n_workers", [0, 1])
def test_datasets_too_large_for_memory_train_as_small_ones_do(
    monkeypatch: pytest.MonkeyPatch, n_workers: int
) -> None:
    images, given, _ = noisy_digits(70)
    resident = quick(rounds=2).fit(Pairs(images, given))
    monkeypatch.setattr(inputs, "RESIDENT_UP_TO", 100)
    streamed = quick(rounds=2, n_workers=n_workers).fit(Pairs(images, given))
    for ours, theirs in zip(weights(resident), weights(streamed), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_image_files_are_decoded_and_bad_ones_named(tmp_path: Path) -> None:
    images, given, _ = noisy_digits(40)
    paths = [str(tmp_path / f"{number}.png") for number in range(40)]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image).save(path)
    names = [str(digit) for digit in range(10)]
    data = NoisyDataset.from_arrays(given, sources=paths, source_kind="image", class_names=names)
    fitted = quick(rounds=1, image_size=6, method="cross_entropy").fit(data)
    assert fitted.predict_proba(data).shape == (40, 10)
    Path(paths[7]).write_bytes(b"no image")
    with pytest.raises(DataFormatError, match=r"7\.png"):
        quick(rounds=1, method="cross_entropy").fit(data)


def test_words_as_labels_come_back_as_words() -> None:
    images, given, _ = noisy_digits(80)
    words = np.array([f"class {digit}" for digit in given])
    run = quick().fit(images, words)
    assert set(run.predict(images)) <= set(words)
    assert set(run.refined_labels_) <= set(words)
    assert run.classes_.tolist() == sorted(set(words))


def test_features_take_masks_and_no_image_augmentation() -> None:
    images, given, _ = noisy_digits(80)
    features = images.reshape(80, 64) / 255
    run = quick(weak="auto", strong="mask").fit(features, given)
    assert run.embed(features).shape == (80, 32)
    assert run.n_features_in_ == 64
    with pytest.raises(InvalidInputError, match="'strong' parameter must be one of 'mask', 'none'"):
        quick(weak="auto", strong="randaugment").fit(features, given)


def test_predictions_are_the_mean_of_both_networks_and_features_what_the_last_layer_sees() -> None:
    images, given, _ = noisy_digits(80)
    run = quick(validation_fraction=0).fit(images, given)
    inputs_ = run._model.normalized(torch.from_numpy(images).unsqueeze(1))
    with torch.no_grad():
        each = [network.eval()(inputs_).softmax(dim=1) for network in run.networks_]
        features = run.networks_[1][:-1](inputs_)
    np.testing.assert_allclose(run.predict_proba(images), (each[0] + each[1]).numpy() / 2, atol=1e-6)
    np.testing.assert_allclose(run.embed(images, network=1), features.numpy(), atol=1e-6)


@pytest.mark.parametrize(
    "confidence", ["gaussian-mixture", "self-confidence", "knn-vote", KNNVote(n_neighbors=5)]
)
def test_the_confidence_estimator_is_a_parameter(confidence: Any) -> None:
    images, given, _ = noisy_digits(100)
    given[given == 3] = 4  # a class of the data set that has no label: columns and classes differ
    names = [str(digit) for digit in range(10)]
    data = NoisyDataset.from_arrays(given, images=images[..., None], class_names=names)
    run = quick(own={"confidence": confidence, "n_neighbors": None}).fit(data)
    assert ((run.confidence_ >= 0) & (run.confidence_ <= 1)).all()


def test_the_chosen_round_comes_from_held_out_given_labels_and_never_from_the_test_set() -> None:
    images, given, true = noisy_digits(150)
    plain = quick(rounds=5).fit(images, given)
    tested = quick(rounds=5).fit(images, given, test=(images[::-1], true))  # a test set that is all wrong
    assert all(torch.equal(a, b) for a, b in zip(weights(plain), weights(tested), strict=True))
    accuracies = [record["validation_accuracy"] for record in tested.history_]
    chosen = tested.summary_["chosen_round"] - 1
    spread = np.sqrt(max(accuracies) * (1 - max(accuracies)) / 15)
    assert accuracies[chosen] >= max(accuracies) - spread
    assert all(accuracy < max(accuracies) - spread for accuracy in accuracies[chosen + 1 :])
    measured = [record["test_accuracy"] for record in tested.history_]
    assert tested.summary_["test_accuracy_mean_of_last_rounds"] == pytest.approx(np.mean(measured[-10:]))
    assert tested.summary_["test_accuracy_best_round_for_comparison_only"] == max(measured)


def test_further_test_sets_are_watched_as_the_first_one_is() -> None:
    images, given, true = noisy_digits(100)
    watched = {"the same": (images, true), "all wrong": (images, (true + 1) % 10)}
    run = quick(rounds=3).fit(images, given, test=(images, true), further_tests=watched)
    for record in run.history_:
        seen = record["further_test_accuracies"]
        assert seen["the same"] == record["test_accuracy"] != seen["all wrong"]
    further = run.summary_["further_tests"]
    assert further["the same"] == {name: run.summary_[name] for name in further["the same"]}
    with pytest.raises(ValueError, match="samples of shape"):
        quick().fit(images, given, further_tests={"small": (images[:, :4, :4], true)})


def test_read_only_arrays_are_taken_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    images, given, _ = noisy_digits(60)
    images.flags.writeable = False
    quick(rounds=1).fit(images, given)
    assert not [warning for warning in recwarn if "writable" in str(warning.message)]


def test_held_out_samples_are_not_trained_on(tmp_path: Path) -> None:
    images, given, _ = noisy_digits(100)
    run = quick(validation_fraction=0.2, out=tmp_path / "run").fit(images, given)
    held_out = np.flatnonzero(pd.read_parquet(tmp_path / "run" / "refined_labels.parquet")["held_out"])
    assert len(held_out) == 20
    assert len(run.confidence_) == 100
    changed = images.copy()
    changed[held_out] = 255 - changed[held_out]
    quick(validation_fraction=0.2, out=tmp_path / "again").fit(changed, given)
    last, others = (
        read_checkpoint(tmp_path / name / "checkpoints" / "last.pt")["networks"] for name in ("run", "again")
    )
    assert all(torch.equal(a[key], b[key]) for a, b in zip(last, others, strict=True) for key in a)


def test_a_run_folder_holds_all_that_it_promises(tmp_path: Path) -> None:
    images, given, true = noisy_digits(80)
    given[:4] = -1
    run = quick(out=tmp_path / "run", missing_label=-1).fit(images, given, test=(images, true))
    folder = tmp_path / "run"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {
        "settings.json",
        "metrics.jsonl",
        "timings.jsonl",
        "summary.json",
        "predictions.parquet",
        "test_predictions.parquet",
        "refined_labels.parquet",
        "confidences/round-0002.parquet",
        "confidences/round-0003.parquet",
        "features/after-warm-up.npz",
        "features/after-training.npz",
        "checkpoints/last.pt",
        "checkpoints/previous.pt",
        "checkpoints/best.pt",
        "model/model.json",
        "model/weights.safetensors",
    }
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["method"]["n_neighbors"] == 10
    assert settings["training"]["rounds"] == 3
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert lines == run.history_
    refined = pd.read_parquet(folder / "refined_labels.parquet")
    assert refined["refined_label"].tolist() == [str(label) for label in run.refined_labels_]
    assert refined["given_label"].isna().tolist() == [True] * 4 + [False] * 76
    assert refined["held_out"].sum() == 8
    predictions = pd.read_parquet(folder / "predictions.parquet")
    assert predictions["predicted_label"].tolist() == [str(label) for label in run.predict(images)]
    confidences = pd.read_parquet(folder / "confidences" / "round-0003.parquet")
    assert confidences.columns.tolist() == ["id", "confidence_1", "confidence_2"]
    assert len(confidences) == 72
    loaded = torch.load(folder / "checkpoints" / "best.pt", weights_only=True)
    assert loaded["round"] == run.summary_["chosen_round"]


def test_a_folder_that_is_something_else_is_refused(tmp_path: Path) -> None:
    images, given, _ = noisy_digits(40)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="choose another folder"):
        quick(out=tmp_path).fit(images, given)
    with pytest.raises(RunFolderError, match="There is a file of that name"):
        quick(out=tmp_path / "notes.txt").fit(images, given)


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, given, _ = noisy_digits(60)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("laplaceconfidence.files._flush_to_disk", full)
    with pytest.raises(RunFolderError, match=r"No space left on device.*No partial file was left"):
        quick(out=tmp_path / "run").fit(images, given)
    assert [path for path in (tmp_path / "run").rglob("*") if path.is_file()] == []


def test_a_network_can_be_a_name_a_path_a_factory_or_a_module() -> None:
    images, given, _ = noisy_digits(60)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 12), torch.nn.ReLU(), torch.nn.Linear(12, 10)
    )
    for network in ("mlp", "small_runs:tiny_mlp", module):
        run = quick(network=network, rounds=2).fit(images, given)
        assert not torch.equal(
            *(network.state_dict()[name] for network in run.networks_ for name in [last_weight(run)])
        )


def last_weight(run: RobustClassifier) -> str:
    return [name for name in run.networks_[0].state_dict() if name.endswith("weight")][-1]


def test_it_is_a_scikit_learn_estimator() -> None:
    run = quick(rounds=2)
    copy = clone(run)
    assert copy.get_params()["rounds"] == 2
    images, given, _ = noisy_digits(60)
    with pytest.raises(NotFittedError, match="not fitted"):
        run.predict(images)
    predicted = run.fit(images, given).predict(images)
    assert run.score(images, given) == np.mean(predicted == given)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_trains(precision: str) -> None:
    images, given, _ = noisy_digits(100)
    run = quick(precision=precision, channels_last=True, network="small_cnn", rounds=2).fit(images, given)
    assert np.isfinite(run.predict_proba(images)).all()


def test_what_the_caller_set_in_torch_is_left_alone() -> None:
    images, given, _ = noisy_digits(60)
    torch.manual_seed(1)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    quick(n_jobs=1).fit(images, given)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


BAD = {
    "labels of another length": ({}, lambda X, y: (X, y[:-1]), "'X' has 40, 'y' has 39"),
    "no labels": ({}, lambda X, y: (X, None), "'y' parameter"),
    "one class": ({}, lambda X, y: (X, np.zeros(40, int)), "at least two classes"),
    "only missing labels": ({"missing_label": -1}, lambda X, y: (X, np.full(40, -1)), "not missing"),
    "not finite": ({}, lambda X, y: (np.full((40, 5), np.nan), y), "must be finite"),
    "a strange shape": ({}, lambda X, y: (X.reshape(40, 2, 2, 16), y), "1, 3 or 4 channels"),
    "an unknown method": ({"method": "laplase"}, lambda X, y: (X, y), "Did you mean 'laplace'"),
    "an unknown network": ({"network": "small_cn"}, lambda X, y: (X, y), "small_cnn"),
    "a device that is not there": ({"device": "cuda:7"}, lambda X, y: (X, y), "'device' parameter"),
    "a device that never was": ({"device": "gpu"}, lambda X, y: (X, y), "'device' parameter"),
    "no rounds": ({"rounds": 0}, lambda X, y: (X, y), "'rounds' parameter"),
    "everything held out": ({"validation_fraction": 0.999}, lambda X, y: (X, y), "'validation_fraction'"),
    "an unknown precision": ({"precision": "float8"}, lambda X, y: (X, y), "'precision' parameter"),
    "an unknown layer": ({"feature_layer": "head"}, lambda X, y: (X, y), "'feature_layer' parameter"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_message(case: str) -> None:
    settings, change, message = BAD[case]
    images, given, _ = noisy_digits(40)
    with pytest.raises(InvalidInputError, match=message):
        quick(**settings).fit(*change(images, given))


def test_samples_of_another_shape_are_refused_later_too() -> None:
    images, given, true = noisy_digits(60)
    run = quick(rounds=1, method="cross_entropy").fit(images, given)
    with pytest.raises(InvalidInputError, match=r"images of 1 x 8 x 8 .*, as in fit"):
        run.predict(images[:, :4])
    with pytest.raises(InvalidInputError, match="'test' parameter"):
        quick(rounds=1).fit(images, given, test=(images[:, :4], true))
    with pytest.raises(TrainingStopped):
        quick(network="mlp", batch_size=1, weak=shifted).fit(images, given)


def test_a_compiled_network_trains_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    images, given, _ = noisy_digits(60)
    plain = quick(network="small_runs:plain_mlp", rounds=2).fit(images, given)
    # The usual backend takes a minute to generate code; what is compiled does not depend on it.
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    compiled = quick(network="small_runs:plain_mlp", rounds=2, compile=True).fit(images, given)
    for ours, theirs in zip(weights(plain), weights(compiled), strict=True):
        torch.testing.assert_close(ours, theirs)
