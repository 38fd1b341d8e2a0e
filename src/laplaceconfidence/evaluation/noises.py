"""The noises of a bench as people write them: ``symmetric:0.2``, or ``none`` for the labels as given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.noise import NOISE_KINDS, add_noise
from laplaceconfidence.validation import must_be

NONE = "none"
RATED_KINDS = tuple(kind for kind in NOISE_KINDS if kind != "matrix")


@dataclass(frozen=True, slots=True)
class Noise:
    """A kind of noise with its rate; the kind ``none`` leaves the labels as they were given."""

    kind: str
    rate: float | None = None

    @classmethod
    def parse(cls, text: str) -> Noise:
        """The noise that ``text`` names.

        >>> Noise.parse("symmetric:0.20").text
        'symmetric:0.2'
        """
        kind, colon, written = text.strip().partition(":")
        if kind == NONE and not colon:
            return cls(NONE)
        rule = f"'none' or a kind ({', '.join(RATED_KINDS)}) with a rate from 0 to 1, such as symmetric:0.2"
        try:
            rate = float(written)
        except ValueError:
            raise must_be("noise", rule, text) from None
        if kind not in RATED_KINDS or not 0 <= rate <= 1:
            raise must_be("noise", rule, text)
        return cls(kind, rate)

    @property
    def text(self) -> str:
        """One way of writing it, so that equal noises are equal texts."""
        return self.kind if self.rate is None else f"{self.kind}:{self.rate:g}"

    @property
    def title(self) -> str:
        """For the heads of tables."""
        return "as given" if self.rate is None else f"{self.kind} {100 * self.rate:g}%"

    def put_into(
        self, dataset: NoisyDataset, seed: int, mapping: Mapping[str, str] | None = None
    ) -> NoisyDataset:
        """The data set with this noise in its labels; ``mapping`` is for asymmetric noise (``add_noise``)."""
        if self.rate is None:
            return dataset
        mapping = mapping if self.kind == "asymmetric" else None
        return add_noise(dataset, self.kind, self.rate, mapping=mapping, random_state=seed)
