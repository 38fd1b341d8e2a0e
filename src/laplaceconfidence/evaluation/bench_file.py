"""Bench files: what is measured on what, as TOML; those that come with the package have names.

.. code-block:: toml

    title = "Neighbors"
    seeds = 3                            # or a list of seeds
    preset = "image-folder-tiny"         # shared settings; by default selected by the shape of the data
    published = "method"                 # which published settings are used: "all", "method" or "none"

    [training]                           # shared settings that all methods get, whatever was published
    rounds = 20

    [settings.all]                       # settings of every method that has them
    warmup = 5

    [settings.dividemix]                 # settings of one method
    ramp = 5

    [[data]]
    name = "digits"
    source = "digits"
    noises = ["symmetric:0.5", "asymmetric:0.4"]
    test_share = 0.2

    [[contender]]
    name = "LC"
    method = "laplace"
    n_neighbors = [2, 10, 50]            # a list is a sweep: three contenders

    [[contender]]
    estimator = "knn-vote"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from laplaceconfidence.evaluation.bench_metrics import METRICS
from laplaceconfidence.evaluation.contenders import Contender, check_different, expand, with_settings
from laplaceconfidence.evaluation.grid import BenchTask
from laplaceconfidence.evaluation.noises import NONE, Noise
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError
from laplaceconfidence.validation import did_you_mean, must_be

Published = Literal["all", "method", "none"]
Figure = Literal["f1", "accuracy", "confusion", "features"]

_FOLDER = resources.files("laplaceconfidence") / "benches"
_PUBLISHED_NAMES = {"digits": "digits", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _ReadOptions(_Table):
    """How a source is read; see ``read_dataset``."""

    label: str | None = None
    features: str | list[str] | None = None
    labels: str | None = None
    images: str | None = None
    id: str | None = None
    path: str | None = None
    true_label: str | None = None
    missing_label: str | None = None
    split: str | None = None

    def read_options(self) -> dict[str, Any]:
        """The arguments of ``read_dataset`` that are stated."""
        return {
            name: value for name in _ReadOptions.model_fields if (value := getattr(self, name)) is not None
        }


class TestTable(_ReadOptions):
    """A test set: ``[[data.test]]``; what it leaves out is read as for the training samples."""

    __test__ = False  # pytest takes the name for a test

    name: str
    source: str | None = None


class DataTable(_ReadOptions):
    """One data set and the noises that are added to its labels: ``[[data]]``."""

    name: str = ""
    source: str | None = None
    noises: Annotated[tuple[str, ...], Field(min_length=1)] = (NONE,)
    mapping: dict[str, str] | None = None  # for asymmetric noise
    test: tuple[TestTable, ...] = ()
    test_share: float | None = Field(default=None, gt=0, lt=1)
    samples: int | None = Field(default=None, ge=2)  # how many are drawn at random; all by default
    image_size: int | None = Field(default=None, ge=1)
    skip_bad: bool = False
    preset: str | None = None
    published_as: str | None = None  # name of the data in published tables
    settings_of: str | None = None  # data whose published settings are used; by default these

    @model_validator(mode="after")
    def _named(self) -> DataTable:
        noises = tuple(dict.fromkeys(Noise.parse(noise).text for noise in self.noises))
        name = self.name or (Path(self.source).name.split(".")[0] if self.source else "")
        if not name:
            raise ValueError("'name' or 'source' must be given")
        published = self.published_as or _PUBLISHED_NAMES.get(self.source or "", name)
        settings_of = self.settings_of or published
        for key, value in (
            ("noises", noises),
            ("name", name),
            ("published_as", published),
            ("settings_of", settings_of),
        ):
            object.__setattr__(self, key, value)
        return self

    @property
    def parsed_noises(self) -> tuple[Noise, ...]:
        """The noises."""
        return tuple(Noise.parse(noise) for noise in self.noises)


class ContenderTable(BaseModel):
    """An estimator or a method: ``[[contender]]``; all other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str | None = None
    method: str | list[str] | None = None
    estimator: str | list[str] | None = None
    data: tuple[str, ...] | None = None
    noises: tuple[str, ...] | None = None
    published: Published | None = None
    published_as: str | None = None

    def contenders(self) -> list[Contender]:
        """What the entry stands for: one contender per kind and combination of swept settings."""
        if (self.method is None) == (self.estimator is None):
            raise must_be("contender", "stated with either 'method' or 'estimator'", self.name or "one")
        noises = self.noises and tuple(Noise.parse(noise).text for noise in self.noises)
        common = {
            "data": self.data,
            "noises": noises,
            "published": self.published,
            "published_as": self.published_as,
        } | ({} if self.name is None else {"name": self.name})
        extra = dict(self.model_extra or {})
        if self.method is not None:
            return expand("training", self.method, extra, **common)
        assert self.estimator is not None
        return expand("confidence", self.estimator, extra, **common)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bench:
    """What is measured on what, from a bench file or from the options of the command.

    Parameters
    ----------
    title : str
        What the bench shows.
    data : tuple of DataTable
        Data sets with their noises.
    contenders : tuple of Contender
        What is compared.
    seeds : tuple of int
        Seeds.
    preset : str or None
        Shared settings of training methods; ``None`` selects a preset by the shape of the data.
    published : {"all", "method", "none"}
        Which published settings are used.
    passes : float or None
        How often every network is trained on each sample; sets the rounds.
    training : mapping of str to Any
        Shared settings that replace those of the preset and published ones.
    metrics : tuple of str
        Metrics of the tables, in their order; empty for all.
    figures : tuple of str
        Figures of the report: "f1", "accuracy", "confusion", "features".
    """

    title: str = ""
    data: tuple[DataTable, ...]
    contenders: tuple[Contender, ...]
    seeds: tuple[int, ...]
    preset: str | None = None
    published: Published = "none"
    passes: float | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()

    @property
    def has_training(self) -> bool:
        """Whether networks are trained."""
        return any(contender.task == "training" for contender in self.contenders)

    def of_data(self, name: str, task: BenchTask) -> list[Contender]:
        """The contenders of a task that are measured on a data set."""
        noises = next(table.noises for table in self.data if table.name == name)
        return [
            one
            for one in self.contenders
            if one.task == task and any(one.is_measured(name, noise) for noise in noises)
        ]


