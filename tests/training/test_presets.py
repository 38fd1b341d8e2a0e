"""Presets: the paper's settings value by value, and what wrong names and keys are answered."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from laplaceconfidence.data.images import CenterSquare
from laplaceconfidence.exceptions import AdjustedSettingWarning, DataFormatError, InvalidInputError
from laplaceconfidence.training.augment.cutout import Cutout
from laplaceconfidence.training.augment.randaugment import RandAugment
from laplaceconfidence.training.augment.resized_crop import RandomResizedCrop
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.preset_tables import TrainingPreset
from laplaceconfidence.training.presets import load_preset, preset_names
from laplaceconfidence.training.sample_views import MaskFeatures

CIFAR: dict[str, Any] = {
    "network": "preact_resnet18",
    "rounds": 400,
    "optimizer": "sgd",
    "learning_rate": 0.01,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "batch_size": 128,
    "learning_rate_drops": (300,),
    "drop_factor": 0.1,
    "weak": WeakAugment(padding=4, flip=True),
    "strong": "randaugment",
    "channels_last": False,
    "validation_fraction": 0.1,
    # What came after the paper is not used.
    "schedule": "step",
    "learning_rate_warmup": None,
    "nesterov": False,
    "clip_gradients": None,
    "weight_average": None,
    "average_evidence": False,
}
OF_METHOD: dict[str, Any] = {"warmup": 15, "passes": 2, "alpha": 0.99}
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
SMALL = ("digits", "embeddings-mlp", "fashion-small")
AUTOMATIC = ("image-folder-tiny", "image-folder-small", "image-folder-large")


def test_there_is_a_preset_for_every_setting() -> None:
    of_the_paper = [*PAPER, "mini-webvision"]
    assert preset_names() == sorted(
        [*of_the_paper, *(f"{name}-pca" for name in of_the_paper), *SMALL, *AUTOMATIC]
    )


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("pca", [False, True])
def test_cifar_as_in_the_paper(name: str, pca: bool) -> None:
    kind, rate, sharpen, n_neighbors, entropy_penalty = PAPER[name]
    preset = load_preset(f"{name}-pca" if pca else name)
    assert preset.training.parameters() == CIFAR
    method = OF_METHOD | {"sharpen": sharpen, "n_neighbors": n_neighbors, "entropy_penalty": entropy_penalty}
    assert preset.method == {"name": "laplace"} | method | ({"n_components": 64} if pca else {})
    assert preset.parameters() == CIFAR | {"method": Laplace(**method, n_components=64 if pca else None)}
    assert preset.noise is not None
    assert (preset.noise.kind, preset.noise.rate, preset.noise.seed) == (kind, rate, None)


@pytest.mark.parametrize("pca", [False, True])
def test_mini_webvision_as_in_the_paper(pca: bool) -> None:
    preset = load_preset("mini-webvision-pca" if pca else "mini-webvision")
    given = preset.training.parameters()
    differs = {
        "network": "inception_resnet_v2",
        "rounds": 300,
        "batch_size": 160,
        "learning_rate_drops": (200,),
        "weak": RandomResizedCrop(299),
    }
    for setting, value in (CIFAR | differs).items():
        if setting != "validation_fraction":
            assert given[setting] == value, setting
    assert round(given["validation_fraction"] * 65_944) in range(4_990, 5_010)
    assert preset.build_method() == Laplace(
        warmup=1,
        passes=1,
        sharpen=1,
        n_neighbors=2,
        alpha=0.99,
        entropy_penalty=True,
        n_components=128 if pca else None,
    )
    assert preset.noise is None  # the labels are wrong as they come
    size = preset.data.size()
    assert (size, isinstance(size, CenterSquare)) == (320, True)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_understood(name: str) -> None:
    preset = load_preset(name)
    assert preset.description
    given = preset.parameters()
    assert RobustClassifier(**given).get_params() == RobustClassifier().get_params() | given
    assert isinstance(given["method"], Laplace)


def test_every_key_is_a_parameter_of_the_classifier() -> None:
    parameters = set(inspect.signature(RobustClassifier).parameters) - {"out", "missing_label"}
    assert set(TrainingPreset.model_fields) <= parameters - {"method"}


def test_settings_are_changed_one_by_one() -> None:
    changes = ["rounds=20", "noise.rate=0.3", "weak.flip=true", "strong=none", "learning_rate_drops=[5, 0.5]"]
    preset = load_preset("digits", [*changes, "method.warmup=2"], overrides={"batch_size": 7})
    given = preset.parameters()
    assert (given["rounds"], given["batch_size"], given["strong"]) == (20, 7, "none")
    assert given["method"].warmup == 2
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
            r"no setting 'learning_rat'\. Did you mean 'learning_rate'\? The valid ones here: average",
        ),
        ("noise.kindness=1", r"no setting 'noise.kindness'\. Did you mean 'kind'\? .*: kind, rate, seed\."),
        ("data.size=1", r"no setting 'data.size'.*: image_size, keep_proportions, test_share\."),
        ("weak={pading=1}", r"no setting 'weak.pading'\. Did you mean 'padding'\?"),
        ("weak.mask=0.5", r"'mask' is for feature vectors and cannot be combined"),
        ("noise.rate=2", r"'noise.rate' cannot be 2: Input should be less than or equal to 1"),
        ("noise.kind=odd", r"'noise.kind' cannot be 'odd'"),
        ("Rounds=3", r"no setting 'Rounds'\. Did you mean 'rounds'\?"),
        ("learning_rate_drops=[1, 'x']", r"'learning_rate_drops' cannot be 'x'"),
        ("noise=3", r"no setting 'noise'\. .*The valid ones here: average_evidence, batch_size, "),
        ("rounds=many", r"'rounds' cannot be 'many'"),
        ("rounds", r"'set' parameter must be written key=value"),
        ("warmup=3", r"no setting 'warmup'\. It is a setting of the method: write 'method\.warmup'\."),
        ("method.warmpu=3", r"'laplace' has no setting 'warmpu'\. Did you mean 'warmup'\? It has warmup, "),
        ("method.threshold=0.5", r"The method 'laplace' has no setting 'threshold'\."),
        ("method.warmup=-1", r"'warmup' parameter must be an integer of at least 0\. Got -1"),
        ("method.entropy_penalty=3", r"'entropy_penalty' parameter must be true or false"),
        ("method=divide_mix", r"'method' parameter .*Did you mean 'dividemix'\?"),
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
    with pytest.raises(
        InvalidInputError, match=r"no setting 'rounds'.*: data, description, method, noise, training"
    ):
        load_preset(str(path))


def test_no_setting_of_one_method_reaches_another() -> None:
    with pytest.warns(
        AdjustedSettingWarning, match="for 'laplace' and do not apply: 'dividemix' keeps its own"
    ):
        preset = load_preset("cifar10-sym20", ["method.ramp=2"], method="dividemix")
    assert preset.build_method() == DivideMix(ramp=2)
    assert DivideMix().sharpen == 2  # not the 1 of the preset
    assert preset.training.rounds == 400
    with pytest.warns(AdjustedSettingWarning, match="'co_teaching' keeps its own defaults"):
        assert load_preset("digits", ["method=co_teaching"]).build_method() == CoTeaching()
    assert load_preset("digits", method="laplace") == load_preset("digits")


def test_a_preset_that_extends_another_may_name_another_method(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "digits"\n[method]\nname = "dividemix"\nramp = 4\n', encoding="utf-8")
    assert load_preset(str(path)).build_method() == DivideMix(ramp=4)
    path.write_text('extends = "digits"\n[method]\nwarmup = 4\n', encoding="utf-8")
    assert load_preset(str(path)).parameters()["method"].warmup == 4
    path.write_text('[method]\nname = "dividemix"\nalpha = 0.5\n', encoding="utf-8")
    with pytest.raises(
        InvalidInputError, match=r"'dividemix' has no setting 'alpha'.*It has warmup, threshold, "
    ):
        load_preset(str(path))
    path.write_text("[method]\nwarmup = 3\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"'method.name' parameter must be given"):
        load_preset(str(path))
    path.write_text("[training]\nrounds = 3\n", encoding="utf-8")
    assert load_preset(str(path)).parameters() == {"rounds": 3}


@pytest.mark.parametrize("change", ["method.n_neighbors=auto", "method.alpha=auto"])
def test_auto_is_possible_where_the_class_allows_it(change: str) -> None:
    setting = change.partition("=")[0].removeprefix("method.")
    assert getattr(load_preset("cifar10-sym50", [change]).build_method(), setting) == "auto"
    assert load_preset("digits", ["rounds=auto"]).parameters()["rounds"] == "auto"


def test_a_schedule_replaces_the_settings_of_the_one_before_it() -> None:
    step, cosine = load_preset("fashion-small"), load_preset("fashion-small", ["schedule=cosine"])
    assert step.training.learning_rate_drops == (0.85,)
    assert (cosine.training.schedule, cosine.training.learning_rate_drops) == ("cosine", None)
    assert load_preset("fashion-small", ["schedule=step"]).training.learning_rate_drops == (0.85,)


def test_what_a_preset_says_about_weights_is_complete_and_can_be_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'extends = "image-folder-small"\n[training]\nschedule = "one-cycle"\nlearning_rate_warmup = 0.2\n'
        "nesterov = true\nclip_gradients = 1.0\nweight_average = 0.99\naverage_evidence = true\n"
    )
    given = load_preset(str(path)).parameters()
    assert (given["schedule"], given["learning_rate_warmup"], given["nesterov"]) == ("one-cycle", 0.2, True)
    assert (given["clip_gradients"], given["weight_average"], given["average_evidence"]) == (1.0, 0.99, True)
    changes = ["clip_gradients=none", "weight_average=none", "average_evidence=false"]
    without = load_preset(str(path), changes).parameters()
    assert (without["clip_gradients"], without["weight_average"]) == (None, None)
    assert "weight_average" not in TrainingPreset(rounds=3).parameters()  # left to "auto"
    assert TrainingPreset(learning_rate=0.1).parameters()["weight_average"] is None
