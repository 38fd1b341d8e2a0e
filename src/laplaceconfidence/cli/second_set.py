"""The set that ``laplaceconfidence audit --test`` compares with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import InvalidInputError


def read_second_set(source: str | None, options: dict[str, Any], **own: str | None) -> NoisyDataset | None:
    """Read ``source`` with the options of the audited set, and with ``own`` ones in place of files and parts.

    ``own`` are 'features', 'labels' and 'split', ``None`` where they were not given.
    """
    given = {name: value for name, value in own.items() if value is not None}
    if source is None:
        for name in given:
            raise InvalidInputError(f"'--test-{name}' describes the set of '--test': give that as well.")
        return None
    shared = {name: value for name, value in options.items() if name not in ("labels", "split")}
    features = shared.get("features")
    if "features" not in given and isinstance(features, str) and Path(features).suffix == ".npy":
        raise InvalidInputError(
            f"'--features {features}' holds the samples of the audited set: name the file of the other set's "
            "features with '--test-features'."
        )
    return read_dataset(source, **(shared | given))
