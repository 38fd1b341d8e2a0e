"""``read_dataset``: reads all supported sources as a ``NoisyDataset``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from laplaceconfidence.data.annotated_tables import read_annotated
from laplaceconfidence.data.array_reader import read_npy, read_npz, read_pair
from laplaceconfidence.data.arrow_folders import (
    is_huggingface_folder,
    open_huggingface_folder,
    read_huggingface_folder,
)
from laplaceconfidence.data.arrow_reader import (
    is_huggingface,
    open_parquet,
    read_arrow,
    read_huggingface,
    read_parquet,
)
from laplaceconfidence.data.cifar import (
    is_cifar_archive,
    is_cifar_folder,
    read_cifar_archive,
    read_cifar_folder,
)
from laplaceconfidence.data.cifar_download import CIFAR_ARCHIVES, cifar_archive
from laplaceconfidence.data.csv_reader import read_csv
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.excel_reader import read_excel
from laplaceconfidence.data.fiftyone import is_fiftyone_folder, read_fiftyone_folder
from laplaceconfidence.data.frame_reader import read_columns, read_frame
from laplaceconfidence.data.image_folder import read_image_folder
from laplaceconfidence.data.json_reader import read_json
from laplaceconfidence.data.labeled_images import is_labeled_by_table, read_labeled_images
from laplaceconfidence.data.map_style_reader import is_map_style, read_map_style
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.record_reader import read_json_lines
from laplaceconfidence.data.table_files import read_table_folder, table_kind, table_parts
from laplaceconfidence.data.webdataset import TAR_SUFFIXES, read_webdataset, tar_files
from laplaceconfidence.data.webvision import VALIDATION_LIST, is_webvision_folder, read_webvision
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

Reader = Callable[[Path, ReadOptions], NoisyDataset]


def read_tar(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read a tar archive: CIFAR as it is published, or a shard of a WebDataset.

    Parameters
    ----------
    path : Path
        The archive.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    return (read_cifar_archive if is_cifar_archive(path) else read_webdataset)(path, options)


FILE_READERS: dict[str, Reader] = {
    ".npz": read_npz,
    ".npy": read_npy,
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".tsv.gz": read_csv,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".jsonl": read_json_lines,
    ".jsonl.gz": read_json_lines,
    ".ndjson": read_json_lines,
    ".ndjson.gz": read_json_lines,
    ".json": read_json,
    ".xlsx": read_excel,
    ".xlsm": read_excel,
    ".tar": read_tar,
    ".tar.gz": read_tar,
    ".tgz": read_tar,
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
    labels_only: bool = False,
    annotator: str | None = None,
    annotators: Any = None,
    samples: Any = None,
) -> NoisyDataset:
    """Read a data set from a file, a folder, a data frame or arrays.

    Options that do not apply to the source raise ``InvalidInputError``.

    Parameters
    ----------
    source : str, Path, tuple, DataFrame, Dataset or NoisyDataset
        One of

        - a path to an .npz, .npy, .csv, .tsv, .jsonl (also .gz), .parquet or .xlsx file, or to a folder of
          .csv, .jsonl (also .gz) or .parquet files, which are parts of one table;
        - a path to a folder of images with one sub-folder per class, or with a table of labels;
        - a path to what other tools export: a Hugging Face data set (``save_to_disk``), WebDataset shards
          (.tar, or a folder of them), tasks of Label Studio (.json), COCO-style .json with one class per
          image, or FiftyOne's FiftyOneImageClassificationDataset or FiftyOneDataset;
        - a path to CIFAR-10 or CIFAR-100 as published (a folder or the archive, pickled or binary), or to
          WebVision 1.0 as published, of which the first 50 classes are read (Mini-WebVision);
        - a pandas, polars or Arrow data frame, a mapping of columns, a Hugging Face data set, a map-style
          data set of pairs (input, label) such as those of torch, or a pair (features, labels) of arrays or
          tensors;
        - "digits", the digits of scikit-learn, or "cifar10" or "cifar100", which are downloaded once;
        - a ``NoisyDataset``, which is returned unchanged.
    label : str or None, default=None
        Column or key of the labels; "label", "labels" or "y" if not set. For CIFAR-100 "fine" (the default)
        or "coarse".
    features : str, list of str, Path, array-like or None, default=None
        A column or key; a list of columns, their names with commas between them, or a pattern such as
        "emb_*"; one column of lists; or a path to an .npy file or an array with one row per sample. Named
        columns of dates, categories and texts, and numbers with empty cells, are kept as ``columns`` until
        an encoder turns them into features, as ``audit`` does. If not set, "features", "X" or "embeddings";
        in tables the one column of lists, or the one run of eight or more numbered columns of floats such as
        "emb_0", "emb_1" and so on. Other columns of numbers are used only if they are named. Several of them
        on very different scales are standardized before samples are compared, with a warning.
    labels : str, Path, array-like or None, default=None
        For .npy and .npz files: a path to an .npy file or to a text file with one label per line, or the
        labels. For a folder of images: a path to a table of file names and labels; "metadata.csv",
        "metadata.jsonl" or "labels.csv" in the folder if not set.
    images : str or None, default=None
        Key of the images in an .npz file, "images" if not set; column or field of images of a Hugging Face
        data set, a Parquet file or WebDataset shards, the only one if not set; or the folder of the images
        of a COCO file. Images that are files are not decoded, others are.
    id : str or None, default=None
        Column or key of the ids; "id" or "ids", if it exists, if not set. Samples without ids are identified
        by their paths or their content, as ``NoisyDataset.sample_ids`` says.
    text : str or None, default=None
        Column or key of the texts; "text" or "texts", if it exists, if not set.
    path : str or None, default=None
        Column or key of the paths of images; "path" or "paths", if it exists, if not set. Relative paths
        start at the folder of the table. For a folder of images with a table: its column of file names.
    true_label : str or None, default=None
        Column or key of the true labels; "true_label" or "true_labels", if it exists, if not set.
    missing_label : object, default=None
        A label that means "no label", besides ``None``, NaN and the empty string.
    split : str or None, default=None
        "train" (the default), "test" or "all" of CIFAR; "train" or "test" of WebVision; a split of a
        Hugging Face data set, in memory or on disk; files of a folder of tables, by name.
    image_size : int, tuple of (int, int) or None, default=None
        Side or (height, width) that images are resized to where they are read into memory (Hugging Face and
        map-style data sets, Parquet files, WebDataset shards); ``None`` requires that all have one size.
    labels_only : bool, default=False
        Whether labels are enough, as for an audit of given probabilities. Otherwise a table or archive
        without features, images, texts or paths is an error that lists its columns.
    annotator : str or None, default=None
        Column of the annotators of a long table, which has one row per label and, by ``id``, several per
        sample. Texts, paths and features of a sample are read from its first row.
    annotators : str, list of str or None, default=None
        Columns of labels, one per annotator, of a table with one row per sample: names, or a pattern such as
        "ann_*".
    samples : str, Path, DataFrame or None, default=None
        For a long table: another table with the samples, by ``id``, which has their texts, paths and
        features.

    Returns
    -------
    NoisyDataset

    Examples
    --------
    >>> from laplaceconfidence import read_dataset
    >>> read_dataset(([[0.0, 1.0], [1.0, 0.0]], ["cat", "dog"])).class_names
    ('cat', 'dog')
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
        labels_only=labels_only or None,
        annotator=annotator,
        annotators=annotators,
        samples=samples,
    )
    if isinstance(source, NoisyDataset):
        options.allow_only("a NoisyDataset")
        return source
    if options.are_of_annotators:
        return read_annotated(source, options)
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
    """Return whether a source was published with a test part, which ``split="test"`` reads.

    Parameters
    ----------
    source : str or Path
        As for ``read_dataset``.

    Returns
    -------
    bool
    """
    path = Path(source)
    if not path.exists():
        return str(source) in CIFAR_ARCHIVES
    if path.is_dir():
        return is_cifar_folder(path) or (path / VALIDATION_LIST).is_file()
    return path.name.lower().endswith(TAR_SUFFIXES) and is_cifar_archive(path)


