"""Every error and warning of this package, as one tree.

    LaplaceConfidenceError
    ├── InvalidInputError (also a ValueError)         a parameter breaks its rule
    ├── DataFormatError (also a ValueError)           a file does not have its format
    ├── DownloadError (also an OSError)               data cannot be fetched from its publisher
    ├── RunFolderError (also an OSError)              a run folder is missing, in use or cannot be written
    │   ├── review.store_errors.BusyStoreError        another process has locked the decisions
    │   ├── review.store_errors.DiskFullError         there is no space left for decisions
    │   └── review.store_errors.StoreGoneError        the decisions were moved or deleted during a review
    ├── MissingDependencyError (also an ImportError)  an optional dependency is not installed
    ├── Interrupted                                   a training run was interrupted, and can be resumed
    ├── TrainingStopped                               training cannot continue
    ├── AnotherProcessFailed                          another process of the same training run failed
    └── review.store_errors.StaleDecisionError        someone else has changed this decision meanwhile

    LaplaceConfidenceWarning (a UserWarning)
    ├── AdjustedSettingWarning                        a setting did not fit the data and was changed
    └── TrainingWarning                               something about a training run looks wrong

All but those of the review server are public names of ``laplaceconfidence``.

Solvers that stop early warn with ``sklearn.exceptions.ConvergenceWarning``, as scikit-learn's own do.
"""

from __future__ import annotations

from pathlib import Path


class LaplaceConfidenceError(Exception):
    """Base class of the errors of this package."""


class InvalidInputError(LaplaceConfidenceError, ValueError):
    """A parameter breaks its rule; the message names the parameter, the rule and the value."""


class DataFormatError(LaplaceConfidenceError, ValueError):
    """A file does not have the format it should have; the message says what to do."""


class DownloadError(LaplaceConfidenceError, OSError):
    """Data cannot be downloaded, or differs from what was published; the message says what to do."""


class RunFolderError(LaplaceConfidenceError, OSError):
    """The folder of a run is missing, in use by another process, or cannot be written."""


class MissingDependencyError(LaplaceConfidenceError, ImportError):
    """An optional dependency is needed and not installed; the message says what to install."""


class Interrupted(LaplaceConfidenceError):  # noqa: N818 (nothing went wrong)
    """A training run was interrupted and has saved its state; the message says how to resume it."""

    def __init__(self, round: int, folder: Path) -> None:
        super().__init__(
            f"Stopped in round {round + 1} as requested; everything so far is saved in {folder}. "
            "To continue, start the same run with the same settings and the same folder."
        )
        self.folder = folder


class TrainingStopped(LaplaceConfidenceError):  # noqa: N818 (as StopIteration)
    """Training cannot continue; the message says what to change."""


class AnotherProcessFailed(LaplaceConfidenceError):  # noqa: N818 (named after what happened)
    """The process that computes a result for all processes failed; its own error gives the reason."""


class LaplaceConfidenceWarning(UserWarning):
    """Base class of all warnings that this package gives."""


class AdjustedSettingWarning(LaplaceConfidenceWarning):
    """A setting did not suit the data and was changed; the message names the old and the new value."""


class TrainingWarning(LaplaceConfidenceWarning):
    """Training continues, but something about it looks wrong; the message says what to try."""
