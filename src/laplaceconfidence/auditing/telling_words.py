"""Words of a text that speak for one class and against another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.labels import MISSING

MOST_WORDS = 6
"""Words that are listed for a text and a class."""

CLEAR = 2.0
"""Standard errors by which the log odds of a word must differ between two classes to be listed."""

_PRIOR = 0.5  # texts that are added to every count, so that no odds are infinite


class TellingWords:
    """Counts of the words of every class, for the words that tell two classes apart.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    labels : ndarray of int of shape (n,)
        The most credible label of every text, MISSING where there is none.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from laplaceconfidence.auditing.telling_words import TellingWords
    >>> texts = ["card lost", "card stolen"] * 8 + ["wire sent", "wire late"] * 8
    >>> words = TellingWords(texts, np.repeat([0, 1], 16), 2)
    >>> words.between(0, 0, 1)
    ['card', 'lost']
    """

    def __init__(self, texts: Sequence[str], labels: IntArray, n_classes: int) -> None:
        self._labels = labels
        self._sizes = np.bincount(labels[labels != MISSING], minlength=n_classes)
        vectorizer = CountVectorizer(binary=True, min_df=2, dtype=np.int32)
        try:
            self._words = vectorizer.fit_transform(texts)
            self._names = vectorizer.get_feature_names_out()
        except ValueError:  # no word occurs twice
            self._words = sparse.csr_matrix((len(labels), 0), dtype=np.int32)
            self._names = np.empty(0, dtype=object)
        labeled = np.flatnonzero(labels != MISSING)
        ones = np.ones(len(labeled), dtype=np.int32)
        member = sparse.csr_matrix((ones, (labels[labeled], labeled)), shape=(n_classes, len(labels)))
        self._counts = (member @ self._words).tocsr()

    def between(self, row: int, for_class: int, against: int) -> list[str]:
        """Return the words of a text that are clearly more frequent in one class than in another.

        The text itself is not counted.

        Parameters
        ----------
        row : int
            Row of the text.
        for_class, against : int
            Codes of the classes; MISSING as the latter means all other classes.

        Returns
        -------
        list of str
            Those that at least speak most for it first: by the lower end of their difference in log odds,
            which is small for frequent words and for those that were hardly ever seen.
        """
        columns = np.sort(self._words[row].indices)
        if for_class in (MISSING, against) or len(columns) == 0:
            return []
        with_word, size = self._of_class(row, for_class, columns)
        others, n_others = self._of_class(row, against, columns)
        if against == MISSING:
            others, n_others = others - with_word, n_others - size
        log_odds = _log_odds(with_word, size) - _log_odds(others, n_others)
        at_least = log_odds - CLEAR * np.sqrt(1 / (with_word + _PRIOR) + 1 / (others + _PRIOR))
        best = np.argsort(-at_least, kind="stable")[:MOST_WORDS]
        return [str(self._names[columns[at]]) for at in best if at_least[at] >= 0]

    def _of_class(self, row: int, code: int, columns: IntArray) -> tuple[IntArray, int]:
        """The number of texts of a class with each word and in all, without the text itself."""
        own = self._labels[row]
        if code == MISSING:
            counts = np.asarray(self._counts[:, columns].sum(axis=0)).ravel()
            return counts - int(own != MISSING), int(self._sizes.sum()) - int(own != MISSING)
        counts = self._counts[code][:, columns].toarray().ravel()
        return counts - int(own == code), int(self._sizes[code]) - int(own == code)


def _log_odds(n_with: IntArray, n: int) -> IntArray:
    return np.asarray(np.log((n_with + _PRIOR) / (n - n_with + _PRIOR)))
