"""What is known about a training method: its paper, what it needs, its cost, and its published settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Source = Literal["official code", "paper", "unverified"]
"""Where settings were read: in the authors' code, in the paper, or neither could be checked."""


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """Facts about a method for lists and for the documentation.

    Attributes
    ----------
    paper : str
        Authors, title and where it was published.
    year : int or None
        Year of the paper.
    cost : float
        Computation of one round after the warm-up relative to a round of cross-entropy, counted in passes: a
        forward pass is 1, a training pass (forward and backward) is 3.
    needs : tuple of str, default=()
        What the method has to be told besides samples and labels, such as "noise rate".
    title : str, default=""
        What the method is called in tables, such as "Co-teaching"; by default the name of its class.
    """

    paper: str
    year: int | None
    cost: float
    needs: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class PublishedSettings:
    """Settings that were published for a data set and a kind of noise.

    Attributes
    ----------
    data : str
        Name of the data set.
    noise : str
        Kind of noise, as ``add_noise`` names it ("symmetric" draws from all classes, "symmetric-excluding"
        from the other ones), or "real" for labels that were noisy from the beginning.
    rates : tuple of float
        Noise rates that the settings are for; empty if they do not depend on it or if it is unknown.
    source : {"official code", "paper", "unverified"}
        Where they were read.
    method : mapping of str to Any
        Settings of the method that differ from the defaults of its class.
    training : mapping of str to Any
        Parameters of ``RobustClassifier``.
    note : str, default=""
        What these settings do not express, such as a network that this package does not have.
    """

    data: str
    noise: str
    rates: tuple[float, ...]
    source: Source
    method: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