def decodes_images(source: str | Path, *, split: str | None = None) -> bool:
    """Return whether the images of a source are decoded when it is read, for which ``image_size`` counts.

    Parameters
    ----------
    source : str or Path
        As for ``read_dataset``.
    split : str or None, default=None
        Part of a data set that has several.

    Returns
    -------
    bool
        True for WebDataset shards, and for Parquet files and Hugging Face folders with columns of images.
    """
    path = Path(source)
    if path.is_file() and path.name.lower().endswith(TAR_SUFFIXES):
        return not is_cifar_archive(path)
    if path.is_file() and path.name.lower().endswith((".parquet", ".pq")):
        with open_parquet([path]) as table:
            return bool(table.image_columns)
    reader = _folder_reader(path, ReadOptions()) if path.is_dir() else None
    if reader is read_table_folder:
        if table_kind(path) != "parquet":
            return False
        with open_parquet(table_parts(path, split)[:1]) as table:
            return bool(table.image_columns)
    if reader is read_huggingface_folder:
        return bool(open_huggingface_folder(path, split).image_columns)
    return reader is read_webdataset


def _read_path(path: Path, options: ReadOptions) -> NoisyDataset:
    try:
        exists = path.exists()
    except OSError:  # not a valid file name, or a folder without permission
        exists = False
    if not exists and str(path) in CIFAR_ARCHIVES:
        return read_cifar_archive(cifar_archive(str(path)), options)
    if not exists:
        raise must_be("source", "an existing file or folder, 'digits', 'cifar10' or 'cifar100'", str(path))
    if path.is_dir():
        return _folder_reader(path, options)(path, options)
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


def _folder_reader(path: Path, options: ReadOptions) -> Reader:
    if is_cifar_folder(path):
        return read_cifar_folder
    if is_webvision_folder(path):
        return read_webvision
    if is_huggingface_folder(path):
        return read_huggingface_folder
    if is_fiftyone_folder(path):
        return read_fiftyone_folder
    if is_labeled_by_table(path, options):
        return read_labeled_images
    if tar_files(path):
        return read_webdataset
    return read_image_folder if table_kind(path) is None else read_table_folder
