"""What every rule and threshold of the noise-aware estimator is worth.

One at a time, a rule is switched off or a number of ``settings.py`` is halved and doubled, except those that
are marked as safety or as cost.

Seven sets of 400 samples (digits, CIFAR-10 embeddings, Fashion-MNIST features, the same with classes of 8 to
120 samples, 10 intents of Banking77 as TF-IDF, the breast cancer table of scikit-learn, and a mixture of 40
classes with heavy tails), on their first 64 principal axes, each with five kinds of noise, every kind with a
seed of its own (31 to 35, used nowhere else): 35 cells, the same for every variant. Instead of symmetric
noise of 70%, the set with classes of 8 to 120 samples has 70% of its labels shuffled. Differences are paired
with the estimator as it is. Run ``python benchmarks/noise_aware_ablation.py`` (twenty minutes of one core);
every fit is stored, so a stopped run continues; ``--table`` prints the table; ``--first-seed`` draws the
noise again, and adds these cells to the others.

``--large`` tries the rules, not the numbers, with 4,000 samples (digits: all 1,797) of all axes, all 77
intents and 100 classes in the mixture, and on three more sets: 10,000 images of Fashion-MNIST, embeddings
with classes of 4 to 1,000 samples, and embeddings one class of which is a random tenth of another one, so
that features cannot find it (seeds from 241 on, used nowhere else; an hour of one core). ``--small-class``
tells what becomes of a class of six samples, which the scores above do not show, with and without the rule
that is for it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_breast_cancer

from laplaceconfidence.confidence.noise_aware import (
    NoiseAwareConfidence,
    local_noise,
    noise_model,
    noise_selection,
    posterior,
    round_selection,
    views,
)
from laplaceconfidence.confidence.noise_aware import transition as transitions
from laplaceconfidence.confidence.noise_aware.propagation import Propagator
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.files import write_json
from laplaceconfidence.threads import limited_threads
from many_classes import banking, mixture
from measuring import RESULTS, machine
from noise_aware import CONFUSED, weak_log_probabilities, with_noise
from real_features import Absent, quality_sets

NAME = "noise_aware_ablation"
AS_IT_IS = "as it is"
NOISE = (("symmetric", 0.3), ("symmetric", 0.7), ("asymmetric", 0.4), ("instance", 0.4), ("ambiguity", 0.25))
LONG_TAIL, RARE, HIDDEN, MANY = "long tail", "rare classes", "hidden class", "fashion, 10,000"
FEATURES_OF = {
    LONG_TAIL: "fashion",
    MANY: "fashion",
    RARE: "cifar10-embeddings",
    HIDDEN: "cifar10-embeddings",
}
SCORES = ("auroc", "average_precision", "calibration_error", "rate_error")

Change = Callable[[], Any]


@dataclass(frozen=True, eq=False)
class Size:
    """How large the sets are, and where their results are stored."""

    name: str
    sets: tuple[str, ...]
    n_samples: int
    n_axes: int | None
    n_intents: int
    tails: Mapping[str, tuple[int, int]]  # smallest and largest class of sets with uneven classes
    mixture: tuple[int, int]  # classes, and samples of each
    first_seed: int


SMALL = Size(
    NAME,
    ("digits", "cifar10-embeddings", "fashion", LONG_TAIL, "banking", "breast cancer", "many classes"),
    n_samples=400,
    n_axes=64,
    n_intents=10,
    tails={LONG_TAIL: (8, 120)},
    mixture=(40, 10),
    first_seed=31,
)
LARGE = Size(
    f"{NAME}_large",
    ("digits", "cifar10-embeddings", "fashion", MANY, LONG_TAIL, RARE, HIDDEN, "banking", "many classes"),
    n_samples=4_000,
    n_axes=None,
    n_intents=77,
    tails={LONG_TAIL: (12, 800), RARE: (4, 1_000)},
    mixture=(100, 40),
    first_seed=241,
)


@dataclass(frozen=True)
class Variant:
    """One change of the estimator."""

    name: str
    change: Change
    arguments: tuple[tuple[str, Any], ...] = ()


def moved(path: str, value: Any) -> Variant:
    """A setting, "group.name", at another value."""
    group, name = path.split(".")

    @contextmanager
    def change() -> Iterator[None]:
        settings = getattr(SETTINGS, group)
        before = getattr(settings, name)
        object.__setattr__(settings, name, value)  # settings are frozen for everybody else
        try:
            yield
        finally:
            object.__setattr__(settings, name, before)

    return Variant(f"{path} = {value}", change)


def halved_and_doubled(path: str) -> list[Variant]:
    group, name = path.split(".")
    value = getattr(getattr(SETTINGS, group), name)
    return [moved(path, value / 2), moved(path, value * 2)]


def without_evidence(number: int, name: str) -> Variant:
    """One kind of evidence is constant, so that its weight does not matter."""

    def silenced(compute: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            found = compute(*arguments, **options)
            evidence = found[0] if isinstance(found, tuple) else found
            evidence.parts[number][...] = 0
            if evidence.per_fold:  # not in the last round
                evidence.per_fold[number][...] = 0
            return found

        return wrapped

    @contextmanager
    def change() -> Iterator[None]:
        with ExitStack() as stack:
            for step in ("first_round", "later_round"):
                original = getattr(round_selection, step)
                stack.enter_context(patch.object(round_selection, step, silenced(original)))
            yield

    return Variant(f"no {name}", change)


def without_kinds(*kinds: str) -> Variant:
    """Some kinds of noise matrix are never selected."""
    select = noise_selection._selected

    def change() -> Any:
        return patch.object(
            noise_selection,
            "_selected",
            lambda tried: select([one for one in tried if one.kind not in kinds]),
        )

    return Variant(f"no {' or '.join(kinds)} matrix", change)


def without_votes() -> Variant:
    def constant(_graph: Any, codes: np.ndarray, n_classes: int, _propagate: Any) -> np.ndarray:
        return np.full((len(codes), n_classes), 1 / n_classes)

    return Variant("no votes of close neighbors", lambda: patch.object(local_noise, "close_votes", constant))


def without_anchors() -> Variant:
    return Variant(
        "no matrix from anchors",
        lambda: patch.object(round_selection, "pool_of_targets", lambda chosen, *_: chosen.pool),
    )


def with_own_label() -> Variant:
    """Posteriors under the matrix of all labels, which the own one has a part in."""

    def with_all(p: Any, transition: Any, _counts: Any, codes: Any, candidates: Any) -> tuple[Any, Any]:
        return transitions.posterior(p, transition, codes, candidates)[0], transition

    return Variant(
        "own label in the matrix", lambda: patch.object(posterior, "posterior_without_own", with_all)
    )


def weights_with_own_label() -> Variant:
    """Weights of many classes are fitted under the matrix of all labels, which the own one has a part in."""

    def with_all(_p: Any, transition: Any, _counts: Any, codes: Any, candidates: Any) -> tuple[Any, Any]:
        return transitions.probability_of_given(transition, codes, candidates), transition

    return Variant(
        "own label in the matrix while weights are fitted",
        lambda: patch.object(noise_model, "chances_without_own", with_all),
    )


def tails(heavy: bool) -> Variant:
    """Discriminants that are not chosen by held-out labels."""
    name = "heavy tails always" if heavy else "no heavy tails"
    return Variant(name, lambda: patch.object(views, "tails_are_heavy", lambda *_, **__: heavy))


def propagated_by(alpha: float) -> Variant:
    """The setting is a default argument, which is not read again."""
    return Variant(
        f"propagation.alpha = {alpha}",
        lambda: patch.object(Propagator.__call__, "__defaults__", (alpha,)),
    )


def rules() -> list[Variant]:
    """What can be left out as a whole."""
    return [
        Variant(AS_IT_IS, ExitStack),
        without_anchors(),
        weights_with_own_label(),
        without_kinds("sparse"),
        without_kinds("shrunk"),
        without_kinds("proportional"),
        tails(False),
        without_votes(),
        moved("selection.less_noise", 1.0),
        moved("noise_model.dominance", 0.0),
        moved("local_noise.even", 0.0),
        moved("posterior.rare_share", 0.0),
        moved("posterior.explained_share", 1e-9),
        moved("posterior.explained_share", 1.0),
        moved("views.large_class", 0),
    ]


def variants() -> list[Variant]:
    listed = [
        Variant(AS_IT_IS, ExitStack),
        without_evidence(0, "regression"),
        without_evidence(1, "discriminant"),
        without_evidence(2, "half-whitened graph"),
        without_evidence(3, "raw graph"),
        without_votes(),
        without_anchors(),
        with_own_label(),
        *(moved("selection.matrix_folds", n) for n in (2, 5)),
        without_kinds("sparse"),
        without_kinds("shrunk"),
        without_kinds("proportional"),
        without_kinds("sparse", "shrunk"),
        *(Variant(f"n_rounds = {n}", ExitStack, (("n_rounds", n),)) for n in (1, 2, 8)),
        *(Variant(f"n_neighbors = {k}", ExitStack, (("n_neighbors", k),)) for k in ((5, 15), (20, 60))),
        *(tails(heavy) for heavy in (False, True)),
        moved("views.large_class", 50),
        moved("selection.less_noise", 1.0),
        moved("noise_model.dominance", 0.0),
        moved("posterior.explained_share", 1e-9),
        moved("posterior.found_share", 0.0),
        moved("local_noise.even", 0.0),
        moved("local_noise.believed_share", 0.5),
        moved("local_noise.believed_share", 1.0),
        moved("local_noise.surest", (0.1, 0.5)),
        moved("posterior.most_shrinkage", 1e-9),
        moved("posterior.rare_share", 0.0),
        propagated_by(0.25),
        propagated_by(0.75),
        moved("propagation.votes_alpha", 0.8),
        moved("propagation.votes_alpha", 0.95),
        moved("views.closest", 5),
        moved("views.closest", 20),
        moved("selection.preliminary_rate", 0.25),
        moved("selection.preliminary_rate", 0.75),
    ]
    for path in (
        "probe.first_l2",
        "probe.later_l2",
        "probe.prior_count",
        "propagation.floor",
        "noise_model.bias_penalty",
        "noise_model.weight_spread",
        "noise_model.rate_prior",
        "noise_model.first_weight_sum",
        "selection.preliminary_count",
        "selection.sparse_count",
        "selection.shrunk_share",
        "selection.less_noise",
        "selection.little_noise",
        "posterior.explained_share",
        "posterior.found_share",
        "posterior.wide_bracket",
        "posterior.least_shrinkage",
        "posterior.most_shrinkage",
    ):
        listed += halved_and_doubled(path)
    return [*listed, moved("local_noise.even", 1.125), moved("local_noise.even", 1.5)]


@cache
def data_of(size: Size, name: str) -> NoisyDataset | Absent:
    """Some samples of a set, drawn with a fixed seed; small ones on few axes, most of the time of a fit."""
    if name == "breast cancer":
        table = load_breast_cancer()
        spread = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0)
        data = _as_dataset(spread, table.target.astype(np.int64))
    elif name == "many classes":
        data = _as_dataset(*mixture(*size.mixture, size.first_seed))
    elif name == "banking":
        made = banking()
        if isinstance(made, Absent):
            return made
        features, codes = made
        rows = np.flatnonzero(codes < size.n_intents)
        data = _as_dataset(features[rows], codes[rows])
    else:
        found = quality_sets()[FEATURES_OF.get(name, name)]
        if isinstance(found, Absent):
            return found
        data = found
    rows = np.random.default_rng(0).permutation(len(data))
    if name in size.tails:
        sizes = np.geomspace(*size.tails[name], len(data.class_names)).astype(int)
        of_class = [rows[data.labels[rows] == code][:n] for code, n in enumerate(sizes)]
        few = data.subset(np.concatenate(of_class))
    else:
        few = data.subset(rows[: None if name == MANY else size.n_samples])
    if name == HIDDEN:
        few = with_hidden_class(few)
    if size.n_axes is None:
        return few
    mean = few.features.mean(axis=0)
    axes = np.linalg.svd(few.features - mean, full_matrices=False)[2][: size.n_axes]
    return few.with_features(few.features @ axes.T)


def _as_dataset(features: np.ndarray, codes: np.ndarray) -> NoisyDataset:
    names = tuple(map(str, range(int(codes.max()) + 1)))
    return NoisyDataset(codes, names, features, true_labels=codes)


def with_hidden_class(data: NoisyDataset) -> NoisyDataset:
    """Every tenth sample of the first class is in a class of its own."""
    codes = data.true_labels.copy()
    codes[np.flatnonzero(codes == 0)[::10]] = len(data.class_names)
    return NoisyDataset(codes, (*data.class_names, "hidden"), data.features, true_labels=codes)


def shuffled(data: NoisyDataset, rate: float, seed: int) -> NoisyDataset:
    """Wrong labels that follow the shares of the classes."""
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(len(data)) < rate)
    labels = data.labels.copy()
    labels[rows] = labels[rng.permutation(rows)]
    return replace(data, labels=labels)


@cache
def cell(size: Size, name: str, number: int) -> NoisyDataset:
    """A set with one kind of noise. Instead of asymmetric noise, sets without a mapping have pair noise."""
    data = data_of(size, name)
    assert isinstance(data, NoisyDataset)
    kind, rate = NOISE[number]
    seed = size.first_seed + number
    if name == LONG_TAIL and (kind, rate) == ("symmetric", 0.7):
        return shuffled(data, rate, seed)
    classes_of = "fashion" if name == MANY else name
    if kind == "asymmetric" and classes_of not in CONFUSED:
        kind, rate = "pair", 0.25
    if len(data.class_names) == 2:
        rate /= 2  # of two classes, most of the labels must be right
    weak = weak_log_probabilities(data) if kind == "ambiguity" else np.empty(0)
    return with_noise(data, classes_of, kind, rate, seed, weak)


def measure(variant: Variant, size: Size, name: str, number: int) -> dict[str, Any]:
    data = cell(size, name, number)
    start = time.process_time()
    with variant.change(), limited_threads(1):
        estimator = NoiseAwareConfidence(
            n_jobs=1, random_state=size.first_seed + number, **dict(variant.arguments)
        )
        model = estimator.fit(data.features, data.labels)
    return scores_of(model, data) | {
        "noise_model": model.noise_model_,
        "cpu_seconds": time.process_time() - start,
    }


def scores_of(model: NoiseAwareConfidence, data: NoisyDataset) -> dict[str, Any]:
    """How well the confidences find wrong labels, and how well the noise rate is estimated."""
    right = data.labels == data.true_labels
    scores = score_confidence(model.confidence_, right)
    return {
        "auroc": scores.auroc,
        "average_precision": scores.average_precision,
        "calibration_error": scores.calibration_error,
        "rate_error": abs(model.noise_rate_ - float((~right).mean())),
    }


def cell_of(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["set"], row["cell"], row["first_seed"]


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: paired differences of the means, with standard errors over the cells."""
    base = {cell_of(row): row for row in rows if row["variant"] == AS_IT_IS}
    means = [np.mean([row[score] for row in base.values()]) for score in SCORES]
    lines = [
        "| change | AUROC | average precision | calibration error | error of the noise rate |",
        "| --- | --- | --- | --- | --- |",
        f"| none ({len(base)} cells) | " + " | ".join(f"{mean:.4f}" for mean in means) + " |",
    ]
    for name in dict.fromkeys(row["variant"] for row in rows):
        own = [row for row in rows if row["variant"] == name and cell_of(row) in base]
        if name == AS_IT_IS or len(own) < 2:
            continue
        shown = []
        for score in SCORES:
            gaps = np.array([row[score] - base[cell_of(row)][score] for row in own])
            error = gaps.std(ddof=1) / np.sqrt(len(gaps))
            clear = "**" if abs(gaps.mean()) > 2 * error > 0 else ""
            shown.append(f"{clear}{gaps.mean():+.4f}{clear} ({error:.4f})")
        label = name if len(own) == len(base) else f"{name} ({len(own)} cells)"
        lines.append(f"| {label} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def print_small_classes() -> None:
    """Right labels of a class of six, among five of hundreds with a fifth of their labels drawn at random."""
    for name in ("cifar10-embeddings", "fashion"):
        data = quality_sets()[name]
        if isinstance(data, Absent):
            print(f"{data.name} was not found: {data.advice}")
            continue
        for variant in (Variant(AS_IT_IS, ExitStack), moved("posterior.rare_share", 0.0)):
            kept = [
                labels_kept(data, variant, seed) for seed in range(LARGE.first_seed, LARGE.first_seed + 5)
            ]
            print(f"{name}, {variant.name}: {sum(kept)} of {6 * len(kept)} labels are believed", flush=True)


def labels_kept(data: NoisyDataset, variant: Variant, seed: int) -> int:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(data))
    rows = rows[data.labels[rows] < 6][:2_400]
    few = data.subset(np.concatenate([rows[data.labels[rows] < 5], rows[data.labels[rows] == 5][:6]]))
    labels = few.labels.copy()
    drawn = (rng.random(len(labels)) < 0.2) & (labels < 5)
    labels[drawn] = rng.integers(0, 5, drawn.sum())
    with variant.change(), limited_threads(1):
        model = NoiseAwareConfidence(n_jobs=1, random_state=seed).fit(few.features, labels)
    return int((model.confidence_[labels == 5] > 0.5).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="rules on larger sets")
    parser.add_argument("--small-class", action="store_true", help="only what becomes of a class of six")
    parser.add_argument("--variants", nargs="+", default=None, help="only names that contain one of these")
    parser.add_argument("--sets", nargs="+", default=None, help="only these")
    parser.add_argument("--every", nargs=2, type=int, default=[0, 1], help="from which on, and every which")
    parser.add_argument("--table", action="store_true", help="print the table of what is stored")
    parser.add_argument("--first-seed", type=int, help="of the noise; that of every kind is its own")
    parser.add_argument("--out", default=None, help="name of the file of results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.small_class:
        print_small_classes()
        return
    size = LARGE if options.large else SMALL
    if options.first_seed is not None:
        size = replace(size, first_seed=options.first_seed)
    path = RESULTS / f"{options.out or size.name}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    if options.table:
        print(table(rows))
        return
    done = {(row["variant"], *cell_of(row)) for row in rows}
    first, step = options.every
    content = {"benchmark": size.name, "machine": machine(), "settings": asdict(size) | {"noise": NOISE}}
    for variant in (rules() if options.large else variants())[first::step]:
        if options.variants and not any(part in variant.name for part in options.variants):
            continue
        for name in options.sets or size.sets:
            if isinstance(absent := data_of(size, name), Absent):
                print(f"{absent.name} was not found: {absent.advice}")
                continue
            for number in range(len(NOISE)):
                row = {"variant": variant.name, "set": name, "cell": number, "first_seed": size.first_seed}
                if (variant.name, *cell_of(row)) in done:
                    continue
                rows.append(row | measure(variant, size, name, number))
                write_json(path, content | {"rows": rows})
        print(variant.name, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
