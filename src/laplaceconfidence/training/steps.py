"""The steps of a phase, one after the other: which samples, which inputs, which random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from laplaceconfidence.training.batches import endless_batches, shuffled_batches
from laplaceconfidence.training.methods.interface import Phase, Plan, Problem
from laplaceconfidence.training.progress import Progress
from laplaceconfidence.training.seeds import derived_generator, derived_seed
from laplaceconfidence.training.step import Batch, Step
from laplaceconfidence.training.task import Task


def index_batches(phase: Phase, plan: Plan, batch_size: int, seed: int) -> dict[str, list[Tensor]]:
    """The sample numbers of every batch of the phase, by stream; the first stream says how many there are."""
    batches: dict[str, list[Tensor]] = {}
    n_steps = None
    for name, rows in plan.streams.items():
        size, own_seed = plan.batch_sizes.get(name, batch_size), derived_seed(seed, name)
        if n_steps is None:
            batches[name] = shuffled_batches(rows, size, own_seed, passes=phase.passes)
            n_steps = len(batches[name])
        else:
            batches[name] = endless_batches(rows, size, own_seed, n_batches=n_steps)
    return batches


def steps(
    task: Task,
    problem: Problem,
    progress: Progress,
    phase: Phase,
    plan: Plan,
    batches: Mapping[str, list[Tensor]],
) -> Iterator[Step]:
    """The steps of a phase from where ``progress`` stands, each a function of the seed and its position."""
    team, root, first = task.team, problem.seed, progress.step
    # Inputs in memory are augmented as whole batches in every process, which draws what one would draw.
    whole = task.samples.resident or team.size == 1
    fetched = {
        name: task.samples.batches(
            [task.train_rows[rows if whole else team.own_rows(rows)] for rows in stream[first:]],
            seed=derived_seed(root, "inputs", progress.round, progress.phase, name),
        )
        for name, stream in batches.items()
    }
    n_steps = len(next(iter(batches.values())))
    for number in range(first, n_steps):
        position = (progress.round, progress.phase, number)
        generator = derived_generator(root, "step", *position)
        views_by = generator if whole else derived_generator(root, "views", *position, team.rank)
        torch.manual_seed(derived_seed(root, "dropout", *position, team.rank))
        parts = {}
        for name, stream in batches.items():
            index = team.own_rows(stream[number]).to(task.device)
            parts[name] = Batch(
                index=index,
                labels=problem.labels[index],
                inputs=next(fetched[name]),
                views=task.views,
                generator=views_by,
                team=team,
                whole=whole,
                weight=len(index) * team.size / len(stream[number]),
            )
        yield Step(
            round=progress.round,
            progress=progress.round + (number + 1) / n_steps,
            phase=phase,
            plan=plan,
            state=progress.state,
            problem=problem,
            networks=task.networks,
            batches=parts,
            generator=generator,
            team=team,
        )
