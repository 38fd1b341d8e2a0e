"""All numbers that determine the results of NoiseAwareConfidence, except the parameters of its constructor.

The line under a number says what it does and where it comes from. Sources:

recipe
    The experiments with which the method was found, before this repository, on 10,000 embedded CIFAR-10
    images.
decision 4, 9, 10, 22, 24, 25, 37 to 40
    ``docs/decisions/0004``, ``0009`` and so on, which also name the data sets that were used.
not tuned
    A round number that was set once; no other value was compared.
safety
    Keeps arithmetic finite or a loop short; results hardly depend on it.

The two standard errors from which one estimate is clearly worse than another are shared with the search for k
and alpha and stand beside ``clearly_worse`` in ``confidence/held_out_folds.py``. Calibration by audited
labels is shared with the review; its numbers stand in ``confidence/calibration.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ClassCountSettings:
    """Settings that depend on the number of classes."""

    fewest_columns: int = 50
    """Columns per sample at least: all classes, or candidates and the rest. Decision 22, for cost."""
    column_share: float = 0.2
    """Columns per sample as a part of the classes, if that is more. Decision 38, for cost."""
    rounds: int = 4
    """Rounds of self-training. Decision 9: four instead of three, on embeddings with instance noise."""
    fewest_rounds: int = 2
    """Rounds of self-training at least, whatever the cost. Not tuned."""
    entries_of_all_rounds: int = 2_000_000
    """Largest product of samples, classes and rounds, except for ``fewest_rounds``. Decision 22, for cost."""


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """Half-whitened coordinates and the graphs over them."""

    most_axes: int = 256
    """Largest number of principal axes that are kept. Recipe."""
    widest_covariance: int = 4_096
    """Features up to which the principal axes are exact; above, they are randomized. Not tuned, for cost."""
    least_variance: float = 1e-9
    """Axes with a smaller share of the first axis's variance are dropped. Safety."""
    least_absolute_variance: float = 1e-30
    """Axes with less variance than this are dropped. Safety."""
    neighbors_of_large_classes: tuple[int, ...] = (30, 100)
    """Neighbors per graph if classes are large. Recipe."""
    neighbors_of_small_classes: tuple[int, ...] = (10, 30)
    """Neighbors per graph if classes are small: further ones would be of other classes. Not tuned."""
    large_class: int = 100
    """Mean number of labels per class from which classes are large. Not tuned."""
    closest: int = 10
    """Neighbors whose votes are used if noise is local or not identified. Decision 9, 10 against 30."""


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """The two classifiers of the features: logistic regressions and discriminants."""

    first_l2: float = 1.1
    """Ridge penalty in round 1, in units of p (1 - p) at p = 1/C: 0.1 at ten classes. Recipe, decision 4."""
    later_l2: float = 0.22
    """Ridge penalty in later rounds, in the same units: 0.02 at ten classes. Recipe."""
    tolerance: float = 1e-2
    """A regression stops when its gradient is this part of the first one. Not tuned, for cost."""
    most_steps: int = 12
    """Largest number of L-BFGS steps. Not tuned."""
    memory: int = 8
    """Earlier steps that L-BFGS uses. Not tuned."""
    sufficient_decrease: float = 1e-4
    """Armijo's constant of the line search. Textbook value."""
    most_halvings: int = 12
    """Largest number of halvings of a step that does not decrease the loss. Safety."""
    rounding: float = 1e-7
    """Relative increase of the loss that counts as single-precision rounding. Safety."""
    entries_of_one_step: int = 10_000_000_000
    """Regressions: largest product of samples, fits, classes and axes; the first axes are used. For cost."""
    fewest_axes: int = 16
    """Regressions: axes that are used at least. For cost; not tuned."""
    entries_of_all_steps: int = 300_000_000
    """Regressions: largest product of samples, fits, classes and steps. For cost; not tuned."""
    fewest_steps: int = 2
    """Regressions: steps that are taken at least. For cost; not tuned."""
    least_curvature: float = 1e-12
    """Steps with less curvature are not used by L-BFGS. Safety."""
    least_mass: float = 1e-9
    """Discriminants: classes with a smaller sum of weights are empty; added to variances. Safety."""
    prior_count: float = 1.0
    """Discriminants: samples added to each class to estimate its share. Not tuned (Laplace's rule)."""
    least_freedom: float = 3.0
    """Heavy tails: fewest degrees of freedom; with two, variances are infinite. Safety."""
    most_freedom: float = 1e6
    """Heavy tails: most degrees of freedom, which is nearly a Gaussian. Safety."""
    folds_for_tails: int = 5
    """Heavy tails: folds of labels that are held out to choose them. Decision 38; not tuned."""
    rows_for_tails: int = 2_000
    """Heavy tails: samples by which they are chosen and measured, about. For cost; not tuned."""
    weights_for_tails: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    """Heavy tails: weights of the discriminants that are tried to choose them. Decision 38; not tuned."""
    rates_for_tails: tuple[float, ...] = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    """Heavy tails: rates of symmetric noise that are tried to choose them. Decision 38; not tuned."""