class BenchFile(_Table):
    """Everything that a bench file states."""

    title: str = ""
    description: str = ""
    seeds: Annotated[int, Field(ge=1)] | Annotated[tuple[int, ...], Field(min_length=1)] = 3
    preset: str | None = None
    published: Published = "all"
    passes: float | None = Field(default=None, gt=0)
    training: dict[str, Any] = {}
    settings: dict[str, dict[str, Any]] = {}
    metrics: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    data: Annotated[tuple[DataTable, ...], Field(min_length=1)]
    contender: Annotated[tuple[ContenderTable, ...], Field(min_length=1)]

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else tuple(dict.fromkeys(self.seeds))

    @property
    def noises(self) -> dict[str, tuple[str, ...]]:
        """The noises by data set."""
        return {table.name: table.noises for table in self.data}

    def bench(self) -> Bench:
        """What the file stands for, with all sweeps carried out."""
        return Bench(
            title=self.title,
            data=self.data,
            contenders=tuple(self.contenders()),
            seeds=self.seed_numbers,
            preset=self.preset,
            published=self.published,
            passes=self.passes,
            training=self.training,
            metrics=self._checked_metrics(),
            figures=self.figures,
        )

    def _checked_metrics(self) -> tuple[str, ...]:
        known = {metric.name for metrics in METRICS.values() for metric in metrics}
        for name in self.metrics:
            if name not in known:
                rule = f"among {', '.join(sorted(known))}"
                raise must_be("metrics", rule, name, did_you_mean(name, known))
        return self.metrics

    def contenders(self) -> list[Contender]:
        """All contenders, checked against the data sets and noises."""
        columns = [(data, noise) for data, noises in self.noises.items() for noise in noises]
        if len(self.noises) < len(self.data):
            names = [table.name for table in self.data]
            raise must_be("data.name", "different for every data set", names)
        found = [contender for table in self.contender for contender in table.contenders()]
        found = with_settings(found, self.settings)
        for contender in found:
            for name in contender.data or ():
                if name not in self.noises:
                    rule = f"among {', '.join(map(repr, self.noises))}"
                    raise must_be("contender.data", rule, name, did_you_mean(name, self.noises))
            if not any(contender.is_measured(*column) for column in columns):
                rule = "such that the contender is measured under one of the noises of the data or more"
                raise must_be("contender.noises", rule, contender.noises)
        check_different(found, columns)
        return found


