"""Noise on disk: another machine reads back exactly the same labels, or is told why not."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laplaceconfidence import NoisyDataset
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.data.noise_file import (
    NoiseRecord,
    _content_checksum,
    read_noise_file,
    write_noise_file,
)
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError


def small() -> NoisyDataset:
    return NoisyDataset.from_arrays(["a", "b", None, "c", "a", "b"] * 10)


def written(folder: Path, data: NoisyDataset | None = None) -> tuple[Path, NoisyDataset]:
    noisy = add_noise(data or small(), "symmetric", 0.5, random_state=3)
    write_noise_file(folder / "noise.json", NoiseRecord.of(noisy, kind="symmetric", rate=0.5, seed=3))
    return folder / "noise.json", noisy


def test_the_same_labels_come_back(tmp_path: Path) -> None:
    path, noisy = written(tmp_path, load_digits())
    noise = read_noise_file(path)
    assert (noise.kind, noise.rate, noise.seed) == ("symmetric", 0.5, 3)
    again = noise.apply(load_digits())
    np.testing.assert_array_equal(again.labels, noisy.labels)
    np.testing.assert_array_equal(again.true_labels, noisy.true_labels)
    np.testing.assert_allclose(noise.transition_matrix.sum(axis=1), 1)
    assert path.stat().st_size < 10_000


@given(codes=st.lists(st.integers(-1, 3), min_size=1, max_size=50), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_labels_come_back(tmp_path: Path, codes: list[int], seed: int) -> None:
    clean = NoisyDataset(labels=np.array(codes), class_names=("ä", "b", "c", "d"))
    noisy = add_noise(clean, "pair", 0.5, random_state=seed)
    write_noise_file(tmp_path / "noise.json", NoiseRecord.of(noisy, kind="pair", rate=0.5, seed=None))
    assert read_noise_file(tmp_path / "noise.json").apply(clean).labels.tolist() == noisy.labels.tolist()


def test_the_file_tells_people_what_it_is(tmp_path: Path) -> None:
    content = json.loads(written(tmp_path)[0].read_text())
    assert content["kind"] == "symmetric"
    assert content["class_names"] == ["a", "b", "c"]
    assert content["n_samples"] == 60
    assert len(content["transition_matrix"]) == 3
    assert {"seed", "rate", "true_labels_sha256", "labels_sha256", "sha256"} <= content.keys()


CHANGES: dict[str, Any] = {
    "kind": "pair",
    "rate": 0.2,
    "seed": 4,
    "n_samples": 61,
    "class_names": ["a", "b", "d"],
    "transition_matrix": [[1.0]],
    "true_labels_sha256": "0" * 64,
    "labels_sha256": "0" * 64,
    "labels": base64.b64encode(zlib.compress(bytes(240))).decode(),
    "sha256": "0" * 64,
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_file_is_noticed(tmp_path: Path, field: str) -> None:
    path, _ = written(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: CHANGES[field]}))
    with pytest.raises(DataFormatError, match=r"noise.json was changed after it was written.*'sha256'"):
        read_noise_file(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": "not base64!"}, "cannot be unpacked"),
        ({"labels": base64.b64encode(b"not zlib").decode()}, "cannot be unpacked"),
        ({"labels": base64.b64encode(zlib.compress(bytes(10**7))).decode()}, "unpacked|do not match"),
        ({"labels": CHANGES["labels"]}, "do not match their checksum 'labels_sha256'"),
        ({"n_samples": 61}, "do not match"),
        ({"n_samples": -5}, "cannot be unpacked"),
        ({"transition_matrix": [[1.0], [1.0, 2.0]]}, "transition matrix"),
        ({"transition_matrix": [[0.5, 0.5]]}, "transition matrix"),
    ],
)
def test_a_forged_file_is_noticed(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path, _ = written(tmp_path)
    content = json.loads(path.read_text()) | change
    content["sha256"] = _content_checksum({key: content[key] for key in content if key != "sha256"})
    path.write_text(json.dumps(content))
    with pytest.raises(DataFormatError, match=message):
        read_noise_file(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "other"}', "\x00", "[" * 100_000])
def test_what_is_no_noise_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "noise.json").write_text(text)
    with pytest.raises(DataFormatError, match=r"noise.json is (truncated, damaged or )?not a noise file"):
        read_noise_file(tmp_path / "noise.json")


@pytest.mark.parametrize("field", CHANGES)
def test_missing_and_unfit_fields_are_named(tmp_path: Path, field: str) -> None:
    path, _ = written(tmp_path)
    content = json.loads(path.read_text())
    for broken in ({key: content[key] for key in content if key != field}, content | {field: {"a": 1}}):
        path.write_text(json.dumps(broken))
        with pytest.raises(DataFormatError, match=f"'{field}' is missing or has the wrong type"):
            read_noise_file(path)


def test_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rate": float("nan")}))
    with pytest.raises(DataFormatError, match="a value that is not a number"):
        read_noise_file(path)


@given(cut=st.floats(0, 0.99))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_truncated_file_is_refused(tmp_path: Path, cut: float) -> None:
    path, _ = written(tmp_path)
    text = path.read_text()
    path.write_text(text[: int(cut * len(text))])
    with pytest.raises(DataFormatError, match=r"noise.json is truncated"):
        read_noise_file(path)


def test_other_data_is_refused(tmp_path: Path) -> None:
    noise = read_noise_file(written(tmp_path)[0])
    with pytest.raises(InvalidInputError, match="'noise' has 60, 'dataset' has 5"):
        noise.apply(small().subset(range(5)))
    with pytest.raises(InvalidInputError, match=r"classes 3 \(a, b, c\); the data set has 3 \(x, y, z\)"):
        noise.apply(NoisyDataset.from_arrays(["x", "y", "z"] * 20))
    with pytest.raises(InvalidInputError, match="was made for other labels: the checksum"):
        noise.apply(small().subset(np.arange(60)[::-1]))


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="'dataset' parameter must be one that add_noise made"):
        NoiseRecord.of(small(), kind="pair", rate=0.1, seed=0)
    noisy = add_noise(small(), "pair", 0.1, random_state=0)
    with pytest.raises(InvalidInputError, match="'seed' parameter must be an integer"):
        NoiseRecord.of(noisy, kind="pair", rate=0.1, seed=-1)
    noise = NoiseRecord.of(noisy, kind="pair", rate=0.1, seed=0)
    with pytest.raises(InvalidInputError, match="'path' parameter must be a path in an existing folder"):
        write_noise_file(tmp_path / "nowhere" / "noise.json", noise)
    with pytest.raises(InvalidInputError, match="'path' parameter must be a path to an existing noise file"):
        read_noise_file(tmp_path / "nowhere.json")
