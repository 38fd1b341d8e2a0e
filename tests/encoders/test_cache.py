"""Features that were encoded before."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laplaceconfidence import NoisyDataset
from laplaceconfidence.encoders.cache import FeatureCache
from laplaceconfidence.encoders.encoding import encode_dataset
from laplaceconfidence.encoders.tfidf import TfidfEncoder
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from raw_texts import noisy_texts

FEATURES = np.arange(12, dtype=np.float32).reshape(4, 3)
MADE_OF = {"samples": "abc", "encoder": {"name": "tfidf", "n_components": 3}}


def texts(n: int = 60) -> NoisyDataset:
    frame = noisy_texts(n)
    return NoisyDataset.from_arrays(frame.topic, sources=frame.text, source_kind="text")


def is_cached(data: NoisyDataset) -> bool:
    assert data.encoding is not None
    return bool(data.encoding["from_cache"])


def test_what_is_stored_is_found(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path / "features")
    assert cache.find(MADE_OF) is None
    cache.store(MADE_OF, FEATURES, "in words")
    found = cache.find(MADE_OF)
    assert found is not None
    assert found.summary == "in words"
    np.testing.assert_array_equal(found.features, FEATURES)
    assert cache.find({**MADE_OF, "samples": "abd"}) is None
    (entry,) = cache.entries()
    assert (entry.encoder, entry.shape) == ("tfidf", (4, 3))


def cut(path: Path, _: Any) -> None:
    path.write_bytes(path.read_bytes()[:-50])


def turn_a_bit(path: Path, _: Any) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(FEATURES.tobytes()[4:]) + 3] ^= 1
    path.write_bytes(content)


def replace_features(path: Path, cache: FeatureCache) -> None:
    with np.load(path) as archive:
        record = archive["record"]
    np.savez(path.open("wb"), features=FEATURES + 1, record=record)


def copy_another(path: Path, cache: FeatureCache) -> None:
    cache.store({"samples": "other"}, FEATURES, "")
    other = next(entry.path for entry in cache.entries() if entry.path != path)
    path.write_bytes(other.read_bytes())


def write_something_else(path: Path, _: Any) -> None:
    np.savez(path.open("wb"), something=FEATURES)


def change_the_format(path: Path, _: Any) -> None:
    with np.load(path) as archive:
        record = json.loads(archive["record"].tobytes())
    changed = json.dumps({**record, "format": "laplaceconfidence features 2"}).encode()
    np.savez(path.open("wb"), features=FEATURES, record=np.frombuffer(changed, np.uint8))


@pytest.mark.parametrize(
    "damage",
    [cut, turn_a_bit, replace_features, copy_another, write_something_else, change_the_format],
)
def test_a_damaged_or_foreign_entry_is_not_used(tmp_path: Path, damage: Any) -> None:
    cache = FeatureCache(tmp_path)
    cache.store(MADE_OF, FEATURES, "")
    (entry,) = cache.entries()
    damage(entry.path, cache)
    with pytest.warns(LaplaceConfidenceWarning, match="are not used"):
        assert cache.find(MADE_OF) is None
    cache.store(MADE_OF, FEATURES, "")
    assert cache.find(MADE_OF) is not None


def test_an_encoder_runs_once_for_the_same_samples_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, data = FeatureCache(tmp_path), texts()
    first, _ = encode_dataset(data, TfidfEncoder(), cache=cache)
    again, _ = encode_dataset(data, TfidfEncoder(), cache=cache)
    assert not is_cached(first)
    assert is_cached(again)
    np.testing.assert_array_equal(first.features, again.features)
    assert first.encoding is not None
    assert again.encoding is not None
    assert first.encoding["summary"] == again.encoding["summary"]
    relabeled = data.with_labels(np.zeros(len(data), dtype=np.int64))
    assert is_cached(encode_dataset(relabeled, TfidfEncoder(), cache=cache)[0])  # labels do not matter
    assert not is_cached(encode_dataset(data, TfidfEncoder(n_components=5), cache=cache)[0])
    assert not is_cached(encode_dataset(data.subset(np.arange(59)), TfidfEncoder(), cache=cache)[0])
    assert not is_cached(encode_dataset(data, TfidfEncoder(), cache=None)[0])
    monkeypatch.setattr("laplaceconfidence.encoders.tfidf.sklearn.__version__", "0.0")
    assert not is_cached(encode_dataset(data, TfidfEncoder(), cache=cache)[0])


def test_a_test_set_needs_what_the_encoder_learned(tmp_path: Path) -> None:
    cache, data = FeatureCache(tmp_path), texts()
    encode_dataset(data, TfidfEncoder(), cache=cache)
    again, test = encode_dataset(data, TfidfEncoder(), test=data.subset([3, 4]), cache=cache)
    assert test is not None
    assert again.features is not None
    np.testing.assert_allclose(test.features, again.features[[3, 4]], atol=1e-5)


def test_clearing_removes_entries_and_nothing_else(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path)
    cache.store(MADE_OF, FEATURES, "")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / f".{'0' * 64}.npz.abc123.npz").write_bytes(b"half")
    assert cache.clear()[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert FeatureCache(tmp_path / "nowhere").clear() == (0, 0)


def test_a_cache_that_cannot_be_written_is_only_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(LaplaceConfidenceWarning, match="not kept in the cache"):
        data, _ = encode_dataset(texts(), TfidfEncoder(), cache=FeatureCache(tmp_path / "file"))
    assert data.features is not None