@dataclass(frozen=True, slots=True)
class PropagationSettings:
    """Labels propagated over the graphs."""

    alpha: float = 0.5
    """How far labels are propagated. Recipe: small values suit generic embeddings."""
    votes_alpha: float = 0.9
    """How far the votes of close neighbors are propagated. Decision 9, 0.9 against 0.95."""
    floor: float = 0.1
    """Total share, over all classes, added before the logarithm: 0.01 each at ten. Recipe, decision 4."""
    tolerance: float = 1e-2
    """Relative residual at which the conjugate gradients stop. Not tuned, for cost."""
    most_iterations: int = 20
    """Largest number of conjugate gradient iterations. Safety."""
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
    """Standard deviation of the prior on weights, for few, perfectly separable labels. Not tuned."""
    largest_log_weight: float = 10.0
    """Larger logarithms of weights, which a line search may try, are clipped. Safety."""
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
    """Largest number of L-BFGS steps of the symmetric fit. Not tuned."""
    full_steps: int = 60
    """Largest number of L-BFGS steps of a fit of any T. Not tuned."""
    alternating_steps: int = 30
    """Many classes: largest number of L-BFGS steps for the weights, with T fixed. Not tuned, for cost."""
    alternating_turns: int = 2
    """Many classes: how often T and the weights are fitted. Not tuned, for cost."""
    lbfgs_memory: int = 20
    """Earlier steps that L-BFGS uses. Not tuned."""
    least_gain: float = 1e-8
    """Relative gain of the likelihood at which a fit stops. Not tuned."""
    least_alternating_gain: float = 1e-6
    """Many classes: the same for the fit of the weights. Not tuned, for cost."""
    least_gradient: float = 1e-6
    """Largest gradient entry at which a fit stops. Not tuned."""
    em_steps: int = 20
    """Largest number of EM steps for T. Not tuned."""
    least_em_gain: float = 1e-5
    """Gain in nats per label below which EM stops. Not tuned, for cost."""
    dominance: float = 0.5
    """Part of the maximum of its row that a diagonal entry of T must reach. Not tuned."""


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """Selection of the noise matrix, the round and the evidence."""

    fewest_labels: int = 10
    """Number of labels below which none are held out and fixed weights are used. Not tuned."""
    assumed_noise: float = 0.1
    """Noise rate that is assumed with fixed weights, spread by class shares. Not tuned, decision 40."""
    probability_floor: float = 0.1
    """Share, spread over all classes, that is added to ``pred_probs`` before the logarithm. Not tuned."""
    less_noise: float = 0.04
    """A symmetric T that finds this much less noise than another T must be clearly more likely. Recipe."""
    share_count: float = 0.5
    """Labels added to each class, or outcome, to estimate its share. Not tuned (Jeffreys' rule)."""
    rows_for_fitting: int = 10_000
    """Largest number of labels that a pool is fitted on. For cost; not tuned."""
    entries_for_fitting: int = 1_200_000
    """Largest number of labels times columns that a pool is fitted on. For cost; not tuned."""
    matrix_folds: int = 3
    """Folds that T is held out from when kinds of noise are compared. Decision 39, 3 against 2 and 5."""
    little_noise: float = 0.2
    """Noise rate that the preliminary fit starts from, besides a larger symmetric one. Recipe."""
    most_noise: float = 0.97
    """Largest noise rate that a fit starts from or that a prior is centered at. Safety."""
    least_noise: float = 0.02
    """Smallest noise rate that a prior is centered at. Safety."""
    preliminary_count: float = 15.0
    """Dirichlet counts per class of the preliminary fit of any T. Recipe, decision 24."""
    preliminary_rate: float = 0.5
    """Noise rate of those counts. Recipe, decision 24."""
    sparse_count: float = 3.0
    """Dirichlet counts per class of "sparse", around the noise of the preliminary fit. Decision 24."""
    shrunk_share: float = 0.5
    """The same of "shrunk", as a share of the mean number of labels per class. Recipe, decision 24."""


@dataclass(frozen=True, slots=True)
class PosteriorSettings:
    """Confidences under a pool, and their calibration."""

    wide_bracket: float = 0.1
    """Noise within a narrower bracket is always identified. Not tuned."""
    found_share: float = 0.1
    """In a wider one, T must find this part of the pessimistic rate for noise to be identified. Not tuned."""
    explained_share: float = 0.5
    """Part of the pessimistic rate that T must find to order the labels alone. Decision 25."""
    least_mass: float = 1e-100
    """If all other classes together are less probable, the rest is divided evenly among them. Safety."""
    fewest_audited: int = 50
    """Number of audited labels, drawn at random, from which they calibrate the others. Not tuned."""
    bracket_standard_errors: float = 2.0
    """Half the width of the bracket after a calibration, in standard errors of the rate. Not tuned."""
    least_shrinkage: float = 10.0
    """Smallest number of labels that the overall mean counts as in the mean of a class. Not tuned."""
    most_shrinkage: float = 100.0
    """Largest number of labels that the overall mean counts as in the mean of a class. Not tuned."""
    rare_share: float = 0.1
    """A class with less than this part of the labels of the median class is rare. Decision 9."""


@dataclass(frozen=True, slots=True)
class LocalNoiseSettings:
    """Recognition of local noise by even disagreement."""

    surest: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """Parts of the most certain predictions per class whose disagreement is compared. Decision 10."""
    even: float = 1.25
    """Largest ratio of the disagreement of the last part to the smallest one. Decision 10."""
    most_noise: float = 0.5
    """Disagreement from which the majority may be wrong labels. Decision 10; not tuned."""
    believed_share: float = 0.75
    """A matrix that finds this part of the disagreement is not overruled by it. Decision 37."""
    transition_count: float = 1.0
    """Right labels added to each class of the reported transition matrix. Safety."""


@dataclass(frozen=True, slots=True)
class NoiseAwareSettings:
    """All settings of the noise-aware estimator that are not parameters of its constructor, by part.

    They are fixed, because the estimator is meant to need no tuning. The constructor has the numbers of
    neighbors, components, rounds and folds, and the recall of the search.
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
"""Number of verified labels, drawn at random, from which the others are calibrated; messages state it."""
