"""A multi-layer perceptron for embeddings."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn


class MLP(nn.Module):
    """Linear layers with batch normalization before and between them; samples of any shape are flattened.

    The inputs are normalized as well, because masking entries changes their means and deviations.

    Parameters
    ----------
    n_classes : int
        Number of logits.
    n_inputs : int
        Numbers per sample.
    hidden : tuple of int, default=(512, 256)
        Widths of the hidden layers.
    dropout : float, default=0
        Probability of dropout after each hidden layer.
    """

    def __init__(
        self, n_classes: int, n_inputs: int, hidden: tuple[int, ...] = (512, 256), dropout: float = 0.0
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten(), nn.BatchNorm1d(n_inputs, affine=False)]
        for narrow, wide in pairwise((n_inputs, *hidden)):
            layers += [
                nn.Linear(narrow, wide, bias=False),
                nn.BatchNorm1d(wide),
                nn.ReLU(),
                nn.Dropout(dropout),
            ]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(hidden[-1] if hidden else n_inputs, n_classes)

    def forward(self, samples: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(samples))
        return logits
