"""Write the report of a run as one HTML file, and its figures as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from laplaceconfidence.exceptions import MissingDependencyError, RunFolderError
from laplaceconfidence.files import replacing
from laplaceconfidence.records.audit_run import read_audit
from laplaceconfidence.records.bench_run import read_bench
from laplaceconfidence.records.run_folder import record_name
from laplaceconfidence.records.training_run import is_training_run, read_training
from laplaceconfidence.report.drawing import Drawing, Page
from laplaceconfidence.stages import stage

if TYPE_CHECKING:
    from jinja2 import Environment

REPORT = "report.html"
MOST_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written.

    Parameters
    ----------
    path : pathlib.Path
        The HTML file.
    figures : tuple of pathlib.Path
        The figures as files.
    """

    path: Path
    figures: tuple[Path, ...]


def write_report(
    run: str | Path, out: str | Path | None = None, *, figures: str | Path | None = None
) -> Report:
    """Write the report of an audit, a training run or a bench: one HTML file that needs no network.

    Parameters
    ----------
    run : str or pathlib.Path
        The folder of the run.
    out : str or pathlib.Path, optional
        The file to write; ``report.html`` in the folder of the run by default.
    figures : str or pathlib.Path, optional
        A folder for every figure as PDF and PNG; by default they are not written.

    Returns
    -------
    Report
    """
    folder = Path(run)
    path = folder / REPORT if out is None else Path(out)
    if out is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise RunFolderError(
            f"The report cannot be written to {path}: it must be a file in an existing folder."
        )
    page = _page(folder)
    try:
        environment = _environment()
        with stage("figures"):
            shown = {d.name: {"title": d.title, "alt": d.alt, "svg": d.svg()} for d in page.drawings}
    except ImportError as error:
        raise MissingDependencyError(
            f"Reports need {error.name}: pip install 'laplaceconfidence[review]'"
        ) from error
    html = environment.get_template(page.template).render(
        folder=folder.absolute().name, figures=shown, **page.content
    )
    if len(html.encode()) > MOST_BYTES:
        raise RunFolderError(
            f"The report would be {len(html.encode()) / 1e6:.0f} MB, too large for an e-mail: class names or "
            "settings of this run are too long."
        )
    with replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return Report(path, _saved(page.drawings, figures))


def _page(folder: Path) -> Page:
    """The report by the kind of run."""
    from laplaceconfidence.report.audit_page import audit_page
    from laplaceconfidence.report.bench_page import bench_page
    from laplaceconfidence.report.training_page import training_page

    if (folder / record_name("bench")).is_file():
        with stage("reading"):
            return bench_page(read_bench(folder))
    if is_training_run(folder) and not (folder / record_name("audit")).is_file():
        return training_page(read_training(folder))
    with stage("reading"):
        return audit_page(read_audit(folder))


def share(value: float | None) -> str:
    """Format a share in percent; what is nearly 0 or nearly 1 is not rounded to it.

    Parameters
    ----------
    value : float or None
        The share.

    Returns
    -------
    str

    Examples
    --------
    >>> share(0.416), share(0.99999), share(0.0001), share(1.0), share(None)
    ('41.6%', '>99.9%', '<0.1%', '100.0%', '–')
    """
    if value is None:
        return "–"
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1:
        return ">99.9%"
    return f"{value:.1%}"


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
