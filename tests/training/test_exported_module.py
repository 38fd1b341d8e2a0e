"""``as_module`` and ``export_onnx`` predict what the classifier predicts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from laplaceconfidence import RobustClassifier
from laplaceconfidence.exceptions import InvalidInputError, MissingDependencyError
from laplaceconfidence.training import exported_module
from small_runs import noisy_digits, quick

IMAGES, GIVEN, _ = noisy_digits(60)
PIXELS = torch.from_numpy(IMAGES).unsqueeze(1).float() / 255


@pytest.fixture(scope="module")
def fitted() -> RobustClassifier:
    return quick("co_teaching", network="small_cnn", weak="none", strong="none", rounds=1).fit(IMAGES, GIVEN)


def test_the_module_maps_pixels_to_probabilities(fitted: RobustClassifier) -> None:
    module = fitted.as_module()
    np.testing.assert_allclose(module(PIXELS).numpy(), fitted.predict_proba(IMAGES), atol=1e-6)
    assert not module.training
    assert not any(hooks for part in module.modules() for hooks in part._forward_pre_hooks.values())
    before = fitted.predict_proba(IMAGES)
    for parameter in module.parameters():
        parameter.zero_()
    np.testing.assert_array_equal(fitted.predict_proba(IMAGES), before)  # the module is a copy
    assert fitted.embed(IMAGES).shape[0] == 60
    with pytest.raises(InvalidInputError, match="Divide bytes by 255"):
        module(torch.from_numpy(IMAGES).unsqueeze(1))


def onnx_probabilities(path: Path, inputs: Any) -> Any:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"inputs": inputs})[0], session.get_modelmeta()


def test_onnx_predicts_the_same_for_any_number_of_images(fitted: RobustClassifier, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    path = tmp_path / "model.onnx"
    fitted.export_onnx(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    expected = fitted.predict_proba(IMAGES)
    for n in (1, 7, 60):
        probabilities, described = onnx_probabilities(path, PIXELS[:n].numpy())
        np.testing.assert_allclose(probabilities, expected[:n], atol=1e-5)
    assert json.loads(described.custom_metadata_map["class_names"]) == [str(digit) for digit in range(10)]


def test_onnx_of_feature_vectors(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    features = IMAGES.reshape(60, 64) / np.float32(16)  # not from 0 to 1
    run = quick("cross_entropy", network="mlp", weak="none", strong="none", rounds=1).fit(features, GIVEN)
    run.export_onnx(tmp_path / "model.onnx")
    probabilities, _ = onnx_probabilities(tmp_path / "model.onnx", features[:5])
    np.testing.assert_allclose(probabilities, run.predict_proba(features[:5]), atol=1e-5)


def test_bad_paths_and_missing_packages(
    fitted: RobustClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInputError, match=r"ends in \.onnx"):
        fitted.export_onnx(tmp_path / "model.pt")
    monkeypatch.setattr(exported_module, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"laplaceconfidence\[onnx\]"):
        fitted.export_onnx(tmp_path / "model.onnx")
