"""TF-IDF vectors of texts."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from laplaceconfidence.encoders.samples import RawSamples
from laplaceconfidence.encoders.tfidf import TfidfEncoder
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, LaplaceConfidenceWarning
from raw_texts import noisy_texts


def encoded(texts: Any, **settings: Any) -> np.ndarray:
    return TfidfEncoder(**settings).fit_transform(RawSamples.of_texts(texts))


def test_similarities_are_those_of_the_whole_vectors_where_all_components_are_kept() -> None:
    words = [f"{a} {b} {c}" for a in ("red", "blue") for b in ("car", "bus", "tram") for c in ("x", "y")] * 2
    features = encoded(words, units="words", n_components=12)
    whole = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"\w+", min_df=2)
    expected = normalize(whole.fit_transform(words)).toarray()
    assert features.shape == (24, 12)
    assert np.allclose(features @ features.T, expected @ expected.T, atol=1e-4)


def test_rows_have_length_one_and_the_same_seed_gives_the_same_features() -> None:
    texts = noisy_texts().text
    features = encoded(texts)
    assert features.dtype == np.float32
    assert np.allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)
    assert np.array_equal(features, encoded(texts))


def test_the_number_of_components_follows_the_data() -> None:
    assert encoded(["a b", "c d"] * 50).shape[1] <= 2
    assert encoded(noisy_texts(100).text).shape[1] <= 50
    assert encoded(noisy_texts(100).text, n_components=7).shape[1] == 7


def test_characters_are_counted_where_texts_share_few_words() -> None:
    japanese = [
        "今日は良い天気です",
        "明日は雨が降るでしょう",
        "天気が悪い日",
        "雨が降る日",
        "良い天気の日",
    ] * 4
    encoder = TfidfEncoder()
    features = encoder.fit_transform(RawSamples.of_texts(japanese))
    assert "characters" in encoder.summary()
    similar = features @ features.T
    assert similar[1, 3] > similar[1, 0]  # both about rain
    long_texts = [" ".join(noisy_texts(30, seed=seed).text) for seed in range(12)]
    encoder.fit_transform(RawSamples.of_texts(long_texts))
    assert "characters" not in encoder.summary()


def test_other_texts_get_the_features_that_they_would_have_had() -> None:
    texts = noisy_texts().text.tolist()
    encoder = TfidfEncoder()
    features = encoder.fit_transform(RawSamples.of_texts(texts))
    assert np.allclose(encoder.transform(RawSamples.of_texts(texts[:5])), features[:5], atol=1e-5)


def test_what_was_learned_survives_json_and_arrays() -> None:
    texts = RawSamples.of_texts(noisy_texts().text)
    encoder = TfidfEncoder()
    features = encoder.fit_transform(texts)
    terms, arrays = encoder.state()
    again = TfidfEncoder.from_state(json.loads(json.dumps(terms)), arrays)
    assert np.allclose(again.transform(texts), features, atol=1e-5)
    assert again.summary() == encoder.summary()


@pytest.mark.parametrize("damage", ["no terms", "a term less", "a number", "twice", "shape"])
def test_damaged_state_is_refused(damage: str) -> None:
    encoder = TfidfEncoder(units="words")
    encoder.fit_transform(RawSamples.of_texts(noisy_texts().text))
    terms, arrays = encoder.state()
    if damage == "no terms":
        terms = {}
    elif damage == "a term less":
        terms["words"].pop()
    elif damage == "a number":
        terms["words"][0] = 5
    elif damage == "twice":
        terms["words"][0] = terms["words"][1]
    else:
        arrays["components"] = arrays["components"][:, 1:]
    with pytest.raises(DataFormatError, match="damaged"):
        TfidfEncoder.from_state(terms, arrays)


@pytest.mark.parametrize("texts", [["", "  "], ["same"] * 5, ["same", "", "same"]])
def test_texts_that_do_not_differ_are_refused(texts: list[str]) -> None:
    with pytest.raises(InvalidInputError, match=r"'text' .* at least two different texts"):
        encoded(texts)


def test_empty_texts_are_counted_and_become_zero() -> None:
    with pytest.warns(LaplaceConfidenceWarning, match="2 of 242 texts are empty"):
        features = encoded([*noisy_texts().text, "", " "])
    assert not features[-2:].any()


def test_long_texts_and_mixed_scripts() -> None:
    texts = ["Привет мир 今日 hello " * 5_000, "hello world", "мир и 今日", "\x00 \ud83d odd", "😀 😀"] * 2
    assert np.isfinite(encoded(texts)).all()


@pytest.mark.parametrize(("setting", "value"), [("n_components", 0), ("n_components", "all"), ("units", "x")])
def test_settings_are_checked(setting: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=setting):
        TfidfEncoder(**{setting: value})
