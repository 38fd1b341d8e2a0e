"""Odd images, empty texts, rare classes, groups with the worst labels, rows that are not in random order."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter
from sklearn.datasets import load_digits

from laplaceconfidence import NoisyDataset, audit
from laplaceconfidence.auditing import image_issues
from laplaceconfidence.auditing.closeness import Closest, find_closest
from laplaceconfidence.auditing.data_issues import in_rare_class
from laplaceconfidence.auditing.groups import find_groups
from laplaceconfidence.auditing.image_issues import KINDS, ImageIssues, can_look_at_images, find_image_issues
from laplaceconfidence.auditing.row_order import measure_row_order, row_closeness
from laplaceconfidence.exceptions import InvalidInputError


def photograph(seed: int, side: tuple[int, int] = (64, 64)) -> Image.Image:
    """A picture with the spectrum of photographs: the finer a detail, the weaker."""
    rng = np.random.default_rng(seed)
    across, along = np.meshgrid(np.fft.fftfreq(side[0]), np.fft.fftfreq(side[1]))
    frequency = np.hypot(across, along)
    frequency[0, 0] = 1
    values = np.fft.ifft2(np.fft.fft2(rng.normal(size=side[::-1])) / frequency).real
    values = (values - values.min()) / (values.max() - values.min())
    return Image.fromarray((40 + 180 * values).astype(np.uint8)).convert("RGB")


def found_in(images: list[Image.Image], folder: Path | None = None) -> ImageIssues:
    """What is found in images in memory, or in files of a folder."""
    labels = [number % 2 for number in range(len(images))]
    if folder is None:
        pixels = np.stack([np.asarray(image) for image in images])
        return find_image_issues(NoisyDataset.from_arrays(labels, images=pixels))
    paths = [str(folder / f"{number}.png") for number in range(len(images))]
    for image, path in zip(images, paths, strict=True):
        image.save(path)
    return find_image_issues(NoisyDataset.from_arrays(labels, sources=paths, source_kind="image"))


class TestImages:
    @pytest.mark.parametrize("as_files", [False, True])
    def test_every_kind_is_found_and_nothing_else(self, tmp_path: Path, as_files: bool) -> None:
        images = [photograph(seed) for seed in range(20)]
        glaring = np.minimum(255, 245 + np.asarray(images[4]) // 30)
        glaring[:5, :4] = 0  # 0.5% of the pixels
        planted = {
            "dark": images[3].point(lambda value: value // 5),
            "bright": Image.fromarray(glaring.astype(np.uint8)),
            "one color": Image.new("RGB", (64, 64), (90, 160, 30)),
            "blurry": images[6].filter(ImageFilter.GaussianBlur(3)),
        }
        for row, image in enumerate(planted.values()):
            images[row] = image
        found = found_in(images, tmp_path if as_files else None)
        for row, kind in enumerate(planted):
            assert [name for name in KINDS if found.found[name][row]] == [kind]
        assert found.flagged.sum() == len(planted)
        assert found.described[:5].tolist() == [*planted, None]

    def test_sizes_and_shapes_are_compared_with_the_usual_ones(self, tmp_path: Path) -> None:
        images = [photograph(seed, (60 + seed, 64)) for seed in range(20)]
        images[0] = photograph(0, (6, 6))
        images[1] = photograph(1, (200, 40))
        images[2] = photograph(2, (40, 200))
        found = found_in(images, tmp_path)
        assert np.flatnonzero(found.found["odd size"]).tolist() == [0]
        assert np.flatnonzero(found.found["odd shape"]).tolist() == [1, 2]
        assert found.flagged.sum() == 3

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        paths = []
        for number in range(3):
            paths.append(str(tmp_path / f"{number}.png"))
            photograph(number).save(paths[-1])
        Path(paths[1]).write_bytes(b"no image")
        paths.append(str(tmp_path / "gone.png"))
        data = NoisyDataset.from_arrays([0, 1, 0, 1], sources=paths, source_kind="image")
        assert find_image_issues(data).described.tolist() == [None, "unreadable", None, "unreadable"]

    def test_small_drawings_are_not_odd(self) -> None:
        pixels = load_digits().images[:200] * 15.9
        data = NoisyDataset.from_arrays([0, 1] * 100, images=pixels.astype(np.uint8)[..., None])
        assert not find_image_issues(data).flagged.any()

    def test_blurry_is_relative_to_the_other_images(self) -> None:
        soft = [photograph(seed).filter(ImageFilter.GaussianBlur(3)) for seed in range(20)]
        assert not found_in(soft).found["blurry"].any()  # a microscope, for example

    def test_many_files_are_looked_at_on_request_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(image_issues, "MOST_FILES", 3)
        files = NoisyDataset.from_arrays([0, 1] * 2, sources=list("abcd"), source_kind="image")
        assert not can_look_at_images(files, None)
        assert can_look_at_images(files, True)
        assert can_look_at_images(files.subset([0, 1]), None)
        assert not can_look_at_images(files.subset([0, 1]), False)
        texts = NoisyDataset.from_arrays([0, 1], sources=["a", "b"], source_kind="text")
        assert not can_look_at_images(texts, None)
        with pytest.raises(InvalidInputError, match="image_issues"):
            can_look_at_images(texts, True)

    def test_images_that_are_elsewhere_are_not_odd(self) -> None:
        paths = [f"https://example.com/{row}.png" for row in range(4)]
        data = NoisyDataset.from_arrays([0, 1, 0, 1], sources=paths, source_kind="image")
        assert not find_image_issues(data).flagged.any()


def test_classes_with_less_than_a_tenth_of_an_even_share_are_rare() -> None:
    labels = [0] * 500 + [1] * 472 + [2] * 28 + [None] * 100
    rare = in_rare_class(NoisyDataset.from_arrays(labels))
    assert rare.sum() == 28
    assert rare[972:1000].all()
    balanced = in_rare_class(NoisyDataset.from_arrays([0] * 100 + [1] * 11))
    assert not balanced.any()


class TestGroups:
    def blobs(self, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        where = np.arange(n) % 6
        return 10 * np.eye(6)[where] + rng.normal(size=(n, 6)), where

    def test_the_group_with_the_wrong_labels_is_first_and_flagged(self) -> None:
        X, where = self.blobs()
        scores = np.where(where == 2, 0.6, 0.97)
        groups = find_groups(X, scores, random_state=0)
        assert groups is not None
        assert np.mean(groups.flagged == (where == 2)) > 0.98
        assert set(groups.group[groups.flagged]) == {0} or groups.group[groups.flagged].max() <= 2
        assert groups.noise[groups.group == 0].mean() == pytest.approx(0.4, abs=0.05)

    def test_groups_that_differ_by_chance_are_not_flagged(self) -> None:
        X, _ = self.blobs()
        for seed in range(20):
            wrong = np.random.default_rng(seed).random(len(X)) < 0.1
            groups = find_groups(X, np.where(wrong, 0.0, 1.0), random_state=seed)
            assert groups is not None
            assert not groups.flagged.any()

    def test_a_single_wrong_label_makes_no_group_of_them(self) -> None:
        X, _ = self.blobs()
        for row in range(0, len(X), 40):
            scores = np.ones(len(X))
            scores[row] = 0.0
            groups = find_groups(X, scores, random_state=0)
            assert groups is not None
            assert not groups.flagged.any()

    def test_samples_without_a_label_and_few_samples(self) -> None:
        X, where = self.blobs()
        scores = np.where(where == 2, np.nan, 0.9)
        groups = find_groups(X, scores, random_state=0)
        assert groups is not None
        assert not groups.flagged.any()
        assert find_groups(X[:60], scores[:60]) is None
        assert find_groups(X, np.full(len(X), np.nan)) is None


class TestRowOrder:
    def drifting(self, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
        """Samples of two classes that slowly change while they are recorded."""
        rng = np.random.default_rng(0)
        time = np.linspace(0, 6, n)
        labels = rng.integers(0, 2, n)
        X = np.stack([np.cos(time), np.sin(time), 3 * labels, np.ones(n)], axis=1)
        return X + rng.normal(scale=0.05, size=X.shape), labels

    def test_a_recording_is_not_in_random_order(self) -> None:
        X, labels = self.drifting()
        order = measure_row_order(find_closest(X), labels, random_state=0)
        assert order is not None
        assert order.p_value == pytest.approx(1 / 200)
        assert order.closeness < 0.3
        assert order.statement is not None
        assert "not in random order" in order.statement

    def test_neither_shuffled_nor_sorted_by_class_is_reported(self) -> None:
        X, labels = self.drifting()
        for rows in (
            np.random.default_rng(1).permutation(len(X)),
            np.lexsort((np.random.default_rng(2).random(len(X)), labels)),
        ):
            order = measure_row_order(find_closest(X[rows]), labels[rows], random_state=0)
            assert order is not None
            assert order.is_random
            assert order.statement is None

    def test_p_values_are_uniform_under_random_orders(self) -> None:
        X, labels = self.drifting(120)
        closest_of = [np.random.default_rng(seed).permutation(len(X)) for seed in range(20)]
        found = [
            measure_row_order(find_closest(X[rows]), labels[rows], random_state=0) for rows in closest_of
        ]
        p_values = np.array([order.p_value for order in found if order is not None])
        assert 0.3 < p_values.mean() < 0.7
        assert (p_values <= 0.05).sum() <= 4

    def test_the_closeness_of_rows_equals_a_loop(self) -> None:
        rng = np.random.default_rng(4)
        labels = np.sort(rng.integers(-1, 3, size=40))
        rows = np.array([rng.choice(np.setdiff1d(np.arange(40), row), 6, replace=False) for row in range(40)])
        rows[3, 4:] = -1
        closest = Closest(rows, np.ones(rows.shape))
        expected = []
        for row in range(40):
            same = np.flatnonzero(labels == labels[row])
            place = {other: at for at, other in enumerate(same.tolist())}
            near = [abs(place[one] - place[row]) for one in rows[row].tolist() if one in place]
            usual = np.mean([abs(place[one] - place[row]) for one in same.tolist() if one != row])
            known = near and labels[row] != -1
            expected.append(min(1.0, np.mean(near) / usual) if known else 1.0)
        assert np.allclose(row_closeness(closest, labels), expected)

    def test_too_few_pairs(self) -> None:
        X, labels = self.drifting(8)
        assert measure_row_order(find_closest(X), labels) is None


def test_the_columns_of_an_audit() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    X = 8 * np.eye(2)[labels] + rng.normal(size=(200, 2))
    texts = ["", "  \n", *(f"text {row}" for row in range(198))]
    data = NoisyDataset.from_arrays(labels, X, sources=texts, source_kind="text")
    result = audit(data, estimator="knn-vote", n_neighbors=5, random_state=0)
    table = result.table.sort_index()
    assert np.flatnonzero(table["is_empty_issue"]).tolist() == [0, 1]
    assert not table["is_rare_class_issue"].any()
    assert table["group"].nunique() == 4
    assert not table["is_group_issue"].any()
    assert result.row_order is not None
    assert result.row_order.is_random
    assert not table["is_row_order_issue"].any()
    assert "is_missing_value_issue" not in table
    assert "is_image_issue" not in table
    images = NoisyDataset.from_arrays(labels, X, images=rng.integers(0, 255, (200, 8, 8, 3), dtype=np.uint8))
    assert not audit(images, estimator="knn-vote", n_neighbors=5).table["is_image_issue"].any()
    assert (
        "is_image_issue" not in audit(images, estimator="knn-vote", n_neighbors=5, image_issues=False).table
    )
