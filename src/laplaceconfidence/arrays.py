"""Names for the array types that cross the borders between rooms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
StrArray = NDArray[np.str_]
ByteImages = NDArray[np.uint8]


def to_numpy(values: Any) -> NDArray[Any]:
    """Array of anything array-like: lists, pandas, torch tensors on any device, Hugging Face columns."""
    if hasattr(values, "detach"):  # a torch tensor: may need a gradient graph cut and a device copy
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # numpy has no such type
            values = values.float()
        return np.asarray(values.numpy())
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    return np.asarray(values)
