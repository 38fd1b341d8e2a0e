import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from laplaceconfidence.graph.affinity import degrees, normalized
from laplaceconfidence.solve import conjugate_gradient as module
from laplaceconfidence.solve.conjugate_gradient import conjugate_gradient


def random_graph(n: int, density: float, seed: int, dtype: type = np.float64) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    weights = rng.random((n, n)) * (rng.random((n, n)) < density)
    weights = np.triu(weights, 1)
    affinity = sparse.csr_array(weights + weights.T)
    return normalized(affinity, degrees(affinity)).astype(dtype)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 60), st.floats(0.02, 0.9), st.floats(0.05, 0.99), st.integers(1, 5), st.integers(0, 999)
)
def test_solution_is_the_dense_one(n: int, density: float, alpha: float, n_columns: int, seed: int) -> None:
    graph = random_graph(n, density, seed)
    rhs = np.random.default_rng(seed).normal(size=(n, n_columns))
    found = conjugate_gradient(graph, alpha, rhs, tol=1e-10, max_iter=1000)
    expected = np.linalg.solve(np.eye(n) - alpha * graph.toarray(), rhs)
    np.testing.assert_allclose(found.values, expected, rtol=1e-6, atol=1e-7)
    assert found.converged.all()
    assert (found.residuals <= 1e-9).all()


def test_columns_stop_on_their_own() -> None:
    graph = random_graph(200, 0.05, 0)
    easy = np.zeros(200)
    hard = np.random.default_rng(0).normal(size=200)
    values, vectors = np.linalg.eigh(graph.toarray())
    one_step = vectors[:, 3]  # an eigenvector is solved by a single step
    found = conjugate_gradient(graph, 0.99, np.stack([easy, one_step, hard], axis=1), tol=1e-8, max_iter=500)
    assert found.n_iterations[0] == 0
    assert found.n_iterations[1] == 1
    assert found.n_iterations[2] > 5
    assert (found.values[:, 0] == 0).all()
    np.testing.assert_allclose(found.values[:, 1], one_step / (1 - 0.99 * values[3]), rtol=1e-6)


def test_a_block_gives_what_its_columns_give_alone() -> None:
    graph = random_graph(150, 0.1, 1)
    rhs = np.random.default_rng(2).normal(size=(150, 4))
    together = conjugate_gradient(graph, 0.95, rhs, tol=1e-6, max_iter=200)
    for column in range(4):
        alone = conjugate_gradient(graph, 0.95, rhs[:, [column]], tol=1e-6, max_iter=200)
        np.testing.assert_allclose(together.values[:, [column]], alone.values, rtol=1e-9, atol=1e-12)
        assert together.n_iterations[column] == alone.n_iterations[0]


def test_stopping_early_is_reported_with_the_true_residual() -> None:
    graph = random_graph(300, 0.02, 3, np.float32)
    rhs = np.random.default_rng(4).normal(size=(300, 3)).astype(np.float32)
    found = conjugate_gradient(graph, 0.99, rhs, tol=1e-6, max_iter=2)
    matrix = np.eye(300) - 0.99 * graph.toarray().astype(np.float64)
    true = np.linalg.norm(rhs - matrix @ found.values, axis=0) / np.linalg.norm(rhs, axis=0)
    assert not found.converged.any()
    assert (found.n_iterations == 2).all()
    np.testing.assert_allclose(found.residuals, true, rtol=1e-3)


def test_a_first_guess_changes_the_way_not_the_answer() -> None:
    graph = random_graph(120, 0.1, 5)
    rhs = np.random.default_rng(6).normal(size=(120, 2))
    plain = conjugate_gradient(graph, 0.9, rhs, tol=1e-10, max_iter=500)
    near = conjugate_gradient(graph, 0.9, rhs, start=plain.values + 1e-3, tol=1e-10, max_iter=500)
    np.testing.assert_allclose(near.values, plain.values, rtol=1e-7, atol=1e-8)
    assert near.n_iterations.max() < plain.n_iterations.max()


def test_threads_and_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(500, 0.02, 7)
    rhs = np.random.default_rng(8).normal(size=(500, 3))
    whole = conjugate_gradient(graph, 0.9, rhs, tol=1e-9, max_iter=500, n_jobs=1)
    monkeypatch.setattr(module, "ROWS_PER_BLOCK", 37)
    cut = conjugate_gradient(graph, 0.9, rhs, tol=1e-9, max_iter=500, n_jobs=3)
    np.testing.assert_allclose(cut.values, whole.values, rtol=1e-7, atol=1e-9)


def test_right_hand_sides_are_not_modified() -> None:
    graph = random_graph(50, 0.2, 9)
    rhs = np.random.default_rng(10).normal(size=(50, 2))
    before = rhs.copy()
    conjugate_gradient(graph, 0.9, rhs)
    np.testing.assert_array_equal(rhs, before)


@pytest.mark.parametrize("n", [50, 128])
def test_the_quadratic_form_is_that_of_the_solution(n: int) -> None:
    graph = random_graph(n, 0.2, 11)
    rhs = np.random.default_rng(12).normal(size=(n, 3))
    found = conjugate_gradient(graph, 0.9, rhs, max_iter=3)
    matrix = np.eye(n) - 0.9 * graph.toarray()
    assert found.quadratic_form is not None
    np.testing.assert_allclose(found.quadratic_form, np.diag(found.values.T @ matrix @ found.values))
    assert conjugate_gradient(graph, 0.9, rhs, true_residuals=False).quadratic_form is None


def test_a_known_product_of_the_first_guess_is_not_computed_again() -> None:
    graph = random_graph(64, 0.2, 13)
    rhs, start = np.random.default_rng(14).normal(size=(2, 64, 2))
    product = start - 0.9 * graph @ start
    plain = conjugate_gradient(graph, 0.9, rhs, start=start, max_iter=4)
    known = conjugate_gradient(graph, 0.9, rhs, start=start, start_product=product, max_iter=4)
    np.testing.assert_allclose(known.values, plain.values, rtol=1e-9)
