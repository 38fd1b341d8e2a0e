"""Evidence that is named on the command line: class probabilities and neighbor graphs in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from laplaceconfidence.data.array_files import load_array, open_archive
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be


def load_probabilities(path: Path) -> NDArray[Any]:
    """Class probabilities from an .npy file."""
    return load_array(path, "pred_probs")


def load_graph(path: Path) -> Any:
    """A neighbor graph as ``scipy.sparse.save_npz`` writes it, in CSR format."""
    from scipy import sparse

    if not path.is_file():
        raise must_be("knn_graph", "a path to an existing .npz file", str(path))
    with open_archive(path) as archive:
        if lost := [key for key in ("data", "indices", "indptr", "shape") if key not in archive.keys]:
            raise DataFormatError(
                f"{path} is not a CSR graph: it has no {lost[0]!r}. "
                "Write it with scipy.sparse.save_npz(path, graph.tocsr())."
            )
        data, indices, indptr, shape = (archive.load(key) for key in ("data", "indices", "indptr", "shape"))
    try:
        graph = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        graph.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataFormatError(f"{path} is not a valid CSR graph ({error}). Write it again.") from error
    return graph
