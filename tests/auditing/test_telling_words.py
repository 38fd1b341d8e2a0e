"""Words that speak for one class and against another."""

import numpy as np

from laplaceconfidence.auditing.telling_words import TellingWords
from laplaceconfidence.data.labels import MISSING
from raw_texts import noisy_texts


def naive(texts: list[str], labels: np.ndarray, row: int, one: int, other: int) -> dict[str, float]:
    """The lower end of the difference of log odds of every word of a text, counted text by text."""
    found = {}
    for word in set(texts[row].split()):
        counts = []
        for code in (one, other):
            members = [at for at in range(len(texts)) if labels[at] == code and at != row]
            n_with = sum(word in texts[at].split() for at in members)
            counts.append((n_with + 0.5, len(members) - n_with + 0.5))
        (a, b), (c, d) = counts
        found[word] = (np.log(a / b) - np.log(c / d)) - 2 * np.sqrt(1 / a + 1 / c)
    return found


def test_words_are_those_of_a_count_without_the_text_itself() -> None:
    frame = noisy_texts(120)
    texts, labels = frame.text.tolist(), np.unique(frame.topic, return_inverse=True)[1]
    words = TellingWords(texts, labels, 3)
    for row in (0, 7, 50):
        for one, other in ((0, 1), (1, 2), (labels[row], (labels[row] + 1) % 3)):
            expected = naive(texts, labels, row, one, other)
            clear = sorted((word for word in expected if expected[word] >= 0), key=lambda w: -expected[w])[:6]
            found = words.between(row, one, other)
            assert [expected[word] for word in found] == [expected[word] for word in clear]


def test_a_word_of_one_class_only_comes_before_a_frequent_one() -> None:
    texts = ["to stolen"] * 20 + ["to keep"] * 10 + ["my keep"] * 10 + ["to pay"] * 12 + ["for pay"] * 28
    words = TellingWords(texts, np.repeat([0, 1], 40), 2)
    assert words.between(0, 0, 1) == ["stolen", "to"]


def test_without_a_given_label_all_other_classes_are_compared_with() -> None:
    frame = noisy_texts(120)
    labels = np.unique(frame.topic, return_inverse=True)[1]
    labels[0] = MISSING
    truth = ["card", "rate", "transfer"].index(frame.truth[0])
    words = TellingWords(frame.text.tolist(), labels, 3)
    assert words.between(0, truth, MISSING)
    assert words.between(0, MISSING, truth) == []
    assert words.between(0, truth, truth) == []


def test_texts_without_words() -> None:
    words = TellingWords(["", "!!", "one", "two"], np.array([0, 0, 1, 1]), 2)
    assert words.between(0, 0, 1) == []
    assert words.between(2, 1, 0) == []
