"""Models on disk: what ``save`` and a training run write, what ``load`` reads, and what it refuses."""

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from torch import nn

from laplaceconfidence import NoisyDataset, RobustClassifier
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, RunFolderError, TrainingWarning
from laplaceconfidence.training import model_folder
from laplaceconfidence.training.networks.registry import network_reference
from small_runs import noisy_digits, quick, tiny_mlp

IMAGES, GIVEN, _ = noisy_digits(80)
WORDS = np.array([f"digit {label}" for label in GIVEN])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> RobustClassifier:
    """Two small convolutional networks, trained in the folder ``out``."""
    out = tmp_path_factory.mktemp("training") / "run"
    settings: dict[str, Any] = {"network": "small_cnn", "weak": "none", "strong": "none", "rounds": 1}
    return quick("co_teaching", **settings, out=out).fit(IMAGES, WORDS)


@pytest.fixture
def saved(fitted: RobustClassifier, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "saved")
    return tmp_path / "saved"


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The folder after a change of ``model.json``."""
    content = json.loads((folder / "model.json").read_text())
    change(content)
    (folder / "model.json").write_text(json.dumps(content))
    return folder


def test_a_loaded_model_predicts_the_same(fitted: RobustClassifier, saved: Path) -> None:
    loaded = RobustClassifier.load(saved, device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(IMAGES), fitted.predict_proba(IMAGES))
    np.testing.assert_array_equal(loaded.predict(IMAGES), fitted.predict(IMAGES))
    np.testing.assert_array_equal(loaded.embed(IMAGES, network=1), fitted.embed(IMAGES, network=1))
    assert loaded.classes_.tolist() == fitted.classes_.tolist() == sorted(set(WORDS))
    assert loaded.settings_ == json.loads(json.dumps(fitted.settings_))
    assert loaded.network == "small_cnn"
    assert not hasattr(loaded, "confidence_")
    assert "<" in loaded._repr_html_()


def test_summed_logits_are_summed_after_loading(tmp_path: Path) -> None:
    run = quick("dividemix", rounds=2, network="mlp").fit(IMAGES.reshape(len(IMAGES), -1), GIVEN)
    run.save(tmp_path / "saved")
    loaded = RobustClassifier.load(tmp_path / "saved", device="cpu")
    X = IMAGES.reshape(len(IMAGES), -1).astype(np.float32)
    logits = sum(network.eval()(run._model.normalized(torch.from_numpy(X))) for network in run.networks_)
    expected = logits.softmax(dim=1).detach().numpy()
    for predicted in (run.predict_proba(X), loaded.predict_proba(X)):
        np.testing.assert_allclose(predicted, expected, atol=1e-6)
    np.testing.assert_allclose(loaded.as_module()(torch.from_numpy(X)).numpy(), expected, atol=1e-6)


def test_a_run_leaves_the_model_that_it_predicts_with(fitted: RobustClassifier) -> None:
    run = Path(str(fitted.out))
    for folder in (run, run / "model"):
        loaded = RobustClassifier.load(folder, device="cpu")
        np.testing.assert_array_equal(loaded.predict_proba(IMAGES), fitted.predict_proba(IMAGES))


def test_a_loaded_model_can_be_saved_again(saved: Path, tmp_path: Path) -> None:
    RobustClassifier.load(saved).save(tmp_path / "again")
    for name in ("model.json", "weights.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes()


@pytest.mark.parametrize("classes", [GIVEN, GIVEN > 4, WORDS], ids=["integers", "booleans", "strings"])
def test_classes_keep_their_kind(classes: Any, tmp_path: Path) -> None:
    run = quick("cross_entropy", network="mlp", rounds=1).fit(IMAGES, classes)
    run.save(tmp_path / "model")
    loaded = RobustClassifier.load(tmp_path / "model")
    assert loaded.classes_.dtype == run.classes_.dtype
    assert loaded.predict(IMAGES).tolist() == run.predict(IMAGES).tolist()


def test_pickle_and_joblib_copy_a_fitted_classifier(fitted: RobustClassifier, tmp_path: Path) -> None:
    joblib.dump(fitted, tmp_path / "classifier.joblib")
    for copied in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "classifier.joblib")):  # noqa: S301
        np.testing.assert_array_equal(copied.predict_proba(IMAGES), fitted.predict_proba(IMAGES))
        np.testing.assert_array_equal(copied.confidence_, fitted.confidence_)
        assert copied.summary_ == fitted.summary_
    assert len(pickle.dumps(fitted)) < 3e6, "the training data is not part of it"


def test_pickle_copies_a_classifier_that_is_not_fitted() -> None:
    plain = clone(RobustClassifier(network="mlp", rounds=3))
    copied = pickle.loads(pickle.dumps(plain))  # noqa: S301
    assert copied.get_params() == plain.get_params()


def test_a_pickle_of_another_machine_falls_back_to_the_cpu(fitted: RobustClassifier) -> None:
    model = fitted._model
    copied = object.__new__(type(model))
    copied.__setstate__(model.__getstate__() | {"device": torch.device("cuda", 7)})
    assert copied.device == torch.device("cpu") or torch.cuda.is_available()


def test_columns_of_a_table_are_found_by_their_names(tmp_path: Path) -> None:
    frame = pd.DataFrame(IMAGES.reshape(80, 64)[:, 20:24].astype(float), columns=list("abcd"))
    run = quick("cross_entropy", network="mlp", rounds=1, weak="none", strong="none").fit(frame, GIVEN)
    run.save(tmp_path / "model")
    loaded = RobustClassifier.load(tmp_path / "model")
    expected = loaded.predict_proba(frame)
    np.testing.assert_array_equal(loaded.predict_proba(frame[list("dbca")].assign(more=1)), expected)
    swapped = NoisyDataset.from_arrays(GIVEN, frame[list("dbca")].to_numpy())
    swapped = replace(swapped, feature_columns=tuple("dbca"))
    np.testing.assert_array_equal(loaded.predict_proba(swapped), expected)
    with pytest.raises(InvalidInputError, match="without 'b', 'd'"):
        loaded.predict(frame[["a", "c"]])


# Networks of the user


def test_a_network_of_the_user_is_imported_only_if_it_is_named(tmp_path: Path) -> None:
    run = quick("cross_entropy", rounds=1).fit(IMAGES, GIVEN)
    run.save(tmp_path / "model")
    with pytest.raises(InvalidInputError, match=r"pass network='small_runs:tiny_mlp'") as refused:
        RobustClassifier.load(tmp_path / "model")
    assert "Importing it runs its code" in str(refused.value)
    for network in ("small_runs:tiny_mlp", tiny_mlp, tiny_mlp(10, (1, 8, 8))):
        loaded = RobustClassifier.load(tmp_path / "model", network=network)
        np.testing.assert_array_equal(loaded.predict_proba(IMAGES), run.predict_proba(IMAGES))
    with pytest.raises(InvalidInputError, match="Its weights do not fit"):
        RobustClassifier.load(tmp_path / "model", network="mlp")


def test_a_module_has_no_name_and_is_given_at_load(tmp_path: Path) -> None:
    module = tiny_mlp(10, (1, 8, 8))
    run = quick("cross_entropy", network=module, rounds=1).fit(IMAGES, GIVEN)
    run.save(tmp_path / "model")
    with pytest.raises(InvalidInputError, match=r"without a name \(Sequential\)"):
        RobustClassifier.load(tmp_path / "model")
    loaded = RobustClassifier.load(tmp_path / "model", network=module)
    np.testing.assert_array_equal(loaded.predict_proba(IMAGES), run.predict_proba(IMAGES))


def test_references_of_networks() -> None:
    assert network_reference("mlp") == "mlp"
    assert network_reference(tiny_mlp) == "small_runs:tiny_mlp"
    assert network_reference(lambda n, shape: tiny_mlp(n, shape)) is None
    assert network_reference(nn.Linear(2, 2)) is None


class TiedNetwork(nn.Module):
    """Two layers that share their weights, and a counter that is not a tensor if ``odd``."""

    odd = False

    def __init__(self, n_classes: int, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.second.weight = self.first.weight
        self.last = nn.Linear(64, n_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(self.second(self.first(images.flatten(1)).relu()))
        return result

    def get_extra_state(self) -> Any:
        return {"odd": 1} if self.odd else torch.zeros(1)

    def set_extra_state(self, state: Any) -> None:
        pass


def test_networks_that_share_weights_are_saved(tmp_path: Path) -> None:
    run = quick("cross_entropy", network=TiedNetwork, rounds=1).fit(IMAGES, GIVEN)
    run.save(tmp_path / "model")
    loaded = RobustClassifier.load(tmp_path / "model", network=TiedNetwork)
    np.testing.assert_array_equal(loaded.predict_proba(IMAGES), run.predict_proba(IMAGES))


def test_a_run_whose_network_cannot_be_saved_keeps_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TiedNetwork, "odd", True)
    monkeypatch.setattr("laplaceconfidence.training.run_folder.RunFolder.save_checkpoint", lambda *_: None)
    run = quick("cross_entropy", network=TiedNetwork, rounds=1, out=tmp_path / "run", validation_fraction=0)
    with pytest.warns(TrainingWarning, match="'_extra_state' in its state is no tensor"):
        run.fit(IMAGES, GIVEN)
    assert (tmp_path / "run" / "summary.json").is_file()
    assert not (tmp_path / "run" / "model").exists()


def test_only_the_networks_that_predict_do_so_after_loading(fitted: RobustClassifier, tmp_path: Path) -> None:
    second = replace(fitted._model, predictors=(1,))
    model_folder.write_model(tmp_path / "model", second, {})
    loaded = RobustClassifier.load(tmp_path / "model")
    both = fitted.predict_proba(IMAGES)
    samples = second.samples(IMAGES, n_workers=0)
    np.testing.assert_array_equal(loaded.predict_proba(IMAGES), second.probabilities(samples, 512))
    assert np.abs(loaded.predict_proba(IMAGES) - both).max() > 1e-3


# Bad folders


def test_damaged_folders_are_refused(saved: Path, tmp_path: Path) -> None:
    def copied(name: str) -> Path:
        return Path(shutil.copytree(saved, tmp_path / name))

    cut = copied("cut")
    (cut / "weights.safetensors").write_bytes((saved / "weights.safetensors").read_bytes()[:-10])
    with pytest.raises(DataFormatError, match=r"bytes instead of"):
        RobustClassifier.load(cut)
    flipped = copied("flipped")
    content = bytearray((saved / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (flipped / "weights.safetensors").write_bytes(content)
    with pytest.raises(DataFormatError, match="SHA-256"):
        RobustClassifier.load(flipped)
    lost = copied("lost")
    (lost / "weights.safetensors").unlink()
    with pytest.raises(DataFormatError, match=r"not complete.*weights\.safetensors"):
        RobustClassifier.load(lost)
    text = copied("text")
    (text / "model.json").write_text((saved / "model.json").read_text()[:100])
    with pytest.raises(DataFormatError, match=r"model\.json cannot be read"):
        RobustClassifier.load(text)


def test_other_versions_and_other_contents_are_refused(saved: Path, tmp_path: Path) -> None:
    def edited(change: Callable[[dict[str, Any]], Any]) -> Path:
        shutil.rmtree(tmp_path / "edited", ignore_errors=True)
        return changed(Path(shutil.copytree(saved, tmp_path / "edited")), change)

    cases: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
        (lambda model: model.update(version=99), "format version 99, but this laplaceconfidence"),
        (lambda model: model.update(version=0), "format version 0"),
        (lambda model: model.update(format="other"), "does not describe a model"),
        (lambda model: model.pop("classes"), "classes: Field required"),
        (lambda model: model["classes"]["values"].pop(), "as many names as different values"),
        (lambda model: model["input"].update(shape=[1, 8]), "not the shape of one sample"),
        (lambda model: model["network"].update(predictors=[5]), "predictors must be among the 2"),
        (lambda model: model["network"].update(name="big_cnn"), "unknown network 'big_cnn'"),
    ]
    for change, message in cases:
        with pytest.raises((DataFormatError, InvalidInputError), match=message):
            RobustClassifier.load(edited(change))

    def two_more_channels(model: dict[str, Any]) -> None:
        model["input"] |= {"shape": [3, 8, 8], "mean": [0.0] * 3, "deviation": [1.0] * 3}

    with pytest.raises(InvalidInputError, match="Its weights do not fit"):
        RobustClassifier.load(edited(two_more_channels))


def test_folders_without_a_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="It is not there"):
        RobustClassifier.load(tmp_path / "nowhere")
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(RunFolderError, match="has no model yet"):
        RobustClassifier.load(tmp_path)


def test_save_replaces_a_model_and_nothing_else(
    fitted: RobustClassifier, saved: Path, tmp_path: Path
) -> None:
    fitted.save(saved)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"], "nothing temporary is left"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"something else \(thesis\.txt\)"):
        fitted.save(tmp_path / "other")
    with pytest.raises(RunFolderError, match="which is a file"):
        fitted.save(tmp_path / "other" / "thesis.txt")


def test_a_save_that_fails_leaves_the_old_model(
    fitted: RobustClassifier, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (saved / "model.json").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_folder, "write_json", full)
    with pytest.raises(RunFolderError, match="the disk is full"):
        fitted.save(saved)
    assert (saved / "model.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"]


class Killed(BaseException):
    """What stands for the end of the process: nothing is tidied up after it."""


def test_a_save_that_is_killed_leaves_the_old_model(
    fitted: RobustClassifier, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: Any) -> None:
        raise Killed

    before = (saved / "model.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(model_folder, "replace_folder", kill)
        patch.setattr(model_folder.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Killed):
            fitted.save(saved)
    assert len(list(saved.parent.iterdir())) == 2, "the new model, not yet under its name"
    assert (saved / "model.json").read_bytes() == before
    RobustClassifier.load(saved)
    fitted.save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["saved"], "what was left behind is removed"


def test_samples_of_another_kind_are_refused(fitted: RobustClassifier, saved: Path) -> None:
    loaded = RobustClassifier.load(saved)
    with pytest.raises(InvalidInputError, match="Convert the images to 1 channels"):
        loaded.predict(np.repeat(IMAGES[..., None], 4, axis=3))
    with pytest.raises(InvalidInputError, match="vectors of 64 features"):
        loaded.predict(IMAGES.reshape(80, 64))
    with pytest.raises(InvalidInputError, match="Resize the images"):
        loaded.predict(IMAGES[:, :4])
