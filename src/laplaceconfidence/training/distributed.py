"""Training in several processes: each works on its share of every batch, and the results are combined.

All processes draw the same random numbers for the *whole* batch and keep their own part, so that N processes
have the training curve of one.
"""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from laplaceconfidence.exceptions import AnotherProcessFailed

_HAS_NEW_NAME = "forward_sync_buffers" in inspect.signature(DistributedDataParallel.__init__).parameters
_SYNC_BUFFERS = "forward_sync_buffers" if _HAS_NEW_NAME else "broadcast_buffers"  # renamed in torch 2.13


@dataclass(frozen=True, slots=True)
class Team:
    """The processes that train together, as seen by one of them."""

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> Team:
        """The processes of this run: one, unless torch.distributed is set up (see ``join_team``)."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def own_rows(self, values: Tensor) -> Tensor:
        """This process's share of values that all processes have, one row per sample."""
        return values if self.size == 1 else values.tensor_split(self.size)[self.rank]

    def gather_rows(self, values: Tensor) -> Tensor:
        """The rows of all processes, in their order, without gradient."""
        if self.size == 1:
            return values.detach()
        lengths = [torch.zeros(1, dtype=torch.long, device=values.device) for _ in range(self.size)]
        dist.all_gather(lengths, torch.tensor([len(values)], device=values.device))
        longest = int(max(lengths))
        padded = values.new_zeros((longest, *values.shape[1:]))
        padded[: len(values)] = values.detach()
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded)
        return torch.cat([part[: int(n)] for part, n in zip(parts, lengths, strict=True)])

    def gather_rows_with_gradient(self, values: Tensor) -> Tensor:
        """The rows of all processes, in their order; gradients flow to the rows of each."""
        if self.size == 1:
            return values
        numbers = self.gather_rows(torch.full((len(values),), self.rank, device=values.device))
        whole = values.new_zeros((len(numbers), *values.shape[1:]))
        padded = whole.index_copy(0, torch.nonzero(numbers == self.rank).flatten(), values)
        gathered: Tensor = _SumOverProcesses.apply(padded)  # type: ignore[no-untyped-call]
        return gathered

    def mean_rows(self, values: Tensor) -> Tensor:
        """The mean over the rows of all processes; gradients flow to the rows of each."""
        if self.size == 1:
            return values.mean(dim=0)
        count = self.sum(torch.tensor(float(len(values)), device=values.device))
        total: Tensor = _SumOverProcesses.apply(values.sum(dim=0))  # type: ignore[no-untyped-call]
        return total / count

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes of a tensor that each has; gradients flow to each."""
        if self.size == 1:
            return values
        total: Tensor = _SumOverProcesses.apply(values)  # type: ignore[no-untyped-call]
        return total / self.size

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, without gradient."""
        if self.size == 1:
            return values
        total = values.detach().clone()
        dist.all_reduce(total)
        return total

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether the flag is true in any process."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor(float(flag), device=device)) > 0)

    def on_first(self, compute: Callable[[], Any], device: torch.device) -> Any:
        """Call ``compute`` in the first process; all get its result: tensors, numbers, text, dicts, lists."""
        if self.size == 1:
            return compute()
        if not self.is_first:
            return self._receive(device)
        try:
            result = compute()
        except BaseException:
            self._send(b"", device)
            raise
        buffer = io.BytesIO()
        torch.save(result, buffer)
        self._send(buffer.getvalue(), device)
        return result

    def average_buffers(self, module: nn.Module) -> None:
        """Give all processes the mean of floating-point buffers: the running statistics of BatchNorm."""
        self.average_tensors(module.buffers())

    def average_tensors(self, tensors: Iterable[Tensor]) -> None:
        """Give all processes the mean of floating-point tensors, in place."""
        if self.size > 1:
            for tensor in tensors:
                if tensor.is_floating_point():
                    dist.all_reduce(tensor)
                    tensor.div_(self.size)

    def parallel(self, module: nn.Module, device: torch.device) -> nn.Module:
        """``module``, with gradients that are averaged over all processes in the backward pass."""
        if self.size == 1:
            return module
        # Running statistics are averaged before they are used, not broadcast before every pass.
        options: dict[str, Any] = {_SYNC_BUFFERS: False}
        devices = [device] if device.type == "cuda" else None
        return DistributedDataParallel(module, device_ids=devices, **options)

    def average_gradients(self, module: nn.Module) -> None:
        """Average the gradients of a module with unused parts, for which ``parallel`` does not work."""
        gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
        if self.size == 1 or not gradients:
            return
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        parts = torch.split(flat / self.size, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def _send(self, content: bytes, device: torch.device) -> None:
        dist.broadcast(torch.tensor([len(content)], device=device), src=0)
        if content:
            dist.broadcast(torch.frombuffer(bytearray(content), dtype=torch.uint8).to(device), src=0)

    def _receive(self, device: torch.device) -> Any:
        length = torch.zeros(1, dtype=torch.long, device=device)
        dist.broadcast(length, src=0)
        if not length:
            raise AnotherProcessFailed("The first process failed; see its error.")
        content = torch.empty(int(length), dtype=torch.uint8, device=device)
        dist.broadcast(content, src=0)
        return torch.load(io.BytesIO(content.cpu().numpy().tobytes()), map_location="cpu", weights_only=True)


class _SumOverProcesses(torch.autograd.Function):
    """All-reduce whose gradient is the sum of the gradients in all processes."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        dist.all_reduce(total)
        return total


def join_team() -> Team:
    """Join the processes that ``torchrun`` started; a team of one if it did not start this process."""
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ and not dist.is_initialized():
        on_gpus = torch.cuda.is_available()
        if on_gpus:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group("nccl" if on_gpus else "gloo")
    return Team.current()


def leave_team() -> None:
    """Leave the processes that ``join_team`` joined."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
