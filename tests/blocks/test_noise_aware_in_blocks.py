"""The noise-aware estimate fitted on a sample and applied in blocks."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence import NoiseAwareConfidence, audit
from laplaceconfidence.auditing import block_fits
from laplaceconfidence.blocks.noise_aware import FEWEST_PER_CLASS, SampleFit, sample_rows
from laplaceconfidence.evaluation.metrics import auroc
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays


def blobs(n: int = 1_200, noise: float = 0.25, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    features = (2 * rng.normal(size=(4, 8))[truth] + rng.normal(size=(n, 8))).astype(np.float32)
    given = np.where(rng.random(n) < noise, rng.integers(0, 4, n), truth)
    return features, given, truth


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_fits, "SAMPLE_SIZE", 500)


@pytest.mark.usefixtures("small_sample")
def test_labels_outside_of_the_sample_are_judged_as_well_as_those_inside(tmp_path: Path) -> None:
    features, given, truth = blobs()
    np.save(tmp_path / "x.npy", features)
    found: Any = audit(tmp_path / "x.npy", labels=given, memory="1GB", random_state=1)
    assert found.estimator_name == "noise-aware"
    right = given == truth
    inside = np.zeros(len(given), dtype=bool)
    inside[sample_rows(given, 4, 500, 1)] = True
    assert auroc(found.scores[~inside], right[~inside]) > auroc(found.scores[inside], right[inside]) - 0.02
    whole = audit((features, given), random_state=1)
    assert np.abs(found.noise_rate - (~right).mean()) < 0.03
    assert np.abs(found.noise_rate - whole.noise_rate) < 0.03
    assert np.corrcoef(found.scores, whole.table.sort_index()["label_score"])[0, 1] > 0.97
    assert "expected to be wrong" in found.statement.headline
    few: Any = audit(tmp_path / "x.npy", labels=given, memory="1GB", random_state=1, target_precision=0.99)
    assert few.n_issues > 0
    assert 1 - few.scores[few.flagged].mean() >= 0.99


@pytest.mark.usefixtures("small_sample")
def test_a_run_folder_without_neighbors(tmp_path: Path) -> None:
    features, given, _ = blobs()
    frame = pd.DataFrame({"label": given, "emb": list(features)})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=250)
    found = audit(tmp_path / "x.parquet", memory="1GB")
    samples = SampleArrays.of(read_audit(found.save(tmp_path / "run")))
    assert samples.neighbors(3, 5) == []
    assert len(samples.top_classes(3)) == 4
    assert samples.run.record.statement.bracket is not None
    expected = audit(frame.drop(columns="label").assign(label=given)).table.sort_index()["id"]
    assert samples.ids.tolist() == expected.tolist()


def test_the_posterior_is_that_of_bayes() -> None:
    features, given, _ = blobs(400)
    estimator = NoiseAwareConfidence(random_state=0).fit(features, given)
    assert estimator.identifiable_
    fit = SampleFit.of(estimator, np.arange(400), given, 4)
    labels = np.array([0, 1, -1, 3])
    p = estimator.predict_proba(features[:4])
    np.testing.assert_array_equal(fit.probabilities(features[:4]), p)
    distributions, confidence = fit.posterior(p, labels)
    for row, own in enumerate(labels):
        joint = p[row] if own < 0 else p[row] * estimator.transition_matrix_[:, own]
        np.testing.assert_allclose(distributions[row], joint / joint.sum(), rtol=1e-6)
    sent = pickle.loads(pickle.dumps(fit))  # noqa: S301 (as Dask sends it to its own workers)
    again = sent.posterior(sent.probabilities(features[:4]), labels)[0]
    np.testing.assert_array_equal(again, distributions)
    assert np.isnan(confidence[2])
    np.testing.assert_allclose(confidence[0], distributions[0, 0])


def test_rare_classes_are_in_the_sample() -> None:
    labels = np.repeat([0, 1, 2], [10_000, 5_000, 40])
    rows = sample_rows(labels, 3, 200, 0)
    counts = np.bincount(labels[rows], minlength=3)
    assert counts[2] >= FEWEST_PER_CLASS
    assert 180 < counts[:2].sum() <= 220
    np.testing.assert_array_equal(rows, np.unique(rows))
    np.testing.assert_array_equal(rows, sample_rows(labels, 3, 200, 0))
