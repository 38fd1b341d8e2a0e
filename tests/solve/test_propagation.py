import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from laplaceconfidence.graph.affinity import degrees, normalized
from laplaceconfidence.solve import propagation as module
from laplaceconfidence.solve.energy import laplacian_energy
from laplaceconfidence.solve.propagation import Propagation, propagate_labels


def random_affinity(n: int, density: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return weights + weights.T


def solve(affinity: np.ndarray, codes: np.ndarray, **options: object) -> Propagation:
    settings_ = {"alpha": 0.9, "tol": 1e-11, "max_iter": 2000, **options}
    return propagate_labels(sparse.csr_array(affinity), codes, int(codes.max()) + 1, **settings_)  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 40), st.floats(0.05, 0.8), st.floats(0.1, 0.99), st.integers(0, 999))
def test_closed_form_with_missing_labels_and_isolated_nodes(
    n: int, density: float, alpha: float, seed: int
) -> None:
    affinity = random_affinity(n, density, seed)
    affinity[0] = affinity[:, 0] = 0
    codes = np.random.default_rng(seed).integers(-1, 3, size=n)
    codes[:4] = [2, 0, 1, -1]
    degree = affinity.sum(axis=1)
    degree[degree == 0] = 1
    scaled = affinity / np.sqrt(np.outer(degree, degree))
    given_labels = np.eye(4)[codes][:, :3]
    expected = np.linalg.inv(np.eye(n) - alpha * scaled) @ given_labels
    found = solve(affinity, codes, alpha=alpha)
    np.testing.assert_allclose(found.solution, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.solution[0], [0, 0, 1], atol=1e-9)  # isolated: keeps its own label
    np.testing.assert_allclose(found.degree, degree)


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 40), st.floats(0.05, 0.8), st.floats(0.1, 0.99), st.integers(0, 999))
def test_energy_falls_and_the_solution_is_its_minimum(
    n: int, density: float, alpha: float, seed: int
) -> None:
    affinity = sparse.csr_array(random_affinity(n, density, seed))
    rng = np.random.default_rng(seed)
    codes = np.concatenate([[0, 1, 2], rng.integers(0, 3, size=n - 3)])
    found = solve(affinity.toarray(), codes, alpha=alpha)
    assert found.energy.solution <= found.energy.given + 1e-12
    graph, given_labels = normalized(affinity, degrees(affinity)), np.eye(3)[codes]
    best = (1 - alpha) * found.solution
    assert laplacian_energy(graph, alpha, best, given_labels) == pytest.approx(
        found.energy.solution, abs=1e-9
    )
    for _ in range(3):
        elsewhere = best + 0.1 * rng.normal(size=best.shape)
        assert laplacian_energy(graph, alpha, elsewhere, given_labels) > found.energy.solution


def test_energy_is_the_sum_over_edges_of_the_paper() -> None:
    affinity = random_affinity(12, 0.6, 0)
    degree = affinity.sum(axis=1)
    rng = np.random.default_rng(1)
    labels, given_labels = rng.random((12, 3)), np.eye(3)[rng.integers(3, size=12)]
    edges = sum(
        affinity[i, j] * ((labels[i] / np.sqrt(degree[i]) - labels[j] / np.sqrt(degree[j])) ** 2).sum()
        for i in range(12)
        for j in range(12)
    )
    expected = edges / 4 + (1 / 0.8 - 1) / 2 * ((labels - given_labels) ** 2).sum()
    graph = normalized(sparse.csr_array(affinity), degree)
    assert laplacian_energy(graph, 0.8, labels, given_labels) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 12), st.integers(0, 999))
def test_a_weight_of_w_is_w_copies(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    affinity = random_affinity(n, 0.9, seed)
    codes = np.concatenate([[0, 1, 2], rng.integers(0, 3, size=n - 3)])
    weights = rng.integers(0, 4, size=n)
    weights[:3] = np.maximum(weights[:3], 1)
    copy_of = np.repeat(np.arange(n), weights)
    copies = affinity[np.ix_(copy_of, copy_of)]
    same = copy_of[:, None] == copy_of[None, :]
    copies[same] = 1.0
    np.fill_diagonal(copies, 0)
    weighted = solve(affinity, codes, node_weights=weights.astype(float))
    repeated = solve(copies, codes[copy_of])
    np.testing.assert_allclose(weighted.solution[copy_of], repeated.solution, rtol=1e-6, atol=1e-7)


def test_a_silent_node_listens_and_is_not_heard() -> None:
    affinity = random_affinity(10, 0.9, 0)
    codes = np.array([0, 0, 0, 1, 1, 1, 0, 1, 0, 1])
    weights = np.ones(10)
    weights[9] = 0
    found = solve(affinity, codes, node_weights=weights)
    without = solve(affinity[:9, :9], codes[:9])
    np.testing.assert_allclose(found.solution[:9], without.solution, rtol=1e-8)
    gathered = (
        0.9
        * affinity[9, :9]
        @ (without.solution / np.sqrt(without.degree)[:, None])
        / np.sqrt(found.degree[9])
    )
    np.testing.assert_allclose(found.solution[9], gathered + np.array([0, 1]), rtol=1e-8)


def test_unit_weights_change_nothing() -> None:
    affinity = random_affinity(30, 0.4, 2)
    codes = np.arange(30) % 4
    plain, weighted = solve(affinity, codes), solve(affinity, codes, node_weights=np.ones(30))
    np.testing.assert_allclose(weighted.solution, plain.solution, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_soft_labels_are_mixtures_of_hard_ones(weighted: bool) -> None:
    affinity, rng = random_affinity(30, 0.3, 5), np.random.default_rng(5)
    node_weights = rng.integers(0, 4, size=30).astype(float) if weighted else None
    columns = [rng.integers(0, 3, size=30) for _ in range(2)]
    for codes in columns:
        codes[:3] = [0, 1, 2]
    hard = [solve(affinity, codes, node_weights=node_weights).solution for codes in columns]
    options = {"alpha": 0.9, "tol": 1e-11, "max_iter": 2000, "node_weights": node_weights}
    soft = 0.25 * np.eye(3)[columns[0]] + 0.5 * np.eye(3)[columns[1]]
    found = propagate_labels(sparse.csr_array(affinity), soft, 3, **options)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.solution, 0.25 * hard[0] + 0.5 * hard[1], rtol=1e-6, atol=1e-7)


def test_classes_solved_in_chunks_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    affinity = random_affinity(60, 0.3, 3)
    codes = np.arange(60) % 11
    whole = solve(affinity, codes)
    monkeypatch.setattr(module, "_CLASSES_AT_ONCE", 2)
    chunked = solve(affinity, codes)
    np.testing.assert_allclose(chunked.solution, whole.solution, rtol=1e-12, atol=1e-14)
    assert chunked.energy == pytest.approx(whole.energy)


def test_another_numbering_changes_nothing() -> None:
    affinity = random_affinity(60, 0.3, 4)
    codes, weights = np.arange(60) % 5, np.linspace(0, 3, 60)
    plain = solve(affinity, codes, node_weights=weights)
    order = np.random.default_rng(0).permutation(60)
    renumbered = solve(affinity[order][:, order], codes, node_weights=weights, order=order)
    np.testing.assert_allclose(renumbered.solution, plain.solution, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(renumbered.degree, plain.degree)
