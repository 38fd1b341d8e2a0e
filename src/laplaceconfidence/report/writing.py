"""The report of a run as one HTML file, and its figures as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.exceptions import MissingDependencyError, RunFolderError
from laplaceconfidence.files import replacing
from laplaceconfidence.records.audit_run import read_audit
from laplaceconfidence.records.bench_run import read_bench
from laplaceconfidence.records.run_folder import record_name
from laplaceconfidence.records.training_run import is_training_run, read_training
from laplaceconfidence.report.drawing import Drawing
from laplaceconfidence.report.wording import share
from laplaceconfidence.stages import stage

if TYPE_CHECKING:
    from jinja2 import Environment

REPORT = "report.html"
MOST_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Report:
    """Where a report and its figures are."""

    path: Path
    figures: tuple[Path, ...]


def write_report(
    run: str | Path, out: str | Path | None = None, *, figures: str | Path | None = None
) -> Report:
    """Write the report of an audit, a training run or a bench, by default into its folder.

    It is one file that needs no network. ``figures`` is a folder for every figure as PDF and PNG.
    """
    folder = Path(run)
    path = folder / REPORT if out is None else Path(out)
    if out is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise RunFolderError(
            f"The report cannot be written to {path}: it must be a file in an existing folder."
        )
    drawings, template, content = _content(folder)
    try:
        environment = _environment()
        with stage("figures"):
            shown = [{"title": d.title, "alt": d.alt, "name": d.name, "svg": d.svg()} for d in drawings]
    except ImportError as error:
        raise MissingDependencyError(
            f"Reports need {error.name}: pip install 'laplaceconfidence[review]'"
        ) from error
    html = environment.get_template(template).render(
        folder=folder.absolute().name, figures={figure["name"]: figure for figure in shown}, **content
    )
    if len(html.encode()) > MOST_BYTES:
        raise RunFolderError(
            f"The report would take {len(html.encode()) / 1e6:.0f} MB, more than a mail takes: class names "
            "or settings of this run are too long."
        )
    with replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return Report(path, _saved(drawings, figures))


def _content(folder: Path) -> tuple[list[Drawing], str, dict[str, Any]]:
    """The figures, the template and what to fill it with, by the kind of run."""
    from laplaceconfidence.report.audit_page import audit_page
    from laplaceconfidence.report.bench_page import bench_page
    from laplaceconfidence.report.training_page import training_page

    if (folder / record_name("bench")).is_file():
        with stage("reading"):
            bench = bench_page(read_bench(folder))
        return bench.drawings, "bench.html", bench.content
    if is_training_run(folder) and not (folder / record_name("audit")).is_file():
        training = training_page(read_training(folder))
        return training.drawings, "training.html", training.content
    with stage("reading"):
        audit = audit_page(read_audit(folder))
    return audit.drawings, "audit.html", audit.content


def _saved(drawings: list[Drawing], figures: str | Path | None) -> tuple[Path, ...]:
    if figures is None:
        return ()
    folder = Path(figures)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"The figures cannot be written to {folder}: {error.strerror}.") from error
    return tuple(path for drawing in drawings for path in drawing.save(folder))


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("laplaceconfidence.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = share
    environment.filters["count"] = lambda value: f"{value:,}"
    return environment
