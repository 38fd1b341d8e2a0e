"""Everything this package raises or warns about, as one tree.

    LaplaceConfidenceError
    ├── InvalidInputError (also a ValueError)      a parameter breaks its rule
    ├── DataFormatError (also a ValueError)        a file is not what it claims to be
    ├── DownloadError (also an OSError)            data cannot be fetched from its publisher
    ├── RunFolderError (also an OSError)           a run's folder is missing, taken or cannot be written
    ├── MissingDependencyError (also an ImportError)  an optional part is not installed
    ├── training.stopping.Interrupted              training was asked to stop, and can go on
    ├── training.stopping.TrainingStopped          training cannot go on
    └── training.distributed.AnotherProcessFailed  another process of the same training failed

    LaplaceConfidenceWarning (a UserWarning)
    ├── AdjustedSettingWarning                     a setting did not fit the data and was changed
    └── training.guards.TrainingWarning            training goes wrong, and how to mend it

Solvers that stop early warn with ``sklearn.exceptions.ConvergenceWarning``, as scikit-learn's own do.
"""

from __future__ import annotations


class LaplaceConfidenceError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidInputError(LaplaceConfidenceError, ValueError):
    """A parameter breaks its rule; the message names the parameter, the rule and the value."""


class DataFormatError(LaplaceConfidenceError, ValueError):
    """A file cannot be read as what it claims to be."""


class DownloadError(LaplaceConfidenceError, OSError):
    """Data cannot be fetched, or is not what its publisher published; the message says what to do."""


class RunFolderError(LaplaceConfidenceError, OSError):
    """The folder of a run is missing, already taken or cannot be written."""


class MissingDependencyError(LaplaceConfidenceError, ImportError):
    """An optional dependency is needed and not installed; the message says what to install."""


class LaplaceConfidenceWarning(UserWarning):
    """Base of every warning this package gives on purpose."""


class AdjustedSettingWarning(LaplaceConfidenceWarning):
    """A setting did not fit the data and was changed; the message says from what to what."""
