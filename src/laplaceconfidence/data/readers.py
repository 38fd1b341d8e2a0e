"""The one front door for data: whatever holds features and labels becomes a ``NoisyDataset``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from laplaceconfidence.data.array_reader import read_npy, read_npz, read_pair
from laplaceconfidence.data.arrow_reader import is_huggingface, read_arrow, read_huggingface, read_parquet
from laplaceconfidence.data.cifar import is_cifar_folder, read_cifar_archive, read_cifar_folder
from laplaceconfidence.data.cifar_download import CIFAR_ARCHIVES, cifar_archive
from laplaceconfidence.data.csv_reader import read_csv
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.frame_reader import read_columns, read_frame
from laplaceconfidence.data.image_folder import read_image_folder
from laplaceconfidence.data.map_style_reader import is_map_style, read_map_style
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.webvision import VALIDATION_LIST, is_webvision_folder, read_webvision
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

Reader = Callable[[Path, ReadOptions], NoisyDataset]

FILE_READERS: dict[str, Reader] = {
    ".npz": read_npz,
    ".npy": read_npy,
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".tsv.gz": read_csv,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".tar": read_cifar_archive,
    ".tar.gz": read_cifar_archive,
    ".tgz": read_cifar_archive,
}
_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")


def read_dataset(
    source: Any,
    *,
    label: str | None = None,
    features: Any = None,
    labels: Any = None,
    images: str | None = None,
    id: str | None = None,
    text: str | None = None,
    path: str | None = None,
    true_label: str | None = None,
    missing_label: object = None,
    split: str | None = None,
    image_size: int | tuple[int, int] | None = None,
) -> NoisyDataset:
    """Read what holds features and labels.

    ``source`` is one of

    - a path to an .npz, .npy, .csv, .tsv (also .gz) or .parquet file, to a folder with one sub-folder of
      images a class, to CIFAR-10 or CIFAR-100 as published (a folder or the archive, pickled or binary), or
      to WebVision 1.0 as published, of which the first 50 classes are read (Mini-WebVision);
    - a frame of pandas, polars or Arrow, a dict of columns, a Hugging Face dataset, a map-style dataset of
      pairs (input, label) such as those of torch, or a pair (features, labels) of arrays or tensors;
    - ``"digits"``, the digits of scikit-learn; ``"cifar10"`` or ``"cifar100"``, downloaded once; or a
      ``NoisyDataset``, which is given back as it is.

    An option that does not apply to the source is refused.

    Parameters
    ----------
    label : column or key of the labels; by default 'label', 'labels' or 'y'. For CIFAR-100: 'fine' (default)
        or 'coarse'.
    features : a column or key; columns as a list or a pattern such as 'emb_*'; one column of lists; or, for
        any file, folder or table, a path to an .npy file or an array with one row a sample. By default one
        called 'features', 'X' or 'embeddings', or in tables every column of numbers with no other use.
    labels : for .npy and .npz files: a path to an .npy or text file with one label a line, or the labels.
    images : key of the images in an .npz file, by default 'images'; or column of images of a Hugging Face
        dataset, by default the only one. Images that are files stay files, others are decoded.
    id, text, path, true_label : columns or keys; by default those called so, where they exist. Relative paths
        start at the folder of their table.
    missing_label : a label that stands for none, besides NaN, None and empty ones.
    split : 'train' (default), 'test' or 'all' of CIFAR; 'train' or 'test' of WebVision; a split of a Hugging
        Face ``DatasetDict``.
    image_size : side or (height, width) that images of Hugging Face datasets and of pairs are resized to
        where they are read into memory; without it all must be of one size.
    """
    options = ReadOptions(
        label=label,
        features=features,
        labels=labels,
        images=images,
        id=id,
        text=text,
        path=path,
        true_label=true_label,
        missing_label=missing_label,
        split=split,
        image_size=image_size,
    )
    if isinstance(source, NoisyDataset):
        options.allow_only("a NoisyDataset")
        return source
    if isinstance(source, str) and source == "digits":
        options.allow_only("'digits'")
        return load_digits()
    if isinstance(source, (str, Path)):
        return _read_path(Path(source), options)
    if isinstance(source, tuple):
        return read_pair(source, options)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return read_frame(source, options)
    if is_huggingface(source):
        return read_huggingface(source, options)
    if isinstance(source, dict) and source:
        return read_columns(source, options)
    if hasattr(source, "__arrow_c_stream__"):
        return read_arrow(source, options)
    if is_map_style(source):
        return read_map_style(source, options)
    kinds = (
        "a path, a frame, a dict of columns, a Hugging Face dataset, a dataset of pairs (input, label), "
        "a pair (features, labels), 'digits', a NoisyDataset"
    )
    raise must_be("source", f"one of {kinds}", type(source).__name__)


def has_published_test(source: str | Path) -> bool:
    """Whether ``source`` is a data set that was published with a test part, which ``split="test"`` reads."""
    path = Path(source)
    if not path.exists():
        return str(source) in CIFAR_ARCHIVES
    if path.is_dir():
        return is_cifar_folder(path) or (path / VALIDATION_LIST).is_file()
    return FILE_READERS.get("".join(path.suffixes[-2:]), FILE_READERS.get(path.suffix)) is read_cifar_archive


def _read_path(path: Path, options: ReadOptions) -> NoisyDataset:
    try:
        exists = path.exists()
    except OSError:  # a name that no file system takes, or a folder that may not be entered
        exists = False
    if not exists and str(path) in CIFAR_ARCHIVES:
        return read_cifar_archive(cifar_archive(str(path)), options)
    if not exists:
        raise must_be("source", "an existing file or folder, 'digits', 'cifar10' or 'cifar100'", str(path))
    if path.is_dir():
        return _folder_reader(path)(path, options)
    name = path.name.lower()
    if name.endswith(_PICKLES):
        raise DataFormatError(
            f"{path} is a pickle, which is never loaded because it can run code: save the arrays with "
            "np.savez(path, features=X, labels=y) or a table as Parquet."
        )
    # The longest suffix first, so that '.csv.gz' is not taken for another '.gz'.
    for suffix in sorted(FILE_READERS, key=len, reverse=True):
        if name.endswith(suffix):
            return FILE_READERS[suffix](path, options)
    raise must_be("source", f"a folder or a file of a known kind ({', '.join(FILE_READERS)})", str(path))


def _folder_reader(path: Path) -> Reader:
    if is_cifar_folder(path):
        return read_cifar_folder
    return read_webvision if is_webvision_folder(path) else read_image_folder
