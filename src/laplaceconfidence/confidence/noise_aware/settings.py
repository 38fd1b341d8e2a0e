"""Every number that shapes what NoiseAwareConfidence answers, in one place.

The line under a number says what it does and where it comes from. Sources:

recipe
    The experiments with which the method was found, before this repository, on 10,000 embedded CIFAR-10
    images.
decision 4, 9, 10
    ``docs/decisions/0004``, ``0009`` and ``0010``, which also say which data sets were looked at.
not tuned
    A round number that was set once; no other value was compared.
safety
    Keeps arithmetic finite or a loop short; the answer does not hang on it.

The two standard errors from which one estimate is clearly worse than another are shared with the search for k
and alpha and stand beside ``clearly_worse`` in ``confidence/held_out_folds.py``. Calibration by audited
labels is shared with the review; its numbers stand in ``confidence/calibration.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ClassCountSettings:
    """What changes with the number of classes."""

    many_above: int = 50
    """More classes are "many": candidate columns, closed-form probe, one graph, T by EM. Decision 4, cost."""
    n_candidates: int = 31
    """Classes that a sample keeps where there are many. Decision 4: with 15, 40% noise was read as none."""
    rounds: int = 4
    """Rounds of self-training. Decision 9: four instead of three, on embeddings with instance noise."""
    rounds_of_many: int = 2
    """Rounds where there are many classes. Decision 9: a third cost 28% of the time and gained little."""


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """Half-whitened coordinates and the graphs over them."""

    most_axes: int = 256
    """Principal axes that are kept, if there are so many. Recipe."""
    widest_covariance: int = 4_096
    """Features up to which the principal axes are exact, and randomized above. Not tuned, for cost."""
    least_variance: float = 1e-9
    """Axes with a smaller share of the first axis's variance are dropped. Safety."""
    least_absolute_variance: float = 1e-30
    """Axes with less variance than this are dropped. Safety."""
    neighbors_of_large_classes: tuple[int, ...] = (30, 100)
    """Neighbors per graph where classes are large. Recipe."""
    neighbors_of_small_classes: tuple[int, ...] = (10, 30)
    """Neighbors per graph where classes are small: more would only add other classes. Not tuned."""
    neighbors_of_many_classes: tuple[int, ...] = (30,)
    """Neighbors per graph where there are many classes. Decisions 4 (one graph) and 9 (30 instead of 50)."""
    large_class: int = 100
    """Labels per class, on average, from which classes are large. Not tuned."""
    closest: int = 10
    """Neighbors of the graph whose votes order labels of unidentified noise. Decision 9, 10 against 30."""


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """The linear classifiers: logistic regressions, and discriminants where there are many classes."""

    first_l2: float = 1.1
    """Penalty on given labels, in units of p (1 - p) at p = 1/C: 0.1 at ten classes. Recipe, decision 4."""
    later_l2: float = 0.22
    """Penalty on posteriors, in the same units: 0.02 at ten classes. Recipe."""
    tolerance: float = 1e-2
    """A regression stops when its gradient has fallen to this part of the first one. Not tuned, for cost."""
    most_steps: int = 40
    """L-BFGS steps at most. Not tuned."""
    memory: int = 8
    """Steps that L-BFGS remembers. Not tuned."""
    sufficient_decrease: float = 1e-4
    """Armijo's constant of the line search. The textbook's."""
    most_halvings: int = 12
    """Halvings of a step that does not decrease the loss. Safety."""
    rounding: float = 1e-7
    """Relative increase of the loss that counts as single-precision rounding. Safety."""
    least_curvature: float = 1e-12
    """Steps with less curvature are not used by L-BFGS. Safety."""
    least_mass: float = 1e-9
    """Discriminants: a class with less mass has no samples. Safety."""
    ridge: float = 1e-6
    """Discriminants: part of the mean variance that is added to every variance. Safety."""
    prior_count: float = 1.0
    """Discriminants: samples added to every class when its share is estimated. Not tuned (Laplace's rule)."""


@dataclass(frozen=True, slots=True)
class PropagationSettings:
    """Labels propagated over the graphs."""

    alpha: float = 0.5
    """Range of the propagation. Recipe: generic embeddings want a short one."""
    votes_alpha: float = 0.9
    """Range of the votes over the closest neighbors. Decision 9, 0.9 against 0.95."""
    floor: float = 0.1
    """Share, over all classes, that is added before the logarithm: 0.01 each at ten. Recipe, decision 4."""
    tolerance: float = 1e-2
    """Relative residual of the conjugate gradients. Not tuned; the floor is far coarser."""
    most_iterations: int = 20
    """Iterations of the conjugate gradients at most. Safety at this alpha."""
    least_sum: float = 1e-12
    """Rows with a smaller sum count as empty. Safety."""


