"""Presets: the paper's settings value by value, and what wrong names and keys are answered."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from laplaceconfidence.exceptions import AdjustedSettingWarning, DataFormatError, InvalidInputError
from laplaceconfidence.training.augment.cutout import Cutout
from laplaceconfidence.training.augment.randaugment import RandAugment
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.methods.registry import build_method
from laplaceconfidence.training.presets import TrainingPreset, load_preset, preset_names
from laplaceconfidence.training.sample_views import MaskFeatures

CIFAR: dict[str, Any] = {
    "network": "preact_resnet18",
    "method": "laplace",
    "rounds": 400,
    "warmup": 15,
    "passes": 2,
    "optimizer": "sgd",
    "learning_rate": 0.01,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "batch_size": 128,
    "learning_rate_drops": (300,),
    "drop_factor": 0.1,
    "alpha": 0.99,
    "weak": WeakAugment(padding=4, flip=True),
    "strong": "randaugment",
    "validation_fraction": 0.1,
}
# name: (kind of noise, rate, sharpening T, neighbors k, negative entropy in warm-up)
PAPER: dict[str, tuple[str, float, float, int, bool]] = {
    "cifar10-sym20": ("symmetric", 0.2, 1, 50, False),
    "cifar10-sym50": ("symmetric", 0.5, 2, 50, False),
    "cifar10-sym80": ("symmetric", 0.8, 2, 50, False),
    "cifar10-sym90": ("symmetric", 0.9, 2, 50, False),
    "cifar10-asym40": ("asymmetric", 0.4, 2, 2, True),
    "cifar100-sym20": ("symmetric", 0.2, 1, 2, False),
    "cifar100-sym50": ("symmetric", 0.5, 2, 2, False),
    "cifar100-sym80": ("symmetric", 0.8, 2, 2, False),
    "cifar100-sym90": ("symmetric", 0.9, 2, 2, False),
}
SMALL = ("digits", "embeddings-mlp", "fashion-small", "fashion-small-asymmetric", "image-folder-small")


def test_there_is_a_preset_for_every_setting() -> None:
    of_the_paper = [*PAPER, "mini-webvision"]
    assert preset_names() == sorted([*of_the_paper, *(f"{name}-pca" for name in of_the_paper), *SMALL])


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("pca", [False, True])
def test_cifar_as_in_the_paper(name: str, pca: bool) -> None:
    kind, rate, sharpen, n_neighbors, entropy_penalty = PAPER[name]
    preset = load_preset(f"{name}-pca" if pca else name)
    expected = CIFAR | {"sharpen": sharpen, "n_neighbors": n_neighbors, "entropy_penalty": entropy_penalty}
    assert preset.training.parameters() == (expected | {"n_components": 64} if pca else expected)
    assert preset.noise is not None
    assert (preset.noise.kind, preset.noise.rate, preset.noise.seed) == (kind, rate, 0)


@pytest.mark.parametrize("pca", [False, True])
def test_mini_webvision_as_in_the_paper(pca: bool) -> None:
    preset = load_preset("mini-webvision-pca" if pca else "mini-webvision")
    given = preset.training.parameters()
    differs = {
        "network": "inception_resnet_v2",
        "rounds": 300,
        "warmup": 1,
        "passes": 1,
        "batch_size": 160,
        "learning_rate_drops": (200,),
        "sharpen": 1,
        "n_neighbors": 2,
        "entropy_penalty": True,
    }
    for setting, value in (CIFAR | differs).items():
        if setting != "validation_fraction":
            assert given[setting] == value, setting
    assert round(given["validation_fraction"] * 65_944) in range(4_990, 5_010)
    assert given.get("n_components") == (128 if pca else None)
    assert preset.noise is None  # the labels are wrong as they come
    assert preset.data.image_size == 299


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_understood(name: str) -> None:
    preset = load_preset(name)
    assert preset.description
    given = preset.training.parameters()
    RobustClassifier(**given)
    method = {
        key: given[key] for key in ("warmup", "passes", "sharpen", "n_neighbors", "alpha") if key in given
    }
    build_method(given["method"], method, None)


def test_every_key_is_a_parameter_of_the_classifier() -> None:
    parameters = set(inspect.signature(RobustClassifier).parameters) - {"out", "missing_label"}
    assert set(TrainingPreset.model_fields) <= parameters


def test_settings_are_changed_one_by_one() -> None:
    changes = ["rounds=20", "noise.rate=0.3", "weak.flip=true", "strong=none", "learning_rate_drops=[5, 0.5]"]
    preset = load_preset("digits", changes, overrides={"warmup": 2})
    given = preset.training.parameters()
    assert (given["rounds"], given["warmup"], given["strong"]) == (20, 2, "none")
    assert given["learning_rate_drops"] == (5, 0.5)
    assert given["weak"] == WeakAugment(padding=1, flip=True)
    assert preset.noise is not None
    assert preset.noise.rate == 0.3
    masks = load_preset("embeddings-mlp", ["strong.mask=0.5"]).training.parameters()
    unchanged = load_preset("embeddings-mlp").training.parameters()["weak"]
    assert (masks["weak"], masks["strong"]) == (unchanged, MaskFeatures(0.5))
    detailed = load_preset("digits", ["strong={n_operations=2, cutout=true}"]).training.parameters()
    assert detailed["strong"] == RandAugment(2, Cutout())


def test_the_closest_names_are_offered() -> None:
    with pytest.raises(InvalidInputError, match=r"'preset' parameter .* Got 'cifar10-sim50'.*cifar10-sym50"):
        load_preset("cifar10-sim50")
    with pytest.raises(InvalidInputError, match=r"There are cifar10-asym40, "):
        load_preset("x")
    with pytest.raises(InvalidInputError, match=r"a path to an existing TOML file"):
        load_preset("absent.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "learning_rat=1",
            r"no setting 'learning_rat'\. Did you mean 'learning_rate'\? The valid ones here: alpha, ",
        ),
        ("noise.kindness=1", r"no setting 'noise.kindness'\. Did you mean 'kind'\? .*: kind, rate, seed\."),
        ("data.size=1", r"no setting 'data.size'.*: image_size, test_share\."),
        ("weak={pading=1}", r"no setting 'weak.pading'\. Did you mean 'padding'\?"),
        ("weak.mask=0.5", r"'mask' is for feature vectors and stands alone"),
        ("noise.rate=2", r"'noise.rate' cannot be 2: Input should be less than or equal to 1"),
        ("noise.kind=odd", r"'noise.kind' cannot be 'odd'"),
        ("Rounds=3", r"no setting 'Rounds'\. Did you mean 'rounds'\?"),
        ("learning_rate_drops=[1, 'x']", r"'learning_rate_drops' cannot be 'x'"),
        ("noise=3", r"no setting 'noise'\. .*The valid ones here: alpha, "),
        ("rounds=many", r"'rounds' cannot be 'many'"),
        ("rounds", r"'set' parameter must be written key=value"),
    ],
)
def test_wrong_changes_are_explained(change: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        load_preset("digits", [change])


def test_presets_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "digits"\n[training]\nrounds = 7\n', encoding="utf-8")
    preset = load_preset(str(path))
    assert preset.training.rounds == 7
    assert preset.training.network == "small_cnn"
    path.write_text("extends = 3\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="'extends' parameter must be the name of a preset"):
        load_preset(str(path))
    path.write_text(f'extends = "{path}"\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match="that does not extend this one"):
        load_preset(str(path))
    path.write_text("rounds = = 7\n", encoding="utf-8")
    with pytest.raises(DataFormatError, match="is not TOML"):
        load_preset(str(path))
    path.write_text("training = 3\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="'training' cannot be 3"):
        load_preset(str(path))
    path.write_text("rounds = 7\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"no setting 'rounds'.*: data, description, noise, training"):
        load_preset(str(path))


def test_another_method_drops_what_it_does_not_have() -> None:
    with pytest.warns(
        AdjustedSettingWarning, match=r"alpha, n_neighbors, .* are left out: method 'cross_entropy'"
    ):
        preset = load_preset("digits", overrides={"method": "cross_entropy"})
    given = preset.training.parameters()
    assert given["rounds"] == 20
    assert not given.keys() & {"warmup", "alpha", "sharpen", "n_neighbors", "passes"}
    build_method("cross_entropy", {}, None)
