"""NoisyDataset: samples, their given labels, and the features, images or texts that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import ByteImages, FloatArray, IntArray, StrArray, to_numpy
from laplaceconfidence.data.annotator_labels import AnnotatorLabels
from laplaceconfidence.data.identity import ContentIds
from laplaceconfidence.data.label_notes import warn_about_placeholders, warn_about_similar_names
from laplaceconfidence.data.labels import MISSING, EncodedLabels, distinct_labels, encode_labels
from laplaceconfidence.data.mixed_columns import MixedColumns
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import (
    check_features,
    check_finite,
    check_numeric_matrix,
    check_same_length,
    must_be,
)

SourceKind = Literal["image", "text"]
IdsFrom = Literal["data", "content", "rows"]


@dataclass(frozen=True, slots=True, eq=False)  # == of arrays is not a bool
class NoisyDataset:
    """Samples with the labels they were given. All arrays have one row per sample, in the same order.

    ``true_labels`` are for benchmarks only: no estimator and no training method gets them.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Codes of the given labels: positions in ``class_names``, -1 where no label was given. With several
        annotators, the most frequent label of every sample.
    class_names : tuple of str
        Names of the classes.
    features : ndarray of shape (n, d) or None, default=None
        Feature vectors.
    images : ndarray of uint8 of shape (n, height, width, channels) or None, default=None
        The images, if they fit in memory.
    ids : ndarray of str of shape (n,) or None, default=None
        A unique id per sample; ``None`` derives ids from the content of the samples, as ``sample_ids`` says.
    sources : ndarray of shape (n,) or None, default=None
        Paths of images, or texts.
    source_kind : {"image", "text"} or None, default=None
        What ``sources`` are.
    true_labels : ndarray of shape (n,) or None, default=None
        Codes of the true labels, -1 where unknown.
    given : EncodedLabels or None, default=None
        How the labels were written; ``from_arrays`` sets it.
    feature_columns : tuple of str or None, default=None
        Columns of a table that the features were read from.
    feature_scaling : ndarray of shape (2, d) or None, default=None
        Means and standard deviations, where columns are on so different scales that ``comparable`` has to
        standardize them.
    feature_advice : str or None, default=None
        Which columns could be named as features, where a table has none that are clearly features.
    encoding : mapping of str to object or None, default=None
        The encoder that made the features of texts or images, as it describes itself.
    encoder : Encoder or None, default=None
        That encoder, where it can encode other samples in the same way.
    columns : MixedColumns or None, default=None
        Columns of a table that an encoder turns into features, as they are not all numbers.
    content_ids : ContentIds or None, default=None
        The ids that are derived from the content; set where ``ids`` are not given.
    annotations : AnnotatorLabels or None, default=None
        The labels of several annotators; ``from_arrays`` sets them for labels of shape (n, A).
    views : mapping of str to ndarray of shape (n, d) or None, default=None
        Several named feature sets of the same samples. The first one is ``features``; in the others, a row of
        NaN is a sample that is not in the view.

    Examples
    --------
    >>> from laplaceconfidence import NoisyDataset
    >>> data = NoisyDataset.from_arrays(["cat", None, "dog"], [[0.1, 0.2], [0.3, 0.1], [0.9, 0.8]])
    >>> len(data), data.n_classes, data.labels.tolist()
    (3, 2, [0, -1, 1])
    """

    labels: IntArray
    class_names: tuple[str, ...]
    features: FloatArray | None = None
    images: ByteImages | None = None
    ids: StrArray | None = None
    sources: StrArray | None = None
    source_kind: SourceKind | None = None
    true_labels: IntArray | None = None
    given: EncodedLabels | None = None
    feature_columns: tuple[str, ...] | None = None
    feature_scaling: FloatArray | None = None
    feature_advice: str | None = None
    encoding: Mapping[str, Any] | None = None
    encoder: Any = None
    columns: MixedColumns | None = None
    content_ids: ContentIds | None = None
    annotations: AnnotatorLabels | None = None
    views: Mapping[str, FloatArray] | None = None

    def __post_init__(self) -> None:
        n = len(self.labels)
        if self.views is not None:
            self._check_views(n)
        if n == 0:
            raise must_be("labels", "at least one label", "no labels")
        if not self.class_names:
            raise InvalidInputError("'labels' must hold at least one label that is not missing. Got none.")
        for name in ("labels", "true_labels"):
            codes = getattr(self, name)
            if codes is not None and (codes.min() < MISSING or codes.max() >= len(self.class_names)):
                wrong = codes[(codes < MISSING) | (codes >= len(self.class_names))][0]
                raise must_be(name, f"codes from -1 to {len(self.class_names) - 1}", int(wrong))
        for name in ("features", "images", "ids", "sources", "true_labels", "columns"):
            if (column := getattr(self, name)) is not None:
                check_same_length(name, len(column), "labels", n)
        if self.annotations is not None:
            check_same_length("annotations", self.annotations.n_samples, "labels", n)
        if self.images is not None and (self.images.ndim != 4 or self.images.dtype != np.uint8):
            shape = f"{self.images.dtype} of shape {self.images.shape}"
            raise must_be("images", "uint8 of shape (n, height, width, channels)", shape)
        if (self.sources is None) != (self.source_kind is None):
            raise must_be("source_kind", "given together with 'sources'", self.source_kind)
        if self.ids is not None and len(np.unique(self.ids)) != n:
            values, counts = np.unique(self.ids, return_counts=True)
            raise must_be("ids", "different for every sample", str(values[counts.argmax()]))
        if self.ids is None and self.content_ids is None:
            texts: Any = self.sources if self.source_kind == "text" else None
            if texts is None and self.columns is not None:
                texts = self.columns.row_texts()
            paths = self.sources if self.source_kind == "image" else None
            found = ContentIds.of(n, paths=paths, texts=texts, images=self.images, features=self.features)
            object.__setattr__(self, "content_ids", found)  # the way to set a field of a frozen dataclass

    def _check_views(self, n: int) -> None:
        assert self.views is not None  # by ``__post_init__``
        if not self.views or any(not isinstance(name, str) or not name.strip() for name in self.views):
            raise must_be("views", "at least one feature set, with non-empty names", list(self.views))
        for name, given in self.views.items():
            values = check_numeric_matrix(given, f"views[{name!r}]")
            check_same_length(f"views[{name!r}]", len(values), "labels", n)
            check_finite(values[~np.isnan(values).all(axis=1)], f"views[{name!r}]")
        first_name, first = next(iter(self.views.items()))
        check_finite(first, f"views[{first_name!r}]")  # the first view describes every sample
        if self.features is None:
            object.__setattr__(self, "features", first)
        elif self.features is not first:
            rule = f"the first of 'views', {first_name!r}, or left out"
            raise must_be("features", rule, f"another array of shape {self.features.shape}")

    @classmethod
    def from_arrays(
        cls,
        labels: Any,
        features: Any = None,
        *,
        classes: Any = None,
        class_names: Any = None,
        missing_label: object = None,
        images: Any = None,
        ids: Any = None,
        sources: Any = None,
        source_kind: SourceKind | None = None,
        true_labels: Any = None,
    ) -> NoisyDataset:
        """Build a data set from labels of any kind and what describes the samples.

        Parameters
        ----------
        labels : array-like of shape (n,) or (n, A), or AnnotatorLabels
            Given labels: strings, booleans or integers. ``None``, NaN and empty strings are missing labels.
            With a column per annotator, the most frequent label of a sample is its given one.
        features : array-like of shape (n, d) or None, default=None
            Feature vectors.
        classes : array-like of shape (C,) or None, default=None
            All labels that are possible, in order; ``None`` takes the distinct labels, sorted.
        class_names : array-like of shape (C,) or None, default=None
            Names of the classes if the labels are integers from 0 (-1 is then a missing label), or the order
            of the classes if the labels are strings.
        missing_label : object, default=None
            One more value that means "no label".
        images : array-like of uint8 of shape (n, height, width, channels) or None, default=None
            The images.
        ids : array-like of shape (n,) or None, default=None
            A unique id per sample; ``None`` derives ids from the content of the samples, as ``sample_ids``
            says.
        sources : array-like of shape (n,) or None, default=None
            Paths of images, or texts.
        source_kind : {"image", "text"} or None, default=None
            What ``sources`` are.
        true_labels : array-like of shape (n,) or None, default=None
            The true labels, for benchmarks.

        Returns
        -------
        NoisyDataset

        Examples
        --------
        >>> from laplaceconfidence import NoisyDataset
        >>> data = NoisyDataset.from_arrays(["cat", None, "dog"])
        >>> data.class_names, data.labels.tolist()
        (('cat', 'dog'), [0, -1, 1])
        """
        has_classes = classes is not None or class_names is not None
        names = None if class_names is None else tuple(str(name) for name in to_numpy(class_names).tolist())
        annotations = AnnotatorLabels.of(
            labels, missing_label=MISSING if names is not None and missing_label is None else missing_label
        )
        if annotations is not None:
            if len(annotations.labels) == 0:
                raise must_be("labels", "at least one label that is not missing", "no labels")
            labels = annotations.votes
            if not has_classes:  # a class may have labels without being the most frequent one anywhere
                columns = (("labels", annotations.labels), ("true_labels", true_labels))
                classes = distinct_labels(
                    *columns[: 1 + (true_labels is not None)], missing_label=missing_label
                )
        if names is not None:
            if classes is not None:
                raise must_be("class_names", "left out where 'classes' is given", names)
            classes, missing_label = _classes_for_names(names, labels, missing_label)
        elif true_labels is not None and classes is None:
            # A class may occur among the true labels only, so both columns share one set of classes.
            columns = (("labels", labels), ("true_labels", true_labels))
            classes = distinct_labels(*columns, missing_label=missing_label)
        given = encode_labels(labels, classes=classes, missing_label=missing_label)
        if not has_classes:
            warn_about_placeholders(given)
        warn_about_similar_names(given.class_names if names is None else names)
        truth = None
        if true_labels is not None:
            truth = encode_labels(
                true_labels,
                classes=given.class_values,
                missing_label=missing_label,
                parameter="true_labels",
            ).codes
        return cls(
            labels=given.codes,
            class_names=given.class_names if names is None else names,
            features=None if features is None else check_features(features),
            images=None if images is None else to_numpy(images),
            ids=None if ids is None else to_numpy(ids).astype(str),
            sources=None if sources is None else _as_texts(sources),
            source_kind=source_kind,
            true_labels=truth,
            given=given,
            annotations=annotations,
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        described = "" if self.features is None else f", {self.features.shape[1]} features"
        if self.images is not None:
            described += f", images of {' x '.join(map(str, self.images.shape[1:]))}"
        return f"NoisyDataset({len(self)} samples, {self.n_classes} classes{described})"

    def _repr_html_(self) -> str:
        from laplaceconfidence.data.notebook import dataset_html

        return dataset_html(self)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def class_values(self) -> NDArray[Any]:
        """The classes as they are written among the labels, (C,), in the order of their codes."""
        return np.array(self.class_names) if self.given is None else self.given.class_values

    @property
    def sample_ids(self) -> StrArray:
        """The ids; where there are none, what identifies a sample in whatever order and subset it is read.

        For image files that is the path, for all others a digest of the text, the image or the features in
        16 hexadecimal digits. Copies are numbered in the order of the rows: "6f1ed002ab559585-2" is the
        second one. Labels are no part of it. Samples without any content have their row numbers.
        """
        if self.ids is not None:
            return self.ids
        assert self.content_ids is not None  # by ``__post_init__``
        return self.content_ids.values

    @property
    def ids_from(self) -> IdsFrom:
        """Whether the ids are given ("data"), derived from the content, or row numbers, without content."""
        if self.ids is not None:
            return "data"
        parts = (self.features, self.images, self.sources, self.columns)
        return "content" if any(part is not None for part in parts) else "rows"

    def with_features(
        self, features: Any, encoding: Mapping[str, Any] | None = None, encoder: Any = None
    ) -> NoisyDataset:
        """Return the data set with other features, such as embeddings of its images.

        Parameters
        ----------
        features : array-like of shape (n, d)
            Feature vectors.
        encoding : mapping of str to object or None, default=None
            The encoder that made them, as it describes itself.
        encoder : Encoder or None, default=None
            That encoder, where it can encode other samples in the same way.

        Returns
        -------
        NoisyDataset
        """
        return replace(
            self,
            features=check_features(features),
            feature_columns=None,
            feature_scaling=None,
            encoding=encoding,
            encoder=encoder,
            views=None,
        )

    def with_views(
        self, views: Mapping[str, FloatArray], encoding: Mapping[str, Any] | None = None
    ) -> NoisyDataset:
        """Return the data set with several feature sets in place of its features.

        Parameters
        ----------
        views : mapping of str to ndarray of shape (n, d)
            The feature sets by name; the first one becomes ``features``.
        encoding : mapping of str to object or None, default=None
            The encoders that made them, as they describe themselves.

        Returns
        -------
        NoisyDataset
        """
        return replace(
            self,
            features=None,  # the first view
            views=views,
            feature_columns=None,
            feature_scaling=None,
            encoding=encoding,
            encoder=None,
        )

    def comparable(self, features: FloatArray) -> FloatArray:
        """Return features so that their distances are meaningful: standardized where scales differ much.

        Parameters
        ----------
        features : ndarray of shape (m, d)
            Features of this data set, or of another one with the same columns.

        Returns
        -------
        ndarray of shape (m, d)
            The features themselves unless ``feature_scaling`` is set.
        """
        if self.feature_scaling is None:
            return features
        means, deviations = self.feature_scaling
        standardized: FloatArray = ((features - means) / deviations).astype(features.dtype, copy=False)
        return standardized

    def with_labels(self, labels: IntArray) -> NoisyDataset:
        """Return the data set with other labels, such as noisy or corrected ones.

        Parameters
        ----------
        labels : ndarray of shape (n,)
            Codes of the labels.

        Returns
        -------
        NoisyDataset
        """
        return replace(self, labels=np.asarray(labels, dtype=np.int64))

    def subset(self, rows: Any) -> NoisyDataset:
        """Return some of the samples; they keep their ids.

        Parameters
        ----------
        rows : array-like of int or bool
            Indices, or a mask of shape (n,).

        Returns
        -------
        NoisyDataset
        """
        chosen = to_numpy(rows)
        if chosen.dtype == bool:
            check_same_length("rows", len(chosen), "labels", len(self))
        elif chosen.dtype.kind not in "iu" or chosen.ndim != 1 or chosen.size == 0:
            raise must_be("rows", "indices or a mask that keep at least one sample", rows)
        elif chosen.max() >= len(self) or chosen.min() < -len(self):
            raise must_be("rows", f"below the number of samples, {len(self)}", int(chosen.max()))
        rows = np.arange(len(self))[chosen]

        def take(column: NDArray[Any] | None) -> Any:
            return None if column is None else column[rows]

        given = self.given
        views = None if self.views is None else {name: take(values) for name, values in self.views.items()}
        return replace(
            self,
            labels=self.labels[rows],
            features=take(self.features) if views is None else None,  # then it is the first view
            views=views,
            images=take(self.images),
            ids=take(self.ids),
            content_ids=None if self.content_ids is None else self.content_ids.take(rows),
            sources=take(self.sources),
            true_labels=take(self.true_labels),
            columns=None if self.columns is None else self.columns.take(rows),
            annotations=None if self.annotations is None else self.annotations.take(rows),
            given=given and EncodedLabels(given.codes[rows], given.class_values, given.given[rows]),
        )

    def labels_as_written(self, codes: IntArray | None = None) -> NDArray[Any]:
        """Write labels the way they were given; labels that did not change are exactly the given values.

        Parameters
        ----------
        codes : ndarray of shape (n,) or None, default=None
            Codes of labels of all samples; ``None`` takes ``labels``.

        Returns
        -------
        ndarray of shape (n,)
        """
        codes = self.labels if codes is None else codes
        if self.given is not None:
            return self.given.decode(codes)
        names = np.array([*self.class_names, None], dtype=object)
        return names[codes]

    def label_values(self) -> NDArray[Any]:
        """Return the entry of ``class_values`` for every label, ``None`` where it is missing.

        Unlike ``labels_as_written``, all ways of writing a class or a missing label become the same value.

        Returns
        -------
        ndarray of shape (n,)
        """
        values = self.class_values[self.labels]
        missing = self.labels == MISSING
        if missing.any():
            values = values.astype(object)
            values[missing] = None
        return values


def _classes_for_names(names: tuple[str, ...], labels: Any, missing_label: object) -> tuple[Any, object]:
    """Return the class values that ``names`` stand for, and the label that means "no label"."""
    if len(set(names)) != len(names):
        raise must_be("class_names", "distinct", names)
    if encode_labels(labels, missing_label=missing_label).class_values.dtype.kind == "U":
        return np.array(names), missing_label
    return np.arange(len(names)), MISSING if missing_label is None else missing_label


def _as_texts(values: Any) -> NDArray[Any]:
    """Texts as an object array: in a fixed-width array every text takes the memory of the longest one."""
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    texts = np.empty(len(listed), dtype=object)
    texts[:] = [str(value) for value in listed]
    return texts
