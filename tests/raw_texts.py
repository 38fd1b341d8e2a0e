"""A small data set of texts with wrong labels, which several tests use."""

import numpy as np
import pandas as pd

_WORDS = {
    "card": ("card", "stolen", "lost", "replace", "block", "plastic", "wallet"),
    "transfer": ("transfer", "pending", "sent", "bank", "arrive", "recipient", "wire"),
    "rate": ("exchange", "rate", "currency", "euro", "dollar", "convert", "pounds"),
}
_COMMON = ("please", "my", "the", "was", "is", "help", "why", "today", "not", "again")


def noisy_texts(n: int = 240, share_wrong: float = 0.1, seed: int = 0) -> pd.DataFrame:
    """Texts of three topics in the columns text, topic and truth; some topics are wrong."""
    rng = np.random.default_rng(seed)
    names = np.array(list(_WORDS))
    truth = rng.integers(0, len(names), n)
    texts = [
        " ".join(rng.permutation([*rng.choice(_WORDS[names[code]], 4), *rng.choice(_COMMON, 4)]))
        for code in truth
    ]
    moved = np.where(rng.random(n) < share_wrong, (truth + rng.integers(1, 3, n)) % 3, truth)
    return pd.DataFrame({"text": texts, "topic": names[moved], "truth": names[truth]})