def bench_names() -> list[str]:
    """The names of the bench files that come with the package.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted(
        file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml")
    )


def is_bench_file(source: str) -> bool:
    """Whether a command was given a bench file, or the name of one, and no data.

    Parameters
    ----------
    source : str
        The argument of the command.

    Returns
    -------
    bool
    """
    is_data = Path(source).exists() and not Path(source, "bench.json").exists()  # that of an earlier run
    return source.endswith(".toml") or (source in bench_names() and not is_data)


def load_bench(name: str, sources: Mapping[str, str] | None = None) -> BenchFile:
    """A bench file by its name or path.

    Parameters
    ----------
    name : str
        One of ``bench_names()``, or a path that ends in ".toml".
    sources : mapping of str to str, optional
        Where data sets and test sets are, by their names in the file; replaces what the file states.

    Returns
    -------
    BenchFile
    """
    return _with_sources(read_bench_file(name), dict(sources or {}))


def read_bench_file(name: str) -> BenchFile:
    """A bench file as it is written: some of its data may have no source yet.

    Parameters
    ----------
    name : str
        One of ``bench_names()``, or a path that ends in ".toml".

    Returns
    -------
    BenchFile
    """
    where = f"The bench file {name}"
    try:
        if name.endswith(".toml"):
            text = Path(name).read_text(encoding="utf-8")
        elif name in bench_names():
            text = (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
        else:
            advice = did_you_mean(name, bench_names()) or f"There are {', '.join(bench_names())}."
            raise must_be("bench", "the name of a bench or a path to a TOML file", name, advice)
        content = tomllib.loads(text)
    except FileNotFoundError:
        raise must_be("bench", "an existing TOML file", name) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataFormatError(f"{where} is not TOML: {error}.") from error
    return checked_bench(content, where)


def checked_bench(content: Mapping[str, Any], where: str) -> BenchFile:
    """Check the content of a bench file.

    Parameters
    ----------
    content : mapping of str to Any
        The tables.
    where : str
        What errors call it.

    Returns
    -------
    BenchFile
    """
    try:
        return BenchFile.model_validate(content)
    except ValidationError as error:
        raise InvalidInputError(_explained(error, where)) from error


_BY_KEY: dict[str, type[BaseModel]] = {"data": DataTable, "contender": ContenderTable, "test": TestTable}


def _explained(error: ValidationError, where: str) -> str:
    """The first problem in words: the key, the rule and the value; for unknown keys the closest one."""
    problem = error.errors()[0]
    keys = [part for part in problem["loc"] if isinstance(part, str) and not part.startswith("constrained")]
    shown = ".".join(keys)
    if problem["type"] == "missing":
        return f"{where} must state '{shown}'."
    if problem["type"] != "extra_forbidden":
        return f"{where}: '{shown}' cannot be {problem['input']!r}: {problem['msg']}."
    table: type[BaseModel] = BenchFile
    for key in keys[:-1]:
        table = _BY_KEY.get(key, table)
    valid = sorted(table.model_fields)
    parts = (
        f"{where} has no key '{shown}'.",
        did_you_mean(keys[-1], valid),
        f"The valid ones here: {', '.join(valid)}.",
    )
    return " ".join(part for part in parts if part)


def _with_sources(bench: BenchFile, sources: dict[str, str]) -> BenchFile:
    """The bench with data where the caller says that they are; none may be left without a source."""
    names = [name for table in bench.data for name in (table.name, *(test.name for test in table.test))]
    for name in sources:
        if name not in names:
            rule = f"the name of data of this bench ({', '.join(names)}) and where they are"
            raise must_be("data", rule, f"{name}={sources[name]}", did_you_mean(name, names))

    def placed(name: str, source: str | None) -> str:
        found = sources.get(name, source)
        if found is None:
            advice = f"Say where they are with --data '{name}=PATH'."
            raise must_be("data", "given for every data set of this bench", f"nothing for {name}", advice)
        return found

    tables = []
    for table in bench.data:
        source = placed(table.name, table.source)
        tests = tuple(
            # Other columns, keys or another split of the same source need no path of their own.
            test.model_copy(
                update={"source": placed(test.name, test.source or (source if test.read_options() else None))}
            )
            for test in table.test
        )
        tables.append(table.model_copy(update={"source": source, "test": tests}))
    return bench.model_copy(update={"data": tuple(tables)})
