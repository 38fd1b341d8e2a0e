"""The noise settings of a benchmark, written as ``symmetric:0.2``, or ``none`` for the given labels."""

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
    """A kind of noise with its rate; the kind ``none`` keeps the given labels."""

    kind: str
    rate: float | None = None

    @classmethod
    def parse(cls, text: str) -> Noise:
        """Parse a text such as ``symmetric:0.2``.

        Parameters
        ----------
        text : str
            ``none``, or a kind and a rate.

        Returns
        -------
        Noise

        Examples
        --------
        >>> from laplaceconfidence.evaluation.noises import Noise
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
        """The noise as text; equal noises have equal texts."""
        return self.kind if self.rate is None else f"{self.kind}:{self.rate:g}"

    @property
    def title(self) -> str:
        """The noise as a column heading."""
        return "as given" if self.rate is None else f"{self.kind} {100 * self.rate:g}%"

    def add_to(
        self, dataset: NoisyDataset, seed: int, mapping: Mapping[str, str] | None = None
    ) -> NoisyDataset:
        """Add this noise to the labels of a data set.

        Parameters
        ----------
        dataset : NoisyDataset
            The clean data set.
        seed : int
            Seed of the draws.
        mapping : mapping of str to str or None, default=None
            For asymmetric noise; see ``add_noise``.

        Returns
        -------
        NoisyDataset
        """
        if self.rate is None:
            return dataset
        mapping = mapping if self.kind == "asymmetric" else None
        return add_noise(dataset, self.kind, self.rate, mapping=mapping, random_state=seed)
