"""Options of the readers, and the search for columns and keys by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from laplaceconfidence.data.dataset import SourceKind
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be

USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "label": ("label", "labels", "y"),
    "features": ("features", "X", "embeddings", "embedding"),
    "images": ("images",),
    "id": ("id", "ids"),
    "text": ("text", "texts"),
    "path": ("path", "paths"),
    "true_label": ("true_label", "true_labels"),
    "annotator": (),
    "class_names": ("class_names",),
}
"""Names of columns and keys that are tried in order if the user names none."""


_INTERNAL = ("classes", "keeps_cells")  # fields of ReadOptions that are no options of ``read_dataset``


@dataclass(frozen=True, slots=True, eq=False)
class ReadOptions:
    """Options of ``read_dataset``, which describes them; ``None`` if the user did not set one."""

    label: str | None = None
    features: Any = None
    labels: Any = None
    images: str | None = None
    id: str | None = None
    text: str | None = None
    path: str | None = None
    true_label: str | None = None
    missing_label: object = None
    split: str | None = None
    image_size: int | tuple[int, int] | None = None
    labels_only: bool | None = None
    annotator: str | None = None
    annotators: Any = None
    samples: Any = None
    classes: tuple[str, ...] | None = None
    """The classes of samples to predict, which need no labels; not an option of ``read_dataset``."""
    keeps_cells: bool = False
    """Whether named columns are read as they are, for an encoder; not an option of ``read_dataset``."""

    @property
    def are_of_annotators(self) -> bool:
        """Whether the source has labels of several annotators."""
        return any(value is not None for value in (self.annotator, self.annotators, self.samples))

    @property
    def given(self) -> dict[str, Any]:
        """The options of ``read_dataset`` that are not ``None``, by name."""
        values = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in _INTERNAL
        }
        return {name: value for name, value in values.items() if value is not None}

    def allow_only(self, source: str, *names: str) -> None:
        """Raise if an option is set that does not apply to this kind of source.

        Parameters
        ----------
        source : str
            The kind of source in error messages, such as "a CSV file".
        *names : str
            Options that apply; ``labels_only`` always does.
        """
        for name, value in self.given.items():
            if name not in (*names, "labels_only"):
                applicable = ", ".join(repr(name) for name in names) or "none"
                raise must_be(name, f"left out for {source}", value, f"Options that apply: {applicable}.")


def names_column(requested: Any, name: str) -> bool:
    """Return whether a column is one of those that an option such as ``features`` names.

    Parameters
    ----------
    requested : str or sequence of str
        A name, names with commas between them, a pattern such as "ann_*", or a list of names.
    name : str
        The column.

    Returns
    -------
    bool
    """
    if not isinstance(requested, str):
        return name in requested
    if name == requested or fnmatchcase(name, requested):
        return True
    return "," in requested and any(names_column(part.strip(), name) for part in requested.split(","))


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of a table or the keys of an archive.

    Attributes
    ----------
    existing : sequence of str
        The names.
    what : str
        "columns" or "keys", for error messages.
    origin : str
        The file or object they belong to, for error messages.
    """

    existing: Sequence[str]
    what: str
    origin: str

    def find(self, parameter: str, requested: str | None) -> str | None:
        """Return the requested name, which must exist, or the first usual name that exists.

        Parameters
        ----------
        parameter : str
            The option that names the column or key, a key of ``USUAL_NAMES``.
        requested : str or None
            Its value.

        Returns
        -------
        str or None
            ``None`` if nothing was requested and no usual name exists.
        """
        if requested is None:
            return next((name for name in USUAL_NAMES[parameter] if name in self.existing), None)
        if requested not in self.existing:
            raise must_be(parameter, f"one of the {self.what} of {self.origin}", requested, self.listed())
        return requested

    def require(self, parameter: str, requested: str | None) -> str:
        """Like ``find``, but raise if there is none.

        Parameters
        ----------
        parameter : str
            As in ``find``.
        requested : str or None
            As in ``find``.

        Returns
        -------
        str
        """
        name = self.find(parameter, requested)
        if name is None:
            usual = ", ".join(repr(usual) for usual in USUAL_NAMES[parameter])
            raise must_be(
                parameter,
                f"given, as {self.origin} has none of the usual {self.what} {usual}",
                requested,
                self.listed(),
            )
        return name

    def find_source(self, options: ReadOptions) -> tuple[SourceKind | None, str | None]:
        """Find the column or key of the texts or of the paths of images.

        Parameters
        ----------
        options : ReadOptions
            ``text`` or ``path`` may name it.

        Returns
        -------
        kind : {"text", "image"} or None
            ``None`` if there is neither.
        name : str or None
            The column or key.
        """
        if options.text is not None and options.path is not None:
            rule = "left out if 'text' is given, as only one of them is shown"
            raise must_be("path", rule, options.path)
        if options.path is None and (text := self.find("text", options.text)) is not None:
            return "text", text
        path = self.find("path", options.path)
        return ("image", path) if path is not None else (None, None)

    def is_not_a_name(self, features: Any) -> bool:
        """Return whether ``features`` is an .npy file or an array, and not a name in the source.

        Parameters
        ----------
        features : object
            The option ``features``.

        Returns
        -------
        bool
        """
        if isinstance(features, str):
            return features.endswith(".npy") and features not in self.existing
        is_names = isinstance(features, (list, tuple)) and all(isinstance(name, str) for name in features)
        return features is not None and not is_names

    def no_inputs_error(self, advice: str | None = None) -> InvalidInputError:
        """Make the error for a source that has labels, but no features, images, texts or paths.

        Parameters
        ----------
        advice : str or None, default=None
            Which names could be features; ``None`` lists all names.

        Returns
        -------
        InvalidInputError
        """
        if advice is not None:
            return InvalidInputError(
                f"The 'features' parameter must be given, as {self.origin} has no columns, or several sets "
                "of columns, that are clearly an embedding (a column of lists, or eight or more numbered "
                f"columns of floats). {advice}"
            )
        return InvalidInputError(
            f"{self.origin} holds labels but no features, images, texts or paths under a usual name: "
            f"name the {self.what} to use with 'features', 'text' or 'path'. {self.listed()}"
        )

    def listed(self, most: int = 30) -> str:
        """List the names that exist, in a sentence.

        Parameters
        ----------
        most : int, default=30
            Largest number of names to list.

        Returns
        -------
        str
        """
        shown = ", ".join(repr(name) for name in self.existing[:most])
        more = f", ... ({len(self.existing)} in all)" if len(self.existing) > most else ""
        return f"Existing {self.what}: {shown or 'none'}{more}."