@dataclass(frozen=True, slots=True)
class NoiseModelSettings:
    """The likelihood of the given labels, and how it is maximized."""

    tiny: float = 1e-12
    """Added to probabilities before a logarithm or a division. Safety."""
    bias_penalty: float = 1e-3
    """Ridge penalty on the class biases. Not tuned."""
    weight_spread: float = 10.0
    """Standard deviation of the prior on weights; matters where few labels separate perfectly. Not tuned."""
    largest_log_weight: float = 10.0
    """Logarithms of weights are cut here, wherever a line search goes. Safety."""
    first_weight_sum: float = 1.5
    """Sum of the evidence weights that the fit starts from. Not tuned."""
    first_rate: float = 0.3
    """Noise rate that the symmetric fit starts from. Not tuned."""
    rate_prior: float = 2.0
    """Right and wrong labels added by the prior on the symmetric noise rate. Not tuned."""
    least_rate: float = 1e-6
    """Added to rates before a logarithm or a division. Safety."""
    least_transition: float = 1e-6
    """Added to the entries of T that a fit starts from. Safety."""
    symmetric_steps: int = 50
    """L-BFGS steps of the symmetric fit at most. Not tuned."""
    full_steps: int = 60
    """L-BFGS steps of a fit of any T at most. Not tuned."""
    alternating_steps: int = 30
    """L-BFGS steps for the weights, many classes, between two fits of T. Not tuned, for cost."""
    alternating_turns: int = 2
    """Turns of T and the weights, many classes. Not tuned, for cost."""
    lbfgs_memory: int = 20
    """Steps that L-BFGS remembers. Not tuned."""
    least_gain: float = 1e-8
    """Relative gain of the likelihood at which a fit stops. Not tuned."""
    least_alternating_gain: float = 1e-6
    """The same where T and the weights take turns. Not tuned, for cost."""
    least_gradient: float = 1e-6
    """Largest gradient entry at which a fit stops. Not tuned."""
    em_steps: int = 20
    """EM steps for T at most. Not tuned."""
    least_em_gain: float = 1e-5
    """Nats per label below which EM stops, many classes. Not tuned, for cost."""
    dominance: float = 0.5
    """Part of its row's maximum that every diagonal entry of T must reach. Not tuned."""
    fewest_for_dominance: float = 30.0
    """Expected samples of a class from which its row must be dominated by the diagonal. Not tuned."""


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """Which noise matrix, which round and which evidence is selected."""

    fewest_labels: int = 10
    """Labels below which none can be held out and fixed weights are used. Not tuned."""
    assumed_noise: float = 0.1
    """Noise rate that is assumed with fixed weights. Not tuned."""
    most_loss: float = 0.005
    """Nats per label that the selected round may be below the best. Decision 4, two rules compared."""
    probability_floor: float = 0.1
    """Share, spread over all classes, that is added to ``pred_probs`` before the logarithm. Not tuned."""
    less_noise: float = 0.04
    """A symmetric T with so much less noise than another candidate must be clearly more likely. Recipe."""
    uneven: float = 0.1
    """Total variation between label shares and even ones from which "proportional" is tried. Not tuned."""
    share_count: float = 0.5
    """Labels added to every class when its share is estimated. Not tuned (Jeffreys' rule)."""
    rows_for_fitting: int = 12_000
    """Labels on which a pool is fitted at most. For cost; not tuned."""
    entries_for_fitting: int = 1_200_000
    """Labels times columns on which a pool is fitted at most. For cost; not tuned."""
    little_noise: float = 0.2
    """First of two noise rates that the "full" fit starts from. Recipe."""
    much_noise: float = 0.5
    """Least second noise rate that the "full" fit starts from; the symmetric fit's rate if larger. Recipe."""
    most_noise: float = 0.97
    """Largest noise rate that a fit starts from or is drawn to. Safety."""
    least_noise: float = 0.02
    """Smallest noise rate that "shrunk" is drawn to. Safety."""
    full_count: float = 10.0
    """Dirichlet counts per class of "full" around symmetric noise. Recipe."""
    full_rate: float = 0.3
    """Noise rate of those counts. Recipe."""
    full_cell_count: float = 0.5
    """Further counts of "full" per entry of T. Recipe."""
    full_most_cell_counts: float = 5.0
    """Sum of these further counts per class at most, reached from ten classes on. Not tuned."""
    sparse_below: int = 500
    """Labels per class, on average, below which "sparse" is tried. Decision 4, after a digits cell failed."""
    sparse_count: float = 2.0
    """Dirichlet counts per class of "sparse" around symmetric noise. Set with ``sparse_below``."""
    sparse_rate: float = 0.1
    """Noise rate of those counts. Set with ``sparse_below``."""
    sparse_cell_count: float = 0.05
    """Further counts of "sparse" per entry of T. Set with ``sparse_below``."""
    shrunk_count: float = 500.0
    """Dirichlet counts per class of "shrunk" around symmetric noise. Recipe."""
    shrunk_classes: float = 10.0
    """Classes up to which "shrunk" has all these counts; with C more it has this / C of them. Not tuned."""
    shrunk_start: float = 0.5
    """Part of the "full" T in the T that "shrunk" starts from; the rest is symmetric. Not tuned."""


