"""Logs for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laplaceconfidence.exceptions import MissingDependencyError
from laplaceconfidence.training.callbacks import Callback, TrainingContext


class TensorBoardLogger(Callback):
    """A callback of ``RobustClassifier`` that logs every number of a round for TensorBoard.

    A resumed run continues the same curves: repeated rounds replace those that were logged before.

    Parameters
    ----------
    folder : str or Path
        Where the logs are written.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingDependencyError(
                "Logging for TensorBoard needs the package 'tensorboard': pip install tensorboard"
            ) from error
        self._open: Any = SummaryWriter
        self._folder = Path(folder)
        self._writer: Any = None

    def on_round_end(self, context: TrainingContext) -> None:
        """Log the measurements of the round."""
        record, number = context.record, context.round
        if self._writer is None:  # not before the first round: a run needs an empty folder to start in
            self._writer = self._open(str(self._folder), purge_step=number)
        for name, value in _numbers(record):
            self._writer.add_scalar(name, value, number)
        self._writer.flush()

    def on_training_end(self) -> None:
        """Close the logs."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _numbers(record: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The numbers of a round by name, those of its phases by network."""
    found = [
        (name, float(value))
        for name, value in record.items()
        if name != "round" and isinstance(value, (int, float))
    ]
    for phase in record["phases"]:
        networks = " and ".join(str(network) for network in phase["networks"])
        found += [
            (f"{name}/network {networks}", float(value))
            for name, value in phase.items()
            if isinstance(value, (int, float))
        ]
    return found
