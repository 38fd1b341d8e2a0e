"""The steps of a phase: which samples make up each batch, their inputs, and the random numbers of each step.

Batches are a function of the seed, the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, count, islice

import torch
from torch import Tensor

from laplaceconfidence.training.methods.interface import Phase, Plan, Problem
from laplaceconfidence.training.progress import TrainingProgress
from laplaceconfidence.training.sample_weights import resampled
from laplaceconfidence.training.seeds import derived_generator, derived_seed
from laplaceconfidence.training.step import Batch, Step
from laplaceconfidence.training.task import TrainingTask


def index_batches(
    phase: Phase, plan: Plan, batch_size: int, seed: int, weights: Tensor | None = None
) -> dict[str, list[Tensor]]:
    """The sample numbers of every batch of the phase, by stream; the first sets the number of batches.

    With ``weights`` of all samples, a pass has each of them as often as its weight says.
    """
    batches: dict[str, list[Tensor]] = {}
    n_steps = None
    for name, rows in plan.streams.items():
        size, own_seed = plan.batch_sizes.get(name, batch_size), derived_seed(seed, name)
        one_pass = partial(_one_pass, rows, size, own_seed, weights=weights, stream=name)
        if n_steps is None:
            batches[name] = [batch for turn in range(phase.passes) for batch in one_pass(turn)]
            n_steps = len(batches[name])
        else:
            passes = chain.from_iterable(map(one_pass, count()))
            batches[name] = list(islice(passes, n_steps))
    return batches


def steps(
    task: TrainingTask,
    problem: Problem,
    progress: TrainingProgress,
    phase: Phase,
    plan: Plan,
    batches: Mapping[str, list[Tensor]],
) -> Iterator[Step]:
    """The steps of a phase from where ``progress`` stands, each a function of the seed and its position."""
    team, root, first = task.team, problem.seed, progress.step
    # Inputs in memory are augmented as whole batches in every process, with the draws of a single process.
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
            modules=task.modules,
        )


def split_into_batches(rows: Tensor, batch_size: int) -> list[Tensor]:
    """Consecutive batches of ``rows``; a last one below an eighth of ``batch_size`` joins the one before it.

    Batch normalization cannot take a batch of one, and every process needs a share of each batch.
    """
    batches = list(torch.split(rows, batch_size))
    if len(batches) > 1 and len(batches[-1]) < max(2, batch_size // 8):
        tail = batches.pop()
        batches[-1] = torch.cat([batches[-1], tail])
    return batches


def _one_pass(
    rows: Tensor, batch_size: int, seed: int, turn: int, *, weights: Tensor | None = None, stream: str = ""
) -> list[Tensor]:
    generator = derived_generator(seed, "pass", turn)
    if weights is None:
        order = rows[torch.randperm(len(rows), generator=generator)]
    else:
        order = resampled(rows, weights, generator, stream)
    return split_into_batches(order, batch_size)