@dataclass(frozen=True, slots=True)
class PosteriorSettings:
    """From a fitted pool to the confidences."""

    wide_bracket: float = 0.1
    """Width of the bracket above which it matters which end is right. Not tuned."""
    found_share: float = 0.1
    """Part of the pessimistic noise rate that the noise matrix must explain to be identified. Not tuned."""
    least_mass: float = 1e-100
    """Rows with less mass outside the given label spread what it loses evenly. Safety."""
    fewest_audited: int = 50
    """Audited labels, drawn at random, from which they calibrate the others. Not tuned."""
    bracket_standard_errors: float = 2.0
    """Half the width of the bracket after a calibration, in standard errors of the rate. Not tuned."""
    least_shrinkage: float = 10.0
    """Labels that all other classes count as, at least, in the mean confidence of a class. Not tuned."""
    most_shrinkage: float = 100.0
    """The same, at most. Not tuned."""
    rare_share: float = 0.1
    """Part of the median class's labels below which a class is rare and always shrunk. Decision 9."""


@dataclass(frozen=True, slots=True)
class LocalNoiseSettings:
    """When even disagreement is taken for noise that the features predict."""

    surest: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """Shares of the surest predictions of every class among which disagreement is compared. Decision 10."""
    even: float = 1.25
    """Disagreement of the surer half over the least one up to which it is even. Decision 10."""
    most_noise: float = 0.5
    """Disagreement from which a local majority need not be the truth. Decision 10; it follows, not tuned."""
    less_noise: float = 0.02
    """How much less noise a matrix must find than the surest labels show to be overruled. Not tuned."""
    predicted_share: float = 0.5
    """Predictions that every class needs, as a share of its labels. Rule of decision 10, value not tuned."""
    fewest_labels: int = 30
    """Labels of a class from which it needs them. Not tuned."""
    share_count: float = 0.5
    """Agreeing and disagreeing labels that are added for a standard error. Not tuned (Jeffreys' rule)."""
    transition_count: float = 1.0
    """Right labels that are added to every class of the reported transition matrix. Safety."""
    tiny: float = 1e-12
    """Smallest divisor. Safety."""


@dataclass(frozen=True, slots=True)
class NoiseAwareSettings:
    """All settings of the noise-aware estimator that are not parameters of its constructor, by part.

    They are fixed: the estimator is meant to need no tuning. Its constructor has the rest (the number of
    neighbors, components, rounds and folds, and the recall of the search).
    """

    classes: ClassCountSettings = field(default_factory=ClassCountSettings)
    views: ViewSettings = field(default_factory=ViewSettings)
    probe: ProbeSettings = field(default_factory=ProbeSettings)
    propagation: PropagationSettings = field(default_factory=PropagationSettings)
    noise_model: NoiseModelSettings = field(default_factory=NoiseModelSettings)
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    posterior: PosteriorSettings = field(default_factory=PosteriorSettings)
    local_noise: LocalNoiseSettings = field(default_factory=LocalNoiseSettings)


SETTINGS = NoiseAwareSettings()

FEWEST_AUDITED = SETTINGS.posterior.fewest_audited
"""Random verified labels from which the others are calibrated; messages and the review page state it."""
