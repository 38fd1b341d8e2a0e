"""One self-contained page to look at after an audit or a training run."""

from laplaceconfidence.report.writing import write_report

__all__ = ["write_report"]
