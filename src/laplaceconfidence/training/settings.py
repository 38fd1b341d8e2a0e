"""How the loop trains, whatever the method: optimizer, schedule, batches, device, precision, seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from laplaceconfidence.threads import thread_count
from laplaceconfidence.training.schedules import SCHEDULES, learning_rate_at
from laplaceconfidence.validation import check_boolean, check_choice, check_integer, check_real, must_be

PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
OPTIMIZERS = ("sgd", "adam")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """The settings of the loop, as resolved: parameters of ``RobustClassifier`` by the same names."""

    rounds: int
    batch_size: int
    optimizer: str
    learning_rate: float
    momentum: float
    weight_decay: float
    schedule: str = "step"
    learning_rate_drops: tuple[float, ...]
    drop_factor: float
    learning_rate_warmup: float | None = None
    nesterov: bool = False
    clip_gradients: float | None = None
    weight_average: float | None = None
    average_evidence: bool = False
    precision: str
    channels_last: bool
    compile: bool
    eval_batch_size: int
    seed: int

    def __post_init__(self) -> None:
        check_integer(self.rounds, "rounds", minimum=1)
        check_integer(self.batch_size, "batch_size", minimum=1)
        check_integer(self.eval_batch_size, "eval_batch_size", minimum=1)
        check_choice(self.optimizer, "optimizer", OPTIMIZERS)
        check_real(self.learning_rate, "learning_rate", above=0)
        check_real(self.momentum, "momentum", at_least=0, below=1)
        check_real(self.weight_decay, "weight_decay", at_least=0)
        check_real(self.drop_factor, "drop_factor", above=0, at_most=1)
        check_choice(self.schedule, "schedule", SCHEDULES)
        if self.learning_rate_warmup is not None:
            check_real(self.learning_rate_warmup, "learning_rate_warmup", at_least=0, below=1)
        if self.clip_gradients is not None:
            check_real(self.clip_gradients, "clip_gradients", above=0)
        if self.weight_average is not None:
            check_real(self.weight_average, "weight_average", at_least=0, below=1)
        check_choice(self.precision, "precision", tuple(PRECISIONS))
        check_boolean(self.channels_last, "channels_last")
        check_boolean(self.compile, "compile")
        for drop in self.learning_rate_drops:
            check_real(drop, "learning_rate_drops", above=0)
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.learning_rate_drops and self.schedule != "step":
            rule = f"empty with the schedule {self.schedule!r}, which has no drops"
            raise must_be("learning_rate_drops", rule, self.learning_rate_drops)
        if check_boolean(self.nesterov, "nesterov") and (self.optimizer != "sgd" or self.momentum == 0):
            rule = "false unless the optimizer is 'sgd' with a momentum above 0"
            raise must_be("nesterov", rule, self.nesterov)
        if check_boolean(self.average_evidence, "average_evidence") and not self.weight_average:
            advice = "Set 'weight_average' to a decay such as 0.999."
            raise must_be("average_evidence", "false without averaged weights", self.average_evidence, advice)

    def learning_rate_at(self, progress: float, rounds: int | None = None) -> float:
        """The learning rate after ``progress`` rounds, parts of a round included, of ``rounds`` or of all."""
        return learning_rate_at(
            progress,
            rounds=self.rounds if rounds is None else rounds,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            warmup=self.learning_rate_warmup,
            drops=self.learning_rate_drops,
            drop_factor=self.drop_factor,
        )

    def build_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        """An optimizer of all weights of ``module``."""
        if self.optimizer == "adam":
            return torch.optim.Adam(
                module.parameters(),
                lr=self.learning_rate,
                betas=(self.momentum, 0.999),
                weight_decay=self.weight_decay,
            )
        return torch.optim.SGD(
            module.parameters(),
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.nesterov,
        )

    def autocast(self, device: torch.device) -> AbstractContextManager[object]:
        """The context in which forward passes run with ``precision``."""
        return autocast(self.precision, device)


def fast_precision(device: torch.device) -> str:
    """The precision in which this device computes fastest without loss scaling.

    Parameters
    ----------
    device : torch.device
        The device.

    Returns
    -------
    {"bfloat16", "float32"}
        "bfloat16" if the device has instructions for it.
    """
    if device.type == "cpu":
        has_bfloat16 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    else:
        has_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if has_bfloat16 else "float32"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """The context in which forward passes run with one of ``PRECISIONS``."""
    mixed = PRECISIONS[precision]
    return nullcontext() if mixed is None else torch.autocast(device.type, dtype=mixed)


@contextmanager
def torch_threads(n_jobs: int | None) -> Iterator[None]:
    """Limit torch to ``n_jobs`` threads inside the block; ``None`` changes nothing."""
    before = torch.get_num_threads()
    if n_jobs is not None:
        torch.set_num_threads(thread_count(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)
