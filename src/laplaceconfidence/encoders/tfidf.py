"""Texts as TF-IDF vectors of words, pairs of words and characters, reduced by a truncated SVD.

Nothing is downloaded. What was learned is plain data, vocabularies and arrays, so that it can be stored and
read again without running code.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads, thread_count
from laplaceconfidence.validation import check_integer, must_be

MOST_COMPONENTS = 512
"""Most singular vectors: on news with human errors better than fewer, and than a small sentence encoder."""

KEPT_VARIANCE = 0.95
"""Share of the variance of the vectors that is enough; texts of few different words need few components."""

MOST_TERMS = 100_000
"""Most words, pairs and character sequences of each kind: bounds the memory of the singular vectors."""

FEWEST_WORDS = 30
"""Characters are counted as well where half of the texts have fewer words that other texts have, too.

Short texts and languages without spaces share few words; longer ones share enough, and counting their
characters would take long.
"""

MOST_CHARACTERS = 10_000
"""Sequences of characters are counted in the beginning of a text: in long ones there are enough."""

_POWER_ITERATIONS = 3
_TEXTS_PER_THREAD = 20_000
_FORMAT = 2

Units = Literal["words", "words and characters"]
_TERMS: dict[str, dict[str, Any]] = {
    "words": {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
}


@dataclass(slots=True, eq=False)
class TfidfEncoder:
    """TF-IDF (sublinear) and a truncated SVD; rows have length 1.

    Words and pairs of words are counted, and sequences of two to four characters as well where texts share
    few words, as short texts do and languages without spaces.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of singular vectors; "auto" takes as many as hold 95% of the variance, at most 512. There are
        at most half as many as texts.
    units : {"auto", "words", "words and characters"}, default="auto"
        What is counted.
    random_state : int, default=0
        Seed of the randomized SVD.
    n_jobs : int or None, default=None
        Number of threads; ``None`` means all cores.

    Examples
    --------
    >>> from laplaceconfidence.encoders.samples import RawSamples
    >>> from laplaceconfidence.encoders.tfidf import TfidfEncoder
    >>> texts = ["my card was stolen", "my card is lost", "the transfer failed", "a transfer is pending"] * 3
    >>> TfidfEncoder().fit_transform(RawSamples.of_texts(texts)).shape
    (12, 4)
    """

    learns: ClassVar[bool] = True
    is_cached: ClassVar[bool] = True

    n_components: int | Literal["auto"] = "auto"
    units: Units | Literal["auto"] = "auto"
    random_state: int = 0
    n_jobs: int | None = None
    name: str = field(default="tfidf", init=False)
    takes: tuple[SampleKind, ...] = field(default=("text",), init=False)
    _vectorizers: dict[str, TfidfVectorizer] = field(default_factory=dict, init=False, repr=False)
    _components: FloatArray | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.n_components != "auto":
            check_integer(self.n_components, "n_components", minimum=1)
        if self.units not in ("auto", *get_args(Units)):
            raise must_be("units", "'auto', 'words' or 'words and characters'", self.units)

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        texts = samples.texts()
        _check_texts(texts)
        with stage("encoding"), limited_threads(self._n_threads(len(samples))):
            features, self._components = self._reduced(self._counted(texts))
        return features

    def transform(self, samples: RawSamples) -> FloatArray:
        assert self._components is not None
        texts = samples.texts()
        with stage("encoding"), limited_threads(self._n_threads(len(samples))):
            counted = [own.transform(_counted_part(unit, texts)) for unit, own in self._vectorizers.items()]
            return _of_length_one(sparse.hstack(counted, format="csr") @ self._components.T)

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "n_components": self.n_components,
            "units": self.units,
            "random_state": self.random_state,
            "format": _FORMAT,
            "versions": {
                "numpy": np.__version__,
                "scikit-learn": sklearn.__version__,
                "scipy": scipy.__version__,
            },
        }

    def summary(self) -> str:
        assert self._components is not None
        names = {"words": "words and pairs of words", "characters": "sequences of characters"}
        counts = [f"{len(found.vocabulary_):,} {names[unit]}" for unit, found in self._vectorizers.items()]
        return f"TF-IDF of {' and '.join(counts)}, reduced to {len(self._components):,} singular vectors"

    def state(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Return what was learned, as JSON can hold it and as arrays.

        Returns
        -------
        terms : dict of str to list of str
            The terms of every unit, in the order of the columns.
        arrays : dict of str to ndarray
            "idf" of shape (n_terms,) and "components" of shape (n_components, n_terms).
        """
        assert self._components is not None
        found = self._vectorizers
        terms = {unit: vectorizer.get_feature_names_out().tolist() for unit, vectorizer in found.items()}
        weights = np.concatenate([vectorizer.idf_ for vectorizer in found.values()])
        return terms, {"idf": weights.astype(np.float32), "components": self._components}

    @classmethod
    def from_state(cls, terms: dict[str, Any], arrays: dict[str, FloatArray]) -> TfidfEncoder:
        """Make an encoder of what ``state`` returned.

        Parameters
        ----------
        terms, arrays : dict
            As ``state`` returned them.

        Returns
        -------
        TfidfEncoder
            Ready to ``transform``.
        """
        _check_state(terms, arrays)
        encoder = cls(units="words and characters" if "characters" in terms else "words")
        start = 0
        for unit, own in terms.items():
            encoder._vectorizers[unit] = vectorizer = _vectorizer(unit, vocabulary=own)
            vectorizer.idf_ = np.asarray(arrays["idf"][start : start + len(own)], np.float32)
            start += len(own)
        encoder._components = np.asarray(arrays["components"], np.float32)
        return encoder

    def _n_threads(self, n_texts: int) -> int:
        """One thread for few texts: the steps of a small SVD are too short to be shared."""
        return 1 if n_texts < _TEXTS_PER_THREAD else thread_count(self.n_jobs)

    def _counted(self, texts: list[str]) -> sparse.csr_matrix:
        """The vectors of the units that suit the texts, side by side."""
        self._vectorizers = {}
        blocks: list[sparse.csr_matrix] = []
        for unit in _TERMS:
            if unit == "characters" and not self._counts_characters(texts, blocks):
                continue
            vectorizer, counted = _fitted(unit, texts)
            if counted is not None:
                self._vectorizers[unit] = vectorizer
                blocks.append(counted)
        if not blocks:
            raise must_be("text", "texts with words", "none", "Choose another encoder with --encoder.")
        return sparse.hstack(blocks, format="csr")

    def _counts_characters(self, texts: list[str], words: list[sparse.csr_matrix]) -> bool:
        if self.units != "auto":
            return self.units == "words and characters"
        if not words:
            return True
        terms = self._vectorizers["words"].get_feature_names_out()
        is_single = np.array([" " not in term for term in terms])
        known = np.diff(words[0][:, is_single].tocsr().indptr)
        is_filled = np.array([bool(text.strip()) for text in texts])
        return bool(np.median(known[is_filled]) < FEWEST_WORDS)

    def _reduced(self, counted: sparse.csr_matrix) -> tuple[FloatArray, FloatArray]:
        n, n_terms = counted.shape
        most = MOST_COMPONENTS if self.n_components == "auto" else self.n_components
        width = max(1, min(most, n // 2, n_terms - 1))
        if n_terms == 1:
            components = np.ones((1, 1), np.float32)
            return _of_length_one(counted.toarray()), components
        svd = TruncatedSVD(width, n_iter=_POWER_ITERATIONS, random_state=self.random_state)
        with np.errstate(invalid="ignore"):  # vectors that are all alike have no variance
            coordinates = svd.fit_transform(counted)
        if self.n_components == "auto" and np.isfinite(svd.explained_variance_ratio_).all():
            shares = np.cumsum(svd.explained_variance_ratio_)
            width = min(width, int(np.searchsorted(shares, KEPT_VARIANCE)) + 1)
        components = np.ascontiguousarray(svd.components_[:width], dtype=np.float32)
        return _of_length_one(coordinates[:, :width]), components


def _counted_part(unit: str, texts: list[str]) -> list[str]:
    return [text[:MOST_CHARACTERS] for text in texts] if unit == "characters" else texts


def _vectorizer(unit: str, **settings: Any) -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **_TERMS[unit], **settings)


def _fitted(unit: str, texts: list[str]) -> tuple[TfidfVectorizer, sparse.csr_matrix | None]:
    """Vectors of terms that occur in two texts or more, else of all terms; ``None`` without any term."""
    for fewest_texts in (2, 1):
        vectorizer = _vectorizer(unit, min_df=fewest_texts, max_features=MOST_TERMS)
        try:
            return vectorizer, vectorizer.fit_transform(_counted_part(unit, texts))
        except ValueError:  # no terms are left
            continue
    return vectorizer, None


def _check_state(terms: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
    known = bool(terms) and set(terms) <= set(_TERMS) and {"idf", "components"} <= set(arrays)
    if not known or not all(isinstance(own, list) for own in terms.values()):
        raise DataFormatError("The text encoder is damaged: its terms, idf or components are lost.")
    n_terms, idf, components = sum(map(len, terms.values())), arrays["idf"], arrays["components"]
    are_texts = all(isinstance(term, str) for own in terms.values() for term in own)
    are_different = all(len(set(own)) == len(own) for own in terms.values() if are_texts)
    fit_together = components.ndim == 2 and idf.shape == (n_terms,) and components.shape[1] == n_terms
    if not (are_texts and are_different and fit_together):
        raise DataFormatError(
            f"The text encoder is damaged: {n_terms} terms, weights of shape {idf.shape} and components of "
            f"shape {components.shape} do not fit together."
        )


def _of_length_one(rows: Any) -> FloatArray:
    """Rows of length 1; those without a known term stay zero."""
    return np.ascontiguousarray(normalize(np.asarray(rows, dtype=np.float32)))


def _check_texts(texts: list[str]) -> None:
    filled = {text for text in texts if text.strip()}
    if len(filled) < 2:
        found = "none that is not empty" if not filled else "all alike, or empty"
        raise must_be("text", "at least two different texts", found, "Check that it names the right column.")
    if n_empty := sum(not text.strip() for text in texts):
        warnings.warn(
            f"{n_empty:,} of {len(texts):,} texts are empty: nothing can be said about their labels but how "
            "frequent each is. Leave such rows out, or fill them in.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )
