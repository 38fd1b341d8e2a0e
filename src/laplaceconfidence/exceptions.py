"""All errors and warnings that this package raises on purpose, as one tree.

    LaplaceConfidenceError
    ├── InvalidInputError (also a ValueError)         a parameter breaks its rule
    ├── DataFormatError (also a ValueError)           a file does not have the format it should have
    ├── DownloadError (also an OSError)               data cannot be downloaded from its publisher
    ├── RunFolderError (also an OSError)              the folder of a run is missing, in use or not writable
    │   └── review.store.BusyStoreError               another process has locked the decisions
    ├── MissingDependencyError (also an ImportError)  an optional dependency is not installed
    ├── review.store.StaleDecisionError               somebody else decided on the sample in the meantime
    ├── training.stopping.Interrupted                 training stopped on request and can be resumed
    ├── training.stopping.TrainingStopped             training cannot continue
    └── training.distributed.AnotherProcessFailed     another process of the same training failed

    LaplaceConfidenceWarning (a UserWarning)
    ├── AdjustedSettingWarning                        a setting did not suit the data and was changed
    └── training.guards.TrainingWarning               training continues, but something looks wrong

Solvers that stop early warn with ``sklearn.exceptions.ConvergenceWarning``, as scikit-learn's own do.
"""

from __future__ import annotations


class LaplaceConfidenceError(Exception):
    """Base class of all errors that this package raises on purpose."""


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


class LaplaceConfidenceWarning(UserWarning):
    """Base class of all warnings that this package gives on purpose."""


class AdjustedSettingWarning(LaplaceConfidenceWarning):
    """A setting did not suit the data and was changed; the message names the old and the new value."""
