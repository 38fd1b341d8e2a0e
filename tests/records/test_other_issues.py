"""Outliers, copies and leaks as they are read from a run."""

from pathlib import Path

import numpy as np
import pytest

from audited_runs import make_audit_with_other_issues, write_image
from laplaceconfidence.auditing.issues import audit
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.records import AuditRun, read_audit, write_audit
from laplaceconfidence.records.other_issues import NO_SET, OtherIssues, best_copy
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.records.thumbnails import Thumbnails


def test_sets_with_conflicting_labels_come_first(tmp_path: Path) -> None:
    issues = OtherIssues.of(read_audit(make_audit_with_other_issues(tmp_path).folder))
    assert [found.rows.tolist() for found in issues.copies] == [[2, 91], [1, 90], [4, 92, 93]]
    assert [found.is_conflicting for found in issues.copies] == [True, False, False]
    assert issues.set_of[[2, 91, 1, 93, 5]].tolist() == [0, 0, 1, 2, NO_SET]
    assert (issues.n_copies, issues.n_conflicting) == (7, 1)
    assert issues.outliers.tolist() == np.flatnonzero(issues.is_outlier).tolist() == [94]
    assert issues.leaked.tolist() == np.flatnonzero(issues.is_leaked).tolist() == [4, 5, 92, 93]
    assert issues.leak(0) is None


@pytest.mark.parametrize(
    ("verified", "probability", "best"),
    [
        ([False, False, False], [0.2, 0.9, 0.5], 11),
        ([False, False, True], [0.2, 0.9, 0.5], 12),
        ([True, False, True], [0.2, 0.9, 0.5], 12),
        ([False, False, False], [0.9, 0.9, 0.9], 10),
        ([False, False, False], [np.nan, np.nan, 0.0], 12),
        ([False, True, False], [0.9, np.nan, 0.9], 11),
    ],
)
def test_the_best_copy_is_verified_then_probable_then_first(
    verified: list[bool], probability: list[float], best: int
) -> None:
    assert best_copy(np.array([10, 11, 12]), np.array(verified), np.array(probability)) == best


def test_labels_of_the_test_set_are_named_like_those_of_the_data(tmp_path: Path) -> None:
    features = np.random.default_rng(0).normal(size=(60, 4))
    names = ["cat", "dog"]
    data = NoisyDataset.from_arrays(np.arange(60) % 2, features=features, class_names=names)
    test = NoisyDataset.from_arrays([1, 0, 0], features=features[[0, 1, 2]] * 1, class_names=names)
    run = write_audit(audit(data, test=test, estimator="knn-vote", n_neighbors=5), tmp_path / "run")
    issues = OtherIssues.of(read_audit(run.folder))
    assert [issues.leak(row).label for row in (0, 1, 2)] == ["dog", "cat", "cat"]  # type: ignore[union-attr]


def make_audit_of_images(folder: Path) -> AuditRun:
    """Sixty image files of which the first is also in the test set."""
    for name, n in (("train", 60), ("test", 1)):
        (folder / name).mkdir()
        for row in range(n):
            write_image(folder / name / f"{row}.png", row)
    features = np.random.default_rng(0).normal(size=(60, 4))

    def data(name: str, n: int) -> NoisyDataset:
        paths = [str(folder / name / f"{row}.png") for row in range(n)]
        labels = ["cat", "dog"] * n
        return NoisyDataset.from_arrays(labels[:n], features=features[:n], sources=paths, source_kind="image")

    result = audit(data("train", 60), test=data("test", 1), estimator="knn-vote", n_neighbors=5)
    source = {"source": str(folder / "train"), "test": str(folder / "test")}
    return write_audit(result, folder / "run", source=source)


def test_pictures_of_the_test_set_are_shown_but_no_link_out_of_it_is_followed(tmp_path: Path) -> None:
    run = read_audit(make_audit_of_images(tmp_path).folder)
    thumbnails = Thumbnails(SampleArrays.of(run))
    found = thumbnails.of_test_sample(0, 64)
    assert found is not None
    assert found.media_type.startswith("image/")
    assert thumbnails.of_test_sample(0, 64) == found  # from the cache
    assert thumbnails.of_test_sample(1, 64) is None
    (tmp_path / "test" / "0.png").rename(tmp_path / "outside.png")
    (tmp_path / "test" / "0.png").symlink_to(tmp_path / "outside.png")
    assert thumbnails.of_test_sample(0, 32) is None
