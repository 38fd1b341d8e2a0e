"""Two processes follow the training curve of one."""

import os
import subprocess
import sys
from typing import Any

import distributed_run
import pytest
import torch

from laplaceconfidence.training.distributed import Team

SIZE = 2


@pytest.fixture(scope="module")
def of_two_processes(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("processes")
    processes = [
        subprocess.Popen(
            [sys.executable, distributed_run.__file__, str(folder), str(rank), str(SIZE)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(SIZE)
    ]
    errors = [process.communicate(timeout=600)[1] for process in processes]
    assert all(process.returncode == 0 for process in processes), errors
    return [torch.load(folder / f"results-{rank}.pt", weights_only=True) for rank in range(SIZE)]


@pytest.mark.parametrize("method", [*distributed_run.METHODS, *distributed_run.TOYS])
def test_two_processes_give_the_curve_of_one(of_two_processes: list[Any], method: str) -> None:
    one = distributed_run.run(distributed_run.TOYS.get(method, method))
    two = of_two_processes[0][method]
    for ours, theirs in zip(one["history"], two["history"], strict=True):
        assert ours["test_accuracy"] == pytest.approx(theirs["test_accuracy"], abs=0.01)
        for our_phase, their_phase in zip(ours["phases"], theirs["phases"], strict=True):
            assert our_phase.keys() == their_phase.keys()
            for name, value in our_phase.items():
                if isinstance(value, float):
                    assert value == pytest.approx(their_phase[name], rel=1e-3)
    torch.testing.assert_close(one["confidence"], two["confidence"], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(one["networks"], two["networks"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", [*distributed_run.METHODS, *distributed_run.TOYS])
def test_all_processes_end_with_the_same(of_two_processes: list[Any], method: str) -> None:
    first, second = (results[method] for results in of_two_processes)
    torch.testing.assert_close(first["networks"], second["networks"], rtol=0, atol=0)
    assert first["history"] == second["history"]


def test_stopped_and_resumed_processes_end_bit_identical(of_two_processes: list[Any]) -> None:
    for results in of_two_processes:
        torch.testing.assert_close(
            results["stopped"]["networks"], results["laplace"]["networks"], rtol=0, atol=0
        )
        assert results["stopped"]["history"] == results["laplace"]["history"]


def test_a_single_process_is_a_team_of_one() -> None:
    values = torch.arange(6.0).reshape(3, 2)
    team = Team()
    assert team.is_first
    assert torch.equal(team.own_rows(values), values)
    assert torch.equal(team.gather_rows(values), values)
    assert team.gather_rows_with_gradient(values.requires_grad_()).requires_grad
    assert not team.gather_rows(values).requires_grad
    assert torch.equal(team.mean_rows(values), values.mean(dim=0))
    assert team.on_first(lambda: {"a": 1}, torch.device("cpu")) == {"a": 1}
