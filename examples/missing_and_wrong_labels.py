"""Some labels are missing, some are wrong: missing ones get a suggestion, given ones a confidence."""

import numpy as np
from sklearn.datasets import load_digits

from laplaceconfidence import LaplaceConfidence

X, truth = load_digits(return_X_y=True)
names = np.array(
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"], dtype=object
)
labels = names[truth]
labels[::4] = None  # a quarter was never labeled
labels[1] = "nine"  # and this one is wrong: it shows a one

model = LaplaceConfidence(n_neighbors=10, alpha=0.9).fit(X, labels)
missing = np.arange(len(X)) % 4 == 0
right = (model.transduction_[missing] == names[truth][missing]).mean()
print(f"{right:.1%} of the missing labels are filled in rightly")
print(
    f"sample 1 is given {labels[1]!r} with confidence {model.confidence_[1]:.3f}: '{model.transduction_[1]}'?"
)
