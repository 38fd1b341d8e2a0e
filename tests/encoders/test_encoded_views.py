"""Several encoders of one data set: named views, each cached on its own."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from laplaceconfidence import NoisyDataset, audit, read_dataset
from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.encoders.cache import FeatureCache
from laplaceconfidence.encoders.encoding import FEATURES, encode_dataset, encode_views
from laplaceconfidence.encoders.registry import make_encoders
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.encoders.tfidf import TfidfEncoder
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning
from raw_texts import noisy_texts


@dataclass(slots=True, eq=False)
class Lengths:
    """An encoder that counts how often it is used."""

    learns: ClassVar[bool] = False
    is_cached: ClassVar[bool] = True
    name: str = "lengths"
    takes: tuple[SampleKind, ...] = ("text",)
    n_calls: int = field(default=0)

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        return self.transform(samples)

    def transform(self, samples: RawSamples) -> FloatArray:
        self.n_calls += 1
        return np.array([[len(text), text.count(" ")] for text in samples.texts()], np.float32)

    def describe(self) -> dict[str, Any]:
        return {"name": self.name}

    def summary(self) -> str:
        return "lengths of texts"


@pytest.fixture
def data() -> NoisyDataset:
    frame = noisy_texts(90)
    return NoisyDataset.from_arrays(frame["topic"], sources=frame["text"], source_kind="text")


def test_every_encoder_makes_the_view_that_it_makes_alone(data: NoisyDataset) -> None:
    both, _ = encode_views(data, [TfidfEncoder(), Lengths()])
    alone = [encode_dataset(data, encoder)[0].features for encoder in (TfidfEncoder(), Lengths())]
    assert both.views is not None
    assert list(both.views) == ["tfidf", "lengths"]
    for found, expected in zip(both.views.values(), alone, strict=True):
        assert np.array_equal(found, np.asarray(expected))
    assert both.features is both.views["tfidf"]
    assert both.encoding is not None
    assert list(both.encoding["views"]) == ["tfidf", "lengths"]
    assert both.encoding["views"]["lengths"]["summary"] == "lengths of texts"


def test_one_encoder_is_no_view(data: NoisyDataset) -> None:
    one, _ = encode_views(data, [Lengths()])
    assert one.views is None
    assert one.encoding is not None
    assert one.encoding["name"] == "lengths"


def test_features_and_columns_are_a_view_besides() -> None:
    frame = noisy_texts(90).assign(size=np.arange(90.0), tiny=1e-6, city=["x", "y", "z"] * 30)
    frame.loc[::2, "tiny"] *= 2
    plain = read_dataset(frame, label="topic", text="text", features=["size"])
    found, _ = encode_views(plain, [Lengths()], keep_features=True)
    assert found.views is not None
    assert list(found.views) == ["lengths", FEATURES]
    assert found.feature_columns is None
    mixed = read_dataset(frame, label="topic", text="text", features=["size", "city"])
    found, _ = encode_views(mixed, [Lengths(), Lengths()], keep_features=True)
    assert found.views is not None
    assert list(found.views) == ["lengths", "lengths (2)", FEATURES]
    assert np.array_equal(found.views[FEATURES], np.asarray(encode_dataset(mixed)[0].features))
    with pytest.warns(LaplaceConfidenceWarning, match="scales"):
        unlike = read_dataset(frame, label="topic", text="text", features=["size", "tiny"])
    found, _ = encode_views(unlike, [Lengths()], keep_features=True)
    assert found.views is not None
    assert np.allclose(found.views[FEATURES].std(axis=0), 1, atol=0.01)
    assert found.encoding is not None
    assert "2 columns of the table, standardized" in found.encoding["summary"]
    texts = read_dataset(frame, label="topic", text="text")
    with pytest.raises(InvalidInputError, match="'features'"):
        encode_views(texts, [Lengths()], keep_features=True)


@dataclass(slots=True, eq=False)
class MeanColors(Lengths):
    """An encoder of images."""

    name: str = "colors"
    takes: tuple[SampleKind, ...] = ("image",)

    def transform(self, samples: RawSamples) -> FloatArray:
        pictures = samples.pictures(slice(None))
        return np.array([np.asarray(picture).mean(axis=(0, 1)) for picture in pictures], np.float32)


def test_images_with_captions(tmp_path: Path) -> None:
    frame = noisy_texts(40).assign(photo=[f"{row}.png" for row in range(40)], price=np.arange(40.0))
    for row, name in enumerate(frame["photo"]):
        Image.new("RGB", (4, 4), (row, 2 * row, 0)).save(tmp_path / name)
    frame.to_csv(tmp_path / "products.csv", index=False)
    data = read_dataset(tmp_path / "products.csv", label="topic", path="photo", features=["text", "price"])
    assert data.source_kind == "image"
    found, _ = encode_views(data, [MeanColors()], keep_features=True)
    assert found.views is not None
    assert list(found.views) == ["colors", FEATURES]
    assert found.views["colors"][:, 1].tolist() == [2 * row for row in range(40)]
    assert found.encoding is not None
    assert "text" in found.encoding["views"][FEATURES]["summary"]
    with pytest.raises(InvalidInputError, match="texts"):
        encode_views(data, [Lengths()], keep_features=True)


def test_views_are_cached_each_on_its_own(data: NoisyDataset, tmp_path: Path) -> None:
    cache, lengths = FeatureCache(tmp_path), Lengths()
    first, _ = encode_views(data, [TfidfEncoder(), lengths], cache=cache)
    again, _ = encode_views(data, [lengths, TfidfEncoder(n_components=5)], cache=cache)
    assert lengths.n_calls == 1
    assert len(cache.entries()) == 3
    assert first.encoding is not None
    assert again.encoding is not None
    assert not first.encoding["views"]["lengths"]["from_cache"]
    assert again.encoding["views"]["lengths"]["from_cache"]
    assert not again.encoding["views"]["tfidf"]["from_cache"]


def test_a_test_set_gets_the_features_of_the_first_view(data: NoisyDataset) -> None:
    test = data.subset(np.arange(30))
    found, encoded = encode_views(data, [TfidfEncoder(), Lengths()], test=test)
    assert encoded is not None
    assert encoded.features is not None
    assert found.features is not None
    assert np.allclose(encoded.features, found.features[:30], atol=1e-4)


def test_settings_count_for_the_encoders_that_have_them() -> None:
    tfidf, function = make_encoders(["tfidf", "os.path:join"], {"n_components": 7, "batch_size": 3})
    assert isinstance(tfidf, TfidfEncoder)
    assert tfidf.n_components == 7
    assert function.batch_size == 3  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match=r"one of the encoders: batch_size, n_components"):
        make_encoders(["tfidf", "os.path:join"], {"size": 3})
    with pytest.raises(InvalidInputError, match="all run on the CPU"):
        make_encoders(["tfidf", "os.path:join"], device="cpu")
    with pytest.raises(InvalidInputError, match="different where it is given several times"):
        make_encoders(["tfidf", "tfidf"])


def test_an_audit_weights_views() -> None:
    frame = noisy_texts(240)
    codes = pd.factorize(frame["truth"])[0]
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(240, 6)) + 3 * np.eye(3, 6)[codes]
    result = audit(
        frame[["text", "topic"]],
        label="topic",
        features=embeddings,
        encoder=[TfidfEncoder(), Lengths()],
        random_state=0,
    )
    weights = {view: sum(own.values()) for view, own in result.estimator.view_weights_.items()}
    assert list(weights) == ["tfidf", "lengths", FEATURES, "all views"]
    assert weights["lengths"] < weights[FEATURES]
    assert sum(weights.values()) == pytest.approx(1)
    with pytest.raises(InvalidInputError, match="one feature set for 'laplace'"):
        audit(frame, label="topic", encoder=[TfidfEncoder(), Lengths()], estimator="laplace")
    with pytest.raises(InvalidInputError, match="at least one encoder"):
        audit(frame, label="topic", encoder=[])
